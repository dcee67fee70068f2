// SPDX-License-Identifier: Apache-2.0
// Memory that a captured graph owns: allocation and free nodes, and their effect at a launch. Calls keep the program's
// order (which memory is live); running nodes keep the stream's order (which memory may be accessed).
#pragma once

#include "driver.hpp"
#include "engine/graph.hpp"

#include <vector>

namespace isthmus::sim {

// What a node that allocates was asked for: `details` of its operation.
struct AllocationNode {
    PoolProperties properties = {};
    std::vector<AccessDescription> access;
    std::size_t bytes = 0;
    Address address = 0;
};

// The node that allocates; the region exists as long as any graph or instance holds the node. `asked`: of
// cuGraphAddMemAllocNode; a captured allocation has what its pool says.
engine::Operation allocation_node(Driver& d, Region* region, const AllocationNode* asked = nullptr);
engine::Operation free_node(Driver& d, std::uint64_t region);
// Whether any node allocates or frees.
bool has_memory_nodes(const engine::Graph& graph);

// All functions below require the driver's mutex.
// A captured free: memory must be a graph's, and may have one captured free.
Result claim_for_node(Region& region);
// A free outside of graphs: for memory that a launch allocated and no node frees.
Result claim_from_graph(Region& region);
// The stream has reached a free: the address stays reserved for the next launch, unless the graph is gone.
void leave_graph_memory(Driver& d, Region* region);
// Checks before a launch; 1 where memory of an earlier launch was not freed (documented), or where a node frees memory
// that was never allocated; 2 where a device has no room for the graph's memory.
Result check_launch(const Driver& d, const engine::Graph& graph, bool auto_free);
void note_launch(Driver& d, const engine::Graph& graph);
// Gives the device memory of graphs back that no launch left allocated.
void trim_graph_memory(Driver& d, int device);

}  // namespace isthmus::sim
