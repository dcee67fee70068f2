// SPDX-License-Identifier: Apache-2.0
// Captures over several streams and devices: which streams join, which must rejoin, and what ends or invalidates the
// captures.
#include "sim_capture_scene.hpp"

#include <utility>

namespace isthmus::sim::test {
namespace {

int status_of(Stream* stream) {
    int status = 9;
    REQUIRE_CODE(cuStreamIsCapturing(stream, &status), 0);
    return status;
}

struct Fork {
    CaptureScene scene = open_scene();
    Event* fork = new_event();
    Event* join = new_event();
    GraphObject* graph = nullptr;

    void begin(int mode = thread_local_mode) {
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, mode), 0);
        work(scene.stream);
        REQUIRE_CODE(cuEventRecord(fork, scene.stream), 0);
        REQUIRE_CODE(cuStreamWaitEvent(scene.other, fork, 0), 0);
    }
    void work(Stream* stream, int factor = 1) { REQUIRE_CODE(launch_multiply(stream, scene.memory, 4, factor), 0); }
    void come_back() {
        REQUIRE_CODE(cuEventRecord(join, scene.other), 0);
        REQUIRE_CODE(cuStreamWaitEvent(scene.stream, join, 0), 0);
    }
    // No stream captures any more, and both streams work.
    void all_free() {
        for (Stream* stream : {scene.stream, scene.other}) {
            REQUIRE_THAT(status_of(stream) == 0);
            work(stream);
            REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        }
    }
    void end(Result expected) {
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), expected);
        REQUIRE_THAT((graph != nullptr) == (expected == 0));
    }
};

TEST(SimJoin, AStreamThatDidWorkMustComeBack) {  // keeps S14's ground
    in_own_process(
        [] {
            Fork f;
            f.begin();
            f.work(f.scene.other);
            f.end(904);
            f.all_free();
            f.begin();
            f.work(f.scene.other);
            f.come_back();
            f.work(f.scene.other);  // and again, after it rejoined
            f.end(904);
            f.all_free();
            f.begin();
            f.work(f.scene.other);
            f.come_back();
            f.end(0);
            f.all_free();
        },
        "joined the capture and never came back");
}

TEST(SimJoin, AStreamWithoutWorkOfItsOwnNeedNotComeBack) {
    in_own_process([] {
        Fork f;
        f.begin();
        REQUIRE_THAT(status_of(f.scene.other) == 1);
        f.end(0);
        f.all_free();
        // An event recorded on a stream covers all work that the stream comes after.
        f.begin();
        Stream* third = new_stream();
        REQUIRE_CODE(cuEventRecord(f.join, f.scene.other), 0);
        REQUIRE_CODE(cuStreamWaitEvent(third, f.join, 0), 0);
        f.end(0);
        f.all_free();
        REQUIRE_THAT(status_of(third) == 0);
    });
}

TEST(SimJoin, ADestroyedJoinedStreamLeavesItsWorkToBeJoined) {
    in_own_process([] {
        Fork f;
        f.begin();
        f.work(f.scene.other);
        f.come_back();
        REQUIRE_CODE(cuStreamDestroy_v2(f.scene.other), 0);
        f.end(0);
        f.scene.other = new_stream();
        f.begin();
        f.work(f.scene.other);
        REQUIRE_CODE(cuStreamDestroy_v2(f.scene.other), 0);
        f.end(904);
        f.scene.other = new_stream();
        f.all_free();
    });
}

TEST(SimJoin, EndingOnAJoinedStreamLosesTheCapture) {
    in_own_process([] {
        Fork f;
        f.begin();
        REQUIRE_CODE(cuStreamEndCapture(f.scene.other, &f.graph), 903);
        REQUIRE_THAT(f.graph == nullptr && status_of(f.scene.stream) == 2 && status_of(f.scene.other) == 2);
        REQUIRE_CODE(launch_multiply(f.scene.stream, f.scene.memory, 4, 1), 901);
        f.end(901);
        f.all_free();
    });
}

TEST(SimJoin, EndingOnAnotherThreadIsTheEnd) {
    in_own_process([] {
        Fork f;
        f.begin();
        f.come_back();
        std::thread([&] {
            REQUIRE_CODE(cuCtxSetCurrent(f.scene.context), 0);
            REQUIRE_CODE(cuStreamEndCapture(f.scene.stream, &f.graph), 908);
        }).join();
        f.end(401);
        f.all_free();
    });
}

TEST(SimJoin, OtherThreadsTakePartInACapture) {  // keeps S19's ground
    in_own_process([] {
        Fork f;
        f.begin();
        std::thread([&] {
            REQUIRE_CODE(cuCtxSetCurrent(f.scene.context), 0);
            f.work(f.scene.other, 3);
            f.come_back();
            REQUIRE_THAT(status_of(f.scene.stream) == 1);
        }).join();
        f.work(f.scene.stream, 2);
        f.end(0);
        std::size_t count = 0;
        REQUIRE_CODE(cuGraphGetNodes(f.graph, nullptr, &count), 0);
        REQUIRE_THAT(count == 3);
    });
}

