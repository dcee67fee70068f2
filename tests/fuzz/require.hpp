// SPDX-License-Identifier: Apache-2.0
// A condition that a target promises for every input: if it is false, the process ends, and the input is kept.
#pragma once

#include <cstdlib>

inline void require(bool kept) {
    if (!kept) std::abort();
}
