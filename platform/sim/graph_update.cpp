// SPDX-License-Identifier: Apache-2.0
// Updates an instance from a graph of the same shape: pairs nodes along the edges, from the last ones backwards, and
// checks that the instance can change into each pair's new node.
#include "call.hpp"
#include "copies.hpp"
#include "launch.hpp"
#include "node_kinds.hpp"

#include <optional>

namespace isthmus::sim {
namespace {

// CUgraphExecUpdateResult
enum Verdict : int {
    success = 0,
    error = 1,
    topology_changed = 2,
    node_type_changed = 3,
    parameters_changed = 5,
    not_supported = 6,
    unsupported_function_change = 7,
    attributes_changed = 8,
};

struct Finding {
    Verdict verdict = success;
    std::uint64_t node = 0;  // identity in the new graph; 0: no particular node
    std::uint64_t from = 0;
};

using engine::NodeIndex;
constexpr NodeIndex unpaired = ~NodeIndex{0};

std::vector<NodeIndex> exits_of(const engine::Graph& graph) {
    std::vector<bool> followed(graph.size(), false);
    for (NodeIndex i = 0; i < graph.size(); ++i) {
        for (const NodeIndex before : graph.node(i).dependencies) followed[before] = true;
    }
    std::vector<NodeIndex> exits;
    for (NodeIndex i = 0; i < graph.size(); ++i) {
        if (!followed[i]) exits.push_back(i);
    }
    return exits;
}

// partner[i]: the node of the new graph that replaces node i of the old one. The steps are documented.
Finding pair_nodes(const engine::Graph& old, const engine::Graph& now, std::vector<NodeIndex>& partner) {
    partner.assign(old.size(), unpaired);
    if (old.size() != now.size()) return {topology_changed};
    std::vector<NodeIndex> owner(now.size(), unpaired);
    const std::vector<NodeIndex> old_exits = exits_of(old), exits = exits_of(now);
    if (exits.size() > old_exits.size()) return {topology_changed, now.node(exits[old_exits.size()]).id};
    std::vector<NodeIndex> open;
    const auto pair = [&](NodeIndex mine, NodeIndex other) {
        if (partner[mine] == other) return true;
        if (partner[mine] != unpaired || owner[other] != unpaired) return false;
        partner[mine] = other;
        owner[other] = mine;
        open.push_back(mine);
        return true;
    };
    for (std::size_t i = 0; i < exits.size(); ++i) pair(old_exits[i], exits[i]);
    while (!open.empty()) {
        const NodeIndex mine = open.back();
        open.pop_back();
        const engine::GraphNode& other = now.node(partner[mine]);
        const std::vector<NodeIndex>& before = old.node(mine).dependencies;
        if (before.size() != other.dependencies.size()) return {topology_changed, other.id};
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (pair(before[i], other.dependencies[i])) continue;
            return {topology_changed, other.id, now.node(other.dependencies[i]).id};
        }
    }
    for (const NodeIndex found : partner) {
        if (found == unpaired) return {topology_changed};
    }
    return {};
}

Verdict check_kernels(const KernelLaunch& old, const KernelLaunch& now, bool node_priorities) {
    if (old.agent.context != now.agent.context) return unsupported_function_change;
    return node_priorities && old.settings.priority != now.settings.priority ? attributes_changed : success;
}

// Documented: the handle's flags and its default value follow the new graph, the node's type and size may not change.
bool conditions_may_become(const engine::GraphNode& old, const engine::GraphNode& now) {
    const engine::Condition &mine = *old.condition, &other = *now.condition;
    const bool as_many = mine.choice == engine::Condition::Choice::none || old.child->size() == now.child->size();
    return as_many && mine.loops == other.loops && mine.choice == other.choice;
}

Verdict check_nodes(const engine::GraphNode& old, const engine::GraphNode& now, bool node_priorities) {
    if (type_of(old) != type_of(now)) return node_type_changed;
    if (old.condition && !conditions_may_become(old, now)) return not_supported;  // observed (580, H200)
    if (old.child) return success;                                                // compared separately
    const void *mine = old.operation.details.get(), *other = now.operation.details.get();
    switch (old.operation.kind) {
        case engine::Kind::kernel:
            return check_kernels(*static_cast<const KernelLaunch*>(mine), *static_cast<const KernelLaunch*>(other),
                                 node_priorities);
        case engine::Kind::copy:
        case engine::Kind::memset:
            return static_cast<const MemoryNode*>(mine)->may_become(*static_cast<const MemoryNode*>(other))
                       ? success
                       : parameters_changed;
        case engine::Kind::semaphore_signal:
        case engine::Kind::semaphore_wait: return semaphores_may_become(mine, other) ? success : parameters_changed;
        case engine::Kind::words: return words_may_become(mine, other) ? success : parameters_changed;
        // Assumed: memory of the instance keeps its address.
        case engine::Kind::allocate:
        case engine::Kind::free: return not_supported;
        default: return success;
    }
}

// Sets the operations, conditions and user objects of `now` in `out`, a copy of the instance's graph.
Finding update(const engine::Graph& now, bool node_priorities, engine::Graph& out) {
    const engine::Graph old = out;
    std::vector<NodeIndex> partner;
    if (const Finding found = pair_nodes(old, now, partner); found.verdict != success) return found;
    for (NodeIndex i = 0; i < old.size(); ++i) {
        const engine::GraphNode& other = now.node(partner[i]);
        const Verdict verdict = check_nodes(old.node(i), other, node_priorities);
        if (verdict != success) return {verdict, other.id};
        engine::GraphNode& mine = out.node(i);
        mine.condition = other.condition;
        if (!mine.child) {
            mine.operation = other.operation;
        } else if (const Finding inner = update(*other.child, node_priorities, *mine.child); inner.verdict != success) {
            return inner;
        }
    }
    out.own(now.owned());
    return {};
}

// Observed (580, H200): a condition without a default value keeps the value that the instance had.
void keep_values(const engine::Graph& old, const engine::Graph& now) {
    for (NodeIndex i = 0; i < old.size(); ++i) {
        const engine::GraphNode &mine = old.node(i), &other = now.node(i);
        if (mine.condition && mine.condition->value != other.condition->value && !other.condition->initial) {
            other.condition->value->store(mine.condition->value->load(std::memory_order_relaxed),
                                          std::memory_order_relaxed);
        }
        if (mine.child) keep_values(*mine.child, *other.child);
    }
}

NodeObject* find_handle(Driver& d, GraphObject& object, const engine::Graph& graph, std::uint64_t id) {
    for (NodeIndex i = 0; i < graph.size(); ++i) {
        if (graph.node(i).id == id) return handle_of(d, object, graph, i);
        // A node of a child graph is reported as the node that contains it (assumed).
        if (graph.node(i).child && graph.node(i).child->find(id)) return handle_of(d, object, graph, i);
    }
    return nullptr;
}

Result update(Driver& d, GraphExec* handle, GraphObject* object, UpdateResult* answer) {
    engine::Graph last;  // the previous graph; destroyed after the lock is released
    const std::lock_guard lock(d.mutex);
    if (!answer) return result::invalid_value;
    *answer = {error, nullptr, nullptr};
    if (!d.instances.alive(handle) || !d.graphs.alive(object)) return result::invalid_value;
    if (object->was_moved) return result::invalid_value;  // documented; the code is assumed
    engine::Graph now;
    if (const Result code = look(d, *object, [&](const engine::Graph& graph) { now = graph; })) return code;
    engine::Graph updated = handle->instance->graph;
    const Finding found = update(now, handle->node_priorities, updated);
    answer->result = found.verdict;
    if (found.verdict == success) {
        keep_values(handle->instance->graph, updated);
        last = std::exchange(handle->instance->graph, std::move(updated));
        return result::ok;
    }
    if (found.node != 0) answer->error_node = find_handle(d, *object, now, found.node);
    if (found.from != 0) answer->error_from_node = find_handle(d, *object, now, found.from);
    return result::graph_update_failure;
}

}  // namespace