TEST(SimJoin, TwoCapturesNeverBecomeOne) {
    in_own_process([] {
        Fork f;
        Stream* apart = new_stream();
        f.begin();
        REQUIRE_CODE(cuStreamBeginCapture_v2(apart, relaxed), 0);
        REQUIRE_CODE(cuStreamWaitEvent(apart, f.fork, 0), 902);
        REQUIRE_CODE(cuStreamEndCapture(apart, &f.graph), 901);
        f.end(901);
        f.all_free();
    });
}

TEST(SimJoin, ACapturedStreamWaitsForNothingFromOutside) {
    in_own_process([] {
        Fork f;
        Event* outside = new_event();
        Stream* apart = new_stream();
        REQUIRE_CODE(cuEventRecord(outside, apart), 0);
        f.begin();
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.other, outside, 0), 905);
        f.end(901);
        f.all_free();
    });
}

TEST(SimJoin, TheLegacyStreamNeverTakesPart) {
    in_own_process([] {
        Fork f;
        f.begin();
        REQUIRE_CODE(cuStreamWaitEvent(nullptr, f.fork, 0), 906);
        f.end(901);
        Stream* blocking = new_stream(0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(blocking, relaxed), 0);
        REQUIRE_CODE(cuEventRecord(f.fork, nullptr), 906);
        REQUIRE_CODE(cuStreamEndCapture(blocking, &f.graph), 901);
    });
}

TEST(SimJoin, EventsOfACaptureAreInvalidAfterItUntilTheyAreRecordedAnew) {
    in_own_process([] {
        Fork f;
        float milliseconds = 0;
        Event* start = new_event(0);
        Event* stop = new_event(0);
        Event* short_lived = new_event();
        Event* shared = new_event(2 | 4);
        f.begin();
        REQUIRE_CODE(cuEventRecord(start, f.scene.stream), 0);
        REQUIRE_CODE(cuEventRecord(stop, f.scene.stream), 0);
        REQUIRE_CODE(cuEventElapsedTime(&milliseconds, start, stop), 907);  // unaffected
        REQUIRE_CODE(cuEventRecord(shared, f.scene.stream), 900);           // unaffected
        REQUIRE_CODE(cuEventRecord(short_lived, f.scene.stream), 0);
        REQUIRE_CODE(cuEventDestroy_v2(short_lived), 0);
        f.end(0);
        REQUIRE_CODE(cuEventQuery(f.fork), 1);
        REQUIRE_CODE(cuEventSynchronize(f.fork), 1);
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.other, f.fork, 0), 1);
        f.all_free();
        REQUIRE_CODE(cuEventRecord(f.fork, f.scene.other), 0);
        REQUIRE_CODE(cuEventSynchronize(f.fork), 0);
        REQUIRE_CODE(cuEventQuery(f.fork), 0);
    });
}

TEST(SimJoin, ALaunchIntoACaptureLosesIt) {
    in_own_process([] {
        Fork f;
        GraphObject* child = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphCreate(&child, 0), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, child, 0), 0);
        f.begin();
        REQUIRE_CODE(cuGraphLaunch(instance, f.scene.other), 900);
        f.end(901);
        f.all_free();
    });
}

TEST(SimJoin, ExternalEventsBecomeNodesAndMeanNothingOutsideOfCaptures) {
    in_own_process([] {
        Fork f;
        REQUIRE_CODE(cuEventRecordWithFlags(f.fork, f.scene.stream, 1), 1);
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.stream, f.fork, 1), 1);
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.stream, f.fork, 2), 1);
        f.begin();
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.stream, nullptr, 1), 1);
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.stream, f.fork, 1), 0);
        REQUIRE_CODE(cuEventRecordWithFlags(f.join, f.scene.stream, 1), 0);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(f.scene.stream, &graph), 0);
        NodeObject* nodes[9] = {};
        std::size_t count = 9;
        REQUIRE_CODE(cuGraphGetNodes(graph, nodes, &count), 0);
        int waits = 0, records = 0;
        for (std::size_t i = 0; i < count; ++i) {
            Event* event = nullptr;
            waits += cuGraphEventWaitNodeGetEvent(nodes[i], &event) == 0 && event == f.fork;
            records += cuGraphEventRecordNodeGetEvent(nodes[i], &event) == 0 && event == f.join;
        }
        REQUIRE_THAT(waits == 1 && records == 1);
    });
}

