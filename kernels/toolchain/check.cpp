// SPDX-License-Identifier: Apache-2.0
// Compiled once while configuring, to learn whether nvcc and the host compiler that it calls work together.
#include <isthmus/kernel.hpp>

namespace isthmus {
ISTHMUS_KERNEL(toolchain_check, Index i, Out<float> out, float value) {
    out[i] = value;
}
}  // namespace isthmus
