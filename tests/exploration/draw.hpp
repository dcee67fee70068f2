// SPDX-License-Identifier: Apache-2.0
// Draws sequences from seeds.
#pragma once

#include "model.hpp"
#include "steps.hpp"

#include <cstdint>

namespace exploration {

// Returns steps whose objects exist, most of them lawful; conflicting uses are ordered. The same seed and machine give
// the same sequence.
Sequence draw(std::uint64_t seed, const MachineFacts& machine);

}  // namespace exploration
