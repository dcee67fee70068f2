// SPDX-License-Identifier: Apache-2.0
// Index spaces of kernels. The first parameter of a kernel names its space: Index, Index2 and Index3 run once per item,
// Block once per block of threads that share memory and meet at barriers.
#pragma once

#include <isthmus/detail/host_device.hpp>
#include <isthmus/kernel_info.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {

struct Index {
    std::uint64_t x;
    ISTHMUS_KERNEL_FUNCTION constexpr operator std::uint64_t() const noexcept { return x; }
};
struct Index2 {
    std::uint64_t x;
    std::uint64_t y;
};
struct Index3 {
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t z;
};

// One block of a block kernel. Code outside for_each_thread() runs in every thread and must branch alike in all of
// them. Values that pass from one for_each_thread() to the next live in ISTHMUS_SHARED arrays.
struct Block {
    Index3 position;        // of this block among `count`
    Extent count;           // blocks in the launch
    std::uint32_t threads;  // as written in ISTHMUS_BLOCK_KERNEL

    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t index() const noexcept { return position.x; }

    // Runs f(thread) for every thread in [0, threads), then a barrier: what a thread wrote to shared memory is then
    // visible to all. Must not be called inside f.
    template <class F>
    ISTHMUS_KERNEL_FUNCTION void for_each_thread(F&& f) const;
};

// Launch sizes, one form for each space: a plain number for Index, {width, height} for Index2, …
struct Extent2 {
    std::uint64_t width;
    std::uint64_t height;
};
struct Extent3 {
    std::uint64_t width;
    std::uint64_t height;
    std::uint64_t depth;
};
struct Blocks {
    constexpr Blocks(std::uint64_t x_, std::uint64_t y_ = 1, std::uint64_t z_ = 1) noexcept : x(x_), y(y_), z(z_) {}
    std::uint64_t x;
    std::uint64_t y;
    std::uint64_t z;
};

template <class F>
ISTHMUS_KERNEL_FUNCTION void Block::for_each_thread(F&& f) const {
#if defined(__CUDA_ARCH__)
    f(static_cast<std::uint32_t>(threadIdx.x));
    __syncthreads();
#else
    for (std::uint32_t thread = 0; thread < threads; ++thread) f(thread);
#endif
}

}  // namespace v0
}  // namespace isthmus
