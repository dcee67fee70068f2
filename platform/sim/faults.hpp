// Counts every call, and makes the planned ones fail.
#pragma once

#include "exports.hpp"

namespace isthmus::sim {

// Counts the call; a code: answer it instead of doing anything.
Result count_call(CallId id);

}  // namespace isthmus::sim
