// SPDX-License-Identifier: Apache-2.0
// What copy nodes and fill nodes share: how they are found, added and set.
#pragma once

#include "copies.hpp"
#include "node_kinds.hpp"

#include <utility>

namespace isthmus::sim {

// Null where the node is of another kind.
inline const MemoryNode* memory_node_of(const engine::GraphNode& node, engine::Kind kind) {
    if (node.child || node.operation.kind != kind) return nullptr;
    return static_cast<const MemoryNode*>(node.operation.details.get());
}

// Make: Result(const GpuAgent&, engine::Operation& made).
template <class Make>
Result add_memory_node(Driver& d, const NodePlace& place, Context* context, Make make) {
    engine::Operation operation;
    // Observed (580): a node without a context is taken, with and without a current one. Assumed: it has that
    // one, or the first device's primary one.
    if (!context) context = current_context(d);
    const std::lock_guard lock(d.mutex);
    if (!context) context = &d.devices[0].primary;
    if (const Result code = context_code(d, context)) return code;
    if (const Result code = make(GpuAgent{context->device, context, engine::StreamId::none}, operation)) return code;
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(std::move(operation), std::move(after));
                    });
}

// `context`: null for the node's own. Fits: bool(const MemoryNode& old), asked for a node of an instance.
template <class Make, class Fits>
Result set_memory_node(Driver& d, const NodeChange& change, engine::Kind kind, Context* context, Make make, Fits fits) {
    engine::Operation last;
    const std::lock_guard lock(d.mutex);
    if (context) {
        if (const Result code = context_code(d, context)) return code;
    }
    return replace_operation(
        d, change.instance, change.node, last, [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
            const MemoryNode* const old = memory_node_of(now, kind);
            if (!old) return result::invalid_value;
            const Context* const in = context ? context : old->context;
            if (const Result code = context_code(d, in)) return code;
            if (const Result code = make(GpuAgent{in->device, in, engine::StreamId::none}, made)) return code;
            const bool allowed = !change.instance ||
                                 (fits(*old) && old->may_become(*static_cast<const MemoryNode*>(made.details.get())));
            return allowed ? result::ok : result::invalid_value;
        });
}

}  // namespace isthmus::sim
