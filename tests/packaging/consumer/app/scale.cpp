// SPDX-License-Identifier: Apache-2.0
#include <isthmus/kernel.hpp>

ISTHMUS_KERNEL(scale, isthmus::Index i, isthmus::View<int> values, int factor) {
    values[i] = values[i] * factor;
}
