// SPDX-License-Identifier: Apache-2.0
// The consumer's own kernel.
#pragma once

#include <isthmus/kernel.hpp>

namespace consumer {
ISTHMUS_DECLARE_KERNEL(doubled, isthmus::Index i, isthmus::View<int> values);
}
