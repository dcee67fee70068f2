// Operations with dependencies between them: what a capture builds and a graph launch submits.
#pragma once

#include "operation.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus::sim::engine {

struct Work;  // an operation that was submitted; opaque outside of this room
using WorkRef = std::shared_ptr<Work>;

using NodeIndex = std::uint32_t;

struct GraphNode {
    Operation operation;
    std::vector<NodeIndex> dependencies;
};

// A value: copying it is cloning or instantiating it. Node indices stay valid for ever, and agree between copies, so
// an instance is patched by assigning to node(i).operation. Not synchronised: the owner locks.
class Graph {
public:
    NodeIndex add(Operation operation, std::vector<NodeIndex> dependencies);
    // Adds every node of `child`, its roots after `dependencies`, and returns an empty node that follows all of it.
    NodeIndex add_graph(const Graph& child, const std::vector<NodeIndex>& dependencies);
    // Lets `to` wait for `from`; false where that would close a cycle, or a node is unknown.
    bool depend(NodeIndex to, NodeIndex from);

    std::size_t size() const noexcept { return nodes_.size(); }
    GraphNode& node(NodeIndex index) noexcept { return nodes_[index]; }
    const GraphNode& node(NodeIndex index) const noexcept { return nodes_[index]; }
    // Which nodes must have ended for all of `from` to have ended: from themselves and whatever they depend on.
    std::vector<bool> ancestors(const std::vector<NodeIndex>& from) const;

private:
    std::vector<GraphNode> nodes_;
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
