// SPDX-License-Identifier: Apache-2.0
// Reads the pixels around a pixel; outside the picture the nearest pixel is used.
#pragma once

#include <isthmus/kernels/camera.hpp>

// g++ -O2 does not unroll such short loops, and then recomputes constant weights: four times slower.
#if defined(__CUDACC__)
#define ISTHMUS_UNROLL _Pragma("unroll")
#else
#define ISTHMUS_UNROLL _Pragma("GCC unroll 5")
#endif

namespace isthmus {
inline namespace v0 {
namespace kernels {

ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t clamped(std::int64_t position, std::uint32_t size) noexcept {
    return static_cast<std::uint64_t>(position < 0 ? 0 : position < size ? position : std::int64_t{size} - 1);
}

ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t place(const Plane& plane, std::int64_t x, std::int64_t y) noexcept {
    return clamped(y, plane.height) * plane.pitch + clamped(x, plane.width);
}

// Pixels on each side. A larger square has more comparisons than 32 bits can count.
ISTHMUS_KERNEL_FUNCTION constexpr std::int32_t radius_of(const CornerRule& rule) noexcept {
    return static_cast<std::int32_t>(rule.radius < 1023 ? rule.radius : 1023);
}

// Calls f(element, dx, dy) for all pixels at most `radius` away. Coordinates are clamped only near the edges.
template <int radius, class T, class F>
ISTHMUS_KERNEL_FUNCTION void for_neighbours(Index2 i, View<const T> picture, const Plane& plane, F f) {
    const auto x = static_cast<std::int64_t>(i.x), y = static_cast<std::int64_t>(i.y);
    if (x >= radius && y >= radius && x + radius < plane.width && y + radius < plane.height) {
        ISTHMUS_UNROLL
        for (int dy = -radius; dy <= radius; ++dy) {
            const T* row = picture.data + (y + dy) * plane.pitch + x;
            ISTHMUS_UNROLL
            for (int dx = -radius; dx <= radius; ++dx) f(row[dx], dx, dy);
        }
    } else {
        for (int dy = -radius; dy <= radius; ++dy)
            for (int dx = -radius; dx <= radius; ++dx) f(picture[place(plane, x + dx, y + dy)], dx, dy);
    }
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
