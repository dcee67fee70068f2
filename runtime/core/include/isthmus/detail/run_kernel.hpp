// SPDX-License-Identifier: Apache-2.0
// Runs a kernel's body over its index space: the loops of the CPU twin, and the share of each GPU thread.
#pragma once

#include <isthmus/detail/pack.hpp>
#include <isthmus/index_space.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

template <auto Body, class Space, class... P, std::size_t... N>
ISTHMUS_KERNEL_FUNCTION void call_body(const Space& where, const Pack<P...>& pack, std::index_sequence<N...>) {
    Body(where, get<N>(pack)...);
}

// KernelInfo::twin of `kernel`, a Kernel: items [first, last) of the outermost dimension.
template <auto Body, std::uint32_t block_threads, const auto& kernel, class Space, class... P>
void run_twin(const Extent& extent, std::uint64_t first, std::uint64_t last, const void* erased) {
    // A copy lets the compiler see that stores through views do not change the arguments.
    const Pack<P...> pack = *static_cast<const Pack<P...>*>(erased);
#if ISTHMUS_DETAIL_CHECKS_BOUNDS && !defined(__CUDACC__)
    const TwinScope running(kernel.info(), &pack);
#endif
    constexpr auto all = std::index_sequence_for<P...>{};
    if constexpr (std::is_same_v<Space, Index>) {
        for (std::uint64_t x = first; x < last; ++x) call_body<Body>(Index{x}, pack, all);
    } else if constexpr (std::is_same_v<Space, Index2>) {
        const std::uint64_t width = extent.x;
        for (std::uint64_t y = first; y < last; ++y)
            for (std::uint64_t x = 0; x < width; ++x) call_body<Body>(Index2{x, y}, pack, all);
    } else if constexpr (std::is_same_v<Space, Index3>) {
        const std::uint64_t width = extent.x, height = extent.y;
        for (std::uint64_t z = first; z < last; ++z)
            for (std::uint64_t y = 0; y < height; ++y)
                for (std::uint64_t x = 0; x < width; ++x) call_body<Body>(Index3{x, y, z}, pack, all);
    } else {
        for (std::uint64_t number = first; number < last; ++number) {
            const std::uint64_t row = number / extent.x;
            const Index3 position{number % extent.x, row % extent.y, row / extent.y};
            call_body<Body>(Block{position, extent, block_threads}, pack, all);
        }
    }
}

#if defined(__CUDACC__)
// One thread's item. The grid is rounded up to whole blocks: threads beyond the extent do nothing.
template <auto Body, std::uint32_t block_threads, class Space, class... P>
__device__ __forceinline__ void run_thread(const Extent& extent, const Pack<P...>& pack) {
    constexpr auto all = std::index_sequence_for<P...>{};
    if constexpr (std::is_same_v<Space, Block>) {
        call_body<Body>(Block{{blockIdx.x, blockIdx.y, blockIdx.z}, extent, block_threads}, pack, all);
    } else {
        const std::uint64_t x = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
        const std::uint64_t y = std::uint64_t{blockIdx.y} * blockDim.y + threadIdx.y;
        const std::uint64_t z = std::uint64_t{blockIdx.z} * blockDim.z + threadIdx.z;
        if constexpr (std::is_same_v<Space, Index>) {
            if (x < extent.x) call_body<Body>(Index{x}, pack, all);
        } else if constexpr (std::is_same_v<Space, Index2>) {
            if (x < extent.x && y < extent.y) call_body<Body>(Index2{x, y}, pack, all);
        } else {
            if (x < extent.x && y < extent.y && z < extent.z) call_body<Body>(Index3{x, y, z}, pack, all);
        }
    }
}
#endif

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
