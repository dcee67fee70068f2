// What graph handles point to. Shared: the operations of a graph may own memory, and are dropped outside of locks.
#pragma once

#include "engine/graph.hpp"

#include <memory>

namespace isthmus::sim {

struct GraphObject {
    std::shared_ptr<engine::Graph> graph;
    std::weak_ptr<engine::GraphInstance> live_instance;
};

struct GraphExec {
    std::shared_ptr<engine::GraphInstance> instance;
    bool auto_free = false;  // a launch frees what the one before it left allocated
};

}  // namespace isthmus::sim
