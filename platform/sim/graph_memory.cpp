// SPDX-License-Identifier: Apache-2.0
// Allocation and free nodes, and their memory.
#include "graph_memory.hpp"

#include "allocate.hpp"
#include "call.hpp"
#include "pools.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace isthmus::sim {
namespace {

// Released with the last graph or instance that holds the node. Documented: the program must then free memory that is
// still live; memory with a pending free in a stream is released when the stream reaches it.
struct GraphMemory {
    Driver& d;
    std::uint64_t region;
    ~GraphMemory() {
        const std::lock_guard lock(d.mutex);
        Region* const mine = d.regions.find_id(region);
        if (!mine) return;
        if (mine->live || mine->freed) {
            mine->ownerless = true;
        } else {
            release_region(d, mine);
        }
    }
};

// The tag of a memory node is its region's id; other operations have no tag.
template <class Visit>
void visit_memory_nodes(const engine::Graph& graph, Visit visit) {
    for (engine::NodeIndex i = 0; i < graph.size(); ++i) {
        const engine::GraphNode& node = graph.node(i);
        if (node.child) visit_memory_nodes(*node.child, visit);
        const engine::Operation& operation = node.operation;
        if (operation.tag != 0) visit(operation.kind == engine::Kind::allocate, operation.tag);
    }
}

}  // namespace

engine::Operation allocation_node(Driver& d, Region* region, const AllocationNode* asked) {
    const std::shared_ptr<GraphMemory> memory(new GraphMemory{d, region->id});
    AllocationNode node;
    if (asked) node = *asked;
    if (!asked) node.properties.allocation_type = region->pool->allocation_type;
    if (!asked) node.properties.location = region->pool->location;
    node.bytes = region->bytes;
    node.address = region->base;
    engine::Operation operation;
    operation.details = std::make_shared<const AllocationNode>(std::move(node));
    operation.kind = engine::Kind::allocate;
    operation.label = "cuMemAllocAsync";
    operation.tag = region->id;
    operation.body = [memory] {
        const std::lock_guard lock(memory->d.mutex);
        if (Region* const mine = memory->d.regions.find_id(memory->region)) mine->absent = false;
        return 0;
    };
    return operation;
}

engine::Operation free_node(Driver& d, std::uint64_t region) {
    engine::Operation operation;
    operation.kind = engine::Kind::free;
    operation.label = "cuMemFreeAsync";
    operation.tag = region;
    operation.body = [&d, region] {
        const std::lock_guard lock(d.mutex);
        if (Region* const freed = d.regions.find_id(region)) leave_graph_memory(d, freed);
        return 0;
    };
    return operation;
}

bool has_memory_nodes(const engine::Graph& graph) {
    bool any = false;
    visit_memory_nodes(graph, [&](bool, std::uint64_t) { any = true; });
    return any;
}

Result claim_for_node(Region& region) {
    if (!region.of_graph || region.freed_by_node) return result::invalid_value;
    region.freed_by_node = true;
    return result::ok;
}

Result claim_from_graph(Region& region) {
    if (!region.live) return result::invalid_value;
    region.live = false;
    region.freed = true;
    return result::ok;
}

void leave_graph_memory(Driver& d, Region* region) {
    region->freed = false;
    region->absent = true;
    if (region->ownerless) release_region(d, region);
}

namespace {

// Observed (580.159.04, H200): the memory of graphs is counted in these steps, from a launch on.
constexpr std::uint64_t graph_step_bytes = std::uint64_t{32} << 20;

std::uint64_t whole_steps(std::uint64_t bytes) {
    return (bytes + graph_step_bytes - 1) / graph_step_bytes * graph_step_bytes;
}

bool counts(const Region& region, int device) {
    return region.of_graph && region.device == device && region.pool && takes_device_memory(*region.pool);
}

// What the device needs while `graph` runs: its memory, and what other launches left allocated. nullptr: no graph.
std::uint64_t needed_bytes(const Driver& d, int device, const engine::Graph* graph) {
    std::unordered_set<std::uint64_t> own;
    if (graph) {
        visit_memory_nodes(*graph, [&](bool allocates, std::uint64_t id) {
            if (allocates) own.insert(id);
        });
    }
    std::uint64_t bytes = 0;
    for (const Region* region : d.regions.all()) {
        const bool in_use = region->live || region->freed || own.count(region->id) != 0;
        if (in_use && counts(*region, device)) bytes += region->bytes;
    }
    return bytes;
}

void set_graph_bytes(DeviceState& state, std::uint64_t bytes) {
    state.used_bytes = state.used_bytes - state.graph_bytes + bytes;
    state.graph_bytes = bytes;
    state.graph_used_high = std::max(state.graph_used_high, bytes);
    state.graph_reserved_high = std::max(state.graph_reserved_high, bytes);
}

// Memory that a launch left unused serves the next one.
Result check_room(const Driver& d, const engine::Graph& graph) {
    for (int device = 0; d.valid(device); ++device) {
        const std::uint64_t held = d.devices[static_cast<std::size_t>(device)].graph_bytes;
        const std::uint64_t wanted = whole_steps(needed_bytes(d, device, &graph));
        if (wanted > held && !has_room(d, device, wanted - held)) return result::out_of_memory;
    }
    return result::ok;
}

}  // namespace

