// SPDX-License-Identifier: Apache-2.0
// Plays one sequence on the runtime and the model, and shrinks a failing one by leaving out steps.
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
    std::string complaint;  // empty: all answers were lawful
    std::size_t step = 0;   // the failing step
    std::size_t steps = 0;  // steps carried out
    std::size_t refusals = 0;
};

// Plays the steps whose objects exist, synchronizes, compares the contents of buffers and the kernel runs, and destroys
// all objects in an order drawn from `ending`.
Verdict play(isthmus::Runtime& runtime, const MachineFacts& machine, const Sequence& sequence, std::uint64_t ending);

// Leaves out steps as long as `fails` returns true.
Sequence shrink(const Sequence& sequence, const std::function<bool(const Sequence&)>& fails);

}  // namespace exploration
