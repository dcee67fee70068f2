// SPDX-License-Identifier: Apache-2.0
// Turns corner responses into a list of corners in a fixed order. Appending in parallel would give another order in
// every run; counting, placing and then writing always gives the same list, without atomics.
#include "neighbours.hpp"

namespace isthmus {
inline namespace v0 {
namespace kernels {

ISTHMUS_KERNEL(mark_corners, Index2 i, Out<std::uint8_t> mark, View<const std::int32_t> response, Plane plane,
               CornerRule rule) {
    const auto x = static_cast<std::int64_t>(i.x), y = static_cast<std::int64_t>(i.y);
    const std::int32_t own = response[i.y * plane.pitch + i.x];
    const std::int64_t border = rule.border, radius = radius_of(rule);
    bool corner =
        own > rule.threshold && x >= border && y >= border && x + border < plane.width && y + border < plane.height;
    for (std::int64_t v = y - radius; corner && v <= y + radius; ++v) {
        for (std::int64_t u = x - radius; corner && u <= x + radius; ++u) {
            if (u < 0 || v < 0 || u >= plane.width || v >= plane.height) continue;
            const std::int32_t other = response[static_cast<std::uint64_t>(v) * plane.pitch + u];
            const bool earlier = v < y || (v == y && u < x);
            corner = earlier ? other < own : other <= own;
        }
    }
    mark[i.y * plane.pitch + i.x] = corner ? 1 : 0;
}

// The part of a row that one thread processes: neighbouring threads have neighbouring parts, which keeps the order.
struct Part {
    std::uint64_t first;
    std::uint64_t last;
};
ISTHMUS_KERNEL_FUNCTION constexpr Part part_of(std::uint64_t size, std::uint64_t thread) noexcept {
    const std::uint64_t length = (size + row_threads - 1) / row_threads;
    const std::uint64_t first = thread * length < size ? thread * length : size;
    return {first, first + length < size ? first + length : size};
}

ISTHMUS_KERNEL_FUNCTION std::uint32_t count_marks(View<const std::uint8_t> mark, std::uint64_t row, Part part) {
    std::uint32_t count = 0;
    for (std::uint64_t x = part.first; x < part.last; ++x) count += mark[row + x];
    return count;
}

// sums[t] becomes the sum of sums[0 … t]. `scratch` must be as large as `sums`.
ISTHMUS_KERNEL_FUNCTION void running_sums(const Block& block, std::uint32_t* sums, std::uint32_t* scratch) {
    for (std::uint32_t step = 1; step < row_threads; step *= 2) {
        block.for_each_thread([=](std::uint32_t t) { scratch[t] = sums[t] + (t >= step ? sums[t - step] : 0); });
        block.for_each_thread([=](std::uint32_t t) { sums[t] = scratch[t]; });
    }
}

ISTHMUS_BLOCK_KERNEL(count_corners, row_threads, Block block, Out<std::uint32_t> rows, View<const std::uint8_t> mark,
                     Plane plane) {
    ISTHMUS_SHARED(std::uint32_t, sums, row_threads);
    const std::uint64_t row = block.index() * plane.pitch;
    block.for_each_thread([&](std::uint32_t t) { sums[t] = count_marks(mark, row, part_of(plane.width, t)); });
    for (std::uint32_t step = row_threads / 2; step > 0; step /= 2) {
        block.for_each_thread([&](std::uint32_t t) {
            if (t < step) sums[t] += sums[t + step];
        });
    }
    block.for_each_thread([&](std::uint32_t t) {
        if (t == 0) rows[block.index()] = sums[0];
    });
}

ISTHMUS_BLOCK_KERNEL(place_corners, row_threads, Block block, View<std::uint32_t> rows, Out<CornerCount> count,
                     std::uint32_t capacity) {
    ISTHMUS_SHARED(std::uint32_t, sums, row_threads);
    ISTHMUS_SHARED(std::uint32_t, scratch, row_threads);
    block.for_each_thread([&](std::uint32_t t) {
        sums[t] = 0;
        const Part part = part_of(rows.size(), t);
        for (std::uint64_t y = part.first; y < part.last; ++y) sums[t] += rows[y];
    });
    running_sums(block, sums, scratch);
    block.for_each_thread([&](std::uint32_t t) {
        std::uint32_t next = t == 0 ? 0 : sums[t - 1];
        const Part part = part_of(rows.size(), t);
        for (std::uint64_t y = part.first; y < part.last; ++y) {
            const std::uint32_t in_row = rows[y];
            rows[y] = next;
            next += in_row;
        }
        if (t + 1 == row_threads) count[0] = {next, next < capacity ? next : capacity};
    });
}

ISTHMUS_BLOCK_KERNEL(list_corners, row_threads, Block block, Out<Corner> corners, View<const std::uint32_t> rows,
                     View<const std::uint8_t> mark, View<const std::int32_t> response, Plane plane) {
    ISTHMUS_SHARED(std::uint32_t, sums, row_threads);
    ISTHMUS_SHARED(std::uint32_t, scratch, row_threads);
    const std::uint64_t row = block.index() * plane.pitch;
    block.for_each_thread([&](std::uint32_t t) { sums[t] = count_marks(mark, row, part_of(plane.width, t)); });
    running_sums(block, sums, scratch);
    block.for_each_thread([&](std::uint32_t t) {
        std::uint64_t next = std::uint64_t{rows[block.index()]} + (t == 0 ? 0 : sums[t - 1]);
        const Part part = part_of(plane.width, t);
        for (std::uint64_t x = part.first; x < part.last; ++x) {
            if (mark[row + x] == 0) continue;
            if (next < corners.size())
                corners[next] = {static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(block.index()),
                                 response[row + x]};
            ++next;
        }
    });
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
