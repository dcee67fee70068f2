// SPDX-License-Identifier: Apache-2.0
// Adding and changing nodes of each kind, for cuGraphAddNode and cuGraphNodeSetParams beside the functions of that
// kind. All functions lock the driver's mutex.
#pragma once

#include "graph_objects.hpp"

namespace isthmus::sim {

// Where a node is added: its handle, its graph, and the nodes before it.
struct NodePlace {
    NodeObject** node;
    GraphObject* graph;
    NodeObject* const* dependencies;
    std::size_t count;
};
// The node whose parameters are set; `instance`: null for the graph's own node.
struct NodeChange {
    NodeObject* node;
    GraphExec* const* instance;
};

Result add_empty_node(Driver& d, const NodePlace& place);
Result add_kernel_node(Driver& d, const NodePlace& place, const KernelNodeParameters2& parameters);
Result add_copy_node(Driver& d, const NodePlace& place, const Copy3D* copy, Context* context);
Result add_fill_node(Driver& d, const NodePlace& place, const FillNodeParameters* fill, Context* context);
Result add_host_node(Driver& d, const NodePlace& place, const HostNodeParameters* parameters);
Result add_child_node(Driver& d, const NodePlace& place, GraphObject* child);
// The graph moves into the node, with its handle.
Result move_child_node(Driver& d, const NodePlace& place, GraphObject* child);
// `call`: for messages.
Result add_event_node(Driver& d, const NodePlace& place, Event* event, bool waits, const char* call);
Result add_allocation_node(Driver& d, const NodePlace& place, AllocationNodeParameters* parameters);
Result add_free_node(Driver& d, const NodePlace& place, Address address);
Result add_semaphore_node(Driver& d, const NodePlace& place, const SemaphoreNodeParameters* parameters, bool waits);
Result add_words_node(Driver& d, const NodePlace& place, const MemoryOperations* parameters);
Result add_conditional_node(Driver& d, const NodePlace& place, ConditionalParameters& parameters);

// For work that a stream is given too: the same operation with the same parameters.
engine::Operation host_operation(const HostNodeParameters& parameters, const char* label);

Result set_kernel_node(Driver& d, const NodeChange& change, const KernelNodeParameters2* parameters);
// `context`: null for the one that the node has.
Result set_copy_node(Driver& d, const NodeChange& change, const Copy3D* copy, Context* context);
Result set_fill_node(Driver& d, const NodeChange& change, const FillNodeParameters* fill, Context* context);
Result set_host_node(Driver& d, const NodeChange& change, const HostNodeParameters* parameters);
Result set_event_node(Driver& d, const NodeChange& change, Event* event, bool waits, const char* call);
Result set_semaphore_node(Driver& d, const NodeChange& change, const SemaphoreNodeParameters* parameters, bool waits);
// Whether an instance's signals or waits can become others: by the details of both nodes.
bool semaphores_may_become(const void* old, const void* now);
Result set_words_node(Driver& d, const NodeChange& change, const MemoryOperations* parameters);
// Whether an instance's operations on values can become others: by the details of both nodes.
bool words_may_become(const void* old, const void* now);
// Updates the child graph of an instance's node from a graph of the same shape.
Result set_child_node(Driver& d, const NodeChange& change, GraphObject* child);
Result replace_child_node(Driver& d, NodeObject* node, GraphObject* child);

}  // namespace isthmus::sim
