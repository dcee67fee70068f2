// SPDX-License-Identifier: Apache-2.0
// Captures by mode: which threads' calls they survive, which streams and devices they watch, how they end.
#include "sim_capture_scene.hpp"

#include <vector>

namespace isthmus::sim::test {
namespace {

TEST(SimCaptureModes, MoreCallsThatOnlyARelaxedCaptureSurvives) {  // keeps K13's ground
    static std::vector<char> registered(65536);
    static void* pinned = nullptr;
    const UnsafeCall calls[] = {
        {"cuMemFreeHost", [](CaptureScene&) { return cuMemFreeHost(pinned); }},
        {"cuMemHostUnregister", [](CaptureScene&) { return cuMemHostUnregister(registered.data()); }},
        {"cuStreamQuery of another stream", [](CaptureScene& s) { return cuStreamQuery(s.other); }},
        {"cuEventSynchronize of a fresh event", [](CaptureScene& s) { return cuEventSynchronize(s.fresh); }},
    };
    for (const UnsafeCall& one : calls) {
        const UnsafeCall prepared = {one.name, [&](CaptureScene& s) {
                                         int mode = relaxed;
                                         REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                         REQUIRE_CODE(cuMemHostAlloc(&pinned, 64, 0), 0);
                                         REQUIRE_CODE(cuMemHostRegister_v2(registered.data(), 65536, 0), 0);
                                         REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                         return one.call(s);
                                     }};
        expect(prepared, global, false, 900, 901);
        expect(prepared, global, true, 900, 901);
        expect(prepared, thread_local_mode, false, 900, 901);
        expect(prepared, thread_local_mode, true, 0, 0);
        expect(prepared, relaxed, false, 0, 0);
        expect(prepared, relaxed, true, 0, 0);
    }
}

TEST(SimCaptureModes, AThreadsOwnModeDecidesTogetherWithTheCaptures) {  // keeps S19's ground
    // Which captures an allocation invalidates, by the capture's mode, its thread, and that thread's mode.
    for (const int capture : {global, thread_local_mode, relaxed}) {
        for (const bool other_thread : {false, true}) {
            for (const int own : {global, thread_local_mode, relaxed}) {
                const bool spared = own == relaxed || capture == relaxed ||
                                    (other_thread && (own == thread_local_mode || capture == thread_local_mode));
                const UnsafeCall call = {"cuMemAlloc in a mode of the thread's own", [own](CaptureScene&) {
                                             int mode = own;
                                             Address a = 0;
                                             REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                             REQUIRE_THAT(mode == global);
                                             const Result code = cuMemAlloc_v2(&a, 64);
                                             REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 0);
                                             REQUIRE_THAT(mode == own);
                                             return code;
                                         }};
                expect(call, capture, other_thread, spared ? 0 : 900, spared ? 0 : 901);
            }
        }
    }
    in_own_process([] {
        open_device();
        int mode = 3;
        REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(&mode), 1);
        REQUIRE_CODE(cuThreadExchangeStreamCaptureMode(nullptr), 1);
    });
}

TEST(SimCaptureModes, AManagedAllocationKillsACaptureOfAnotherDeviceToo) {  // keeps K13's ground
    in_own_process([] {
        int devices = 0;
        REQUIRE_CODE(cuInit(0), 0);
        REQUIRE_CODE(cuDeviceGetCount(&devices), 0);
        if (devices < 2) return;
        open_device(1);
        Stream* theirs = new_stream();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(theirs, global), 0);
        open_device(0);
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 64, 1), 900);
        REQUIRE_CODE(cuStreamEndCapture(theirs, &graph), 901);
    });
}

TEST(SimCaptureModes, ACapturingStreamTakesNoPrefetch) {  // keeps K21's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        Address managed = 0;
        REQUIRE_CODE(cuMemAllocManaged(&managed, 65536, 1), 0);
        for (const int mode : {global, thread_local_mode, relaxed}) {
            GraphObject* graph = nullptr;
            REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, mode), 0);
            REQUIRE_CODE(cuMemPrefetchAsync(managed, 65536, 0, scene.stream), 900);
            REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 901);
        }
    });
}

TEST(SimCaptureModes, ACaptureTellsItsStateAndEndsOnItsThreadUnlessRelaxed) {  // keeps S14's ground
    in_own_process([] {
        CaptureScene scene = open_scene();
        for (const int mode : {global, thread_local_mode, relaxed}) {
            GraphObject* graph = nullptr;
            int status = 9;
            std::uint64_t id = 0, again = 0;
            REQUIRE_CODE(cuStreamGetCaptureInfo_v2(scene.stream, &status, &id, nullptr, nullptr, nullptr), 0);
            REQUIRE_THAT(status == 0 && id == 0);
            REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, mode), 0);
            REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, mode), 401);
            REQUIRE_CODE(cuStreamGetCaptureInfo_v2(scene.stream, &status, &id, nullptr, nullptr, nullptr), 0);
            REQUIRE_CODE(cuStreamGetCaptureInfo_v3(scene.stream, &status, &again, nullptr, nullptr, nullptr, nullptr),
                         0);
            REQUIRE_THAT(status == 1 && id != 0 && id == again);
            std::thread([&] {
                REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), mode == relaxed ? 0 : 908);
            }).join();
            REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 401);
            REQUIRE_CODE(cuStreamIsCapturing(scene.stream, &status), 0);
            REQUIRE_THAT(status == 0);
        }
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, 3), 1);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
