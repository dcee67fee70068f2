// SPDX-License-Identifier: Apache-2.0
// Counts every call, and makes the planned ones fail.
#pragma once

#include "exports.hpp"

#include <cstddef>

namespace isthmus::sim {

// Counts the call; a code: answer it instead of doing anything.
Result count_call(CallId id);
// How many calls stand in a planned full queue.
std::size_t standing_calls();

}  // namespace isthmus::sim
