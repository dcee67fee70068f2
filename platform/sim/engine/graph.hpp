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

struct Work;  // a submitted operation; opaque outside this directory
using WorkRef = std::shared_ptr<Work>;

using NodeIndex = std::uint32_t;

struct Condition;
struct GraphNode;

// A value: cloning and instantiating are copies, which share nodes until one of them changes. Node indices stay valid
// and agree between copies, so assigning to node(i).operation patches an instance. Not synchronised: the owner locks.
class Graph {
public:
    NodeIndex add(Operation operation, std::vector<NodeIndex> dependencies);
    // Adds a node that runs a copy of `child`.
    NodeIndex add_graph(const Graph& child, std::vector<NodeIndex> dependencies);
    // Adds a node that runs `child` itself: its nodes keep their identities.
    NodeIndex take_graph(Graph child, std::vector<NodeIndex> dependencies);
    // Adds a node that runs a graph, empty at first, depending on a condition.
    NodeIndex add_conditional(Condition condition, std::vector<NodeIndex> dependencies);
    // Makes `to` depend on `from`; false where that would close a cycle, or a node is unknown.
    bool depend(NodeIndex to, NodeIndex from);

    std::size_t size() const noexcept;
    GraphNode& node(NodeIndex index);  // only of this copy
    const GraphNode& node(NodeIndex index) const noexcept;
    // The nodes that must have ended for all of `from` to have ended: `from` and all their direct and indirect
    // dependencies.
    std::vector<bool> ancestors(const std::vector<NodeIndex>& from) const;
    // The node with that identity, also in child graphs; nullptr: none.
    const GraphNode* find(std::uint64_t id) const noexcept;
    GraphNode* find(std::uint64_t id);
    // Gives its nodes identities that differ from those of the copied graph.
    void renew_identities();
    // Takes a node out, whose index those behind it then have; edges over it end.
    void remove(NodeIndex index);
    // What lives as long as any copy of this graph; returns what it was before.
    std::shared_ptr<const void> own(std::shared_ptr<const void> owned) noexcept;
    const std::shared_ptr<const void>& owned() const noexcept { return owned_; }
    void swap(Graph& other) noexcept {
        nodes_.swap(other.nodes_);
        owned_.swap(other.owned_);
    }

private:
    std::vector<GraphNode>& writable();
    std::shared_ptr<std::vector<GraphNode>> nodes_;
    std::shared_ptr<const void> owned_;
};

// Decides whether a node's child graph runs, or which one: set by an operation of the graph.
struct Condition {
    std::shared_ptr<std::atomic<unsigned>> value;
    bool loops = false;  // tested before each turn; false: runs at most once
    // none: the child graph is the body. Otherwise each node of the child graph has a body, of which at most one runs,
    // once: the first if the value is not 0, else the second; or the one whose index the value is.
    enum class Choice : std::uint8_t { none, first_or_second, by_index } choice = Choice::none;
    std::optional<unsigned> initial;  // the value at the start of each launch
};

struct GraphNode {
    Operation operation;
    std::vector<NodeIndex> dependencies;
    std::uint64_t id = 0;                // never reused in the process; copies keep it
    std::uint64_t original = 0;          // the id before renew_identities()
    std::optional<Graph> child;          // runs in place of the operation
    std::optional<Condition> condition;  // of running `child`
    bool disabled = false;               // of an instance: its launches treat the node as an empty one
};

// An instance. Its launches run one after the other, as the driver promises.
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
    std::vector<NodeIndex> dependencies;  // of the next captured operation
};

}  // namespace isthmus::sim::engine
