// SPDX-License-Identifier: Apache-2.0
// What the outcomes of each shape mean: a table, and sums over it. Pure.
#pragma once

#include "cells.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::tools::litmus {

enum class Outcome : std::uint8_t {
    ordinary,     // one side came before the other
    interleaved,  // only possible where both sides were at it at the same time: the trial had a chance
    weak,         // what the orders of the shape rule out, and weaker ones do not
};

// `code` as outcome() made it, both sides' answers together. For lost_updates the code is the sum that was left.
Outcome judge(LitmusShape shape, unsigned code) noexcept;

// How often each code was seen.
using Counts = std::array<std::uint64_t, outcome_count>;
std::uint64_t total(const Counts& counts) noexcept;
std::uint64_t count(LitmusShape shape, const Counts& counts, Outcome outcome) noexcept;

// Words of one side's part of an instance: 4 where it is wide.
constexpr std::uint32_t words_of(LitmusShape shape) noexcept {
    return shape == LitmusShape::tearing_to_device || shape == LitmusShape::tearing_to_host ? 4u : 1u;
}
std::optional<LitmusShape> shape_of(std::string_view text) noexcept;
std::string_view weak_means(LitmusShape shape) noexcept;  // "the flag was new and the data old"

// Mistakes that are made on purpose, to see whether trials notice: which side loses its orders, or the GPU its scope.
struct Mutant {
    std::string_view name;
    bool host_ordered;
    bool device_ordered;
    bool device_narrow;
};
inline constexpr std::array<Mutant, 4> mutants = {{
    {"relaxed", false, false, false},
    {"relaxed_host", false, true, false},
    {"relaxed_device", true, false, false},
    {"device_scope", true, true, true},
}};
const Mutant* find_mutant(std::string_view name) noexcept;  // nullptr: none of this name

}  // namespace isthmus::tools::litmus
