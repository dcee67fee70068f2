// SPDX-License-Identifier: Apache-2.0
// Kernels of every rank and parameter form, for tests.
#pragma once

#include <isthmus/kernel.hpp>

namespace samples {

using namespace isthmus;

struct Tint {
    std::uint8_t red;
    std::int32_t green;
    double blue;
};
inline constexpr std::uint32_t sum_threads = 64;

ISTHMUS_DECLARE_KERNEL(scale, Index i, View<float> out, View<const float> in, float factor);
ISTHMUS_DECLARE_KERNEL(mixed, Index2 i, Out<std::uint64_t> out, std::uint8_t small, View<const Tint> tints, bool flip,
                       Tint tint, std::uint16_t width);
ISTHMUS_DECLARE_KERNEL(cell, Index3 i, View<std::uint32_t> visits, Extent3 size);
ISTHMUS_DECLARE_KERNEL(block_sums, Block block, Out<std::int32_t> sums, View<const std::int32_t> in);
ISTHMUS_DECLARE_KERNEL(block_places, Block block, Out<std::uint64_t> places);
ISTHMUS_DECLARE_KERNEL(multiply_add, Index i, Out<float> out, View<const float> a, View<const float> b,
                       View<const float> c);
ISTHMUS_DECLARE_KERNEL(nothing, Index);

}  // namespace samples
