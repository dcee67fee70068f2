// SPDX-License-Identifier: Apache-2.0
// Captures and graphs of the simulator's engine: fork and join, replay, and everything that invalidates a capture.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace isthmus::sim::engine::tests {
namespace {

struct EngineCapture : testing::Test {
    Log log;
    Engine engine{threads(2), nullptr};
    StreamId a = engine.create_stream(0, {});
    StreamId b = engine.create_stream(0, {});
    EventId fork = engine.create_event(false);
    EventId join = engine.create_event(false);
    Graph graph;

    void begin(CaptureMode mode = CaptureMode::thread_local_) {
        ASSERT_EQ(engine.begin_capture(a, mode), code::ok);
        ASSERT_EQ(engine.submit(a, logs(log, "root")), code::ok);
    }
    void fork_to(StreamId other) {
        ASSERT_EQ(engine.record(fork, a), code::ok);
        ASSERT_EQ(engine.wait(other, fork), code::ok);
    }
    void join_from(StreamId other) {
        ASSERT_EQ(engine.record(join, other), code::ok);
        ASSERT_EQ(engine.wait(a, join), code::ok);
    }
    CaptureState state(StreamId stream) { return engine.capture_info(stream).state; }
};

TEST_F(EngineCapture, CapturedOperationsRunAtEachLaunchAndNotBefore) {  // keeps S14, S15
    begin();
    ASSERT_EQ(engine.submit(a, logs(log, "then")), code::ok);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    EXPECT_EQ(graph.size(), 2u);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(log.entries(), Entries{});
    GraphInstance instance{graph, nullptr};
    ASSERT_EQ(engine.launch(b, instance), code::ok);
    ASSERT_EQ(engine.launch(b, instance), code::ok);
    EXPECT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"root", "then", "root", "then"}));
}

TEST_F(EngineCapture, AForkThatJoinsBecomesParallelBranches) {  // keeps S14
    Gate left, right;
    begin();
    fork_to(b);
    ASSERT_EQ(engine.submit(a, kernel([&] { return left.open(), right.wait(), 0; })), code::ok);
    ASSERT_EQ(engine.submit(b, kernel([&] { return right.open(), left.wait(), 0; })), code::ok);
    join_from(b);
    ASSERT_EQ(engine.submit(a, logs(log, "joined")), code::ok);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    ASSERT_EQ(graph.size(), 4u);
    EXPECT_EQ(graph.node(1).dependencies, std::vector<NodeIndex>{0});
    EXPECT_EQ(graph.node(2).dependencies, std::vector<NodeIndex>{0});
    EXPECT_EQ(graph.node(3).dependencies, (std::vector<NodeIndex>{1, 2}));
    EXPECT_EQ(state(b), CaptureState::none);
    GraphInstance instance{graph, nullptr};
    ASSERT_EQ(engine.launch(a, instance), code::ok);  // ends only if both branches run at once
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"root", "joined"}));
}

TEST_F(EngineCapture, AStreamOfAnotherDeviceJoinsAndItsNodesStayThere) {  // keeps S14
    const StreamId far = engine.create_stream(1, {});
    begin();
    fork_to(far);
    ASSERT_EQ(engine.submit(far, logs(log, "far")), code::ok);
    join_from(far);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    ASSERT_EQ(graph.size(), 2u);
    EXPECT_EQ(graph.node(0).operation.device, 0);
    EXPECT_EQ(graph.node(1).operation.device, 1);
    GraphInstance instance{graph, nullptr};
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    EXPECT_EQ(engine.synchronize_device(1), code::ok);  // waits for the graph's part there
    EXPECT_EQ(log.entries(), (Entries{"root", "far"}));
}

TEST_F(EngineCapture, AnUnjoinedStreamIsNamedAndTheCaptureIsLost) {  // keeps S14
    begin();
    fork_to(b);
    ASSERT_EQ(engine.submit(b, logs(log, "never joined")), code::ok);
    std::vector<StreamId> unjoined;
    EXPECT_EQ(engine.end_capture(a, graph, &unjoined), code::capture_unjoined);
    EXPECT_EQ(unjoined, std::vector<StreamId>{b});
    EXPECT_EQ(graph.size(), 0u);
    EXPECT_EQ(state(a), CaptureState::none);
    EXPECT_EQ(state(b), CaptureState::none);
    EXPECT_EQ(engine.submit(b, logs(log, "ordinary")), code::ok);
    EXPECT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), Entries{"ordinary"});
}

