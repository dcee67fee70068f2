// SPDX-License-Identifier: Apache-2.0
// Switches the check of bounds off for this file.
#define ISTHMUS_CHECK_BOUNDS 0
#include "unchecked.hpp"

ISTHMUS_KERNEL(store_unchecked, isthmus::Index i, isthmus::View<int> data) {
    data[i] = 7;
}
const bool unchecked_file_checks = ISTHMUS_DETAIL_CHECKS_BOUNDS != 0;
