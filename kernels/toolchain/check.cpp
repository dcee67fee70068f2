// SPDX-License-Identifier: Apache-2.0
// Compiled once at configuration, to find out whether nvcc and its host compiler work together.
#include <isthmus/kernel.hpp>

namespace isthmus {
ISTHMUS_KERNEL(toolchain_check, Index i, Out<float> out, float value) {
    out[i] = value;
}
}  // namespace isthmus
