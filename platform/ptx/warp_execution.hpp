// SPDX-License-Identifier: Apache-2.0
// Runs warps: groups of lanes in lockstep, and how they part and meet.
#pragma once

#include "state.hpp"

namespace isthmus::ptx {

enum class Outcome : std::uint8_t { finished, blocked, out_of_steps, stopped };

// Puts the entry's first frame into the warp.
void start_warp(Warp& warp, const FunctionCode& function, LaneMask lanes_of_warp, std::uint32_t local_bytes);
// At most `steps` instructions. `blocked`: all of its groups wait for others.
Outcome run_warp(Warp& warp, std::uint64_t steps);
// Runs vprintf and so on, for the lanes; what they return lies in the frame's local memory.
void run_intrinsic(Warp& warp, const Op& op, LaneMask mask, Intrinsic intrinsic, const CallSite& site);

}  // namespace isthmus::ptx
