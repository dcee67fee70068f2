// SPDX-License-Identifier: Apache-2.0
// How a thread that plays a GPU updates memory. Included by kernel files only (ISTHMUS_DETAIL_PLAYS_GPU,
// host_device.hpp): the code of other files never asks a simulator.
#pragma once

#include <cstdint>

namespace isthmus {
inline namespace v0 {

// An update (read-modify-write) of one word. The layout is that of isthmus_sim_update (driver_abi/sim_registration.h).
struct UpdateInfo {
    const void* word;         // nullptr: an alias fence
    std::uint32_t operation;  // AtomicOperation (facts.hpp)
    std::uint32_t bytes;
    std::uint32_t is_signed;
};

// A multimem access to `bytes` bytes of a multicast object at `word`: an update with this operation, whose word is the
// request. The simulator writes the addresses of every device's memory, at most `most`, and their number, which is
// negative before. Where the GPU would fault, begin() does not return. The layout is that of isthmus_sim_multimem.
inline constexpr std::uint32_t multimem_access = 255;
struct MultimemRequest {
    const void* word;
    void** addresses;
    std::uint32_t bytes;
    std::uint32_t writes;
    std::uint32_t most;
    std::int32_t count;
};

// How a GPU whose link does not carry every atomic operation updates memory, for threads that play one. Called on the
// thread that runs the kernel; all functions are noexcept. The layout is that of isthmus_sim_updates.
struct SimulatedGpu {
    int (*begin)(const UpdateInfo* update);  // 0: the update is atomic for all. Else end() follows, and until then no
                                             // other thread of this GPU is between the two
    void (*between)();                       // after its load, before its store
    void (*end)();
};

namespace detail {

// One per module; KernelInfo::play_gpu sets that of the kernel's module. Null on a CPU device and on real GPUs.
constinit inline thread_local const SimulatedGpu* simulated_gpu = nullptr;
inline void play_gpu(const SimulatedGpu* gpu) noexcept {
    simulated_gpu = gpu;
}

}  // namespace detail

}  // namespace v0
}  // namespace isthmus
