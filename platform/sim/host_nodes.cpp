// SPDX-License-Identifier: Apache-2.0
// Nodes that run host functions.
#include "call.hpp"
#include "node_kinds.hpp"

#include <memory>
#include <utility>

namespace isthmus::sim {
namespace {

const HostNodeParameters* parameters_of(const engine::GraphNode& node) {
    if (node.child || node.operation.kind != engine::Kind::host_function) return nullptr;
    return static_cast<const HostNodeParameters*>(node.operation.details.get());
}

}  // namespace

engine::Operation host_operation(const HostNodeParameters& parameters, const char* label) {
    engine::Operation operation;
    operation.kind = engine::Kind::host_function;
    operation.label = label;
    operation.details = std::make_shared<const HostNodeParameters>(parameters);
    operation.body = [parameters] {
        parameters.function(parameters.data);
        return 0;
    };
    return operation;
}

Result add_host_node(Driver& d, const NodePlace& place, const HostNodeParameters* parameters) {
    if (!parameters || !parameters->function) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(host_operation(*parameters, "a host node"), std::move(after));
                    });
}

Result set_host_node(Driver& d, const NodeChange& change, const HostNodeParameters* parameters) {
    if (!parameters || !parameters->function) return result::invalid_value;
    engine::Operation last;
    const std::lock_guard lock(d.mutex);
    return replace_operation(d, change.instance, change.node, last,
                             [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
                                 if (!parameters_of(now)) return result::invalid_value;
                                 made = host_operation(*parameters, "a host node");
                                 made.device = now.operation.device;
                                 return result::ok;
                             });
}

extern "C" {

Result cuGraphAddHostNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                          const HostNodeParameters* parameters) {
    return call(CallId::cuGraphAddHostNode, [&](Driver& d) {
        return add_host_node(d, {node, graph, dependencies, count}, parameters);
    });
}

Result cuGraphHostNodeGetParams(NodeObject* node, HostNodeParameters* parameters) {
    return call(CallId::cuGraphHostNodeGetParams, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            const HostNodeParameters* const known = parameters_of(found);
            if (!parameters || !known) return result::invalid_value;
            *parameters = *known;
            return result::ok;
        });
    });
}

Result cuGraphHostNodeSetParams(NodeObject* node, const HostNodeParameters* parameters) {
    return call(CallId::cuGraphHostNodeSetParams, [&](Driver& d) {
        return set_host_node(d, {node, nullptr}, parameters);
    });
}

Result cuGraphExecHostNodeSetParams(GraphExec* instance, NodeObject* node, const HostNodeParameters* parameters) {
    return call(CallId::cuGraphExecHostNodeSetParams, [&](Driver& d) {
        return set_host_node(d, {node, &instance}, parameters);
    });
}
}

}  // namespace isthmus::sim
