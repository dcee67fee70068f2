// SPDX-License-Identifier: Apache-2.0
// What a capture survives: the call's result and the result of cuStreamEndCapture, as observed with a real driver
// (PLATFORMS §4).
#include "sim_capture_scene.hpp"

#include <vector>

namespace isthmus::sim::test {
namespace {

std::vector<UnsafeCall> unsafe_calls() {
    return {
        {"cuMemAlloc",
         [](CaptureScene&) {
             Address a;
             return cuMemAlloc_v2(&a, 64);
         }},
        {"cuMemFree", [](CaptureScene& s) { return cuMemFree_v2(s.memory); }},
        {"cuMemAllocManaged",
         [](CaptureScene&) {
             Address a;
             return cuMemAllocManaged(&a, 64, 1);
         }},
        {"cuMemHostAlloc",
         [](CaptureScene&) {
             void* p;
             return cuMemHostAlloc(&p, 64, 0);
         }},
        {"cuMemHostRegister", [](CaptureScene& s) { return cuMemHostRegister_v2(s.host.data(), s.host.size(), 0); }},
        {"query of a fresh event", [](CaptureScene& s) { return cuEventQuery(s.fresh); }},
        {"sync of another stream", [](CaptureScene& s) { return cuStreamSynchronize(s.other); }},
    };
}

TEST(SimCapture, UnsafeCallsKillAGlobalCaptureFromAnyThread) {  // keeps K13's ground
    for (const UnsafeCall& one : unsafe_calls()) {
        expect(one, global, false, 900, 901);
        expect(one, global, true, 900, 901);
    }
}

TEST(SimCapture, AThreadLocalCaptureSurvivesOtherThreadsOnly) {
    for (const UnsafeCall& one : unsafe_calls()) {
        expect(one, thread_local_mode, true, 0, 0);
        expect(one, thread_local_mode, false, 900, 901);
    }
}

TEST(SimCapture, ARelaxedCaptureSurvivesUnsafeCalls) {
    for (const UnsafeCall& one : unsafe_calls()) expect(one, relaxed, false, 0, 0);
}

TEST(SimCapture, WaitingForTheContextOrTheCapturingStreamKillsEveryCapture) {
    const UnsafeCall whole = {"cuCtxSynchronize", [](CaptureScene&) { return cuCtxSynchronize(); }};
    const UnsafeCall itself = {"sync of the capturing stream",
                               [](CaptureScene& s) { return cuStreamSynchronize(s.stream); }};
    for (const int mode : {global, thread_local_mode, relaxed}) {
        for (const bool other_thread : {false, true}) {
            expect(whole, mode, other_thread, 900, 901);
            expect(itself, mode, other_thread, 900, 901);
        }
    }
}

TEST(SimCapture, AskingForACapturedEventsEndKillsTheCapture) {
    const UnsafeCall query = {"query of a captured event", [](CaptureScene& s) {
                                  REQUIRE_CODE(cuEventRecord(s.fresh, s.stream), 0);
                                  return cuEventQuery(s.fresh);
                              }};
    for (const int mode : {global, thread_local_mode, relaxed}) expect(query, mode, false, 907, 901);
}

TEST(SimCapture, WhatACaptureSurvives) {
    const UnsafeCall calls[] = {
        {"cuMemGetInfo",
         [](CaptureScene&) {
             std::size_t a, b;
             return cuMemGetInfo_v2(&a, &b);
         }},
        {"cuPointerGetAttribute",
         [](CaptureScene& s) {
             unsigned type;
             return cuPointerGetAttribute(&type, 2, s.memory);
         }},
        {"cuMemFreeAsync of no graph's pointer",
         [](CaptureScene& s) {
             REQUIRE_CODE(cuMemFreeAsync(s.memory, s.stream), 1);
             return 0;
         }},
    };
    for (const UnsafeCall& one : calls) expect(one, global, false, 0, 0);
}

TEST(SimCapture, PoolMemoryAllocatedInACaptureBelongsToTheGraph) {  // keeps K13's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        if (fact(attribute::memory_pools) == 0) return;
        Address memory = 0;
        GraphObject* graph = nullptr;
        GraphExec *instance = nullptr, *second = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(cuMemAllocAsync(&memory, 4096, scene.stream), 0);
        REQUIRE_CODE(cuMemsetD32Async(memory, 5, 1024, scene.stream), 0);
        REQUIRE_CODE(cuMemcpyDtoDAsync_v2(scene.memory, memory, 4096, scene.stream), 0);
        REQUIRE_CODE(cuMemFreeAsync(memory, scene.stream), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&second, graph, 0), 801);  // one live instance
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, scene.stream), 0);
        int back[1024] = {};
        REQUIRE_CODE(cuMemcpyDtoHAsync_v2(back, scene.memory, 4096, scene.stream), 0);
        REQUIRE_THAT(back[0] == 5 && back[1023] == 5);
        REQUIRE_CODE(cuGraphExecDestroy(instance), 0);
        REQUIRE_CODE(cuGraphDestroy(graph), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(isthmus_sim_live("pool") == 0 && isthmus_sim_live("graphs") == 0);
    });
}

