// The place where a thread that plays a GPU keeps how that GPU updates memory; null in every product.
#pragma once

#include <isthmus/kernel_info.hpp>

namespace isthmus::inline v0::detail {

// Of each module its own: KernelInfo::play_gpu reaches the one of the kernel.
constinit inline thread_local const SimulatedGpu* simulated_gpu = nullptr;
inline void play_gpu(const SimulatedGpu* gpu) noexcept {
    simulated_gpu = gpu;
}

}  // namespace isthmus::inline v0::detail
