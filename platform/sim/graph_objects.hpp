// SPDX-License-Identifier: Apache-2.0
// The objects behind graph, instance and node handles, and how a handle finds its graph: one of its own, one of an open
// capture, or one embedded in a node. Operations of a graph may own memory, so graphs are destroyed outside of locks.
#pragma once

#include "driver.hpp"
#include "engine/graph.hpp"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace isthmus::sim {

struct GraphObject {
    engine::Graph graph;  // unless embedded; for an open capture, the state before the capture
    std::weak_ptr<engine::GraphInstance> live_instance;
    engine::StreamId captured_by = engine::StreamId::none;  // where the capture that makes the graph began
    bool was_given = false;        // the program passed the graph to that capture, which does not own it
    NodeObject* parent = nullptr;  // the node that the graph is embedded in
    bool was_moved = false;        // into that node, by the program
    std::unordered_map<std::uint64_t, NodeObject*> nodes;  // the node handles that were given out, by node identity
};

struct NodeObject {
    GraphObject* graph = nullptr;
    engine::NodeIndex index = 0;
    std::uint64_t id = 0;
    GraphObject* embedded = nullptr;   // set once the handle was asked for
    std::vector<GraphObject*> bodies;  // of a conditional node with several
};

struct GraphExec {
    std::shared_ptr<engine::GraphInstance> instance;
    bool auto_free = false;  // a launch frees what the previous one left allocated
    unsigned long long flags = 0;
    bool node_priorities = false;  // CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
};

// All functions below require the driver's mutex.

// The graph behind an object inside its holder's.
const engine::Graph& inner_graph(const GraphObject& object, const engine::Graph& held);
engine::Graph& inner_graph(const GraphObject& object, engine::Graph& held);
// The graph that holds the object's: its outermost one, or a body that is being captured into, which the capture has
// until its end.
GraphObject& holder(GraphObject& object);

// Calls visit(const engine::Graph&), which must not call the engine. 901 where the capture was lost.
template <class Visit>
Result look(Driver& d, GraphObject& object, Visit visit) {
    GraphObject& root = holder(object);
    const auto pass = [&](const engine::Graph& graph) { visit(inner_graph(object, graph)); };
    if (root.captured_by != engine::StreamId::none) return d.engine().with_capture_graph(root.captured_by, pass);
    pass(root.graph);
    return result::ok;
}
// As look(), for changes of the graph. Visit: void(engine::Graph&).
template <class Visit>
Result change(Driver& d, GraphObject& object, Visit visit) {
    GraphObject& root = holder(object);
    const auto pass = [&](engine::Graph& graph) { visit(inner_graph(object, graph)); };
    if (root.captured_by != engine::StreamId::none) return d.engine().with_capture_graph(root.captured_by, pass);
    pass(root.graph);
    return result::ok;
}

// The single handle of a node, created at the first request; it is valid as long as its graph.
NodeObject* handle_of(Driver& d, GraphObject& object, const engine::Graph& graph, engine::NodeIndex index);
// Ends a graph's handle and those of its nodes; the graph itself is moved into `last`.
void end_graph(Driver& d, GraphObject* object, engine::Graph& last);
// The handle of the open capture's graph, created at the first request.
GraphObject* graph_of_capture(Driver& d, const engine::CaptureInfo& capture);
// The capture has ended, with its graph or without one (nullptr). Returns the graph's handle, if there is one.
GraphObject* capture_ended(Driver& d, std::uint64_t capture, engine::Graph* graph);

// Destroys the engine's stream, and with it a capture that began there.
void end_stream(Driver& d, const Stream& stream);

// Positions of the nodes; 1 where a handle is invalid, belongs to another graph, or occurs twice.
Result indices_of(const Driver& d, const GraphObject& object, NodeObject* const* nodes, std::size_t count,
                  std::vector<engine::NodeIndex>& out);

// Adds a node behind these. Add: engine::NodeIndex(engine::Graph&, std::vector<engine::NodeIndex>).
template <class Add>
Result add_node(Driver& d, NodeObject** node, GraphObject* object, NodeObject* const* dependencies, std::size_t count,
                Add add_to) {
    if (!node || !d.graphs.alive(object)) return result::invalid_value;
    std::vector<engine::NodeIndex> after;
    if (const Result code = indices_of(d, *object, dependencies, count, after)) return code;
    return change(d, *object,
                  [&](engine::Graph& graph) { *node = handle_of(d, *object, graph, add_to(graph, std::move(after))); });
}

// Calls body(const engine::GraphNode&) for a node that is alive; 1 otherwise.
template <class Body>
Result look_at_node(Driver& d, const NodeObject* node, Body&& body) {
    if (!d.nodes.alive(node)) return result::invalid_value;
    Result code = result::ok;
    const Result looked =
        look(d, *node->graph, [&](const engine::Graph& graph) { code = body(graph.node(node->index)); });
    return looked != result::ok ? looked : code;
}

// Gives a node another operation: in its graph, or (`instance`) in an instance. The old one is moved into `last`, to be
// destroyed after the lock is released. Make: Result(const engine::GraphNode& now, engine::Operation& made).
template <class Make>
Result replace_operation(Driver& d, GraphExec* const* instance, NodeObject* node, engine::Operation& last, Make make) {
    engine::Operation made;
    if (!instance) {
        const auto look_and_make = [&](const engine::GraphNode& now) -> Result { return make(now, made); };
        if (const Result code = look_at_node(d, node, look_and_make)) return code;
        return change(d, *node->graph, [&](engine::Graph& graph) {
            last = std::exchange(graph.node(node->index).operation, std::move(made));
        });
    }
    if (!d.nodes.alive(node) || !d.instances.alive(*instance)) return result::invalid_value;
    const engine::Graph& graph = (*instance)->instance->graph;
    const engine::GraphNode* const mine = graph.find(node->id);
    if (!mine) return result::invalid_value;  // of another graph
    if (const Result code = make(*mine, made)) return code;
    last = std::exchange((*instance)->instance->graph.find(node->id)->operation, std::move(made));
    return result::ok;
}

// Whether there are conditional nodes, in child graphs too; and whether there are nodes that conditional nodes may not
// run (documented; 1 observed).
bool has_conditions(const engine::Graph& graph);
bool has_forbidden_bodies(const engine::Graph& graph);
// The conditions of the graph, its child graphs and bodies that get a value at each launch.
void collect_initial_values(const engine::Graph& graph, std::vector<engine::Condition>& out);

// CUgraphNodeType
int type_of(const engine::GraphNode& node);

}  // namespace isthmus::sim
