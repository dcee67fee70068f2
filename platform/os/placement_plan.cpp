// SPDX-License-Identifier: Apache-2.0
// Chooses NUMA nodes. Nodes without CPUs are memory of GPUs or expanders: used only if named by number.
#include "placement_plan.hpp"

#include "os_errors.hpp"

#include <algorithm>

namespace isthmus::platform::os {
namespace {

const NumaNode* find_node(const MachineFacts& machine, int id) {
    for (const NumaNode& node : machine.numa_nodes) {
        if (node.id == id) return &node;
    }
    return nullptr;
}

bool is_allowed(const std::optional<std::vector<int>>& allowed, int id) {
    return !allowed || std::find(allowed->begin(), allowed->end(), id) != allowed->end();
}

std::string list_of(const std::vector<NumaNode>& nodes) {
    std::string text;
    for (const NumaNode& node : nodes) text.append(text.empty() ? "" : ", ").append(std::to_string(node.id));
    return text.empty() ? "none stated" : text;
}

bool has_memory_only_nodes(const MachineFacts& machine) {
    return std::any_of(machine.numa_nodes.begin(), machine.numa_nodes.end(),
                       [](const NumaNode& node) { return node.cpu_count == 0 && node.memory_bytes > 0; });
}

std::vector<int> cpu_nodes(const MachineFacts& machine, const std::optional<std::vector<int>>& allowed) {
    std::vector<int> ids;
    for (const NumaNode& node : machine.numa_nodes) {
        if (node.cpu_count > 0 && node.memory_bytes > 0 && is_allowed(allowed, node.id)) ids.push_back(node.id);
    }
    return ids;
}

// Handles a wish that cannot be granted: an error, or the system's default policy and the reason.
Result<PlacementPlan> refuse(bool strict, Error why) {
    if (strict) return why;
    PlacementPlan plan;
    plan.reason = why.message();
    return plan;
}

Result<PlacementPlan> on_node(int id, bool strict, const MachineFacts& machine,
                              const std::optional<std::vector<int>>& allowed) {
    if (machine.numa_nodes.empty()) return refuse(strict, make_error<errors::system_without_numa_nodes>(id));
    const NumaNode* node = find_node(machine, id);
    if (!node) return refuse(strict, make_error<errors::no_such_numa_node>(id, list_of(machine.numa_nodes)));
    if (node->memory_bytes == 0) return refuse(strict, make_error<errors::numa_node_without_memory>(id));
    if (!is_allowed(allowed, id)) {
        return refuse(strict, make_error<errors::numa_node_outside_cpuset>(id));
    }
    PlacementPlan plan;
    plan.policy = strict ? Policy::bind : Policy::prefer;
    plan.nodes = {id};
    return plan;
}

Result<PlacementPlan> near_device(int near_node, bool strict, const MachineFacts& machine,
                                  const std::optional<std::vector<int>>& allowed) {
    if (near_node < 0) return refuse(strict, make_error<errors::device_states_no_closest_node>());
    const NumaNode* node = find_node(machine, near_node);
    if (node && node->cpu_count == 0) {
        return refuse(strict, make_error<errors::closest_node_without_cpus>(near_node));
    }
    return on_node(near_node, strict, machine, allowed);
}

// Where GPUs or expanders are nodes, the system's default policy spills over to them when the CPUs' memory is full. So
// memory without a requested place is bound to the CPUs' nodes (nearest first, as by default). On other machines no
// policy is set.
PlacementPlan anywhere(const MachineFacts& machine, const std::optional<std::vector<int>>& allowed) {
    PlacementPlan plan;
    if (!has_memory_only_nodes(machine)) return plan;
    plan.nodes = cpu_nodes(machine, allowed);
    if (!plan.nodes.empty()) plan.policy = Policy::bind;
    return plan;
}

Result<PlacementPlan> interleaved(bool strict, const MachineFacts& machine,
                                  const std::optional<std::vector<int>>& allowed) {
    PlacementPlan plan;
    plan.policy = Policy::interleave;
    plan.nodes = cpu_nodes(machine, allowed);
    if (!plan.nodes.empty()) return plan;
    const Code code = machine.numa_nodes.empty() ? Code::unsupported : Code::not_permitted;
    return refuse(strict, make_error_as<errors::no_node_to_interleave>(code, list_of(machine.numa_nodes)));
}

}  // namespace

bool names_nodes(const HostPlacement& placement, const MachineFacts& machine) {
    switch (placement.locality) {
        case Locality::local:
        case Locality::unbound: return false;
        case Locality::anywhere: return has_memory_only_nodes(machine);
        default: return true;
    }
}

Result<PlacementPlan> plan_placement(const HostPlacement& placement, int near_node, const MachineFacts& machine,
                                     const std::optional<std::vector<int>>& allowed) {
    switch (placement.locality) {
        case Locality::anywhere: return anywhere(machine, allowed);
        case Locality::local: return PlacementPlan{Policy::local, {}, {}};
        case Locality::near_device: return near_device(near_node, placement.strict, machine, allowed);
        case Locality::node: return on_node(placement.node, placement.strict, machine, allowed);
        case Locality::interleaved: return interleaved(placement.strict, machine, allowed);
        case Locality::unbound: return PlacementPlan{};
    }
    return make_error<errors::no_such_locality>();
}

}  // namespace isthmus::platform::os
