// SPDX-License-Identifier: Apache-2.0
// How many registers a thread of a function would need on a GPU: an estimate from what is alive at a time.
#pragma once

#include "syntax.hpp"

#include <cstdint>

namespace isthmus::ptx {

// Of the function alone, without what it calls; predicates count nothing. ptxas decides the real number: it reorders
// instructions, keeps values that all lanes share elsewhere, and makes others anew where they are used.
std::uint32_t estimated_registers(const FunctionSyntax& function);

}  // namespace isthmus::ptx
