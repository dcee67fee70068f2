// SPDX-License-Identifier: Apache-2.0
// Computes the corner response of each pixel: Sobel gradients, and the Harris response in integer arithmetic.
#include "neighbours.hpp"

namespace isthmus {
inline namespace v0 {
namespace kernels {

ISTHMUS_KERNEL(gradients, Index2 i, Out<Gradient> gradient, View<const std::uint8_t> gray, Plane plane) {
    std::int32_t x = 0, y = 0;  // from −4 × 255 to 4 × 255
    for_neighbours<1>(i, gray, plane, [&x, &y](std::int32_t value, int dx, int dy) {
        x += dx * (dy == 0 ? 2 : 1) * value;
        y += dy * (dx == 0 ? 2 : 1) * value;
    });
    gradient[i.y * plane.pitch + i.x] = {static_cast<std::int16_t>(x), static_cast<std::int16_t>(y)};
}

// Sums are at most 25 × 1020² < 2²⁵, so that 25 det < 2⁵⁵ and trace² < 2⁵²; divided by 2²³ the result fits 32 bits.
ISTHMUS_KERNEL(corner_response, Index2 i, Out<std::int32_t> response, View<const Gradient> gradient, Plane plane) {
    std::int32_t xx = 0, yy = 0, xy = 0;
    for_neighbours<2>(i, gradient, plane, [&xx, &yy, &xy](Gradient g, int, int) {
        xx += g.x * g.x;
        yy += g.y * g.y;
        xy += g.x * g.y;
    });
    const std::int64_t det = std::int64_t{xx} * yy - std::int64_t{xy} * xy;
    const std::int64_t trace = std::int64_t{xx} + yy;
    response[i.y * plane.pitch + i.x] = static_cast<std::int32_t>((25 * det - trace * trace) >> 23);
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
