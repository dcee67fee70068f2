// SPDX-License-Identifier: Apache-2.0
// What graph, instance and node handles point to, and how a handle finds its graph: one of its own, one that a capture
// is still making, or one that is embedded in a node. Operations of a graph may own memory: graphs are dropped outside
// of locks.
#pragma once

#include "driver.hpp"
#include "engine/graph.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace isthmus::sim {

struct GraphObject {
    engine::Graph graph;  // unless it is embedded; of an open capture, what it was before
    std::weak_ptr<engine::GraphInstance> live_instance;
    engine::StreamId captured_by = engine::StreamId::none;  // where the capture began that makes it
    bool was_given = false;                                 // to that capture, which does not own it
    NodeObject* parent = nullptr;                           // the node that it is embedded in
    std::unordered_map<std::uint64_t, NodeObject*> nodes;   // handles that were given out, by the nodes' identities
};

struct NodeObject {
    GraphObject* graph = nullptr;
    engine::NodeIndex index = 0;
    std::uint64_t id = 0;
    GraphObject* embedded = nullptr;  // once it was asked for
};

struct GraphExec {
    std::shared_ptr<engine::GraphInstance> instance;
    bool auto_free = false;        // a launch frees what the one before it left allocated
    bool node_priorities = false;  // CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
};

// All below: the driver's mutex held.

// The graph behind an object inside of its outermost one.
const engine::Graph& inner_graph(const GraphObject& object, const engine::Graph& outermost);
engine::Graph& inner_graph(const GraphObject& object, engine::Graph& outermost);
GraphObject& outermost(GraphObject& object);

// Visit: void(const engine::Graph&), to look, which may not call the engine. 901 where the capture was lost.
template <class Visit>
Result look(Driver& d, GraphObject& object, Visit visit) {
    GraphObject& root = outermost(object);
    const auto pass = [&](const engine::Graph& graph) { visit(inner_graph(object, graph)); };
    if (root.captured_by != engine::StreamId::none) return d.engine().with_capture_graph(root.captured_by, pass);
    pass(root.graph);
    return result::ok;
}
// As look(), to change the graph. Visit: void(engine::Graph&).
template <class Visit>
Result change(Driver& d, GraphObject& object, Visit visit) {
    GraphObject& root = outermost(object);
    const auto pass = [&](engine::Graph& graph) { visit(inner_graph(object, graph)); };
    if (root.captured_by != engine::StreamId::none) return d.engine().with_capture_graph(root.captured_by, pass);
    pass(root.graph);
    return result::ok;
}

// The one handle of a node, made when it is first asked for; it lasts as long as its graph.
NodeObject* handle_of(Driver& d, GraphObject& object, const engine::Graph& graph, engine::NodeIndex index);
// Ends a graph's handle with those of its nodes; what they stood for goes with `last`.
void end_graph(Driver& d, GraphObject* object, engine::Graph& last);
// The open capture's graph, made when it is first asked for.
GraphObject* graph_of_capture(Driver& d, const engine::CaptureInfo& capture);
// The capture is over: with its graph, or without one (nullptr). Returns the graph's handle, if there is one.
GraphObject* capture_ended(Driver& d, std::uint64_t capture, engine::Graph* graph);

// Destroys the engine's stream, and with it the capture that began there.
void end_stream(Driver& d, const Stream& stream);

// Positions of the nodes; 1 where a handle is none, is another graph's, or comes twice.
Result indices_of(const Driver& d, const GraphObject& object, NodeObject* const* nodes, std::size_t count,
                  std::vector<engine::NodeIndex>& out);

// Are there conditional nodes, in child graphs too? And anything but what they may run (documented; 1 observed)?
bool has_conditions(const engine::Graph& graph);
bool has_forbidden_bodies(const engine::Graph& graph);

// CUgraphNodeType
int type_of(const engine::GraphNode& node);

}  // namespace isthmus::sim
