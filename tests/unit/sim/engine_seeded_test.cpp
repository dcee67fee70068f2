// SPDX-License-Identifier: Apache-2.0
// The seeded mode of the simulator's engine: nothing runs by itself, and the seed decides the order.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace isthmus::sim::engine::tests {
namespace {

// Four streams of five operations each, with one dependency across and progress at every call, as a driver would.
Entries run_workload(std::uint64_t seed) {
    Log log;
    Engine engine(seeded(seed), nullptr);
    std::vector<StreamId> streams;
    for (int s = 0; s < 4; ++s) streams.push_back(engine.create_stream(0, non_blocking()));
    const EventId event = engine.create_event(true);
    for (int i = 0; i < 5; ++i) {
        for (int s = 0; s < 4; ++s) {
            engine.progress();
            EXPECT_EQ(engine.submit(streams[s], logs(log, std::to_string(s) + "." + std::to_string(i))), code::ok);
        }
        if (i == 2) {
            EXPECT_EQ(engine.record(event, streams[0]), code::ok);
            EXPECT_EQ(engine.wait(streams[1], event), code::ok);
        }
    }
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    log.add("time " + std::to_string(engine.now_ns()));
    return log.entries();
}

TEST(EngineSeeded, TheSameSeedGivesTheSameOrderAndTheSameTimes) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(run_workload(seed), run_workload(seed)) << seed;
}

TEST(EngineSeeded, DifferentSeedsGiveDifferentOrdersOfConcurrentWork) {
    std::set<Entries> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) orders.insert(run_workload(seed));
    EXPECT_EQ(orders.size(), 20u);  // of more than 10^10 possible ones
}

TEST(EngineSeeded, EveryOrderKeepsStreamsAndEvents) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const Entries order = run_workload(seed);
        const auto at = [&](const char* entry) { return std::find(order.begin(), order.end(), entry) - order.begin(); };
        for (const char* stream : {"0.", "1.", "2.", "3."}) {
            for (int i = 0; i < 4; ++i) {
                EXPECT_LT(at((stream + std::to_string(i)).c_str()), at((stream + std::to_string(i + 1)).c_str()));
            }
        }
        EXPECT_LT(at("0.2"), at("1.3")) << "seed " << seed;
    }
}

TEST(EngineSeeded, ABodyThatIsNotReadyLetsOtherWorkRunAndGoesOnWhereItWas) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Engine engine(seeded(seed), nullptr);
        const StreamId waiting = engine.create_stream(0, non_blocking()),
                       writing = engine.create_stream(0, non_blocking());
        bool written = false;
        int firsts = 0, ends = 0;
        const auto body = [&] {
            std::uint64_t& at = Engine::reached();
            if (at == 0) ++firsts;
            at = 1;
            if (!written) return code::later;
            ++ends;
            return code::ok;
        };
        ASSERT_EQ(engine.submit(waiting, kernel(body)), code::ok);
        ASSERT_EQ(engine.submit(waiting, kernel([&] {
                                    EXPECT_EQ(ends, 1);
                                    return 0;
                                })),
                  code::ok);
        ASSERT_EQ(engine.submit(writing, kernel([&] {
                                    written = true;
                                    return 0;
                                })),
                  code::ok);
        ASSERT_EQ(engine.synchronize(waiting), code::ok);
        EXPECT_TRUE(written && firsts == 1 && ends == 1) << "seed " << seed;
    }
}

TEST(EngineSeeded, AnotherThreadMayBringWhatABodyWaitsFor) {
    Engine engine(seeded(1), nullptr);
    const StreamId stream = engine.create_stream(0, non_blocking());
    std::atomic<bool> written{false};
    ASSERT_EQ(engine.submit(stream, kernel([&] { return written ? code::ok : code::later; })), code::ok);
    std::thread writer([&] { written = true; });
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    writer.join();
}

TEST(EngineSeeded, ALostDeviceEndsABodyThatIsNotReady) {
    Engine engine(seeded(1), nullptr);
    const StreamId stream = engine.create_stream(0, non_blocking());
    ASSERT_EQ(engine.submit(stream, kernel([] { return code::later; })), code::ok);
    engine.latch(0, 719);
    EXPECT_EQ(engine.synchronize(stream), 719);
}

TEST(EngineSeeded, NothingRunsOutsideOfProgressAndSynchronisation) {
    Log log;
    Engine engine(seeded(7), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, logs(log, "ran")), code::ok);
    EXPECT_EQ(engine.query(stream), code::not_ready);
    EXPECT_EQ(log.entries(), Entries{});
    while (engine.query(stream) == code::not_ready) engine.progress();
    EXPECT_EQ(log.entries(), Entries{"ran"});
}

