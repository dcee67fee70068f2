// SPDX-License-Identifier: Apache-2.0
#include "doubled.hpp"

namespace consumer {
ISTHMUS_KERNEL(doubled, isthmus::Index i, isthmus::View<int> values) {
    values[i] = values[i] * 2;
}
}  // namespace consumer