TEST(SimJoin, AnEventOfTheContextWaitsForEveryStreamAndMeetsNoCapture) {  // keeps S9's ground
    in_own_process([] {
        Fork f;
        Gate gate;
        REQUIRE_CODE(launch_hold(f.scene.other, gate), 0);
        REQUIRE_CODE(cuCtxSetCurrent(nullptr), 0);
        REQUIRE_CODE(cuCtxRecordEvent(nullptr, f.join), 201);
        REQUIRE_CODE(cuCtxRecordEvent(f.scene.context, f.join), 0);  // with no context current
        REQUIRE_CODE(cuEventQuery(f.join), 600);
        gate.released = 1;
        REQUIRE_CODE(cuEventSynchronize(f.join), 0);
        REQUIRE_CODE(cuCtxSetCurrent(f.scene.context), 0);
        REQUIRE_CODE(cuStreamQuery(f.scene.other), 0);
        REQUIRE_CODE(cuCtxRecordEvent(f.scene.context, nullptr), 400);
        REQUIRE_CODE(cuCtxRecordEvent(reinterpret_cast<Context*>(&gate), f.join), 201);
        for (const int mode : {global, thread_local_mode, relaxed}) {
            f.begin(mode);
            std::thread([&] {
                int exchanged = relaxed;
                REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&exchanged), 0);
                REQUIRE_CODE(cuCtxRecordEvent(f.scene.context, f.join), 900);
            }).join();
            f.end(901);
        }
        // A record on another context does not affect the captures; an event of another context is refused.
        Context* another = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
        Event* theirs = new_event();
        REQUIRE_CODE(cuCtxRecordEvent(f.scene.context, theirs), 400);
        f.begin();
        REQUIRE_CODE(cuCtxRecordEvent(another, theirs), 0);
        REQUIRE_CODE(cuEventSynchronize(theirs), 900);  // unsafe during a capture, as other calls
        f.end(901);
    });
}

TEST(SimJoin, HostFunctionsOfAGraphRunAtEachLaunchInOrder) {  // keeps S20's ground
    in_own_process([] {
        Fork f;
        static std::atomic<int> calls{0};
        REQUIRE_CODE(cuMemsetD32Async(f.scene.memory, 1, 4, f.scene.stream), 0);
        f.begin();
        REQUIRE_CODE(cuLaunchHostFunc(
                         f.scene.other, [](void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }, &calls),
                     0);
        f.come_back();
        f.end(0);
        REQUIRE_THAT(calls == 0);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, f.graph, 0), 0);
        for (int i = 1; i < 4; ++i) {
            REQUIRE_CODE(cuGraphLaunch(instance, f.scene.other), 0);
            REQUIRE_CODE(cuStreamSynchronize(f.scene.other), 0);
            REQUIRE_THAT(calls == i);
        }
    });
}

TEST(SimJoin, ACaptureOverTwoDevicesRunsEachNodeWhereItWasCaptured) {  // keeps S14's ground
    in_own_process([] {
        int devices = 0;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        Context* second = open_device(1);
        Stream* theirs = new_stream();
        Event* back = new_event();
        const Address there = device_memory(64);
        REQUIRE_CODE(cuMemsetD32Async(there, 5, 16, theirs), 0);
        Function* const their_kernel = multiply_kernel();
        Fork f;
        REQUIRE_CODE(cuMemsetD32Async(f.scene.memory, 3, 16, f.scene.stream), 0);
        f.begin();
        f.work(f.scene.stream, 2);
        REQUIRE_CODE(cuStreamWaitEvent(theirs, f.fork, 0), 0);
        // The second device does the work, because the first may not access the memory: peer access is off.
        isthmus_sim_extent extent = {16, 1, 1};
        MultiplyPack pack = {{there, 16}, 7};
        void* parameters[] = {&extent, &pack};
        REQUIRE_CODE(cuLaunchKernel(their_kernel, 1, 1, 1, 256, 1, 1, 0, theirs, parameters, nullptr), 0);
        REQUIRE_CODE(cuEventRecord(back, theirs), 0);
        REQUIRE_CODE(cuStreamWaitEvent(f.scene.stream, back, 0), 0);
        f.end(0);
        REQUIRE_THAT(status_of(theirs) == 0);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, f.graph, 0), 0);
        const std::pair<Stream*, Context*> launches[] = {
            {f.scene.stream, f.scene.context}, {theirs, second}, {theirs, nullptr}};
        for (const auto& [stream, current] : launches) {
            REQUIRE_CODE(cuCtxSetCurrent(current), 0);
            REQUIRE_CODE(cuGraphLaunch(instance, stream), 0);
            REQUIRE_CODE(cuStreamSynchronize(stream), 0);
        }
        int here = 0, over_there = 0;
        REQUIRE_CODE(cuCtxSetCurrent(f.scene.context), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&here, f.scene.memory, 4, f.scene.stream), 0);
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(&over_there, there, 4, theirs), 0);
        REQUIRE_CODE(cuStreamSynchronize(f.scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(theirs), 0);
        REQUIRE_THAT(here == 3 * 2 * 2 * 2 && over_there == 5 * 7 * 7 * 7);
    });
}