TEST_F(EngineCapture, AForkedStreamWithoutWorkOfItsOwnNeedsNoJoin) {
    begin();
    fork_to(b);
    EXPECT_EQ(engine.end_capture(a, graph), code::ok);
}

TEST_F(EngineCapture, EndsOnlyOnItsOwnStream) {  // keeps S14
    begin();
    fork_to(b);
    EXPECT_EQ(engine.end_capture(b, graph), code::capture_unmatched);
    EXPECT_EQ(state(a), CaptureState::invalidated);
    EXPECT_EQ(state(b), CaptureState::invalidated);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
    EXPECT_EQ(state(b), CaptureState::none);
    EXPECT_EQ(engine.end_capture(a, graph), code::illegal_state);
}

TEST_F(EngineCapture, EndsOnlyOnItsOwnThreadUnlessRelaxed) {
    begin(CaptureMode::thread_local_);
    int from_elsewhere = code::ok;
    std::thread([&] { from_elsewhere = engine.end_capture(a, graph); }).join();
    EXPECT_EQ(from_elsewhere, code::capture_wrong_thread);
    EXPECT_EQ(engine.end_capture(a, graph), code::illegal_state);  // the capture had ended
    begin(CaptureMode::relaxed);
    std::thread([&] { from_elsewhere = engine.end_capture(a, graph); }).join();
    EXPECT_EQ(from_elsewhere, code::ok);
}

TEST_F(EngineCapture, BeginsOnceAndNotOnTheLegacyStream) {
    begin();
    EXPECT_EQ(engine.begin_capture(a, CaptureMode::global), code::illegal_state);
    EXPECT_EQ(engine.begin_capture(engine.legacy_stream(0), CaptureMode::global), code::capture_unsupported);
    EXPECT_EQ(engine.end_capture(a, graph), code::ok);
}

TEST_F(EngineCapture, AnInvalidatedCaptureRefusesEverythingUntilItIsEnded) {
    begin();
    fork_to(b);
    ASSERT_EQ(engine.invalidate_capture(b), code::ok);
    EXPECT_EQ(state(a), CaptureState::invalidated);
    EXPECT_EQ(engine.submit(a, logs(log, "refused")), code::capture_invalidated);
    EXPECT_EQ(engine.record(join, b), code::capture_invalidated);
    EXPECT_EQ(engine.wait(b, fork), code::capture_invalidated);
    GraphInstance instance;
    EXPECT_EQ(engine.launch(a, instance), code::capture_invalidated);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
    EXPECT_EQ(engine.submit(a, logs(log, "ordinary")), code::ok);
    EXPECT_EQ(engine.synchronize(a), code::ok);
}

TEST_F(EngineCapture, WaitingForWorkOutsideOfTheCaptureLosesIt) {
    ASSERT_EQ(engine.record(join, b), code::ok);
    begin();
    EXPECT_EQ(engine.wait(a, join), code::capture_isolation);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
}

TEST_F(EngineCapture, TwoCapturesDoNotBecomeOne) {
    begin();
    ASSERT_EQ(engine.begin_capture(b, CaptureMode::thread_local_), code::ok);
    ASSERT_EQ(engine.record(fork, a), code::ok);
    EXPECT_EQ(engine.wait(b, fork), code::capture_merge);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
    EXPECT_EQ(engine.end_capture(b, graph), code::capture_invalidated);
}

TEST_F(EngineCapture, ACapturedEventIsNeitherQueriedNorAwaited) {
    begin();
    ASSERT_EQ(engine.record(fork, a), code::ok);
    EXPECT_EQ(engine.event_capture(fork), engine.capture_info(a).id);
    EXPECT_EQ(engine.query_event(fork), code::captured_event);
    EXPECT_EQ(engine.synchronize_event(fork), code::captured_event);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    EXPECT_EQ(engine.wait(b, fork), code::invalid_value);
    EXPECT_EQ(engine.query_event(fork), code::invalid_value);
    EXPECT_EQ(engine.synchronize_event(fork), code::invalid_value);
    ASSERT_EQ(engine.record(fork, b), code::ok);  // an ordinary record makes it an ordinary event again
    EXPECT_EQ(engine.event_capture(fork), 0u);
    EXPECT_EQ(engine.synchronize_event(fork), code::ok);
}

