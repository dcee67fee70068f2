// SPDX-License-Identifier: Apache-2.0
// A scene with an open capture, and one call that the capture survives or not.
#pragma once

#include "sim_test.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::sim::test {

inline constexpr int global = 0, thread_local_mode = 1, relaxed = 2;

struct CaptureScene {
    Context* context;
    Stream* stream;
    Stream* other;
    Event* fresh;
    Address memory;
    std::vector<char> host = std::vector<char>(65536);
};

inline CaptureScene open_scene() {
    CaptureScene scene{open_device(), new_stream(), new_stream(), new_event(), device_memory(4096)};
    REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 1, 1), 0);  // loads the kernel
    REQUIRE_CODE(cuCtxSynchronize(), 0);
    return scene;
}

using Call = std::function<Result(CaptureScene&)>;

struct UnsafeCall {
    const char* name;
    Call call;
};

// Makes the call during a capture of the given mode, on this or another thread, and ends the capture.
inline void expect(const UnsafeCall& one, int mode, bool other_thread, Result of_call, Result of_end) {
    SCOPED_TRACE(std::string(one.name) + ", mode " + std::to_string(mode) + (other_thread ? ", another thread" : ""));
    in_own_process([&] {
        CaptureScene scene = open_scene();
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, mode), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 1), 0);
        if (other_thread) {
            std::thread([&] {
                REQUIRE_CODE(cuCtxSetCurrent(scene.context), 0);
                REQUIRE_CODE(one.call(scene), of_call);
            }).join();
        } else {
            REQUIRE_CODE(one.call(scene), of_call);
        }
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), of_end);
        REQUIRE_THAT((graph != nullptr) == (of_end == 0));
    });
}

}  // namespace isthmus::sim::test
