// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: their handles, adding them with an empty body to fill, and the nodes that bodies may contain.
#include "call.hpp"
#include "launch.hpp"
#include "module.hpp"
#include "node_kinds.hpp"

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

Result create_handle(Driver& d, std::uint64_t* handle, GraphObject* graph, Context* context, unsigned value,
                     unsigned flags) {
    constexpr unsigned assign_default = 1;
    const std::lock_guard lock(d.mutex);
    if (!handle || !d.graphs.alive(graph) || flags > assign_default) return result::invalid_value;
    if (const Result code = context_code(d, context)) return code;
    ConditionFacts facts;
    facts.graph = graph;
    if (flags == assign_default) facts.initial = value;
    d.conditions.push_back(std::make_shared<std::atomic<unsigned>>(0));
    d.condition_facts.push_back(facts);
    *handle = d.conditions.size();
    return result::ok;
}

constexpr int if_type = 0, while_type = 1, switch_type = 2;
constexpr int with_choices = 12080;  // the driver version that brought else and switch

// Documented: 1 or 2 bodies of an if, 1 of a loop, any number of a switch.
bool fits(int type, unsigned size) {
    switch (type) {
        case if_type: return size == 1 || size == 2;
        case while_type: return size == 1;
        case switch_type: return size >= 1;
        default: return false;
    }
}

engine::Condition::Choice choice_of(int type, unsigned size) {
    using Choice = engine::Condition::Choice;
    if (type == switch_type) return Choice::by_index;
    return size == 2 ? Choice::first_or_second : Choice::none;
}

engine::NodeIndex add_bodies(engine::Graph& to, const engine::Condition& condition, unsigned size,
                             std::vector<engine::NodeIndex> after) {
    const engine::NodeIndex made = to.add_conditional(condition, std::move(after));
    if (condition.choice == engine::Condition::Choice::none) return made;
    // Each body is that of a node inside, which counts as conditional too: it may be captured into.
    engine::Condition inside;
    inside.value = condition.value;
    for (unsigned i = 0; i < size; ++i) to.node(made).child->add_conditional(inside, {});
    return made;
}

GraphObject* embed(Driver& d, NodeObject& node) {
    node.embedded = d.graphs.create();
    node.embedded->parent = &node;
    return node.embedded;
}

// Documented: the list is the driver's, valid as long as the node.
GraphObject** give_bodies(Driver& d, NodeObject& node, const engine::Condition& condition, unsigned size) {
    GraphObject* const inside = embed(d, node);
    node.bodies = {inside};
    if (condition.choice == engine::Condition::Choice::none) return node.bodies.data();
    node.bodies.clear();
    (void)look(d, *inside, [&](const engine::Graph& all) {
        for (unsigned i = 0; i < size; ++i) node.bodies.push_back(embed(d, *handle_of(d, *inside, all, i)));
    });
    return node.bodies.data();
}

}  // namespace

Result add_conditional_node(Driver& d, const NodePlace& place, ConditionalParameters& parameters) {
    const auto [node, graph, dependencies, count] = place;
    const std::lock_guard lock(d.mutex);
    if (!node || !d.graphs.alive(graph)) return result::invalid_value;
    // Observed (580.159.04, H200): 1 for 0, an invented handle, one of another graph, and one that a node uses.
    if (parameters.handle == 0 || parameters.handle > d.conditions.size()) return result::invalid_value;
    ConditionFacts& facts = d.condition_facts[parameters.handle - 1];
    if (facts.graph != graph || facts.used) return result::invalid_value;
    if (!fits(parameters.type, parameters.size)) return result::invalid_value;
    if (const bool needs_choice = parameters.type == switch_type || parameters.size > 1;
        needs_choice && d.machine.record().facts.driver_version < with_choices) {
        return result::invalid_value;  // older drivers do not know it (assumed)
    }
    if (const Result code = context_code(d, parameters.context)) return code;
    const engine::Condition condition = {d.conditions[parameters.handle - 1], parameters.type == while_type,
                                         choice_of(parameters.type, parameters.size), facts.initial};
    const Result code =
        add_node(d, node, graph, dependencies, count, [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
            return add_bodies(to, condition, parameters.size, std::move(after));
        });
    if (code != result::ok) return code;
    facts.used = true;
    parameters.bodies = give_bodies(d, **node, condition, parameters.size);
    return result::ok;
}

Result add_kernel_node(Driver& d, const NodePlace& place, const KernelNodeParameters2& p) {
    const auto [node, graph, dependencies, count] = place;
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
                                   // Observed (580, H200): the memory domains of a stream.
                                   first_settings(attribute_facts(d, context->device))};
    if (const Result code = prepare_launch(d, request, *made)) return code;
    engine::Operation operation = kernel_operation(d, std::move(made));
    return add_node(d, node, graph, dependencies, count, [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
        return to.add(std::move(operation), std::move(after));
    });
}

bool has_conditions(const engine::Graph& graph) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.condition || (node.child && has_conditions(*node.child))) return true;
    }
    return false;
}

void collect_initial_values(const engine::Graph& graph, std::vector<engine::Condition>& out) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.condition && node.condition->initial) out.push_back(*node.condition);
        if (node.child) collect_initial_values(*node.child, out);
    }
}

bool has_forbidden_bodies(const engine::Graph& graph) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.condition ? !allowed_in_body(node) : node.child && has_forbidden_bodies(*node.child)) return true;
    }
    return false;
}

extern "C" {

Result cuGraphConditionalHandleCreate(std::uint64_t* handle, GraphObject* graph, Context* context, unsigned value,
                                      unsigned flags) {
    return call(CallId::cuGraphConditionalHandleCreate,
                [&](Driver& d) { return create_handle(d, handle, graph, context, value, flags); });
}

Result cuGraphAddKernelNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                            const KernelNodeParameters* parameters) {
    return call(CallId::cuGraphAddKernelNode, [&](Driver& d) -> Result {
        if (!parameters) return result::invalid_value;
        return add_kernel_node(d, {node, graph, dependencies, count}, {*parameters, nullptr, nullptr});
    });
}

Result cuGraphAddKernelNode_v2(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                               std::size_t count, const KernelNodeParameters2* parameters) {
    return call(CallId::cuGraphAddKernelNode_v2, [&](Driver& d) -> Result {
        if (!parameters) return result::invalid_value;
        return add_kernel_node(d, {node, graph, dependencies, count}, *parameters);
    });
}
}

}  // namespace isthmus::sim
