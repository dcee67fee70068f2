// SPDX-License-Identifier: Apache-2.0
// Memory that a captured graph owns: allocation and free nodes, and what a launch means for them. The program's order
// (what is live) is kept at calls, the stream's order (what may be touched) by the nodes as they run.
#pragma once

#include "driver.hpp"
#include "engine/graph.hpp"

namespace isthmus::sim {

// The node that allocates; the region lives as long as any graph or instance holds it.
engine::Operation allocation_node(Driver& d, Region* region);
engine::Operation free_node(Driver& d, std::uint64_t region);
// Whether any node allocates or frees.
bool has_memory_nodes(const engine::Graph& graph);

// All below: the driver's mutex held.
// A captured free: of a graph's memory, and once.
Result claim_for_node(Region& region);
// A free outside of graphs: of memory that a launch allocated and no node frees.
Result claim_from_graph(Region& region);
// A free was reached in the stream: the address stays for the next launch, unless the graph is gone.
void leave_graph_memory(Driver& d, Region* region);
// Before a launch; 1 where memory of an earlier one was not freed (documented), or is freed that never was allocated.
Result check_launch(const Driver& d, const engine::Graph& graph, bool auto_free);
void note_launch(Driver& d, const engine::Graph& graph);

}  // namespace isthmus::sim
