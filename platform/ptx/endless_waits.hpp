// SPDX-License-Identifier: Apache-2.0
// Loops that end by an mbarrier object alone.
#pragma once

#include "code.hpp"

namespace isthmus::ptx {

// Whether lanes that have found the phase not ended at this operation (mbarrier.test_wait or try_wait, one of the
// function's) come back to it, whatever else they find, with the same object and the same phase, and have no effect
// until then that other threads could read. Timers may be read, and nanosleep may be called in between. false also
// where this is not known: the loop calls a function, reads or writes memory, or tests another object.
bool only_the_object_ends(const FunctionCode& function, std::uint32_t test);

}  // namespace isthmus::ptx
