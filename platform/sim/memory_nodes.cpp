// SPDX-License-Identifier: Apache-2.0
// Nodes that allocate and free memory, added without a capture.
#include "call.hpp"
#include "graph_memory.hpp"
#include "node_kinds.hpp"
#include "pools.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

constexpr int pinned_type = 1, managed_type = 2, nowhere = 0, on_device = 1, on_callers_node = 4, read_and_write = 3;
constexpr int with_managed_memory = 13000;  // the driver version that brought managed pools

bool knows_type(const Driver& d, int type) {
    if (type == managed_type) return d.machine.record().facts.driver_version >= with_managed_memory;
    return type == pinned_type;
}

// Documented: no handle types, memory in a device, access for devices alone, and no more than there are.
Result check_request(const Driver& d, const AllocationNodeParameters& p) {
    const PoolProperties& properties = p.properties;
    if (p.bytes == 0 || properties.handle_types != 0 || !knows_type(d, properties.allocation_type)) {
        return result::invalid_value;
    }
    // Observed (580, H200): 801 for memory at the host and at nodes, and for managed memory without a place.
    const int place = properties.location.type;
    if (place < nowhere || place > on_callers_node) return result::invalid_value;
    if (place == nowhere && properties.allocation_type != managed_type) return result::invalid_value;
    if (place != on_device) return result::not_supported;
    if (!d.valid(properties.location.id)) return result::invalid_value;
    if (d.fact(properties.location.id, attribute::memory_pools) == 0) return result::not_supported;
    if (p.access_count > d.devices.size() || (p.access_count != 0 && !p.access)) return result::invalid_value;
    for (std::size_t i = 0; i < p.access_count; ++i) {
        const AccessDescription& one = p.access[i];
        if (one.location.type != on_device || !d.valid(one.location.id)) return result::invalid_value;
        if (one.flags != 0 && one.flags != 1 && one.flags != read_and_write) return result::invalid_value;
        const auto* way = d.machine.peer(one.location.id, properties.location.id);
        const bool reaches = one.location.id == properties.location.id || (way && way->access);
        if (one.flags != 0 && !reaches) return result::invalid_value;
    }
    return result::ok;
}

// A pool of one allocation, which has its access rights and ends with it. Observed (580, H200): managed memory of a
// graph is device memory to cuPointerGetAttribute, counted as such, and the CPU cannot touch it.
Pool& own_pool(Driver& d, const AllocationNodeParameters& p) {
    Pool& pool = d.retired_pools.emplace_back();
    pool.location = p.properties.location;
    pool.device = p.properties.location.id;
    for (std::size_t i = 0; i < p.access_count; ++i) {
        if (p.access[i].flags != 0) pool.devices[p.access[i].location.id] = p.access[i].flags;
    }
    return pool;
}

Result add_allocation(Driver& d, Context* context, NodeObject** node, GraphObject* graph,
                      NodeObject* const* dependencies, std::size_t count, AllocationNodeParameters& p) {
    // Kept until the lock is released: an operation that no graph took owns memory.
    engine::Operation operation;
    const std::lock_guard lock(d.mutex);
    if (!node || !d.graphs.alive(graph)) return result::invalid_value;
    if (graph->was_moved) return result::not_supported;  // documented; the code is assumed
    if (const Result code = check_request(d, p)) return code;
    std::vector<engine::NodeIndex> known;
    if (const Result code = indices_of(d, *graph, dependencies, count, known)) return code;
    const int device = p.properties.location.id;
    Context* const owner = context ? context : &d.devices[static_cast<std::size_t>(device)].primary;
    Pool& pool = own_pool(d, p);
    Region* const region = allocate_from(d, pool, device, owner, p.bytes, true);
    if (!region) {
        d.retired_pools.remove_if([&](const Pool& one) { return &one == &pool; });
        return result::out_of_memory;
    }
    AllocationNode asked;
    asked.properties = p.properties;
    asked.access.assign(p.access, p.access + p.access_count);
    operation = allocation_node(d, region, &asked);
    p.address = region->base;
    return add_node(d, node, graph, dependencies, count, [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
        return to.add(std::move(operation), std::move(after));
    });
}

Result add_free(Driver& d, NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                Address address) {
    const std::lock_guard lock(d.mutex);
    if (!node || !d.graphs.alive(graph)) return result::invalid_value;
    if (graph->was_moved) return result::not_supported;
    const Found found = d.regions.find(address);
    if (!found || found.offset_bytes != 0) return result::invalid_value;
    std::vector<engine::NodeIndex> known;
    if (const Result code = indices_of(d, *graph, dependencies, count, known)) return code;
    if (const Result code = claim_for_node(*found.region)) return code;
    const auto add = [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
        return to.add(free_node(d, found.region->id), std::move(after));
    };
    const Result code = add_node(d, node, graph, dependencies, count, add);
    if (code != result::ok) found.region->freed_by_node = false;
    return code;
}

// Body: Result(const engine::Operation&), for a node of that kind.
template <class Body>
Result call_for_node(CallId id, NodeObject* node, engine::Kind kind, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            return !found.child && found.operation.kind == kind ? body(d, found.operation) : result::invalid_value;
        });
    });
}

}  // namespace

Result add_allocation_node(Driver& d, const NodePlace& place, AllocationNodeParameters* parameters) {
    if (!parameters) return result::invalid_value;
    return add_allocation(d, current_context(d), place.node, place.graph, place.dependencies, place.count, *parameters);
}

Result add_free_node(Driver& d, const NodePlace& place, Address address) {
    return add_free(d, place.node, place.graph, place.dependencies, place.count, address);
}

extern "C" {

Result cuGraphAddMemAllocNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                              AllocationNodeParameters* parameters) {
    return call(CallId::cuGraphAddMemAllocNode, [&](Driver& d) -> Result {
        if (!parameters) return result::invalid_value;
        return add_allocation(d, current_context(d), node, graph, dependencies, count, *parameters);
    });
}

Result cuGraphMemAllocNodeGetParams(NodeObject* node, AllocationNodeParameters* parameters) {
    return call_for_node(
        CallId::cuGraphMemAllocNodeGetParams, node, engine::Kind::allocate,
        [&](Driver&, const engine::Operation& operation) -> Result {
            if (!parameters) return result::invalid_value;
            const auto* asked = static_cast<const AllocationNode*>(operation.details.get());
            *parameters = {asked->properties, asked->access.data(), asked->access.size(), asked->bytes, asked->address};
            return result::ok;
        });
}

Result cuGraphAddMemFreeNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies, std::size_t count,
                             Address address) {
    return call(CallId::cuGraphAddMemFreeNode,
                [&](Driver& d) { return add_free(d, node, graph, dependencies, count, address); });
}

Result cuGraphMemFreeNodeGetParams(NodeObject* node, Address* address) {
    return call_for_node(CallId::cuGraphMemFreeNodeGetParams, node, engine::Kind::free,
                         [&](Driver& d, const engine::Operation& operation) -> Result {
                             if (!address) return result::invalid_value;
                             const Region* const region = d.regions.find_id(operation.tag);
                             *address = region ? region->base : 0;
                             return region ? result::ok : result::invalid_value;
                         });
}
}

}  // namespace isthmus::sim
