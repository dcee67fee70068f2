// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: their handles, adding them with an empty body to fill, and the nodes that bodies may contain.
#include "call.hpp"
#include "graph_objects.hpp"
#include "launch.hpp"
#include "module.hpp"

namespace isthmus::sim {
namespace {

// Whether the body of a conditional node may contain this node. Documented: kernels, empty nodes, child graphs,
// memsets, copies and conditional nodes.
bool allowed_in_body(const engine::GraphNode& node) {
    switch (type_of(node)) {
        case 0:
        case 1:
        case 2:
        case 5: return true;
        case 4:
        case 13: break;
        default: return false;
    }
    for (engine::NodeIndex i = 0; i < node.child->size(); ++i) {
        if (!allowed_in_body(node.child->node(i))) return false;
    }
    return true;
}

// Add: engine::NodeIndex(engine::Graph&, std::vector<engine::NodeIndex>). Requires the driver's mutex.
template <class Add>
Result add(Driver& d, NodeObject** node, GraphObject* object, NodeObject* const* dependencies, std::size_t count,
           Add add_to) {
    std::vector<engine::NodeIndex> after;
    if (const Result code = indices_of(d, *object, dependencies, count, after)) return code;
    return change(d, *object,
                  [&](engine::Graph& graph) { *node = handle_of(d, *object, graph, add_to(graph, std::move(after))); });
}

Result create_handle(Driver& d, std::uint64_t* handle, GraphObject* graph, Context* context, unsigned flags) {
    const std::lock_guard lock(d.mutex);
    if (!handle || !d.graphs.alive(graph)) return result::invalid_value;
    if (flags != 0) {
        say("cuGraphConditionalHandleCreate: default values are not modelled");
        return result::not_supported;
    }
    if (const Result code = context_code(d, context)) return code;
    d.conditions.push_back(std::make_shared<std::atomic<unsigned>>(0));
    *handle = d.conditions.size();
    return result::ok;
}

Result add_conditional(Driver& d, NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                       std::size_t count, ConditionalParameters& parameters) {
    constexpr int last_known_type = 1;
    const std::lock_guard lock(d.mutex);
    if (!node || !d.graphs.alive(graph)) return result::invalid_value;
    if (parameters.handle == 0 || parameters.handle > d.conditions.size()) return result::invalid_value;
    if (parameters.type < 0 || parameters.type > last_known_type || parameters.size != 1) {
        say("cuGraphAddNode: a switch, or a branch for 'else', is not modelled");
        return result::not_supported;
    }
    if (const Result code = context_code(d, parameters.context)) return code;
    engine::Condition condition{d.conditions[parameters.handle - 1], parameters.type == 1};
    const Result code =
        add(d, node, graph, dependencies, count, [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
            return to.add_conditional(std::move(condition), std::move(after));
        });
    if (code != result::ok) return code;
    NodeObject* const made = *node;
    made->embedded = d.graphs.create();
    made->embedded->parent = made;
    parameters.bodies = &made->embedded;  // documented: owned by the driver, valid as long as the node
    return result::ok;
}

Result add_kernel(Driver& d, NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                  const KernelNodeParameters2& p) {
    Context* const current = current_context(d);
    const std::lock_guard lock(d.mutex);
    if (!node || !d.graphs.alive(graph)) return result::invalid_value;
    Function* const function = p.launch.function ? p.launch.function : p.kernel;
    if (!d.functions.alive(function)) return lost_or_unknown(d.functions, function);
    const Context* const context = p.launch.function ? function->module->context : p.context ? p.context : current;
    if (const Result code = context_code(d, context)) return code;
    const KernelNodeParameters& l = p.launch;
    auto made = std::make_shared<KernelLaunch>();
    const LaunchRequest request = {function,
                                   {{l.grid_x, l.grid_y, l.grid_z}, {l.block_x, l.block_y, l.block_z}, l.shared_bytes},
                                   {context->device, context, engine::StreamId::none},
                                   l.parameters,
                                   l.extra,
                                   {}};
    if (const Result code = prepare_launch(d, request, *made)) return code;
    engine::Operation operation = kernel_operation(d, std::move(made));
    return add(d, node, graph, dependencies, count, [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
        return to.add(std::move(operation), std::move(after));
    });
}

}  // namespace

bool has_conditions(const engine::Graph& graph) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.condition || (node.child && has_conditions(*node.child))) return true;
    }
    return false;
}

bool has_forbidden_bodies(const engine::Graph& graph) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.condition ? !allowed_in_body(node) : node.child && has_forbidden_bodies(*node.child)) return true;
    }
    return false;
}

extern "C" {

Result cuGraphConditionalHandleCreate(std::uint64_t* handle, GraphObject* graph, Context* context, unsigned,
                                      unsigned flags) {
    return call(CallId::cuGraphConditionalHandleCreate,
                [&](Driver& d) { return create_handle(d, handle, graph, context, flags); });
}

Result cuGraphAddNode_v2(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, const EdgeData* edges,
                         std::size_t count, NodeParameters* parameters) {
    return call(CallId::cuGraphAddNode_v2, [&](Driver& d) -> Result {
        if (!parameters) return result::invalid_value;
        if (parameters->type != 13 || edges) {
            say("cuGraphAddNode: only conditional nodes without edge data are modelled");
            return result::not_supported;
        }
        return add_conditional(d, node, graph, dependencies, count, parameters->conditional);
    });
}

Result cuGraphAddKernelNode_v2(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                               std::size_t count, const KernelNodeParameters2* parameters) {
    return call(CallId::cuGraphAddKernelNode_v2, [&](Driver& d) -> Result {
        if (!parameters) return result::invalid_value;
        return add_kernel(d, node, graph, dependencies, count, *parameters);
    });
}
}

}  // namespace isthmus::sim