TEST_F(EngineCapture, UnsafeCallsFollowTheModesOfCaptureAndThread) {  // keeps S19
    const auto call_elsewhere = [&](CaptureMode thread_mode) {
        int code = -1;
        std::thread([&] {
            Engine::exchange_thread_capture_mode(thread_mode);
            code = engine.unsafe_call();
        }).join();
        return code;
    };
    begin(CaptureMode::thread_local_);
    EXPECT_EQ(call_elsewhere(CaptureMode::global), code::ok);
    EXPECT_EQ(Engine::exchange_thread_capture_mode(CaptureMode::relaxed), CaptureMode::global);
    EXPECT_EQ(engine.unsafe_call(), code::ok);
    EXPECT_EQ(Engine::exchange_thread_capture_mode(CaptureMode::global), CaptureMode::relaxed);
    EXPECT_EQ(state(a), CaptureState::active);
    EXPECT_EQ(engine.unsafe_call(), code::capture_unsupported);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);

    begin(CaptureMode::global);
    EXPECT_EQ(call_elsewhere(CaptureMode::thread_local_), code::ok);
    EXPECT_EQ(call_elsewhere(CaptureMode::global), code::capture_unsupported);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);

    begin(CaptureMode::relaxed);
    EXPECT_EQ(engine.unsafe_call(), code::ok);
    EXPECT_EQ(engine.end_capture(a, graph), code::ok);
}

TEST_F(EngineCapture, CapturesOfAContextAreFoundAndInvalidatedTogether) {
    EXPECT_FALSE(engine.invalidate_captures(engine.legacy_stream(0)));
    begin();
    EXPECT_TRUE(engine.would_join_capture(engine.legacy_stream(0)));
    EXPECT_FALSE(engine.would_join_capture(engine.legacy_stream(1)));
    EXPECT_FALSE(engine.invalidate_captures(engine.legacy_stream(1)));
    EXPECT_TRUE(engine.invalidate_captures(engine.legacy_stream(0)));
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
    EXPECT_FALSE(engine.would_join_capture(engine.legacy_stream(0)));
}

TEST_F(EngineCapture, DependenciesCanBeReadAndReplaced) {
    begin();
    ASSERT_EQ(engine.submit(a, logs(log, "second")), code::ok);
    EXPECT_EQ(engine.capture_info(a).dependencies, std::vector<NodeIndex>{1});
    EXPECT_EQ(engine.set_capture_dependencies(a, {7}), code::invalid_value);
    ASSERT_EQ(engine.set_capture_dependencies(a, {0}), code::ok);
    ASSERT_EQ(engine.submit(a, logs(log, "third")), code::ok);
    int nodes = 0;
    EXPECT_EQ(engine.with_capture_graph(a, [&](Graph& open) { nodes = static_cast<int>(open.size()); }), code::ok);
    EXPECT_EQ(nodes, 3);
    EXPECT_EQ(engine.with_capture_graph(b, [&](Graph&) { nodes = 0; }), code::illegal_state);
    EXPECT_EQ(nodes, 3);
    ASSERT_EQ(engine.set_capture_dependencies(a, {1, 2}), code::ok);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    EXPECT_EQ(graph.node(2).dependencies, std::vector<NodeIndex>{0});
}

TEST_F(EngineCapture, WhatIsTakenOutOfTheDependenciesNeedNotBeJoined) {
    begin();
    fork_to(b);
    ASSERT_EQ(engine.submit(b, logs(log, "aside")), code::ok);
    ASSERT_EQ(engine.set_capture_dependencies(b, {0}), code::ok);
    EXPECT_EQ(engine.end_capture(a, graph), code::ok);
    EXPECT_EQ(graph.size(), 2u);
}

