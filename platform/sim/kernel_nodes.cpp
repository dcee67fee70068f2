// SPDX-License-Identifier: Apache-2.0
// Reads and sets kernel nodes' parameters, in graphs and in their instances.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"
#include "node_kinds.hpp"

namespace isthmus::sim {
namespace {

// Documented: the arrays are owned by the node, and valid until its parameters are set again.
KernelNodeParameters parameters_of(const KernelLaunch& launch) {
    const LaunchRequest request = request_of(launch);
    const LaunchShape& shape = launch.shape;
    return {launch.function, shape.grid[0],  shape.grid[1],      shape.grid[2],      shape.block[0],
            shape.block[1],  shape.block[2], shape.shared_bytes, request.parameters, request.extra};
}

Result read(Driver& d, NodeObject* node, KernelNodeParameters* parameters) {
    if (!parameters || !d.nodes.alive(node)) return result::invalid_value;
    bool found = false;
    const Result code = look(d, *node->graph, [&](const engine::Graph& graph) {
        const KernelLaunch* const launch = launch_of(graph.node(node->index));
        found = launch != nullptr;
        if (launch) *parameters = parameters_of(*launch);
    });
    return code != result::ok || found ? code : result::invalid_value;
}

// The kernel that a node shall run, and its context where the call names one.
struct Wanted {
    KernelNodeParameters launch;
    const Context* context = nullptr;
};

Result want(const Driver& d, const KernelNodeParameters& parameters, Wanted& wanted) {
    if (!d.functions.alive(parameters.function)) return lost_or_unknown(d.functions, parameters.function);
    wanted = {parameters, parameters.function->module->context};
    return result::ok;
}

// The new launch of a node, in the context of the old one, which cannot change in an instance (documented; the code is
// assumed).
Result renew(Driver& d, const KernelLaunch& old, const Wanted& wanted, bool may_change_context,
             engine::Operation& out) {
    const KernelNodeParameters& p = wanted.launch;
    LaunchRequest request = {
        p.function, {{p.grid_x, p.grid_y, p.grid_z}, {p.block_x, p.block_y, p.block_z}, p.shared_bytes},
        old.agent,  p.parameters,
        p.extra,    old.settings};
    if (wanted.context && wanted.context != old.agent.context) {
        if (!may_change_context) return result::invalid_value;
        request.agent.context = wanted.context;
        request.agent.device = wanted.context->device;
    }
    auto made = std::make_shared<KernelLaunch>();
    if (const Result code = prepare_launch(d, request, *made)) return code;
    out = kernel_operation(d, std::move(made));
    return result::ok;
}

// Requires the driver's mutex. The old operation is moved into `last`, to be destroyed after the lock is released.
Result set_in_graph(Driver& d, NodeObject* node, const Wanted& wanted, engine::Operation& last) {
    engine::Operation made;
    Result code = result::invalid_value;
    const Result seen = look(d, *node->graph, [&](const engine::Graph& graph) {
        const KernelLaunch* const old = launch_of(graph.node(node->index));
        if (old) code = renew(d, *old, wanted, true, made);
    });
    if (seen != result::ok || code != result::ok) return seen != result::ok ? seen : code;
    return change(d, *node->graph, [&](engine::Graph& graph) {
        last = std::exchange(graph.node(node->index).operation, std::move(made));
    });
}

Result set_in_instance(Driver& d, GraphExec* handle, NodeObject* node, const Wanted& wanted, engine::Operation& last) {
    if (!d.instances.alive(handle)) return result::invalid_value;
    const engine::Graph& graph = handle->instance->graph;
    const engine::GraphNode* const mine = graph.find(node->id);
    const KernelLaunch* const old = mine ? launch_of(*mine) : nullptr;
    if (!old) return result::invalid_value;  // not a kernel node, or of another graph
    engine::Operation made;
    if (const Result code = renew(d, *old, wanted, false, made)) return code;
    last = std::exchange(handle->instance->graph.find(node->id)->operation, std::move(made));
    return result::ok;
}

bool names_function(const KernelNodeParameters& parameters) {
    return parameters.function != nullptr;
}
bool names_function(const KernelNodeParameters2& parameters) {
    return parameters.launch.function != nullptr;
}

// Wish: Result(Driver&, Context* current, Wanted&), called with valid parameters and the driver's mutex held.
// `instance`: null for the graph's own node.
template <class Parameters, class Wish>
Result set_wanted(Driver& d, NodeObject* node, const Parameters* parameters, GraphExec* const* instance, Wish wish) {
    engine::Operation last;  // may hold the last reference to the kernel's resources
    Context* const current = current_context(d);
    const std::lock_guard lock(d.mutex);
    if (!parameters || !d.nodes.alive(node)) return result::invalid_value;
    if (!current && names_function(*parameters)) {
        die_like_the_driver("a kernel node given a CUfunction on a thread without a current context");
    }
    Wanted wanted;
    if (const Result code = wish(d, current, wanted)) return code;
    return instance ? set_in_instance(d, *instance, node, wanted, last) : set_in_graph(d, node, wanted, last);
}

Result set_plain(CallId id, NodeObject* node, const KernelNodeParameters* parameters, GraphExec* const* instance) {
    return call(id, [&](Driver& d) {
        return set_wanted(d, node, parameters, instance,
                          [&](Driver&, Context*, Wanted& wanted) { return want(d, *parameters, wanted); });
    });
}

Result set_with_kernel(CallId id, NodeObject* node, const KernelNodeParameters2* parameters,
                       GraphExec* const* instance) {
    return call(id, [&](Driver& d) { return set_kernel_node(d, {node, instance}, parameters); });
}

}  // namespace

// A kernel of a library stands for its function in a context: the named one, or the current one.
Result set_kernel_node(Driver& d, const NodeChange& change, const KernelNodeParameters2* parameters) {
    const auto wish = [&](Driver&, Context* current, Wanted& wanted) -> Result {
        KernelNodeParameters launch = parameters->launch;
        if (launch.function) return want(d, launch, wanted);
        launch.function = parameters->kernel;
        if (const Result code = want(d, launch, wanted)) return code;
        wanted.context = parameters->context ? parameters->context : current;
        return context_code(d, wanted.context);
    };
    return set_wanted(d, change.node, parameters, change.instance, wish);
}

extern "C" {

Result cuGraphKernelNodeGetParams(NodeObject* node, KernelNodeParameters* parameters) {
    return call(CallId::cuGraphKernelNodeGetParams, [&](Driver& d) {
        const std::lock_guard lock(d.mutex);
        return read(d, node, parameters);
    });
}

Result cuGraphKernelNodeGetParams_v2(NodeObject* node, KernelNodeParameters2* parameters) {
    return call(CallId::cuGraphKernelNodeGetParams_v2, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!parameters) return result::invalid_value;
        KernelNodeParameters2 found = {};
        if (const Result code = read(d, node, &found.launch)) return code;
        *parameters = found;
        return result::ok;
    });
}

Result cuGraphKernelNodeSetParams(NodeObject* node, const KernelNodeParameters* parameters) {
    return set_plain(CallId::cuGraphKernelNodeSetParams, node, parameters, nullptr);
}

Result cuGraphKernelNodeSetParams_v2(NodeObject* node, const KernelNodeParameters2* parameters) {
    return set_with_kernel(CallId::cuGraphKernelNodeSetParams_v2, node, parameters, nullptr);
}

Result cuGraphExecKernelNodeSetParams(GraphExec* instance, NodeObject* node, const KernelNodeParameters* parameters) {
    return set_plain(CallId::cuGraphExecKernelNodeSetParams, node, parameters, &instance);
}

Result cuGraphExecKernelNodeSetParams_v2(GraphExec* instance, NodeObject* node,
                                         const KernelNodeParameters2* parameters) {
    return set_with_kernel(CallId::cuGraphExecKernelNodeSetParams_v2, node, parameters, &instance);
}
}

}  // namespace isthmus::sim
