// SPDX-License-Identifier: Apache-2.0
// Handles of graphs and nodes: the location of their graphs, and their lifetimes.
#include "graph_objects.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::sim {

namespace {

bool is_held(const GraphObject& object) {
    return object.parent && object.captured_by == engine::StreamId::none;
}

}  // namespace

GraphObject& holder(GraphObject& object) {
    GraphObject* root = &object;
    while (is_held(*root)) root = root->parent->graph;
    return *root;
}

const engine::Graph& inner_graph(const GraphObject& object, const engine::Graph& held) {
    if (!is_held(object)) return held;
    return *inner_graph(*object.parent->graph, held).node(object.parent->index).child;
}

engine::Graph& inner_graph(const GraphObject& object, engine::Graph& held) {
    if (!is_held(object)) return held;
    return *inner_graph(*object.parent->graph, held).node(object.parent->index).child;
}

NodeObject* handle_of(Driver& d, GraphObject& object, const engine::Graph& graph, engine::NodeIndex index) {
    NodeObject*& known = object.nodes[graph.node(index).id];
    if (!known) {
        known = d.nodes.create();
        known->graph = &object;
        known->index = index;
        known->id = graph.node(index).id;
    }
    return known;
}

void end_graph(Driver& d, GraphObject* object, engine::Graph& last) {
    for (const auto& [id, node] : object->nodes) {
        engine::Graph none;
        if (node->embedded) end_graph(d, node->embedded, none);
        d.nodes.destroy(node);
    }
    for (ConditionFacts& condition : d.condition_facts) {
        if (condition.graph == object) condition.graph = nullptr;
    }
    last = std::exchange(object->graph, {});
    d.graphs.destroy(object);
}

GraphObject* graph_of_capture(Driver& d, const engine::CaptureInfo& capture) {
    GraphObject*& known = d.captured_graphs[capture.id];
    if (!known) {
        known = d.graphs.create();
        known->captured_by = capture.origin;
    }
    return known;
}

GraphObject* capture_ended(Driver& d, std::uint64_t capture, engine::Graph* graph) {
    GraphObject* object = nullptr;
    if (const auto found = d.captured_graphs.find(capture); found != d.captured_graphs.end()) {
        object = found->second;
        d.captured_graphs.erase(found);
        object->captured_by = engine::StreamId::none;
    }
    if (graph) {
        if (!object) object = d.graphs.create();
        // A body goes back into its node, unless the capture that holds the node was lost.
        (void)change(d, *object, [&](engine::Graph& place) { place.swap(*graph); });
        return object;
    }
    if (!object || object->was_given) return object;
    engine::Graph none;  // the caller destroys the operations
    end_graph(d, object, none);
    return nullptr;
}

void end_stream(Driver& d, const Stream& stream) {
    const engine::CaptureInfo capture = d.engine().capture_info(stream.id);
    d.engine().destroy_stream(stream.id);
    if (capture.origin == stream.id) capture_ended(d, capture.id, nullptr);
}

Result indices_of(const Driver& d, const GraphObject& object, NodeObject* const* nodes, std::size_t count,
                  std::vector<engine::NodeIndex>& out) {
    if (count != 0 && !nodes) return result::invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
        if (!d.nodes.alive(nodes[i]) || nodes[i]->graph != &object) return result::invalid_value;
        if (std::find(out.begin(), out.end(), nodes[i]->index) != out.end()) return result::invalid_value;
        out.push_back(nodes[i]->index);
    }
    return result::ok;
}

int type_of(const engine::GraphNode& node) {
    if (node.condition) return 13;
    if (node.child) return 4;
    switch (node.operation.kind) {
        case engine::Kind::kernel: return 0;
        case engine::Kind::copy: return 1;
        case engine::Kind::memset: return 2;
        case engine::Kind::host_function:
        case engine::Kind::stream_callback: return 3;
        case engine::Kind::empty: return 5;
        case engine::Kind::wait: return 6;
        case engine::Kind::event_record: return 7;
        case engine::Kind::semaphore_signal: return 8;
        case engine::Kind::semaphore_wait: return 9;
        case engine::Kind::allocate: return 10;
        case engine::Kind::free: return 11;
        case engine::Kind::words: return 12;
    }
    return 5;
}

}  // namespace isthmus::sim
