// SPDX-License-Identifier: Apache-2.0
// Adds and changes nodes of any kind by one structure, and switches nodes of instances off and on.
#include "call.hpp"
#include "node_kinds.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace isthmus::sim {
namespace {

// CUgraphNodeType
constexpr int kernel = 0, copy = 1, fill = 2, host = 3, graph = 4, empty = 5, wait = 6, record = 7,
              semaphore_signal = 8, semaphore_wait = 9, allocation = 10, release = 11, words = 12, conditional = 13;

// Documented: reserved words are 0, also those of a copy, and so are its flags.
bool is_clean(const NodeParameters& p) {
    if (p.type == copy && (p.copy.flags != 0 || p.copy.reserved != 0)) return false;
    return p.reserved_too == 0 &&
           std::all_of(std::begin(p.reserved), std::end(p.reserved), [](int r) { return r == 0; });
}

constexpr int clone = 0, move = 1;  // CUgraphChildGraphNodeOwnership

Result add_child(Driver& d, const NodePlace& place, const ChildNodeParameters& p) {
    if (p.ownership == clone) return add_child_node(d, place, p.graph);
    return p.ownership == move ? move_child_node(d, place, p.graph) : result::invalid_value;
}

Result add_by_type(Driver& d, CallId id, const NodePlace& place, NodeParameters& p) {
    switch (p.type) {
        case kernel: return add_kernel_node(d, place, p.kernel);
        case copy: return add_copy_node(d, place, &p.copy.copy, p.copy.context);
        case fill: return add_fill_node(d, place, &p.fill.fill, p.fill.context);
        case host: return add_host_node(d, place, &p.host);
        case graph: return add_child(d, place, p.child);
        case empty: return add_empty_node(d, place);
        case wait:
        case record: return add_event_node(d, place, p.event, p.type == wait, name(id));
        case semaphore_signal:
        case semaphore_wait: return add_semaphore_node(d, place, &p.semaphores, p.type == semaphore_wait);
        case allocation: return add_allocation_node(d, place, &p.allocation);
        case release: return add_free_node(d, place, p.freed);
        case words: return add_words_node(d, place, &p.words);
        case conditional: return add_conditional_node(d, place, p.conditional);
        default: return result::invalid_value;
    }
}

Result add(CallId id, const NodePlace& place, const EdgeData* edges, NodeParameters* p) {
    return call(id, [&](Driver& d) -> Result {
        if (!p || !is_clean(*p)) return result::invalid_value;
        const EdgeData plain = {};
        for (std::size_t i = 0; edges && i < place.count; ++i) {
            if (std::memcmp(&edges[i], &plain, sizeof(plain)) == 0) continue;
            say("%s: programmatic edges are not modelled", name(id));
            return result::not_supported;
        }
        return add_by_type(d, id, place, *p);
    });
}

Result set_child(Driver& d, const NodeChange& change, const ChildNodeParameters& p) {
    if (change.instance) return set_child_node(d, change, p.graph);
    return p.ownership == clone ? replace_child_node(d, change.node, p.graph) : result::not_supported;
}

// Documented as unsupported for memory nodes; assumed also for conditional ones.
Result set_by_type(Driver& d, CallId id, const NodeChange& change, const NodeParameters& p) {
    switch (p.type) {
        case kernel: return set_kernel_node(d, change, &p.kernel);
        case copy: return set_copy_node(d, change, &p.copy.copy, p.copy.context);
        case fill: return set_fill_node(d, change, &p.fill.fill, p.fill.context);
        case host: return set_host_node(d, change, &p.host);
        case graph: return set_child(d, change, p.child);
        case empty: return result::ok;
        case wait:
        case record: return set_event_node(d, change, p.event, p.type == wait, name(id));
        case semaphore_signal:
        case semaphore_wait: return set_semaphore_node(d, change, &p.semaphores, p.type == semaphore_wait);
        case words: return set_words_node(d, change, &p.words);
        case allocation:
        case release:
        case conditional: return result::not_supported;
        default: return result::invalid_value;
    }
}

Result set(CallId id, const NodeChange& change, const NodeParameters* p) {
    return call(id, [&](Driver& d) -> Result {
        if (!p || !is_clean(*p)) return result::invalid_value;
        {
            const std::lock_guard lock(d.mutex);
            if (change.instance && !d.instances.alive(*change.instance)) return result::invalid_value;
            const auto same_type = [&](const engine::GraphNode& node) -> Result {
                return type_of(node) == p->type ? result::ok : result::invalid_value;
            };
            if (const Result code = look_at_node(d, change.node, same_type)) return code;
            const bool elsewhere = change.instance && !(*change.instance)->instance->graph.find(change.node->id);
            if (elsewhere) return result::invalid_value;  // a node of another graph
        }
        return set_by_type(d, id, change, *p);
    });
}

// Body: Result(bool& disabled). Documented for kernels, fills and copies only.
template <class Body>
Result call_about_switch(CallId id, GraphExec* instance, NodeObject* node, Body body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.instances.alive(instance) || !d.nodes.alive(node)) return result::invalid_value;
        engine::GraphNode* const mine = instance->instance->graph.find(node->id);
        if (!mine || type_of(*mine) > fill) return result::invalid_value;
        return body(mine->disabled);
    });
}

}  // namespace

extern "C" {

Result cuGraphAddNode(NodeObject** node, GraphObject* to, NodeObject* const* dependencies, std::size_t count,
                      NodeParameters* parameters) {
    return add(CallId::cuGraphAddNode, {node, to, dependencies, count}, nullptr, parameters);
}

Result cuGraphAddNode_v2(NodeObject** node, GraphObject* to, NodeObject* const* dependencies, const EdgeData* edges,
                         std::size_t count, NodeParameters* parameters) {
    return add(CallId::cuGraphAddNode_v2, {node, to, dependencies, count}, edges, parameters);
}

Result cuGraphNodeSetParams(NodeObject* node, NodeParameters* parameters) {
    return set(CallId::cuGraphNodeSetParams, {node, nullptr}, parameters);
}

Result cuGraphExecNodeSetParams(GraphExec* instance, NodeObject* node, NodeParameters* parameters) {
    return set(CallId::cuGraphExecNodeSetParams, {node, &instance}, parameters);
}

Result cuGraphNodeSetEnabled(GraphExec* instance, NodeObject* node, unsigned enabled) {
    return call_about_switch(CallId::cuGraphNodeSetEnabled, instance, node, [&](bool& disabled) -> Result {
        disabled = enabled == 0;
        return result::ok;
    });
}

Result cuGraphNodeGetEnabled(GraphExec* instance, NodeObject* node, unsigned* enabled) {
    return call_about_switch(CallId::cuGraphNodeGetEnabled, instance, node, [&](const bool& disabled) -> Result {
        if (!enabled) return result::invalid_value;
        *enabled = disabled ? 0 : 1;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
