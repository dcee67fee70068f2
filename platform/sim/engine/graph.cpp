// SPDX-License-Identifier: Apache-2.0
// Operations with dependencies between them: what a capture builds and a graph launch submits.
#include "graph.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace isthmus::sim::engine {

namespace {

std::uint64_t next_identity() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

// Only owners of a copy read the nodes, so with a count of one no other thread can read them.
std::vector<GraphNode>& Graph::writable() {
    if (!nodes_) {
        nodes_ = std::make_shared<std::vector<GraphNode>>();
    } else if (nodes_.use_count() > 1) {
        nodes_ = std::make_shared<std::vector<GraphNode>>(*nodes_);
    }
    return *nodes_;
}

std::size_t Graph::size() const noexcept {
    return nodes_ ? nodes_->size() : 0;
}

GraphNode& Graph::node(NodeIndex index) {
    return writable()[index];
}

const GraphNode& Graph::node(NodeIndex index) const noexcept {
    return (*nodes_)[index];
}

NodeIndex Graph::add(Operation operation, std::vector<NodeIndex> dependencies) {
    std::vector<GraphNode>& nodes = writable();
    nodes.push_back({std::move(operation), std::move(dependencies), next_identity(), 0, std::nullopt, std::nullopt});
    return static_cast<NodeIndex>(nodes.size() - 1);
}

NodeIndex Graph::add_graph(const Graph& child, std::vector<NodeIndex> dependencies) {
    Graph own = child;
    own.renew_identities();
    return take_graph(std::move(own), std::move(dependencies));
}

NodeIndex Graph::take_graph(Graph child, std::vector<NodeIndex> dependencies) {
    const NodeIndex added = add(Operation{}, std::move(dependencies));
    writable()[added].child = std::move(child);
    return added;
}

NodeIndex Graph::add_conditional(Condition condition, std::vector<NodeIndex> dependencies) {
    const NodeIndex added = add(Operation{}, std::move(dependencies));
    writable()[added].child.emplace();
    writable()[added].condition = std::move(condition);
    return added;
}

bool Graph::depend(NodeIndex to, NodeIndex from) {
    if (to >= size() || from >= size() || ancestors({from})[to]) return false;
    std::vector<NodeIndex>& dependencies = node(to).dependencies;
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
        const std::vector<NodeIndex>& dependencies = node(index).dependencies;
        open.insert(open.end(), dependencies.begin(), dependencies.end());
    }
    return found;
}

const GraphNode* Graph::find(std::uint64_t id) const noexcept {
    for (NodeIndex i = 0; i < size(); ++i) {
        const GraphNode& one = node(i);
        if (one.id == id) return &one;
        if (const GraphNode* const inner = one.child ? one.child->find(id) : nullptr) return inner;
    }
    return nullptr;
}

GraphNode* Graph::find(std::uint64_t id) {
    const Graph& same = *this;
    for (NodeIndex i = 0; i < size(); ++i) {
        if (same.node(i).id == id) return &node(i);
        if (same.node(i).child && same.node(i).child->find(id)) return node(i).child->find(id);
    }
    return nullptr;
}

void Graph::remove(NodeIndex index) {
    std::vector<GraphNode>& nodes = writable();
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(index));
    for (GraphNode& one : nodes) {
        std::vector<NodeIndex> kept;
        for (const NodeIndex before : one.dependencies) {
            if (before != index) kept.push_back(before > index ? before - 1 : before);
        }
        one.dependencies = std::move(kept);
    }
}

std::shared_ptr<const void> Graph::own(std::shared_ptr<const void> owned) noexcept {
    return std::exchange(owned_, std::move(owned));
}

void Graph::renew_identities() {
    if (size() == 0) return;
    for (GraphNode& one : writable()) {
        one.original = std::exchange(one.id, next_identity());
        if (one.child) one.child->renew_identities();
    }
}

}  // namespace isthmus::sim::engine
