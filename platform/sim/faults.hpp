// SPDX-License-Identifier: Apache-2.0
// Counts every call, and makes planned calls fail.
#pragma once

#include "exports.hpp"

#include <cstddef>

namespace isthmus::sim {

// Counts the call; returns 0, or the code that it must answer without any effect.
Result count_call(CallId id);
// The name of the function that this thread called last; empty: none.
const char* current_call() noexcept;
// The number of calls that wait in a planned full queue.
std::size_t standing_calls();

}  // namespace isthmus::sim
