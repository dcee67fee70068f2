// SPDX-License-Identifier: Apache-2.0
// Events of the simulator's engine: what a record refers to, what waits and queries need, and times.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace isthmus::sim::engine::tests {
namespace {

TEST(EngineEvents, AnEventThatWasNeverRecordedIsComplete) {
    Engine engine(threads(), nullptr);
    const EventId event = engine.create_event(true);
    EXPECT_EQ(engine.query_event(event), code::ok);
    EXPECT_EQ(engine.synchronize_event(event), code::ok);
    EXPECT_EQ(engine.wait(engine.create_stream(0, {}), event), code::ok);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
}

TEST(EngineEvents, AWaitOrdersTwoStreamsWithoutBlockingTheHost) {  // keeps S10
    Log log;
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId a = engine.create_stream(0, non_blocking());
    const StreamId b = engine.create_stream(0, non_blocking());
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(a, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(a, logs(log, "a")), code::ok);
    ASSERT_EQ(engine.record(event, a), code::ok);
    ASSERT_EQ(engine.wait(b, event), code::ok);
    ASSERT_EQ(engine.submit(b, logs(log, "b")), code::ok);
    EXPECT_EQ(engine.query_event(event), code::not_ready);
    EXPECT_EQ(engine.query(b), code::not_ready);
    gate.open();
    ASSERT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"a", "b"}));
    EXPECT_EQ(engine.query_event(event), code::ok);
}

TEST(EngineEvents, AWaitMayCrossDevices) {  // keeps S10
    Log log;
    Gate gate;
    Engine engine(threads(2), nullptr);
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), logs(log, "first device")), code::ok);
    ASSERT_EQ(engine.record(event, engine.legacy_stream(0)), code::ok);
    ASSERT_EQ(engine.wait(engine.legacy_stream(1), event), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(1), logs(log, "second device")), code::ok);
    gate.open();
    ASSERT_EQ(engine.synchronize_device(1), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"first device", "second device"}));
}

TEST(EngineEvents, AWaitTakesTheRecordCurrentWhenItWasCalled) {
    Gate never, gate;
    Engine engine(threads(), nullptr);
    const StreamId a = engine.create_stream(0, non_blocking());
    const StreamId b = engine.create_stream(0, non_blocking());
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(a, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.record(event, a), code::ok);
    ASSERT_EQ(engine.wait(b, event), code::ok);
    ASSERT_EQ(engine.submit(a, waits_for(never)), code::ok);
    ASSERT_EQ(engine.record(event, a), code::ok);  // a new record, which does not change the wait of b
    gate.open();
    EXPECT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(engine.query_event(event), code::not_ready);
    never.open();
    EXPECT_EQ(engine.synchronize_event(event), code::ok);
}

TEST(EngineEvents, ARecordCoversWhatWasSubmittedBeforeItAndNothingLater) {
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.record(event, stream), code::ok);
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    EXPECT_EQ(engine.synchronize_event(event), code::ok);
    EXPECT_EQ(engine.query(stream), code::not_ready);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), code::ok);
}

TEST(EngineEvents, AnEventOutlivesItsStreamAndAWaitOutlivesItsEvent) {
    Gate gate;
    Log log;
    Engine engine(threads(), nullptr);
    const StreamId a = engine.create_stream(0, non_blocking());
    const StreamId b = engine.create_stream(0, non_blocking());
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(a, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(a, logs(log, "a")), code::ok);
    ASSERT_EQ(engine.record(event, a), code::ok);
    ASSERT_EQ(engine.destroy_stream(a), code::ok);
    EXPECT_EQ(engine.query_event(event), code::not_ready);
    ASSERT_EQ(engine.wait(b, event), code::ok);
    ASSERT_EQ(engine.destroy_event(event), code::ok);
    ASSERT_EQ(engine.submit(b, logs(log, "b")), code::ok);
    gate.open();
    ASSERT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"a", "b"}));
}

TEST(EngineEvents, AStaleEventIsRefusedEverywhere) {  // keeps S18
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId stale = engine.create_event(true);
    const EventId good = engine.create_event(true);
    ASSERT_EQ(engine.destroy_event(stale), code::ok);
    std::int64_t nanoseconds = 0;
    EXPECT_EQ(engine.destroy_event(stale), code::invalid_handle);
    EXPECT_EQ(engine.record(stale, stream), code::invalid_handle);
    EXPECT_EQ(engine.wait(stream, stale), code::invalid_handle);
    EXPECT_EQ(engine.query_event(stale), code::invalid_handle);
    EXPECT_EQ(engine.synchronize_event(stale), code::invalid_handle);
    EXPECT_EQ(engine.elapsed_ns(stale, good, nanoseconds), code::invalid_handle);
}