TEST(EngineSeeded, AWaitRunsOnlyUntilWhatItWaitsForHasEnded) {
    bool left_unrun = false;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        bool other_ran = false;
        Engine engine(seeded(seed), nullptr);
        const StreamId a = engine.create_stream(0, non_blocking());
        const StreamId b = engine.create_stream(0, non_blocking());
        ASSERT_EQ(engine.submit(a, kernel([] { return 0; })), code::ok);
        ASSERT_EQ(engine.submit(b, kernel([&] { return other_ran = true, 0; })), code::ok);
        ASSERT_EQ(engine.synchronize(a), code::ok);
        if (!other_ran) left_unrun = true;
        ASSERT_EQ(engine.synchronize(b), code::ok);
        EXPECT_TRUE(other_ran);
    }
    EXPECT_TRUE(left_unrun);
}

TEST(EngineSeeded, PlannedDelaysPassInVirtualTime) {
    Log log;
    Engine engine(seeded(3), nullptr);
    const StreamId slow = engine.create_stream(0, non_blocking());
    const StreamId quick = engine.create_stream(0, non_blocking());
    const EventId start = engine.create_event(true);
    const EventId end = engine.create_event(true);
    Operation delayed = logs(log, "delayed by an hour");
    delayed.delay_ns = 3'600'000'000'000;
    ASSERT_EQ(engine.record(start, slow), code::ok);
    ASSERT_EQ(engine.submit(slow, delayed), code::ok);
    ASSERT_EQ(engine.record(end, slow), code::ok);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(engine.submit(quick, logs(log, "quick")), code::ok);
    ASSERT_EQ(engine.synchronize(slow), code::ok);
    EXPECT_EQ(log.entries().back(), "delayed by an hour");
    std::int64_t nanoseconds = 0;
    ASSERT_EQ(engine.elapsed_ns(start, end, nanoseconds), code::ok);
    EXPECT_GE(nanoseconds, 3'600'000'000'000);
}

TEST(EngineSeeded, AStickyErrorDropsWhatHasNotRun) {
    bool ran = false;
    int seen = -1;
    Engine engine(seeded(5), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    Operation callback;
    callback.kind = Kind::stream_callback;
    callback.callback = [&](int code) { seen = code; };
    ASSERT_EQ(engine.submit(stream, fails_with(700)), code::ok);
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function, [&] { return ran = true, 0; })), code::ok);
    ASSERT_EQ(engine.submit(stream, callback), code::ok);
    EXPECT_EQ(engine.synchronize(stream), 700);
    EXPECT_FALSE(ran);
    EXPECT_EQ(seen, 700);
}

TEST(EngineSeeded, GraphBranchesRunInDifferentOrdersToo) {
    std::set<Entries> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Log log;
        Engine engine(seeded(seed), nullptr);
        GraphInstance instance;
        const NodeIndex root = instance.graph.add(logs(log, "root"), {});
        std::vector<NodeIndex> branches;
        for (int i = 0; i < 4; ++i) branches.push_back(instance.graph.add(logs(log, std::to_string(i)), {root}));
        instance.graph.add(logs(log, "join"), branches);
        ASSERT_EQ(engine.launch(engine.legacy_stream(0), instance), code::ok);
        ASSERT_EQ(engine.synchronize_device(0), code::ok);
        const Entries order = log.entries();
        ASSERT_EQ(order.size(), 6u);
        EXPECT_EQ(order.front(), "root");
        EXPECT_EQ(order.back(), "join");
        orders.insert(order);
    }
    EXPECT_GT(orders.size(), 5u);
}

TEST(EngineSeeded, TwoThreadsThatWaitRunEachOthersWork) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::atomic<int> ran = 0;
        Engine engine(seeded(seed), nullptr);
        const auto use = [&] {
            const StreamId stream = engine.create_stream(0, {});
            for (int i = 0; i < 50; ++i) {
                engine.progress();
                EXPECT_EQ(engine.submit(stream, kernel([&] { return ++ran, 0; })), code::ok);
            }
            EXPECT_EQ(engine.synchronize(stream), code::ok);
        };
        std::thread other(use);
        use();
        other.join();
        EXPECT_EQ(ran, 100);
    }
}

TEST(EngineSeeded, PendingWorkIsDroppedWithTheEngine) {
    bool ran = false;
    {
        Engine engine(seeded(1), nullptr);
        const StreamId stream = engine.create_stream(0, {});
        for (int i = 0; i < 3; ++i) ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; })), code::ok);
    }
    EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
