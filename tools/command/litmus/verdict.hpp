// SPDX-License-Identifier: Apache-2.0
// From counts to an answer: how often something may happen that was seen so often, and what a row of trials says. Pure.
#pragma once

#include "shapes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::litmus {

// The greatest rate that is still compatible with `seen` of `tried`, 95 times of 100 (Clopper and Pearson's one-sided
// bound; about 3 / tried where nothing was seen). 1 where nothing was tried.
double upper_bound(std::uint64_t seen, std::uint64_t tried);

enum class Role : std::uint8_t {
    test,     // with the orders that the memory model asks for, in a kind where the rules grant the shape
    refused,  // read-modify-writes where the rules refuse them: losses are what is expected
    mutant,   // with a mistake made on purpose
};
std::string_view name(Role role) noexcept;

enum class Ending : std::uint8_t { finished, not_run, stalled, failed, hung, crashed };
std::string_view name(Ending ending) noexcept;

// One shape in one kind: what was played, and the control with relaxed orders beside it.
struct Row {
    MemoryKind kind = MemoryKind::unknown;
    LitmusShape shape = LitmusShape::message_to_device;
    Role role = Role::test;
    Ending ending = Ending::not_run;
    std::string trouble{};  // why it did not finish
    Counts seen{};
    Counts control{};
    double seconds = 0;  // that `seen` took
};

enum class Answer : std::uint8_t {
    passes,            // nothing forbidden, though the control shows that there was something to see
    no_power,          // nothing forbidden, and nothing weak in the control: this proves nothing
    forbidden_seen,    // the guards of this machine grant too much
    lost_as_expected,  // the rules refuse this, and rightly
    nothing_lost,      // the rules refuse this, and these trials do not show why: they still do
    mutant_noticed,    // the mistake shows: the trials have power
    mutant_unnoticed,  // it does not show
    incomplete,        // Row::ending says why
};
std::string_view name(Answer answer) noexcept;
Answer answer_of(const Row& row) noexcept;
// Worth exit code 1: something forbidden, or trials that did not come to their end.
bool is_problem(Answer answer) noexcept;

// Of rows with Role::test alone, finished or not: what was seen in a row that then hung was seen.
std::vector<LitmusResult> results_of(const std::vector<Row>& rows);

}  // namespace isthmus::tools::litmus
