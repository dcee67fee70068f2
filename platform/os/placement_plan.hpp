// SPDX-License-Identifier: Apache-2.0
// From a requested place to the nodes asked of the system. Pure.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>

#include <optional>
#include <string>
#include <vector>

namespace isthmus::platform::os {

enum class Policy : std::uint8_t { none, local, prefer, bind, interleave };

struct PlacementPlan {
    Policy policy = Policy::none;
    std::vector<int> nodes;  // where pages may lie; empty with Policy::none and Policy::local
    std::string reason;      // why less is done than requested; empty: done as requested
};

// Does a plan for this name nodes, so that the allowed ones matter?
bool names_nodes(const HostPlacement& placement, const MachineFacts& machine);

// `near_node`: the device's closest CPU node, -1: not stated. `allowed`: the nodes that the cpuset allows this process;
// nothing: the system does not say. A strict wish that cannot be granted is an Error.
Result<PlacementPlan> plan_placement(const HostPlacement& placement, int near_node, const MachineFacts& machine,
                                     const std::optional<std::vector<int>>& allowed);

}  // namespace isthmus::platform::os
