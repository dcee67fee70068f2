// SPDX-License-Identifier: Apache-2.0
// From counts to an answer: the highest rate that agrees with the counts, and the answer of a row. Pure.
#pragma once

#include "shapes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::litmus {

// The highest rate that is compatible with `seen` of `tried` at 95 % confidence (the one-sided bound of Clopper and
// Pearson; about 3 / tried where nothing was seen). 1 where nothing was tried.
double upper_bound(std::uint64_t seen, std::uint64_t tried);

enum class Role : std::uint8_t {
    test,     // with the orders that the memory model requires, in a kind where the rules grant the shape
    refused,  // read-modify-writes where the rules refuse them: lost updates are expected
    mutant,   // with a deliberate error
};
std::string_view name(Role role) noexcept;

enum class Ending : std::uint8_t { finished, not_run, stalled, failed, hung, crashed };
std::string_view name(Ending ending) noexcept;

// One shape in one kind: the counts, and those of the control with relaxed orders.
struct Row {
    MemoryKind kind = MemoryKind::unknown;
    LitmusShape shape = LitmusShape::message_to_device;
    Role role = Role::test;
    Ending ending = Ending::not_run;
    std::string trouble{};  // why the row did not finish
    Counts seen{};
    Counts control{};
    double seconds = 0;  // duration of `seen`
};

enum class Answer : std::uint8_t {
    passes,            // nothing forbidden, and the control had weak outcomes
    no_power,          // nothing forbidden, but the control had no weak outcome either: this proves nothing
    forbidden_seen,    // the rules grant too much on this machine
    lost_as_expected,  // the rules refuse this, and the trials confirm it
    nothing_lost,      // the rules refuse this, and the trials do not show why; the refusal stays
    mutant_noticed,    // the deliberate error shows: the trials can detect it
    mutant_unnoticed,  // the deliberate error does not show
    incomplete,        // Row::ending says why
};
std::string_view name(Answer answer) noexcept;
Answer answer_of(const Row& row) noexcept;
// Whether the answer leads to exit code 1: a forbidden outcome, or trials that did not finish.
bool is_problem(Answer answer) noexcept;

// The results of rows with Role::test only, finished or not: the outcomes of a row that later hung still count.
std::vector<LitmusResult> results_of(const std::vector<Row>& rows);

}  // namespace isthmus::tools::litmus
