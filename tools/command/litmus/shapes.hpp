// SPDX-License-Identifier: Apache-2.0
// The meaning of each shape's outcomes: a table, and sums over it. Pure.
#pragma once

#include "cells.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::tools::litmus {

enum class Outcome : std::uint8_t {
    ordinary,     // one side ran before the other
    interleaved,  // only possible where both sides ran at the same time: the trial had a chance to find something
    weak,         // forbidden by the orders of the shape, allowed by weaker ones
};

// `code` comes from outcome(), with the results of both sides. For lost_updates it is the final sum.
Outcome judge(LitmusShape shape, unsigned code) noexcept;

// The count of each code.
using Counts = std::array<std::uint64_t, outcome_count>;
std::uint64_t total(const Counts& counts) noexcept;
std::uint64_t count(LitmusShape shape, const Counts& counts, Outcome outcome) noexcept;

// Words of one side in an instance: 4 for wide shapes.
constexpr std::uint32_t words_of(LitmusShape shape) noexcept {
    return shape == LitmusShape::tearing_to_device || shape == LitmusShape::tearing_to_host ? 4u : 1u;
}
std::optional<LitmusShape> shape_of(std::string_view text) noexcept;
std::string_view weak_means(LitmusShape shape) noexcept;  // "the flag was new and the data old"

// Deliberate errors that the trials should detect: one side loses its orders, or the GPU its scope.
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
const Mutant* find_mutant(std::string_view name) noexcept;  // nullptr: no such name

}  // namespace isthmus::tools::litmus
