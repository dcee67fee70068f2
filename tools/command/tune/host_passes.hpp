// SPDX-License-Identifier: Apache-2.0
// One pass of one CPU thread over memory; the counterparts of the kernels.
#pragma once

#include "tune_kernels.hpp"

#include <cstdint>
#include <span>

namespace isthmus::tools::tune {

void write_lanes(std::span<Lane> lanes, std::uint64_t salt) noexcept;
void read_lanes(std::span<const Lane> lanes) noexcept;
void update_lanes(std::span<Lane> lanes, std::uint64_t salt) noexcept;

}  // namespace isthmus::tools::tune
