// SPDX-License-Identifier: Apache-2.0
// Sequences from seeds.
#pragma once

#include "model.hpp"
#include "steps.hpp"

#include <cstdint>

namespace exploration {

// Steps that have something to act on, most of which are lawful; uses that conflict are ordered. The same for the same
// seed and machine.
Sequence draw(std::uint64_t seed, const MachineFacts& machine);

}  // namespace exploration