TEST_F(EngineCapture, TheWorkOfADestroyedJoinedStreamMustBeJoined) {  // keeps S14
    begin();
    fork_to(b);
    ASSERT_EQ(engine.submit(b, logs(log, "aside")), code::ok);
    join_from(b);
    ASSERT_EQ(engine.destroy_stream(b), code::ok);
    EXPECT_EQ(engine.end_capture(a, graph), code::ok);
    begin();
    const StreamId c = engine.create_stream(0, {});
    fork_to(c);
    ASSERT_EQ(engine.submit(c, logs(log, "lost")), code::ok);
    ASSERT_EQ(engine.destroy_stream(c), code::ok);
    std::vector<StreamId> unjoined;
    EXPECT_EQ(engine.end_capture(a, graph, &unjoined), code::capture_unjoined);
    EXPECT_EQ(unjoined, std::vector<StreamId>{c});
}

TEST_F(EngineCapture, TheLegacyStreamJoinsNoCapture) {
    begin();
    ASSERT_EQ(engine.record(fork, a), code::ok);
    EXPECT_EQ(engine.wait(engine.legacy_stream(0), fork), code::capture_implicit);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
}

TEST_F(EngineCapture, AnEventCanStandForAllStreamsOfAContext) {  // keeps S9's ground
    Gate gate;
    ASSERT_EQ(engine.submit(b, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.record_all(join, {a, b}, engine.legacy_stream(0)), code::ok);
    EXPECT_EQ(engine.query_event(join), code::not_ready);
    ASSERT_EQ(engine.submit(a, logs(log, "beside")), code::ok);  // the event itself occupies no stream
    EXPECT_EQ(engine.synchronize(a), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize_event(join), code::ok);
    EXPECT_EQ(engine.query(b), code::ok);
    begin();
    EXPECT_EQ(engine.record_all(join, {a, b}, engine.legacy_stream(0)), code::capture_unsupported);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
    EXPECT_EQ(engine.record_all(EventId::none, {}, engine.legacy_stream(0)), code::invalid_handle);
}

TEST_F(EngineCapture, DestroyingTheStreamThatACaptureBeganOnFreesTheOthers) {
    begin();
    fork_to(b);
    ASSERT_EQ(engine.destroy_stream(a), code::ok);
    EXPECT_EQ(state(b), CaptureState::none);
    EXPECT_EQ(engine.submit(b, logs(log, "ordinary")), code::ok);
    EXPECT_EQ(engine.synchronize(b), code::ok);
    EXPECT_EQ(log.entries(), Entries{"ordinary"});
}

TEST_F(EngineCapture, ALaunchIntoACapturingStreamLosesTheCapture) {
    GraphInstance other;
    begin();
    EXPECT_EQ(engine.launch(a, other), code::capture_unsupported);
    EXPECT_EQ(engine.launch(a, other), code::capture_invalidated);
    EXPECT_EQ(engine.end_capture(a, graph), code::capture_invalidated);
}

TEST_F(EngineCapture, AChildGraphRunsInThePlaceOfItsNode) {
    Graph child, middle;
    child.add(logs(log, "child"), {child.add(logs(log, "first"), {})});
    middle.add_graph(child, {middle.add(logs(log, "middle"), {})});
    begin();
    ASSERT_EQ(engine.with_capture_graph(a, [&](Graph& open) { open.add_graph(middle, {0}); }), code::ok);
    ASSERT_EQ(engine.set_capture_dependencies(a, {1}), code::ok);
    ASSERT_EQ(engine.submit(a, logs(log, "after")), code::ok);
    ASSERT_EQ(engine.end_capture(a, graph), code::ok);
    GraphInstance instance{graph, nullptr};
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"root", "middle", "first", "child", "after"}));
    GraphNode* const nested = instance.graph.find(std::as_const(graph).node(1).child->node(1).child->node(1).id);
    ASSERT_NE(nested, nullptr);
    nested->operation = logs(log, "patched");
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_EQ(log.entries().at(8), "patched");
    GraphInstance untouched{graph, nullptr};
    ASSERT_EQ(engine.launch(a, untouched), code::ok);
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_EQ(log.entries().at(13), "child");
}

TEST_F(EngineCapture, LaunchesOfOneInstanceRunOneAfterTheOtherOnAnyStream) {
    std::atomic<int> inside = 0, overlaps = 0;
    GraphInstance instance;
    instance.graph.add(kernel([&] {
                           if (++inside != 1) ++overlaps;
                           std::this_thread::yield();
                           --inside;
                           return 0;
                       }),
                       {});
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(engine.launch(engine.create_stream(0, non_blocking()), instance), code::ok);
    }
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(overlaps, 0);
}

