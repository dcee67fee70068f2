// SPDX-License-Identifier: Apache-2.0
// The bodies of the sample kernels, compiled for the GPU too.
#include "sample_kernels.hpp"

namespace samples {

ISTHMUS_KERNEL(scale, Index i, View<float> out, View<const float> in, float factor) {
    out[i] = in[i] * factor;
}

ISTHMUS_KERNEL(mixed, Index2 i, Out<std::uint64_t> out, std::uint8_t small, View<const Tint> tints, bool flip,
               Tint tint, std::uint16_t width) {
    const Tint& own = tints[i.x];
    const std::int64_t value = small + own.red * tint.red + own.green + tint.green + static_cast<int>(own.blue * 2);
    out[i.y * width + i.x] = static_cast<std::uint64_t>(flip ? -value : value) + i.y;
}

ISTHMUS_KERNEL(cell, Index3 i, View<std::uint32_t> visits, Extent3 size) {
    visits[(i.z * size.height + i.y) * size.width + i.x] +=
        static_cast<std::uint32_t>(1 + i.x + 100 * i.y + 10000 * i.z);
}

ISTHMUS_BLOCK_KERNEL(block_sums, sum_threads, Block block, Out<std::int32_t> sums, View<const std::int32_t> in) {
    ISTHMUS_SHARED(std::int32_t, part, sum_threads);
    block.for_each_thread([&](std::uint32_t t) { part[t] = in[block.index() * sum_threads + t]; });
    for (std::uint32_t step = sum_threads / 2; step > 0; step /= 2) {
        block.for_each_thread([&](std::uint32_t t) {
            if (t < step) part[t] += part[t + step];
        });
    }
    block.for_each_thread([&](std::uint32_t t) {
        if (t == 0) sums[block.index()] = part[0];
    });
}

ISTHMUS_BLOCK_KERNEL(block_places, 4, Block block, Out<std::uint64_t> places) {
    const Index3 at = block.position;
    const std::uint64_t number = (at.z * block.count.y + at.y) * block.count.x + at.x;
    block.for_each_thread(
        [&](std::uint32_t t) { places[number * block.threads + t] = at.x + 10 * at.y + 100 * at.z + 1000 * t; });
}

// Differs in the last bits where one side fuses the two operations.
ISTHMUS_KERNEL(multiply_add, Index i, Out<float> out, View<const float> a, View<const float> b, View<const float> c) {
    out[i] = a[i] * b[i] + c[i];
}

ISTHMUS_KERNEL(nothing, Index) {}

}  // namespace samples
