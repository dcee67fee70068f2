// SPDX-License-Identifier: Apache-2.0
// The kernel of the quickstart: compiled by nvcc for the GPU and by the C++ compiler for the CPU.
#include "brighten.hpp"

ISTHMUS_KERNEL(brighten, isthmus::Index i, isthmus::View<std::uint8_t> pixels, int by) {
    const int bright = pixels[i] + by;
    pixels[i] = static_cast<std::uint8_t>(bright > 255 ? 255 : bright);
}
