// SPDX-License-Identifier: Apache-2.0
// Operations with dependencies between them: what a capture builds and a graph launch submits.
#pragma once

#include "operation.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace isthmus::sim::engine {

struct Work;  // an operation that was submitted; opaque outside of this room
using WorkRef = std::shared_ptr<Work>;

using NodeIndex = std::uint32_t;

struct Condition;
struct GraphNode;

// A value: copying it is cloning or instantiating it, and costs nothing until one of the copies changes. Node indices
// stay valid for ever, and agree between copies, so an instance is patched by assigning to node(i).operation. Not
// synchronised: the owner locks.
class Graph {
public:
    NodeIndex add(Operation operation, std::vector<NodeIndex> dependencies);
    // A node that runs all of a copy of `child`.
    NodeIndex add_graph(const Graph& child, std::vector<NodeIndex> dependencies);
    // A node that runs a graph, empty so far, by a condition.
    NodeIndex add_conditional(Condition condition, std::vector<NodeIndex> dependencies);
    // Lets `to` wait for `from`; false where that would close a cycle, or a node is unknown.
    bool depend(NodeIndex to, NodeIndex from);

    std::size_t size() const noexcept;
    GraphNode& node(NodeIndex index);  // of this copy alone
    const GraphNode& node(NodeIndex index) const noexcept;
    // Which nodes must have ended for all of `from` to have ended: from themselves and whatever they depend on.
    std::vector<bool> ancestors(const std::vector<NodeIndex>& from) const;
    // The node with that identity, in child graphs too; nullptr: there is none.
    const GraphNode* find(std::uint64_t id) const noexcept;
    GraphNode* find(std::uint64_t id);
    // Makes its nodes others than those that it was copied from.
    void renew_identities();
    void swap(Graph& other) noexcept { nodes_.swap(other.nodes_); }

private:
    std::vector<GraphNode>& writable();
    std::shared_ptr<std::vector<GraphNode>> nodes_;
};

// Decides whether a node's child graph runs: set by an operation of the graph, looked at before each turn.
struct Condition {
    std::shared_ptr<std::atomic<unsigned>> value;
    bool loops = false;  // else: at most once
};

struct GraphNode {
    Operation operation;
    std::vector<NodeIndex> dependencies;
    std::uint64_t id = 0;                // never reused in the process; copies keep it
    std::uint64_t original = 0;          // what it was before renew_identities()
    std::optional<Graph> child;          // runs in place of the operation
    std::optional<Condition> condition;  // of the child
};

// An instance: launches of the same one run one after the other, as the driver promises.
struct GraphInstance {
    Graph graph;
    WorkRef last_launch;  // the engine's
};

enum class CaptureMode : std::uint8_t { global, thread_local_, relaxed };
enum class CaptureState : std::uint8_t { none, active, invalidated };

struct CaptureInfo {
    CaptureState state = CaptureState::none;
    std::uint64_t id = 0;  // never reused; 0: not capturing
    CaptureMode mode = CaptureMode::global;
    StreamId origin = StreamId::none;
    bool owned_by_this_thread = false;
    std::vector<NodeIndex> dependencies;  // what the next captured operation will depend on
};

}  // namespace isthmus::sim::engine
