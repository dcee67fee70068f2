// SPDX-License-Identifier: Apache-2.0
// What a target promises of every input: otherwise the process ends, and the input is kept.
#pragma once

#include <cstdlib>

inline void require(bool kept) {
    if (!kept) std::abort();
}
