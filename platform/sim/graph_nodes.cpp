// SPDX-License-Identifier: Apache-2.0
// Nodes and edges of graphs: queries, and adding nodes without a capture.
#include "call.hpp"
#include "graph_memory.hpp"
#include "node_kinds.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// The documented form of every list: without a buffer it returns the count alone; unused entries of a buffer become
// null.
void give(const std::vector<NodeObject*>& all, NodeObject** nodes, std::size_t* count) {
    if (nodes) {
        const std::size_t given = std::min(*count, all.size());
        std::copy_n(all.begin(), given, nodes);
        std::fill(nodes + given, nodes + *count, nullptr);
        *count = given;
    } else {
        *count = all.size();
    }
}

// Chosen: bool(const engine::Graph&, NodeIndex).
template <class Chosen>
Result list(Driver& d, GraphObject& object, NodeObject** nodes, std::size_t* count, Chosen chosen) {
    std::vector<NodeObject*> all;
    const Result code = look(d, object, [&](const engine::Graph& graph) {
        for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
            if (chosen(graph, i)) all.push_back(handle_of(d, object, graph, i));
        }
    });
    if (code == result::ok) give(all, nodes, count);
    return code;
}

Result list_of_graph(CallId id, GraphObject* object, NodeObject** nodes, std::size_t* count, bool roots_only) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!count || !d.graphs.alive(object)) return result::invalid_value;
        return list(d, *object, nodes, count, [&](const engine::Graph& graph, engine::NodeIndex index) {
            return !roots_only || graph.node(index).dependencies.empty();
        });
    });
}

void clear_edges(EdgeData* data, std::size_t count) {
    if (data) std::fill(data, data + count, EdgeData{});
}

Result edges(CallId id, GraphObject* object, NodeObject** from, NodeObject** to, EdgeData* data, std::size_t* count) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!count || !d.graphs.alive(object) || !from != !to || (data && !from)) return result::invalid_value;
        std::vector<NodeObject*> starts, ends;
        const Result code = look(d, *object, [&](const engine::Graph& graph) {
            for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
                for (const engine::NodeIndex before : graph.node(i).dependencies) {
                    starts.push_back(handle_of(d, *object, graph, before));
                    ends.push_back(handle_of(d, *object, graph, i));
                }
            }
        });
        if (code != result::ok) return code;
        std::size_t places = *count;
        clear_edges(data, places);
        give(starts, from, &places);
        give(ends, to, count);
        return result::ok;
    });
}

// Lists the nodes before or after a node in the order of its edges, as documented.
Result neighbours(CallId id, NodeObject* node, NodeObject** nodes, EdgeData* data, std::size_t* count, bool before) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!count || !d.nodes.alive(node) || (data && !nodes)) return result::invalid_value;
        clear_edges(data, nodes ? *count : 0);
        GraphObject& object = *node->graph;
        if (!before) {
            return list(d, object, nodes, count, [&](const engine::Graph& graph, engine::NodeIndex index) {
                const auto& dependencies = graph.node(index).dependencies;
                return std::find(dependencies.begin(), dependencies.end(), node->index) != dependencies.end();
            });
        }
        std::vector<NodeObject*> all;
        const Result code = look(d, object, [&](const engine::Graph& graph) {
            for (const engine::NodeIndex one : graph.node(node->index).dependencies) {
                all.push_back(handle_of(d, object, graph, one));
            }
        });
        if (code == result::ok) give(all, nodes, count);
        return code;
    });
}

Result embedded_graph(Driver& d, NodeObject* node, GraphObject** graph) {
    if (!graph || !d.nodes.alive(node)) return result::invalid_value;
    bool is_child = false;
    const Result code =
        look(d, *node->graph, [&](const engine::Graph& outer) { is_child = type_of(outer.node(node->index)) == 4; });
    if (code != result::ok || !is_child) return code != result::ok ? code : result::invalid_value;
    if (!node->embedded) {
        node->embedded = d.graphs.create();
        node->embedded->parent = node;
    }
    *graph = node->embedded;
    return result::ok;
}

Result find_in_clone(Driver& d, NodeObject** node, NodeObject* original, GraphObject* clone) {
    if (!node || !d.nodes.alive(original) || !d.graphs.alive(clone)) return result::invalid_value;
    *node = nullptr;
    const Result code = look(d, *clone, [&](const engine::Graph& graph) {
        for (engine::NodeIndex i = 0; i < graph.size() && !*node; ++i) {
            if (graph.node(i).original == original->id) *node = handle_of(d, *clone, graph, i);
        }
    });
    return code != result::ok || *node ? code : result::invalid_value;
}

}  // namespace

Result add_child_node(Driver& d, const NodePlace& place, GraphObject* child) {
    const std::lock_guard lock(d.mutex);
    if (!d.graphs.alive(child)) return result::invalid_value;
    if (child->was_moved) return result::not_supported;  // observed (580)
    engine::Graph inside;
    if (const Result code = look(d, *child, [&](const engine::Graph& graph) { inside = graph; })) return code;
    // Documented as "an error"; the code is assumed, and for conditional nodes observed.
    if (has_memory_nodes(inside) || has_conditions(inside)) return result::not_supported;
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& graph, std::vector<engine::NodeIndex> after) {
                        return graph.add_graph(inside, std::move(after));
                    });
}

namespace {

// Whether `inner` is `outer` or embedded in it, however deep.
bool is_around(const GraphObject* outer, const GraphObject* inner) {
    while (inner != outer && inner->parent) inner = inner->parent->graph;
    return inner == outer;
}

}  // namespace

