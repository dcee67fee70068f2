// SPDX-License-Identifier: Apache-2.0
// Shared by a kernel file and a host file of one program.
#pragma once

#include <isthmus/atomic_ref.hpp>

#include <cstdint>

// Never inlined: a separate function in each kind of file, at every optimization level.
[[gnu::noinline]] ISTHMUS_KERNEL_FUNCTION std::uint32_t add_in_shared_function(std::uint32_t& word) {
    return isthmus::AtomicRef<std::uint32_t>(word).add_relaxed(1);
}

// host_updates.cpp
std::uint32_t add_in_host_file(std::uint32_t& word);     // by the shared function
std::uint32_t update_in_host_file(std::uint32_t& word);  // of a 7, by every kind of update; leaves 1
void fence_in_host_file();
