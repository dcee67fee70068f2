// SPDX-License-Identifier: Apache-2.0
// One sequence against the runtime and the model, and what is left of a failing one when steps are left out.
#pragma once

#include "model.hpp"
#include "steps.hpp"

#include <isthmus/isthmus.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace exploration {

struct Verdict {
    std::string complaint;  // nothing: all answers were lawful
    std::size_t step = 0;   // where
    std::size_t steps = 0;  // that were carried out
    std::size_t refusals = 0;
};

// Plays the steps that have something to act on, waits for everything, compares what buffers hold and how kernels
// ran, and lets go of all objects in an order of `ending`'s.
Verdict play(isthmus::Runtime& runtime, const MachineFacts& machine, const Sequence& sequence, std::uint64_t ending);

// Leaves steps out as long as `fails` says yes.
Sequence shrink(const Sequence& sequence, const std::function<bool(const Sequence&)>& fails);

}  // namespace exploration
