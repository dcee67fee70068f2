// SPDX-License-Identifier: Apache-2.0
// Why memory of some kind is chosen for a shared buffer: texts for the user, by the traits of a machine.
#pragma once

#include <platform/capability_table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace isthmus::rules {

// The sides that copies serve.
enum class Copied : std::uint8_t { reads, writes, both };
inline constexpr std::size_t copied_count = 3;

// Reasons for both sides of a border.
struct BorderReasons {
    std::string from;
    std::string below;
};

// Every reason of one set of traits. Borders of one list are told apart by their index.
struct Reasons {
    std::array<std::array<BorderReasons, 2 * platform::most_borders>, copied_count> borders;
    std::string in_place;
    std::string for_latency;
    std::string for_latency_migrating;
};

// Valid until the process ends.
const Reasons& reasons_of(const platform::Traits& traits);
const BorderReasons& reasons_of(const platform::Traits& traits, Copied copied, const platform::CopyBorder& border);

}  // namespace isthmus::rules
