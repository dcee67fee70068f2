// SPDX-License-Identifier: Apache-2.0
// What the entries of a program need, with all that they call.
#pragma once

#include "code.hpp"

#include <vector>

namespace isthmus::ptx {

// Tells each entry its local and shared memory, its registers, and the refusal of what it calls. `bodies`: of the
// functions; nullptr: it has none.
void note_needs(ProgramCode& program, const std::vector<const FunctionSyntax*>& bodies);

}  // namespace isthmus::ptx
