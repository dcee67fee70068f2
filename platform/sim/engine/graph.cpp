// Operations with dependencies between them: what a capture builds and a graph launch submits.
#include "graph.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::sim::engine {

NodeIndex Graph::add(Operation operation, std::vector<NodeIndex> dependencies) {
    nodes_.push_back({std::move(operation), std::move(dependencies)});
    return static_cast<NodeIndex>(nodes_.size() - 1);
}

NodeIndex Graph::add_graph(const Graph& child, const std::vector<NodeIndex>& dependencies) {
    const auto first = static_cast<NodeIndex>(nodes_.size());
    std::vector<bool> is_leaf(child.size(), true);
    for (const GraphNode& node : child.nodes_) {
        std::vector<NodeIndex> moved;
        for (NodeIndex dependency : node.dependencies) {
            moved.push_back(first + dependency);
            is_leaf[dependency] = false;
        }
        add(node.operation, node.dependencies.empty() ? dependencies : std::move(moved));
    }
    std::vector<NodeIndex> leaves;
    for (NodeIndex i = 0; i < is_leaf.size(); ++i) {
        if (is_leaf[i]) leaves.push_back(first + i);
    }
    return add(Operation{}, leaves.empty() ? dependencies : std::move(leaves));
}

bool Graph::depend(NodeIndex to, NodeIndex from) {
    if (to >= size() || from >= size() || ancestors({from})[to]) return false;
    std::vector<NodeIndex>& dependencies = nodes_[to].dependencies;
    if (std::find(dependencies.begin(), dependencies.end(), from) == dependencies.end()) dependencies.push_back(from);
    return true;
}

std::vector<bool> Graph::ancestors(const std::vector<NodeIndex>& from) const {
    std::vector<bool> found(size(), false);
    std::vector<NodeIndex> open = from;
    while (!open.empty()) {
        const NodeIndex index = open.back();
        open.pop_back();
        if (found[index]) continue;
        found[index] = true;
        open.insert(open.end(), nodes_[index].dependencies.begin(), nodes_[index].dependencies.end());
    }
    return found;
}

}  // namespace isthmus::sim::engine