TEST_F(EngineCapture, PatchingANodeChangesLaterLaunchesOnly) {  // keeps S16
    Gate gate;
    GraphInstance instance;
    const NodeIndex node = instance.graph.add(logs(log, "captured"), {});
    ASSERT_EQ(engine.submit(a, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    instance.graph.node(node).operation = logs(log, "patched");
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"captured", "patched"}));
}

TEST_F(EngineCapture, ALaunchKeepsWhatItsGraphCapturedUntilItsEnd) {  // keeps S15
    Gate gate;
    std::atomic<bool> gone = false, gone_too_early = false;
    {
        GraphInstance instance;
        std::shared_ptr<void> memory(&gone, [&](void*) { gone = true; });
        const NodeIndex allocate = instance.graph.add(operation(Kind::allocate, [memory] { return 0; }), {});
        const NodeIndex waits = instance.graph.add(waits_for(gate), {allocate});
        instance.graph.add(kernel([&] { return gone_too_early = gone.load(), 0; }), {waits});
        memory = nullptr;
        ASSERT_EQ(engine.launch(a, instance), code::ok);
    }
    gate.open();
    EXPECT_EQ(engine.synchronize(a), code::ok);
    EXPECT_FALSE(gone_too_early);
    while (!gone) std::this_thread::yield();
}

TEST_F(EngineCapture, EventNodesRecordAndWaitAtEachLaunch) {
    Gate gate;
    GraphInstance instance;
    Operation waits = operation(Kind::wait, nullptr), records = operation(Kind::event_record, nullptr);
    waits.event = fork;
    records.event = join;
    const NodeIndex first = instance.graph.add(waits, {});
    const NodeIndex second = instance.graph.add(logs(log, "inside"), {first});
    instance.graph.add(records, {second});
    const StreamId other = engine.create_stream(0, non_blocking());
    ASSERT_EQ(engine.submit(other, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.record(fork, other), code::ok);
    ASSERT_EQ(engine.launch(a, instance), code::ok);
    EXPECT_EQ(engine.query_event(join), code::not_ready);
    gate.open();
    EXPECT_EQ(engine.synchronize_event(join), code::ok);
    EXPECT_EQ(log.entries(), Entries{"inside"});
}

TEST(EngineGraph, EdgesAreAddedInAnyOrderButNeverACycle) {
    Log log;
    Engine engine(threads(), nullptr);
    GraphInstance instance;
    Graph& graph = instance.graph;
    const NodeIndex last = graph.add(logs(log, "last"), {});
    const NodeIndex first = graph.add(logs(log, "first"), {});
    EXPECT_TRUE(graph.depend(last, first));
    EXPECT_FALSE(graph.depend(first, last));
    EXPECT_FALSE(graph.depend(first, first));
    EXPECT_FALSE(graph.depend(first, 9));
    ASSERT_EQ(engine.launch(engine.legacy_stream(0), instance), code::ok);
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"first", "last"}));
}

TEST(EngineGraph, AnEmptyGraphIsAnOrdinaryPointInItsStream) {
    Log log;
    Engine engine(threads(), nullptr);
    GraphInstance instance;
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, logs(log, "before")), code::ok);
    ASSERT_EQ(engine.launch(stream, instance), code::ok);
    ASSERT_EQ(engine.submit(stream, logs(log, "after")), code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"before", "after"}));
}

TEST(EngineGraph, ALaunchStaysUnobservedUntilAllOfItIs) {
    Gate gate;
    Options options = threads();
    options.track_observation = true;
    Engine engine(options, nullptr);
    GraphInstance instance;
    const EventId early = engine.create_event(false);
    Operation records = operation(Kind::event_record, nullptr);
    records.event = early;
    const NodeIndex first = instance.graph.add(kernel([] { return 0; }), {});
    instance.graph.add(records, {first});
    instance.graph.add(waits_for(gate), {first});
    ASSERT_EQ(engine.launch(engine.legacy_stream(0), instance), code::ok);
    EXPECT_EQ(engine.synchronize_event(early), code::ok);
    EXPECT_TRUE(engine.has_unobserved_work(0));
    gate.open();
    EXPECT_EQ(engine.synchronize(engine.legacy_stream(0)), code::ok);
    EXPECT_FALSE(engine.has_unobserved_work(0));
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
