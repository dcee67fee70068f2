// SPDX-License-Identifier: Apache-2.0
// Index spaces of kernels. The first parameter of a kernel names its space: Index, Index2 and Index3 run once per item,
// Block once per block of threads that share memory and meet at barriers.
#pragma once

#include <isthmus/detail/host_device.hpp>
#include <isthmus/kernel_info.hpp>

#include <cstdint>
#include <type_traits>

namespace isthmus {
inline namespace v0 {

namespace detail {
// std::integral_constant<int, -1> and the like: the type tells that the number is negative.
template <class Number>
constexpr bool tells_negative() noexcept {
    if constexpr (requires { std::bool_constant<(static_cast<double>(Number::value) < 0)>(); }) {
        return static_cast<double>(Number::value) < 0;
    }
    return false;
}
// Can be a launch size: no floating-point number, no bool, nothing that is known to be negative.
template <class Number>
inline constexpr bool counts_items =
    !std::is_floating_point_v<Number> && !std::is_same_v<Number, bool> && !tells_negative<Number>();
// Of a class, such as Index.
template <class Number>
concept CountOfClass = std::is_class_v<Number> && std::is_convertible_v<Number, std::uint64_t> && counts_items<Number>;
}  // namespace detail

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

// Cells for Block::for_each_cell(): columns [first, last) of the first `rows` rows of a tile of width_ × height_ cells.
// The size is a constant, so that a GPU thread finds its cells without divisions.
template <std::uint32_t width_, std::uint32_t height_>
struct Cells {
    static constexpr std::uint32_t width = width_;
    static constexpr std::uint32_t height = height_;
    std::uint32_t first = 0;
    std::uint32_t last = width_;
    std::uint32_t rows = height_;
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

    // Runs f(x, y) for every cell, then a barrier as for_each_thread() has. On the GPU the block's threads share out
    // the cells, neighbours in a row to neighbouring threads. On the CPU it is a loop over rows around one over
    // columns, which the compiler vectorises where f reads and writes neighbouring cells. Must not be called inside f.
    template <class Tile, class F>
    ISTHMUS_KERNEL_FUNCTION void for_each_cell(Tile cells, F&& f) const;
};

// Launch sizes, one form for each space: a plain number for Index, {width, height} for Index2, … No number may be
// negative or beyond largest_extent(): the launch is refused (invalid_argument). Where the type tells it, it does not
// compile: a negative constant in braces or as std::integral_constant, a floating-point number, a bool. A launch of
// zero items does nothing.
struct Items {
    constexpr Items(std::uint64_t items) noexcept : count(items) {}                                          // NOLINT
    constexpr Items(detail::CountOfClass auto items) noexcept : Items(static_cast<std::uint64_t>(items)) {}  // NOLINT
    template <class Number>
    requires(!detail::counts_items<Number>) Items(Number)
    = delete;
    std::uint64_t count;
};
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
    constexpr Blocks(detail::CountOfClass auto blocks) noexcept
        : Blocks(static_cast<std::uint64_t>(blocks)) {}  // NOLINT
    template <class Number, class... More>
    requires(!(detail::counts_items<Number> && ... && detail::counts_items<More>)) Blocks(Number, More...)
    = delete;
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

template <class Tile, class F>
ISTHMUS_KERNEL_FUNCTION void Block::for_each_cell(Tile cells, F&& f) const {
#if defined(__CUDA_ARCH__)
    for (std::uint32_t cell = threadIdx.x; cell < Tile::width * cells.rows; cell += threads) {
        const std::uint32_t x = cell % Tile::width;
        if (x >= cells.first && x < cells.last) f(x, cell / Tile::width);
    }
    __syncthreads();
#else
    for (std::uint32_t y = 0; y < cells.rows; ++y)
        for (std::uint32_t x = cells.first; x < cells.last; ++x) f(x, y);
#endif
}

}  // namespace v0
}  // namespace isthmus