// Documented: a moved graph is no other node's, and holds no conditional nodes. Observed (580): 801 for one that
// was moved. The other codes are assumed.
Result move_child_node(Driver& d, const NodePlace& place, GraphObject* child) {
    const std::lock_guard lock(d.mutex);
    if (!d.graphs.alive(child) || !d.graphs.alive(place.graph)) return result::invalid_value;
    if (child->was_moved) return result::not_supported;
    const bool is_bound = child->parent || child->captured_by != engine::StreamId::none;
    if (is_bound || is_around(child, place.graph)) return result::invalid_value;
    if (has_conditions(child->graph)) return result::not_supported;
    const Result code = add_node(d, place.node, place.graph, place.dependencies, place.count,
                                 [&](engine::Graph& graph, std::vector<engine::NodeIndex> after) {
                                     return graph.take_graph(std::exchange(child->graph, {}), std::move(after));
                                 });
    if (code != result::ok) return code;
    (*place.node)->embedded = child;
    child->parent = *place.node;
    child->was_moved = true;
    return result::ok;
}

// Observed (580, H200): the node's new graph is a copy of any shape, with a handle of its own; the handle of the former
// one ends; 801 for the graph that the node has.
Result replace_child_node(Driver& d, NodeObject* node, GraphObject* child) {
    engine::Graph inside;  // in the end the previous graph, destroyed after the lock is released
    const std::lock_guard lock(d.mutex);
    if (!d.nodes.alive(node) || !d.graphs.alive(child)) return result::invalid_value;
    // Not modelled: a graph that was moved or holds the node, and a node whose graph was moved into it.
    if (child->was_moved) return result::not_supported;
    if (is_around(node->embedded, child) || is_around(child, node->graph)) return result::not_supported;
    if (node->embedded && node->embedded->was_moved) return result::not_supported;
    if (const Result code = look(d, *child, [&](const engine::Graph& graph) { inside = graph; })) return code;
    if (has_memory_nodes(inside) || has_conditions(inside)) return result::not_supported;  // as for a new node
    inside.renew_identities();
    const Result code =
        change(d, *node->graph, [&](engine::Graph& graph) { graph.node(node->index).child->swap(inside); });
    engine::Graph none;
    if (code == result::ok && node->embedded) end_graph(d, std::exchange(node->embedded, nullptr), none);
    return code;
}

Result add_empty_node(Driver& d, const NodePlace& place) {
    const std::lock_guard lock(d.mutex);
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(engine::Operation{}, std::move(after));
                    });
}

extern "C" {

Result cuGraphGetNodes(GraphObject* graph, NodeObject** nodes, std::size_t* count) {
    return list_of_graph(CallId::cuGraphGetNodes, graph, nodes, count, false);
}

Result cuGraphGetRootNodes(GraphObject* graph, NodeObject** nodes, std::size_t* count) {
    return list_of_graph(CallId::cuGraphGetRootNodes, graph, nodes, count, true);
}

Result cuGraphGetEdges(GraphObject* graph, NodeObject** from, NodeObject** to, std::size_t* count) {
    return edges(CallId::cuGraphGetEdges, graph, from, to, nullptr, count);
}

Result cuGraphGetEdges_v2(GraphObject* graph, NodeObject** from, NodeObject** to, EdgeData* data, std::size_t* count) {
    return edges(CallId::cuGraphGetEdges_v2, graph, from, to, data, count);
}

Result cuGraphNodeGetType(NodeObject* node, int* type) {
    return call(CallId::cuGraphNodeGetType, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!type || !d.nodes.alive(node)) return result::invalid_value;
        return look(d, *node->graph, [&](const engine::Graph& graph) { *type = type_of(graph.node(node->index)); });
    });
}

Result cuGraphNodeGetDependencies(NodeObject* node, NodeObject** nodes, std::size_t* count) {
    return neighbours(CallId::cuGraphNodeGetDependencies, node, nodes, nullptr, count, true);
}

Result cuGraphNodeGetDependencies_v2(NodeObject* node, NodeObject** nodes, EdgeData* data, std::size_t* count) {
    return neighbours(CallId::cuGraphNodeGetDependencies_v2, node, nodes, data, count, true);
}

Result cuGraphNodeGetDependentNodes(NodeObject* node, NodeObject** nodes, std::size_t* count) {
    return neighbours(CallId::cuGraphNodeGetDependentNodes, node, nodes, nullptr, count, false);
}

Result cuGraphNodeGetDependentNodes_v2(NodeObject* node, NodeObject** nodes, EdgeData* data, std::size_t* count) {
    return neighbours(CallId::cuGraphNodeGetDependentNodes_v2, node, nodes, data, count, false);
}

Result cuGraphNodeFindInClone(NodeObject** node, NodeObject* original, GraphObject* clone) {
    return call(CallId::cuGraphNodeFindInClone, [&](Driver& d) {
        const std::lock_guard lock(d.mutex);
        return find_in_clone(d, node, original, clone);
    });
}

Result cuGraphAddEmptyNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count) {
    return call(CallId::cuGraphAddEmptyNode, [&](Driver& d) {
        return add_empty_node(d, {node, graph, dependencies, count});
    });
}

Result cuGraphAddChildGraphNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                                std::size_t count, GraphObject* child) {
    return call(CallId::cuGraphAddChildGraphNode, [&](Driver& d) {
        return add_child_node(d, {node, graph, dependencies, count}, child);
    });
}

Result cuGraphChildGraphNodeGetGraph(NodeObject* node, GraphObject** graph) {
    return call(CallId::cuGraphChildGraphNodeGetGraph, [&](Driver& d) {
        const std::lock_guard lock(d.mutex);
        return embedded_graph(d, node, graph);
    });
}
}

}  // namespace isthmus::sim
