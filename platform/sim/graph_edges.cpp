// SPDX-License-Identifier: Apache-2.0
// Adding and removing edges of graphs, and taking nodes out.
#include "call.hpp"
#include "graph_memory.hpp"
#include "graph_objects.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// Whether the edges are ordinary ones: nullptr means that all are.
bool are_plain(const EdgeData* edges, std::size_t count) {
    for (std::size_t i = 0; edges && i < count; ++i) {
        if (edges[i].from_port != 0 || edges[i].to_port != 0 || edges[i].type != 0) return false;
    }
    return true;
}

// Body: Result(engine::Graph&), on a copy that the graph gets if it returns 0.
template <class Body>
Result change_edges(CallId id, GraphObject* graph, NodeObject* const* from, NodeObject* const* to,
                    const EdgeData* edges, std::size_t count, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.graphs.alive(graph) || (count != 0 && (!from || !to))) return result::invalid_value;
        if (!are_plain(edges, count)) {
            say("%s: programmatic edges are not modelled", name(id));
            return result::not_supported;
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (!d.nodes.alive(from[i]) || !d.nodes.alive(to[i])) return result::invalid_value;
            if (from[i]->graph != graph || to[i]->graph != graph) return result::invalid_value;
        }
        engine::Graph changed;
        if (const Result code = look(d, *graph, [&](const engine::Graph& now) { changed = now; })) return code;
        for (std::size_t i = 0; i < count; ++i) {
            if (const Result code = body(changed, from[i]->index, to[i]->index)) return code;
        }
        return change(d, *graph, [&](engine::Graph& now) { now.swap(changed); });
    });
}

bool has_edge(const engine::Graph& graph, engine::NodeIndex from, engine::NodeIndex to) {
    const std::vector<engine::NodeIndex>& before = graph.node(to).dependencies;
    return std::find(before.begin(), before.end(), from) != before.end();
}

// Documented: an edge that exists is an error. Assumed: one that closes a circle is refused here, not when the graph is
// instantiated.
Result add_edge(engine::Graph& graph, engine::NodeIndex from, engine::NodeIndex to) {
    return !has_edge(graph, from, to) && graph.depend(to, from) ? result::ok : result::invalid_value;
}

// Documented: an edge that does not exist is an error, and edges of graphs with memory nodes stay (the code is
// assumed).
Result remove_edge(engine::Graph& graph, engine::NodeIndex from, engine::NodeIndex to) {
    if (has_memory_nodes(graph)) return result::not_supported;
    if (!has_edge(graph, from, to)) return result::invalid_value;
    std::vector<engine::NodeIndex>& before = graph.node(to).dependencies;
    before.erase(std::find(before.begin(), before.end(), from));
    return result::ok;
}

// Requires the driver's mutex. `last`: the graph before, whose operations may own something.
Result destroy_node(Driver& d, NodeObject* node, engine::Graph& last) {
    if (!d.nodes.alive(node)) return result::invalid_value;
    GraphObject& object = *node->graph;
    // A capture refers to nodes by their place (assumed: the documentation does not say what the driver does).
    if (holder(object).captured_by != engine::StreamId::none) return result::invalid_value;
    bool has_memory = false;
    engine::Graph changed;
    if (const Result code = look(d, object, [&](const engine::Graph& now) {
            has_memory = has_memory_nodes(now);
            changed = now;
        })) {
        return code;
    }
    if (has_memory) return result::not_supported;  // documented; the code is assumed
    changed.remove(node->index);
    if (const Result code = change(d, object, [&](engine::Graph& now) { now.swap(changed); })) return code;
    last.swap(changed);
    for (const auto& [id, other] : object.nodes) {
        if (other->index > node->index) --other->index;
    }
    object.nodes.erase(node->id);
    engine::Graph none;
    if (node->embedded) end_graph(d, node->embedded, none);
    d.nodes.destroy(node);
    return result::ok;
}

}  // namespace

extern "C" {

Result cuGraphAddDependencies(GraphObject* graph, NodeObject* const* from, NodeObject* const* to, std::size_t count) {
    return change_edges(CallId::cuGraphAddDependencies, graph, from, to, nullptr, count, add_edge);
}

Result cuGraphAddDependencies_v2(GraphObject* graph, NodeObject* const* from, NodeObject* const* to,
                                 const EdgeData* edges, std::size_t count) {
    return change_edges(CallId::cuGraphAddDependencies_v2, graph, from, to, edges, count, add_edge);
}

Result cuGraphRemoveDependencies(GraphObject* graph, NodeObject* const* from, NodeObject* const* to,
                                 std::size_t count) {
    return change_edges(CallId::cuGraphRemoveDependencies, graph, from, to, nullptr, count, remove_edge);
}

Result cuGraphRemoveDependencies_v2(GraphObject* graph, NodeObject* const* from, NodeObject* const* to,
                                    const EdgeData* edges, std::size_t count) {
    return change_edges(CallId::cuGraphRemoveDependencies_v2, graph, from, to, edges, count, remove_edge);
}

Result cuGraphDestroyNode(NodeObject* node) {
    return call(CallId::cuGraphDestroyNode, [&](Driver& d) {
        engine::Graph last;  // destroyed after the lock is released
        const std::lock_guard lock(d.mutex);
        return destroy_node(d, node, last);
    });
}
}

}  // namespace isthmus::sim