void trim_graph_memory(Driver& d, int device) {
    DeviceState& state = d.devices[static_cast<std::size_t>(device)];
    set_graph_bytes(state, std::min(state.graph_bytes, whole_steps(needed_bytes(d, device, nullptr))));
}

Result check_launch(const Driver& d, const engine::Graph& graph, bool auto_free) {
    if (!has_memory_nodes(graph)) return result::ok;
    std::unordered_set<std::uint64_t> own;
    Result code = result::ok;
    visit_memory_nodes(graph, [&](bool allocates, std::uint64_t id) {
        const Region* const region = d.regions.find_id(id);
        if (allocates) {
            own.insert(id);
            if (region && region->live && !auto_free) code = result::invalid_value;
        } else if (own.count(id) == 0 && (!region || !region->live)) {
            code = result::invalid_value;  // memory of another graph that is not allocated (assumed)
        }
    });
    return code != result::ok ? code : check_room(d, graph);
}

void note_launch(Driver& d, const engine::Graph& graph) {
    if (!has_memory_nodes(graph)) return;
    for (int device = 0; d.valid(device); ++device) {
        DeviceState& state = d.devices[static_cast<std::size_t>(device)];
        set_graph_bytes(state, std::max(state.graph_bytes, whole_steps(needed_bytes(d, device, &graph))));
    }
    visit_memory_nodes(graph, [&](bool allocates, std::uint64_t id) {
        if (Region* const region = d.regions.find_id(id)) region->live = allocates;
    });
}

namespace {

// Numbers of CUgraphMem_attribute: 0 used, 1 most used, 2 reserved, 3 most reserved. Observed: used is what is
// reserved, until a trim.
Result get_attribute(const DeviceState& state, int id, void* value) {
    if (id < 0 || id > 3) return result::invalid_value;
    const std::uint64_t bytes = id == 1   ? state.graph_used_high
                                : id == 3 ? state.graph_reserved_high
                                          : state.graph_bytes;
    std::memcpy(value, &bytes, sizeof(bytes));
    return result::ok;
}

// Body: Result(Driver&, DeviceState&), called with the driver's mutex held.
template <class Body>
Result call_for_graph_memory(CallId id, DeviceOrdinal device, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        if (!d.valid(device)) return result::invalid_device;
        const std::lock_guard lock(d.mutex);
        return body(d, d.devices[static_cast<std::size_t>(device)]);
    });
}

}  // namespace

extern "C" {

Result cuDeviceGetGraphMemAttribute(DeviceOrdinal device, int id, void* value) {
    return call_for_graph_memory(CallId::cuDeviceGetGraphMemAttribute, device,
                                 [&](Driver&, DeviceState& state) -> Result {
                                     return value ? get_attribute(state, id, value) : result::invalid_value;
                                 });
}

Result cuDeviceSetGraphMemAttribute(DeviceOrdinal device, int id, void* value) {
    return call_for_graph_memory(CallId::cuDeviceSetGraphMemAttribute, device,
                                 [&](Driver&, DeviceState& state) -> Result {
                                     std::uint64_t wanted = 1;
                                     if (value) std::memcpy(&wanted, value, sizeof(wanted));
                                     if ((id != 1 && id != 3) || wanted != 0)
                                         return result::invalid_value;  // high-water marks can only be reset
                                     (id == 1 ? state.graph_used_high : state.graph_reserved_high) =
                                         state.graph_bytes;  // each by itself: observed
                                     return result::ok;
                                 });
}

Result cuDeviceGraphMemTrim(DeviceOrdinal device) {
    return call_for_graph_memory(CallId::cuDeviceGraphMemTrim, device, [&](Driver& d, DeviceState&) -> Result {
        trim_graph_memory(d, device);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