TEST(SimJoin, ACaptureIntoAGraphAddsToIt) {
    in_own_process([] {
        Fork f;
        f.begin();
        f.end(0);
        GraphObject* const given = f.graph;
        NodeObject* node = nullptr;
        std::size_t count = 1;
        REQUIRE_CODE(cuGraphGetNodes(given, &node, &count), 0);
        GraphObject* again = nullptr;
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, given, &node, nullptr, 1, 3), 1);
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, nullptr, &node, nullptr, 1, 0), 1);
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, given, nullptr, nullptr, 1, 0), 1);
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(nullptr, given, nullptr, nullptr, 0, 0), 900);
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, given, &node, nullptr, 1, 0), 0);
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, given, &node, nullptr, 1, 0), 801);
        REQUIRE_CODE(cuGraphDestroy(given), 1);  // while it is captured into
        f.work(f.scene.stream);
        REQUIRE_CODE(cuStreamEndCapture(f.scene.stream, &again), 0);
        REQUIRE_THAT(again == given);
        REQUIRE_CODE(cuGraphGetEdges(given, nullptr, nullptr, &count), 0);
        REQUIRE_THAT(count == 1);
        // An invalidated capture leaves the graph as it was.
        REQUIRE_CODE(cuStreamBeginCaptureToGraph(f.scene.stream, given, nullptr, nullptr, 0, 0), 0);
        f.work(f.scene.stream);
        REQUIRE_CODE(cuStreamSynchronize(f.scene.stream), 900);
        REQUIRE_CODE(cuStreamEndCapture(f.scene.stream, &again), 901);
        REQUIRE_CODE(cuGraphGetNodes(given, nullptr, &count), 0);
        REQUIRE_THAT(count == 2);
        REQUIRE_CODE(cuGraphDestroy(given), 0);
    });
}

TEST(SimJoin, DependenciesAreSetOnACapturingStreamOnly) {
    in_own_process([] {
        Fork f;
        GraphObject* graph = nullptr;
        NodeObject *node = nullptr, *foreign = nullptr;
        int status = 0;
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(f.scene.stream, nullptr, 0, 0), 401);
        f.begin();
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(f.scene.stream, &status, nullptr, &graph, nullptr, nullptr), 0);
        REQUIRE_CODE(cuGraphAddEmptyNode(&node, graph, nullptr, 0), 0);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(f.scene.stream, &node, 1, 0), 0);  // one more
        std::size_t count = 0;
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(f.scene.stream, &status, nullptr, nullptr, nullptr, &count), 0);
        REQUIRE_THAT(count == 2);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies_v2(f.scene.stream, &node, nullptr, 1, 1), 0);  // only that one
        REQUIRE_CODE(cuStreamGetCaptureInfo_v2(f.scene.stream, &status, nullptr, nullptr, nullptr, &count), 0);
        REQUIRE_THAT(count == 1);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(f.scene.stream, &node, 1, 2), 1);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(f.scene.stream, &foreign, 1, 0), 1);
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies(f.scene.stream, nullptr, 1, 0), 1);
        EdgeData programmatic = {1, 0, 1, {}};
        REQUIRE_CODE(cuStreamUpdateCaptureDependencies_v2(f.scene.stream, &node, &programmatic, 1, 0), 801);
        f.end(0);  // what left the set need not be joined
        f.all_free();
    });
}

TEST(SimJoin, ALaunchMayNameItsPriorityAndNothingElse) {  // keeps S13's ground
    in_own_process([] {
        Fork f;
        LaunchAttribute attributes[2] = {};
        attributes[1].id = 8;
        attributes[1].value.number = -1;
        Function* const kernel = multiply_kernel();
        isthmus_sim_extent extent = {4, 1, 1};
        MultiplyPack pack = {{f.scene.memory, 4}, 1};
        void* parameters[] = {&extent, &pack};
        LaunchConfig config = {1, 1, 1, 256, 1, 1, 0, f.scene.stream, nullptr, 0};
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, parameters, nullptr), 0);
        config.attributes = attributes;
        config.attribute_count = 2;
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, parameters, nullptr), 0);
        attributes[1].id = 2;  // cooperative
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, parameters, nullptr), 801);
        config.attributes = nullptr;
        REQUIRE_CODE(cuLaunchKernelEx(&config, kernel, parameters, nullptr), 1);
        REQUIRE_CODE(cuLaunchKernelEx(nullptr, kernel, parameters, nullptr), 1);
        REQUIRE_CODE(cuStreamSynchronize(f.scene.stream), 0);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
