// How a thread that plays a GPU updates memory. Kernel files alone include this (ISTHMUS_DETAIL_PLAYS_GPU,
// host_device.hpp): the code of other files asks nothing of a simulator.
#pragma once

#include <cstdint>

namespace isthmus::inline v0 {

// An update (a read-modify-write) of one word. Laid out as isthmus_sim_update (driver_abi/sim_registration.h).
struct UpdateInfo {
    const void* word;         // nullptr: an alias fence
    std::uint32_t operation;  // AtomicOperation (facts.hpp)
    std::uint32_t bytes;
    std::uint32_t is_signed;
};

// How a GPU updates memory whose link does not carry every atomic operation: for threads that play one. On the thread
// that runs the kernel; all three functions are noexcept. Laid out as isthmus_sim_updates.
struct SimulatedGpu {
    int (*begin)(const UpdateInfo* update);  // 0: it is in one piece for everybody; else end() follows, and until then
                                             // no other thread of this GPU is between the two
    void (*between)();                       // after its load, before its store
    void (*end)();
};

namespace detail {

// Of each module its own: KernelInfo::play_gpu reaches the one of the kernel. Null on a CPU device and on real GPUs.
constinit inline thread_local const SimulatedGpu* simulated_gpu = nullptr;
inline void play_gpu(const SimulatedGpu* gpu) noexcept {
    simulated_gpu = gpu;
}

}  // namespace detail

}  // namespace isthmus::inline v0