Result set_child_node(Driver& d, const NodeChange& change, GraphObject* child) {
    engine::Graph last;  // the previous graph; destroyed after the lock is released
    const std::lock_guard lock(d.mutex);
    if (!d.nodes.alive(change.node) || !change.instance || !d.instances.alive(*change.instance)) {
        return result::invalid_value;
    }
    if (!d.graphs.alive(child)) return result::invalid_value;
    engine::Graph now;
    if (const Result code = look(d, *child, [&](const engine::Graph& graph) { now = graph; })) return code;
    GraphExec& handle = **change.instance;
    engine::Graph updated = handle.instance->graph;
    engine::GraphNode* const mine = updated.find(change.node->id);
    if (!mine || !mine->child || mine->condition) return result::invalid_value;
    // Observed (580, H200): the code of cuGraphExecUpdate.
    if (update(now, handle.node_priorities, *mine->child).verdict != success) return result::graph_update_failure;
    last = std::exchange(handle.instance->graph, std::move(updated));
    return result::ok;
}

extern "C" {

Result cuGraphExecChildGraphNodeSetParams(GraphExec* instance, NodeObject* node, GraphObject* child) {
    return call(CallId::cuGraphExecChildGraphNodeSetParams, [&](Driver& d) {
        return set_child_node(d, {node, &instance}, child);
    });
}

Result cuGraphExecUpdate(GraphExec* instance, GraphObject* graph, NodeObject** error_node, int* answer) {
    return call(CallId::cuGraphExecUpdate, [&](Driver& d) {
        UpdateResult found = {};
        const Result code = update(d, instance, graph, &found);
        if (error_node) *error_node = found.error_node;
        if (answer) *answer = found.result;
        return code;
    });
}

Result cuGraphExecUpdate_v2(GraphExec* instance, GraphObject* graph, UpdateResult* answer) {
    return call(CallId::cuGraphExecUpdate_v2, [&](Driver& d) { return update(d, instance, graph, answer); });
}
}

}  // namespace isthmus::sim
