// SPDX-License-Identifier: Apache-2.0
// Streams of the simulator's engine: order within one, concurrency between them, barriers, and their destruction.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace isthmus::sim::engine::tests {
namespace {

TEST(EngineStreams, SubmittingReturnsBeforeTheOperationEnds) {  // keeps S1
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    EXPECT_EQ(engine.query(stream), code::not_ready);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(engine.query(stream), code::ok);
}

TEST(EngineStreams, OperationsOfOneStreamRunInTheirOrder) {
    Log log;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    Entries expected;
    for (int i = 0; i < 200; ++i) {
        expected.push_back(std::to_string(i));
        ASSERT_EQ(engine.submit(stream, logs(log, expected.back())), code::ok);
    }
    ASSERT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(log.entries(), expected);
}

TEST(EngineStreams, OperationsOfTwoStreamsThatWaitForEachOtherBothEnd) {  // keeps S2
    Gate first, second;
    Engine engine(threads(), nullptr);
    const StreamId a = engine.create_stream(0, {});
    const StreamId b = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(a, kernel([&] { return first.open(), second.wait(), 0; })), code::ok);
    ASSERT_EQ(engine.submit(b, kernel([&] { return second.open(), first.wait(), 0; })), code::ok);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
}

TEST(EngineStreams, WorkOnTwoDevicesOverlaps) {  // keeps S2
    Gate first, second;
    Engine engine(threads(2), nullptr);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), kernel([&] { return first.open(), second.wait(), 0; })), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(1), kernel([&] { return second.open(), first.wait(), 0; })), code::ok);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(engine.synchronize_device(1), code::ok);
}

TEST(EngineStreams, ManyPersistentOperationsDoNotStarveOneMore) {
    Gate stop;
    Engine engine(threads(), nullptr);
    for (int i = 0; i < 40; ++i) {
        ASSERT_EQ(engine.submit(engine.create_stream(0, non_blocking()), waits_for(stop)), code::ok);
    }
    const StreamId stream = engine.create_stream(0, non_blocking());
    std::atomic<bool> ran = false;
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_TRUE(ran);
    stop.open();
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
}

TEST(EngineStreams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
    Log log;
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId a = engine.create_stream(0, {});
    const StreamId b = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(a, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(a, logs(log, "a")), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), logs(log, "legacy")), code::ok);
    ASSERT_EQ(engine.submit(b, logs(log, "b")), code::ok);
    EXPECT_EQ(engine.query(b), code::not_ready);
    gate.open();
    ASSERT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"a", "legacy", "b"}));
}

TEST(EngineStreams, NonBlockingStreamsIgnoreTheLegacyStream) {
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId free_running = engine.create_stream(0, non_blocking());
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(free_running, opens(gate)), code::ok);  // would never run behind the legacy stream
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
}

TEST(EngineStreams, LegacyStreamsOfTwoDevicesDoNotWaitForEachOther) {
    Gate gate;
    Engine engine(threads(2), nullptr);
    ASSERT_EQ(engine.submit(engine.create_stream(0, {}), waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(1), opens(gate)), code::ok);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
}

TEST(EngineStreams, ADestroyedStreamFinishesItsWork) {
    Gate gate;
    std::atomic<int> ran = 0;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ++ran, 0; })), code::ok);
    ASSERT_EQ(engine.destroy_stream(stream), code::ok);
    EXPECT_EQ(ran, 0);
    gate.open();
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(ran, 1);
}

TEST(EngineStreams, TheLegacyStreamWaitsForADestroyedBlockingStream) {
    Log log;
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(stream, logs(log, "destroyed")), code::ok);
    ASSERT_EQ(engine.destroy_stream(stream), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), logs(log, "legacy")), code::ok);
    gate.open();
    ASSERT_EQ(engine.synchronize(engine.legacy_stream(0)), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"destroyed", "legacy"}));
}

TEST(EngineStreams, AStaleStreamIsRefusedEverywhereAndItsIdentityIsNotReused) {  // keeps S17, S18
    Engine engine(threads(), nullptr);
    const StreamId stale = engine.create_stream(0, {});
    ASSERT_EQ(engine.destroy_stream(stale), code::ok);
    EXPECT_NE(engine.create_stream(0, {}), stale);
    EXPECT_FALSE(engine.stream_exists(stale));
    EXPECT_EQ(engine.stream_device(stale), -1);
    EXPECT_EQ(engine.destroy_stream(stale), code::invalid_handle);
    EXPECT_EQ(engine.submit(stale, kernel([] { return 0; })), code::invalid_handle);
    EXPECT_EQ(engine.query(stale), code::invalid_handle);
    EXPECT_EQ(engine.synchronize(stale), code::invalid_handle);
    const EventId event = engine.create_event(true);
    EXPECT_EQ(engine.record(event, stale), code::invalid_handle);
    EXPECT_EQ(engine.wait(stale, event), code::invalid_handle);
}

TEST(EngineStreams, TheLegacyStreamCannotBeDestroyed) {
    Engine engine(threads(), nullptr);
    EXPECT_EQ(engine.destroy_stream(engine.legacy_stream(0)), code::not_permitted);
}

TEST(EngineStreams, OneOperationCanBeWaitedForWhileLaterOnesGoOn) {
    Gate gate;
    std::atomic<bool> ran = false;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    WorkRef first;
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; }), &first), code::ok);
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    EXPECT_EQ(engine.synchronize(first), code::ok);
    EXPECT_TRUE(ran);
    EXPECT_EQ(engine.query(stream), code::not_ready);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), code::ok);
}

TEST(EngineStreams, APlannedDelayHoldsBackWhatFollowsAndNothingElse) {
    Log log;
    Engine engine(threads(), nullptr);
    const StreamId slow = engine.create_stream(0, {});
    Operation delayed = logs(log, "delayed");
    delayed.delay_ns = 20'000'000;
    ASSERT_EQ(engine.submit(slow, delayed), code::ok);
    ASSERT_EQ(engine.submit(slow, logs(log, "after")), code::ok);
    ASSERT_EQ(engine.synchronize(slow), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"delayed", "after"}));
}

// A program may leave a hung kernel behind: the engine is destroyed, the thread stays until the kernel ends.
TEST(EngineStreams, AnEngineCanGoWhileAnOperationStillRuns) {
    const auto gate = std::make_shared<Gate>();
    const auto ended = std::make_shared<Gate>();
    const auto pending_ran = std::make_shared<std::atomic<bool>>(false);
    {
        Options options = threads();
        options.grace_ns = 1'000'000;
        Engine engine(options, nullptr);
        const StreamId stream = engine.create_stream(0, {});
        Gate started;
        ASSERT_EQ(engine.submit(stream, kernel([gate, ended, &started] {
                                    started.open();
                                    gate->wait();
                                    ended->open();
                                    return 0;
                                })),
                  code::ok);
        ASSERT_EQ(engine.submit(stream, kernel([pending_ran] { return *pending_ran = true, 0; })), code::ok);
        started.wait();
    }
    gate->open();
    ended->wait();
    EXPECT_FALSE(*pending_ran);
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
