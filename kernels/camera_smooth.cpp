// SPDX-License-Identifier: Apache-2.0
// Smooths a gray picture with a 5 × 5 binomial filter.
#include "neighbours.hpp"

namespace isthmus {
inline namespace v0 {
namespace kernels {

// The weights 1 4 6 4 1.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t binomial(int distance) noexcept {
    return distance == 0 ? 6 : distance == 1 || distance == -1 ? 4 : 1;
}

ISTHMUS_KERNEL(smooth, Index2 i, Out<std::uint8_t> smoothed, View<const std::uint8_t> gray, Plane plane) {
    std::uint32_t sum = 128;  // half of 16 × 16, to round to nearest
    for_neighbours<2>(i, gray, plane,
                      [&sum](std::uint32_t value, int dx, int dy) { sum += binomial(dx) * binomial(dy) * value; });
    smoothed[i.y * plane.pitch + i.x] = static_cast<std::uint8_t>(sum / 256);
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
