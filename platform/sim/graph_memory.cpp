// SPDX-License-Identifier: Apache-2.0
// Allocation and free nodes, and their memory.
#include "graph_memory.hpp"

#include "allocate.hpp"
#include "call.hpp"

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
        const engine::Operation& operation = graph.node(i).operation;
        if (operation.tag != 0) visit(operation.kind == engine::Kind::allocate, operation.tag);
    }
}

}  // namespace

engine::Operation allocation_node(Driver& d, Region* region) {
    const std::shared_ptr<GraphMemory> memory(new GraphMemory{d, region->id});
    engine::Operation operation;
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

Result check_launch(const Driver& d, const engine::Graph& graph, bool auto_free) {
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
    return code;
}

void note_launch(Driver& d, const engine::Graph& graph) {
    visit_memory_nodes(graph, [&](bool allocates, std::uint64_t id) {
        if (Region* const region = d.regions.find_id(id)) region->live = allocates;
    });
}

namespace {

// Numbers of CUgraphMem_attribute: 0 used, 1 most used, 2 reserved, 3 most reserved.
Result get_attribute(const DeviceState& state, int id, void* value) {
    if (id < 0 || id > 3) return result::invalid_value;
    const std::uint64_t bytes = id % 2 == 0 ? state.graph_bytes : state.graph_high;
    std::memcpy(value, &bytes, sizeof(bytes));
    return result::ok;
}

// Body: Result(DeviceState&), called with the driver's mutex held.
template <class Body>
Result call_for_graph_memory(CallId id, DeviceOrdinal device, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        if (!d.valid(device)) return result::invalid_device;
        const std::lock_guard lock(d.mutex);
        return body(d.devices[static_cast<std::size_t>(device)]);
    });
}

}  // namespace

extern "C" {

Result cuDeviceGetGraphMemAttribute(DeviceOrdinal device, int id, void* value) {
    return call_for_graph_memory(CallId::cuDeviceGetGraphMemAttribute, device, [&](DeviceState& state) -> Result {
        return value ? get_attribute(state, id, value) : result::invalid_value;
    });
}

Result cuDeviceSetGraphMemAttribute(DeviceOrdinal device, int id, void* value) {
    return call_for_graph_memory(CallId::cuDeviceSetGraphMemAttribute, device, [&](DeviceState& state) -> Result {
        std::uint64_t wanted = 1;
        if (value) std::memcpy(&wanted, value, sizeof(wanted));
        if ((id != 1 && id != 3) || wanted != 0) return result::invalid_value;  // high-water marks can only be reset
        state.graph_high = state.graph_bytes;
        return result::ok;
    });
}

// In the simulator graphs hold their memory from capture to destruction, so there is never unused memory to trim.
Result cuDeviceGraphMemTrim(DeviceOrdinal device) {
    return call_for_graph_memory(CallId::cuDeviceGraphMemTrim, device, [](DeviceState&) { return result::ok; });
}
}

}  // namespace isthmus::sim