TEST(SimCapture, TheLegacyStreamMeetsACaptureOfABlockingStream) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        Stream* blocking = new_stream(0);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(blocking, relaxed), 0);
        REQUIRE_CODE(launch_multiply(nullptr, scene.memory, 4, 1), 906);
        REQUIRE_CODE(cuStreamEndCapture(blocking, &graph), 901);
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, relaxed), 0);  // a non-blocking one is not affected
        REQUIRE_CODE(launch_multiply(nullptr, scene.memory, 4, 1), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(nullptr, relaxed), 900);
    });
}

TEST(SimCapture, EndingTheCaptureOfADestroyedStreamEndsTheProcess) {
    in_own_process_faults(
        [] {
            CaptureScene scene = open_scene();
            GraphObject* graph = nullptr;
            REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, relaxed), 0);
            REQUIRE_CODE(cuStreamDestroy_v2(scene.stream), 0);
            static_cast<void>(cuStreamEndCapture(scene.stream, &graph));
        },
        "cuStreamEndCapture on a destroyed stream");
}

TEST(SimCapture, OtherStreamsJoinByEventsAndMustComeBack) {  // keeps S14's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject* graph = nullptr;
        Event* fork = new_event();
        Event* join = new_event();
        int status = 9;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(cuEventRecord(fork, scene.stream), 0);
        REQUIRE_CODE(cuStreamWaitEvent(scene.other, fork, 0), 0);
        REQUIRE_CODE(cuStreamIsCapturing(scene.other, &status), 0);
        REQUIRE_THAT(status == 1);
        REQUIRE_CODE(launch_multiply(scene.other, scene.memory, 4, 1), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 904);
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, global), 0);
        REQUIRE_CODE(cuEventRecord(fork, scene.stream), 0);
        REQUIRE_CODE(cuStreamWaitEvent(scene.other, fork, 0), 0);
        REQUIRE_CODE(launch_multiply(scene.other, scene.memory, 4, 1), 0);
        REQUIRE_CODE(cuEventRecord(join, scene.other), 0);
        REQUIRE_CODE(cuStreamWaitEvent(scene.stream, join, 0), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        REQUIRE_CODE(cuStreamIsCapturing(scene.stream, &status), 0);
        REQUIRE_THAT(status == 0);
    });
}

TEST(SimCapture, AThreadCanExchangeItsModeToGoOnDuringACapture) {  // keeps S19's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        GraphObject* graph = nullptr;
        Address memory = 0;
        int mode = relaxed;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, thread_local_mode), 0);
        REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
        REQUIRE_CODE(cuMemAlloc_v2(&memory, 64), 0);
        REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
        REQUIRE_THAT(mode == relaxed);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 1), 0);
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
    });
}

TEST(SimCapture, AttachingManagedMemoryInACaptureIsAnError) {  // keeps K6's ground
    const UnsafeCall attach = {"cuStreamAttachMemAsync", [](CaptureScene& s) {
                                   Address managed = 0;
                                   int mode = relaxed;
                                   REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                   REQUIRE_CODE(cuMemAllocManaged(&managed, 64, 2), 0);
                                   REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                   return cuStreamAttachMemAsync(s.stream, managed, 0, 4);
                               }};
    expect(attach, global, false, 900, 901);
}

}  // namespace
}  // namespace isthmus::sim::test
