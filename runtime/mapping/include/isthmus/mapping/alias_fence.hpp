// SPDX-License-Identifier: Apache-2.0
// alias_fence(): for kernels that write memory at one address and read it at another (MirroredBuffer, memory mapped
// twice).
//
// The rule (V12): the hardware orders accesses to one address, not accesses to two addresses of the same memory. A
// stream operation sees, through any alias, what earlier operations of the stream wrote. Within one kernel, a thread
// sees its own write through another alias only behind an alias_fence(). A running kernel sees what others write
// meanwhile through another alias only if both sides use the fence beside their ordering (an atomic with release and
// acquire).
#pragma once

#include <isthmus/detail/host_device.hpp>
#include <isthmus/detail/host_fence.hpp>
#if defined(ISTHMUS_DETAIL_PLAYS_GPU)
#include <isthmus/detail/play_gpu.hpp>
#endif

namespace isthmus {
inline namespace v0 {

// GPU: fence.proxy.alias (PTX ISA 7.5, compute capability 7.0), for the calling thread. CPU: a thread fence; CPUs are
// coherent by physical address, so only compiler reordering has to be prevented. A thread that plays a GPU reports the
// fence to the simulator, as an update of no word: until then a simulated kernel reads stale values.
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

}  // namespace v0
}  // namespace isthmus
