// SPDX-License-Identifier: Apache-2.0
// Step 3: a kernel. It marks the pixels that differ between two frames by more than a threshold.
#include "motion.hpp"

ISTHMUS_KERNEL(mark_motion, isthmus::Index i, isthmus::Out<std::uint8_t> moved, isthmus::View<const std::uint8_t> now,
               isthmus::View<const std::uint8_t> before, int threshold) {
    const int difference = now[i] - before[i];
    moved[i] = difference > threshold || difference < -threshold ? 1 : 0;
}
