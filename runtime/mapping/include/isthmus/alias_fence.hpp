// alias_fence(): for kernels that write memory at one address and read it at another (MirroredRing, memory that is
// mapped twice).
//
// The rule (V12): the hardware keeps accesses to one address in order, not accesses to two addresses of the same
// memory. What an operation of a stream wrote through one alias, operations behind it read through any. Within one
// kernel a thread that wrote through one alias sees it through another only behind an alias_fence(). A kernel that runs
// already does not see what others write through another alias meanwhile, unless both sides use the fence beside
// whatever orders them (an atomic with release and acquire).
#pragma once

#include <isthmus/detail/host_device.hpp>
#include <isthmus/detail/host_fence.hpp>
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
#include <isthmus/detail/play_gpu.hpp>
#endif

namespace isthmus::inline v0 {

// GPU: fence.proxy.alias (PTX ISA 7.5, compute capability 7.0), for the calling thread. CPU: a fence of the thread;
// CPUs are coherent by physical address, so that only the compiler has to be kept from reordering. A thread that plays
// a GPU says so to the simulator, as an update of no word: until then a kernel there reads what is stale.
ISTHMUS_KERNEL_FUNCTION void alias_fence() noexcept {
#if defined(__CUDA_ARCH__)
    asm volatile("fence.proxy.alias;" ::: "memory");
#else
    detail::host_fence<std::memory_order_seq_cst>();
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
    if (const SimulatedGpu* const gpu = detail::simulated_gpu) {
        constexpr UpdateInfo no_word{nullptr, 0, 0, 0};
        (void)gpu->begin(&no_word);
    }
#endif
#endif
}

}  // namespace isthmus::inline v0