TEST(EngineEvents, ElapsedTimeNeedsTwoRecordedTimingEventsThatHaveEnded) {  // keeps S11
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId start = engine.create_event(true);
    const EventId end = engine.create_event(true);
    const EventId plain = engine.create_event(false);
    std::int64_t nanoseconds = -1;
    EXPECT_EQ(engine.elapsed_ns(start, end, nanoseconds), code::invalid_handle);
    ASSERT_EQ(engine.record(start, stream), code::ok);
    ASSERT_EQ(engine.record(plain, stream), code::ok);
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.record(end, stream), code::ok);
    EXPECT_EQ(engine.elapsed_ns(start, end, nanoseconds), code::not_ready);
    gate.open();
    ASSERT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(engine.elapsed_ns(start, plain, nanoseconds), code::invalid_handle);
    EXPECT_EQ(nanoseconds, -1);
    EXPECT_EQ(engine.elapsed_ns(start, end, nanoseconds), code::ok);
    EXPECT_GE(nanoseconds, 0);
}

Options observing(int devices = 1) {
    Options options = threads(devices);
    options.track_observation = true;
    return options;
}

TEST(EngineObservation, GpuWorkStaysUnobservedUntilTheHostSynchronises) {  // keeps G8
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    EXPECT_FALSE(engine.has_unobserved_work(0));
    ASSERT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    EXPECT_TRUE(engine.has_unobserved_work(stream));
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
    EXPECT_FALSE(engine.has_unobserved_work(stream));
}

TEST(EngineObservation, SynchronisingOneStreamSaysNothingAboutAnother) {
    Engine engine(observing(), nullptr);
    const StreamId a = engine.create_stream(0, {});
    const StreamId b = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(a, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.submit(b, kernel([] { return 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(a));
    EXPECT_TRUE(engine.has_unobserved_work(b));
    EXPECT_TRUE(engine.has_unobserved_work(0));
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, WhatAWaitOrderedIsObservedWithWhatWaited) {
    Engine engine(observing(), nullptr);
    const StreamId a = engine.create_stream(0, non_blocking());
    const StreamId b = engine.create_stream(0, non_blocking());
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(a, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.record(event, a), code::ok);
    ASSERT_EQ(engine.submit(a, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.wait(b, event), code::ok);
    EXPECT_EQ(engine.synchronize(b), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(a));  // its second kernel came after the record
    ASSERT_EQ(engine.record(event, a), code::ok);
    EXPECT_EQ(engine.synchronize_event(event), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(a));
}

TEST(EngineObservation, DestroyingAnUnsynchronisedStreamDoesNotObserveIt) {
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.destroy_stream(stream), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    EXPECT_EQ(engine.synchronize(engine.create_stream(0, {})), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, SynchronisingTheDeviceObservesADestroyedStreamThatEndedLongAgo) {
    bool ran = false;
    Options options = seeded(1);
    options.track_observation = true;
    Engine engine(options, nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; })), code::ok);
    while (!ran) engine.progress();
    ASSERT_EQ(engine.destroy_stream(stream), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, AWaitThatReportsAStickyErrorObservesTheWholeDevice) {
    Gate gate;
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(stream, fails_with(700)), code::ok);
    ASSERT_EQ(engine.submit(engine.create_stream(0, {}), kernel([] { return 0; })), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), 700);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, AQueryObservesOnlyWhereItSaysComplete) {
    Gate gate;
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    EXPECT_EQ(engine.query(stream), code::not_ready);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    gate.open();
    while (engine.query(stream) == code::not_ready) {
    }
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, AHostFunctionObservesWhatItFollows) {
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    std::optional<bool> unobserved;
    ASSERT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function,
                                              [&] {
                                                  unobserved = engine.has_unobserved_work(stream);
                                                  return 0;
                                              })),
              code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(unobserved, false);
}

TEST(EngineObservation, OrderingAndHostWorkAreNoGpuWork) {
    Engine engine(observing(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function, [] { return 0; })), code::ok);
    ASSERT_EQ(engine.record(event, stream), code::ok);
    ASSERT_EQ(engine.wait(stream, event), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

TEST(EngineObservation, DevicesAreObservedSeparately) {
    Engine engine(observing(2), nullptr);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), kernel([] { return 0; })), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(1));
    EXPECT_EQ(engine.synchronize_device(1), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
