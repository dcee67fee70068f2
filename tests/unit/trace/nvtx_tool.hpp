// SPDX-License-Identifier: Apache-2.0
// What the tool that NVTX loaded (nvtx_counter.cpp) has written.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace nvtx_tool {

// The lines since the last call.
inline std::string told() {
    void* const tool = ::dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
    if (tool == nullptr) return "the tool is not loaded";
    using Lines = std::string* (*)();
    const auto lines = reinterpret_cast<Lines>(::dlsym(tool, "nvtx_counter_lines"));
    if (lines == nullptr) return "the tool has no lines";
    std::string all = *lines();
    lines()->clear();
    return all;
}

}  // namespace nvtx_tool
