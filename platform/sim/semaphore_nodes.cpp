// SPDX-License-Identifier: Apache-2.0
// Nodes that signal external semaphores or wait for them: added, read, set in graphs and instances.
#include "call.hpp"
#include "node_kinds.hpp"
#include "semaphores.hpp"

#include <utility>

namespace isthmus::sim {
namespace {

engine::Kind kind_of(bool waits) {
    return waits ? engine::Kind::semaphore_wait : engine::Kind::semaphore_signal;
}

const SemaphoreSet* set_of(const engine::GraphNode& node, bool waits) {
    if (node.child || node.operation.kind != kind_of(waits)) return nullptr;
    return static_cast<const SemaphoreSet*>(node.operation.details.get());
}

// Requires the driver's mutex. Observed (580): a node without semaphores is taken.
Result make(Driver& d, const SemaphoreNodeParameters& p, bool waits, engine::Operation& out) {
    SemaphoreSet set;
    set.waits = waits;
    // So is one of a semaphore that is null; assumed: it then does nothing.
    const bool is_null = p.count == 1 && p.semaphores && p.parameters && !p.semaphores[0];
    if (is_null) {
        set.words.emplace_back();
        set.semaphores.push_back(nullptr);
        set.parameters.push_back(p.parameters[0]);
    }
    if (p.count == 0 || is_null) {
        out = semaphore_operation(d, std::move(set));
        return result::ok;
    }
    if (const Result code = check_semaphores(d, nullptr, p.semaphores, p.parameters, p.count, set)) return code;
    out = semaphore_operation(d, std::move(set));
    return result::ok;
}

Result get(CallId id, NodeObject* node, SemaphoreNodeParameters* parameters, bool waits) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            const SemaphoreSet* const set = set_of(found, waits);
            if (!parameters || !set) return result::invalid_value;
            *parameters = {set->semaphores.data(), set->parameters.data(), static_cast<unsigned>(set->words.size())};
            return result::ok;
        });
    });
}

}  // namespace

Result add_semaphore_node(Driver& d, const NodePlace& place, const SemaphoreNodeParameters* parameters, bool waits) {
    if (!parameters) return result::invalid_value;
    engine::Operation operation;
    const std::lock_guard lock(d.mutex);
    if (const Result code = make(d, *parameters, waits, operation)) return code;
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(std::move(operation), std::move(after));
                    });
}

Result set_semaphore_node(Driver& d, const NodeChange& change, const SemaphoreNodeParameters* parameters, bool waits) {
    if (!parameters) return result::invalid_value;
    engine::Operation last;
    const std::lock_guard lock(d.mutex);
    return replace_operation(d, change.instance, change.node, last,
                             [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
                                 const SemaphoreSet* const old = set_of(now, waits);
                                 if (!old) return result::invalid_value;
                                 // Documented: the number of an instance's node does not change.
                                 const bool other_number = parameters->count != old->words.size();
                                 if (change.instance && other_number) return result::invalid_value;
                                 return make(d, *parameters, waits, made);
                             });
}

bool semaphores_may_become(const void* old, const void* now) {
    return static_cast<const SemaphoreSet*>(old)->words.size() == static_cast<const SemaphoreSet*>(now)->words.size();
}

extern "C" {

Result cuGraphAddExternalSemaphoresSignalNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                                              std::size_t count, const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphAddExternalSemaphoresSignalNode, [&](Driver& d) {
        return add_semaphore_node(d, {node, graph, dependencies, count}, parameters, false);
    });
}

Result cuGraphAddExternalSemaphoresWaitNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                                            std::size_t count, const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphAddExternalSemaphoresWaitNode, [&](Driver& d) {
        return add_semaphore_node(d, {node, graph, dependencies, count}, parameters, true);
    });
}

Result cuGraphExternalSemaphoresSignalNodeGetParams(NodeObject* node, SemaphoreNodeParameters* parameters) {
    return get(CallId::cuGraphExternalSemaphoresSignalNodeGetParams, node, parameters, false);
}

Result cuGraphExternalSemaphoresWaitNodeGetParams(NodeObject* node, SemaphoreNodeParameters* parameters) {
    return get(CallId::cuGraphExternalSemaphoresWaitNodeGetParams, node, parameters, true);
}

Result cuGraphExternalSemaphoresSignalNodeSetParams(NodeObject* node, const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphExternalSemaphoresSignalNodeSetParams, [&](Driver& d) {
        return set_semaphore_node(d, {node, nullptr}, parameters, false);
    });
}

Result cuGraphExternalSemaphoresWaitNodeSetParams(NodeObject* node, const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphExternalSemaphoresWaitNodeSetParams, [&](Driver& d) {
        return set_semaphore_node(d, {node, nullptr}, parameters, true);
    });
}

Result cuGraphExecExternalSemaphoresSignalNodeSetParams(GraphExec* instance, NodeObject* node,
                                                        const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphExecExternalSemaphoresSignalNodeSetParams, [&](Driver& d) {
        return set_semaphore_node(d, {node, &instance}, parameters, false);
    });
}

Result cuGraphExecExternalSemaphoresWaitNodeSetParams(GraphExec* instance, NodeObject* node,
                                                      const SemaphoreNodeParameters* parameters) {
    return call(CallId::cuGraphExecExternalSemaphoresWaitNodeSetParams, [&](Driver& d) {
        return set_semaphore_node(d, {node, &instance}, parameters, true);
    });
}
}

}  // namespace isthmus::sim
