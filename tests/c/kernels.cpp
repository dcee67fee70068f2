// SPDX-License-Identifier: Apache-2.0
// Kernels in C++ that the programs in C launch by name.
#include "kernels.hpp"

using namespace isthmus;

ISTHMUS_KERNEL(scale, Index i, Out<float> out, View<const float> in, weights by) {
    out[i] = in[i] * by.factor + static_cast<float>(by.offset);
}
ISTHMUS_KERNEL(add_position, Index2 i, View<std::uint32_t> cells, std::uint32_t width) {
    cells[i.y * width + i.x] += static_cast<std::uint32_t>(i.x + 1000 * i.y);
}
