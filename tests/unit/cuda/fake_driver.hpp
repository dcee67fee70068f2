// SPDX-License-Identifier: Apache-2.0
// Opens a fresh fake driver by the name of its build, and gives access to the functions that it exports for tests.
#pragma once

#include "fake_seen.hpp"

#include <driver_abi/sim_registration.h>

#include <dlfcn.h>

#include <string>

inline std::string fake_library(const std::string& name) {
    // Appended, not added: g++ 12 warns of array bounds in a sum of strings when it optimizes under a sanitizer.
    std::string path = FAKE_DIRECTORY;
    path.append("/libfake_").append(name).append(".so");
    return path;
}

struct FakeDriver {
    explicit FakeDriver(const std::string& name) : handle(::dlopen(fake_library(name).c_str(), RTLD_NOW)) {
        void (*reset)() = nullptr;  // drops all state of earlier tests
        load(reset, "fake_reset");
        if (reset) reset();
        load(calls, "fake_calls");
        load(clear, "fake_clear");
        load(fail, "fake_fail");
        load(streams_need_context, "fake_streams_need_context");
        load(current, "fake_current");
        load(set_current, "fake_set_current");
        load(kill_context, "fake_kill_context");
        load(revive_context, "fake_revive_context");
        load(retained, "fake_retained");
        load(set_capture_status, "fake_set_capture_status");
        load(set_capture_dependencies, "fake_set_capture_dependencies");
        load(set_update_result, "fake_set_update_result");
        load(capture_mode, "fake_capture_mode");
        load(seen, "fake_seen");
        load(flags, "fake_flags");
        load(grid, "fake_grid");
        load(block, "fake_block");
        load(twin, "fake_twin");
    }

    const char* (*calls)() = nullptr;  // names of the calls since clear(), each followed by a blank
    void (*clear)() = nullptr;
    void (*fail)(const char* function, int code) = nullptr;  // the next call of this function
    void (*streams_need_context)(int needed) = nullptr;      // then they answer 201 without one
    void* (*current)() = nullptr;
    void (*set_current)(void* context) = nullptr;
    void (*kill_context)() = nullptr;    // the first device's primary one, as a reset by other code does
    void (*revive_context)() = nullptr;  // as other code does that retains it again: same handle, another id
    int (*retained)() = nullptr;         // references to the context, on the first device
    void (*set_capture_status)(int status) = nullptr;               // the status of streams from now on
    void (*set_capture_dependencies)(std::size_t count) = nullptr;  // of the next captured node
    void (*set_update_result)(int result) = nullptr;                // result of updates of instances
    int (*capture_mode)() = nullptr;                                // of the calling thread
    const FakeSeen* (*seen)() = nullptr;
    unsigned (*flags)() = nullptr;  // of the last call that had flags
    const unsigned* (*grid)() = nullptr;
    const unsigned* (*block)() = nullptr;
    const isthmus_sim_kernel* (*twin)() = nullptr;

private:
    template <class F>
    void load(F& function, const char* name) {
        if (handle) function = reinterpret_cast<F>(::dlsym(handle, name));
    }
    void* handle;
};
