// Stream-ordered allocation: pools, and memory that a captured graph owns.
#include "allocate.hpp"
#include "call.hpp"

#include <cstring>

namespace isthmus::sim {
namespace {

// Memory that lives as long as any graph or instance holds the operation that allocates it.
struct GraphMemory {
    Driver& d;
    Region* region;
    ~GraphMemory() {
        const std::lock_guard lock(d.mutex);
        release_region(d, region);
    }
};

DeviceState& state_of(Driver& d, int device) {
    return d.devices[static_cast<std::size_t>(device)];
}

bool known(const Driver& d, const Pool* pool) {
    for (const DeviceState& state : d.devices) {
        if (pool == &state.default_pool) return true;
    }
    return d.pools.alive(pool);
}

Result capture_allocation(Driver& d, const StreamTarget& stream, Region* region) {
    const std::shared_ptr<GraphMemory> memory(new GraphMemory{d, region});
    engine::Operation operation;
    operation.kind = engine::Kind::allocate;
    operation.label = "cuMemAllocAsync";
    operation.body = [memory] {
        const std::lock_guard lock(memory->d.mutex);
        memory->region->freed = false;
        return 0;
    };
    return d.engine().submit(stream.id, std::move(operation));
}

Result allocate_async(Driver& d, Address* address, std::size_t bytes, Pool* pool, bool current_pool, Stream* handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (!address) return result::invalid_value;
    if (d.fact(stream.device, attribute::memory_pools) == 0) return result::not_supported;
    *address = 0;
    if (bytes == 0) return result::ok;
    const auto capture = d.engine().capture_info(stream.id).state;
    Region* region = nullptr;
    {
        const std::lock_guard lock(d.mutex);
        if (current_pool) pool = state_of(d, stream.device).pool;
        if (!known(d, pool)) return result::invalid_value;
        const bool of_graph = capture == engine::CaptureState::active;
        region =
            allocate_device_memory(d, of_graph ? Kind::graph : Kind::pool, pool->device, stream.context, bytes, pool);
        if (!region) return result::out_of_memory;
    }
    *address = region->base;
    if (capture == engine::CaptureState::active) return capture_allocation(d, stream, region);
    engine::Operation operation;
    operation.kind = engine::Kind::allocate;
    operation.label = "cuMemAllocAsync";
    const Result code = d.engine().submit(stream.id, std::move(operation));
    if (code != 0) {
        const std::lock_guard lock(d.mutex);
        release_region(d, region);
        *address = 0;
    }
    return code;
}

// Marks the memory as freed in the program's order; the pages go in the stream's order.
Result claim(Driver& d, Address address, bool capturing, Region*& region, bool& of_graph) {
    const std::lock_guard lock(d.mutex);
    const Found found = d.regions.find(address);
    if (!found || found.offset_bytes != 0 || found.region->freed) return result::invalid_value;
    if (found.region->kind == Kind::managed) return result::not_supported;  // observed
    of_graph = found.region->kind == Kind::graph;
    const bool lawful = of_graph || found.region->kind == Kind::pool || found.region->kind == Kind::device;
    if (!lawful || (capturing && !of_graph)) return result::invalid_value;
    region = found.region;
    if (!capturing) region->freed = true;
    return result::ok;
}

Result free_async(Driver& d, Address address, Stream* handle) {
    if (handle > reinterpret_cast<Stream*>(2)) {
        const std::lock_guard lock(d.mutex);
        if (d.streams.was_alive(handle)) die_like_the_driver("cuMemFreeAsync on a destroyed stream");
    }
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (address == 0) return result::ok;
    const bool capturing = d.engine().capture_info(stream.id).state == engine::CaptureState::active;
    Region* region = nullptr;
    bool of_graph = false;
    if (const Result code = claim(d, address, capturing, region, of_graph)) return code;
    engine::Operation operation;
    operation.kind = engine::Kind::free;
    operation.label = "cuMemFreeAsync";
    operation.body = [&d, address, id = region->id, of_graph] {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.region->id != id) return 0;
        if (of_graph) {
            found.region->freed = true;  // until the graph's next launch; the pages belong to the graph
        } else {
            release_region(d, found.region);
        }
        return 0;
    };
    return d.engine().submit(stream.id, std::move(operation));
}

// Numbers of CUmemPool_attribute: 1..3 are ints, the others 64 bits.
Result get_attribute(const Pool& pool, int id, void* value) {
    if (id >= 1 && id <= 3) {
        std::memcpy(value, &pool.reuse[id - 1], sizeof(int));
        return result::ok;
    }
    std::uint64_t wide = 0;
    switch (id) {
        case 4: wide = pool.release_threshold; break;
        case 5: wide = pool.used_bytes; break;
        case 6:
        case 8: wide = pool.used_high; break;
        case 7: wide = pool.used_bytes; break;
        default: return result::invalid_value;
    }
    std::memcpy(value, &wide, sizeof(wide));
    return result::ok;
}

Result set_attribute(Pool& pool, int id, const void* value) {
    if (id >= 1 && id <= 3) {
        std::memcpy(&pool.reuse[id - 1], value, sizeof(int));
        return result::ok;
    }
    std::uint64_t wide = 0;
    std::memcpy(&wide, value, sizeof(wide));
    if (id == 4) {
        pool.release_threshold = wide;
        return result::ok;
    }
    if ((id != 6 && id != 8) || wide != 0) return result::invalid_value;  // high-water marks can only be reset
    pool.used_high = pool.used_bytes;
    return result::ok;
}

Result create_pool(Driver& d, Pool** pool, const PoolProperties* properties) {
    constexpr int pinned_type = 1, on_device = 1, supported_handles = 119;
    if (!pool || !properties) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;
    if (properties->allocation_type != pinned_type || properties->location.type != on_device) {
        say("cuMemPoolCreate: pools of managed and of host memory are not modelled");
        return result::not_supported;
    }
    if (!d.valid(properties->location.id)) return result::invalid_device;
    const int device = properties->location.id;
    if (d.fact(device, attribute::memory_pools) == 0) return result::not_supported;
    if ((properties->handle_types & ~d.fact(device, supported_handles)) != 0) return result::not_supported;
    const std::lock_guard lock(d.mutex);
    Pool* made = d.pools.create();
    made->device = device;
    *pool = made;
    return result::ok;
}

// Body: Result(Driver&), with the pool known and the driver's mutex held.
template <class Body>
Result call_for_pool(CallId id, Pool* pool, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!known(d, pool)) return result::invalid_value;
        return body(d);
    });
}

template <class Body>
Result call_for_device_pool(CallId id, Pool** pool, DeviceOrdinal device, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        if (!pool) return result::invalid_value;
        if (!d.valid(device)) return result::invalid_device;
        if (d.fact(device, attribute::memory_pools) == 0) return result::not_supported;
        const std::lock_guard lock(d.mutex);
        *pool = body(state_of(d, device));
        return result::ok;
    });
}

}  // namespace

extern "C" {

Result cuDeviceGetDefaultMemPool(Pool** pool, DeviceOrdinal device) {
    return call_for_device_pool(CallId::cuDeviceGetDefaultMemPool, pool, device,
                                [](DeviceState& state) { return &state.default_pool; });
}

Result cuDeviceGetMemPool(Pool** pool, DeviceOrdinal device) {
    return call_for_device_pool(CallId::cuDeviceGetMemPool, pool, device,
                                [](DeviceState& state) { return state.pool; });
}

Result cuDeviceSetMemPool(DeviceOrdinal device, Pool* pool) {
    return call_for_pool(CallId::cuDeviceSetMemPool, pool, [&](Driver& d) -> Result {
        if (!d.valid(device) || pool->device != device) return result::invalid_device;
        state_of(d, device).pool = pool;
        return result::ok;
    });
}

Result cuMemAllocAsync(Address* address, std::size_t bytes, Stream* stream) {
    return call(CallId::cuMemAllocAsync,
                [&](Driver& d) { return allocate_async(d, address, bytes, nullptr, true, stream); });
}

Result cuMemAllocFromPoolAsync(Address* address, std::size_t bytes, Pool* pool, Stream* stream) {
    return call(CallId::cuMemAllocFromPoolAsync,
                [&](Driver& d) { return allocate_async(d, address, bytes, pool, false, stream); });
}

Result cuMemFreeAsync(Address address, Stream* stream) {
    return call(CallId::cuMemFreeAsync, [&](Driver& d) { return free_async(d, address, stream); });
}

Result cuMemPoolCreate(Pool** pool, const PoolProperties* properties) {
    return call(CallId::cuMemPoolCreate, [&](Driver& d) { return create_pool(d, pool, properties); });
}

Result cuMemPoolDestroy(Pool* pool) {
    return call_for_pool(CallId::cuMemPoolDestroy, pool, [&](Driver& d) -> Result {
        if (pool->by_default) return result::invalid_value;
        for (DeviceState& state : d.devices) {
            if (state.pool == pool) state.pool = &state.default_pool;
        }
        // Its memory lives on until it is freed; the books follow to the default pool.
        Pool& heir = state_of(d, pool->device).default_pool;
        for (Region* region : d.regions.all()) {
            if (region->pool != pool) continue;
            region->pool = &heir;
            heir.used_bytes += region->bytes;
        }
        d.pools.destroy(pool);
        return result::ok;
    });
}

Result cuMemPoolTrimTo(Pool* pool, std::size_t) {
    return call_for_pool(CallId::cuMemPoolTrimTo, pool, [](Driver&) -> Result { return result::ok; });
}

Result cuMemPoolSetAttribute(Pool* pool, int id, void* value) {
    return call_for_pool(CallId::cuMemPoolSetAttribute, pool, [&](Driver&) -> Result {
        return value ? set_attribute(*pool, id, value) : result::invalid_value;
    });
}

Result cuMemPoolGetAttribute(Pool* pool, int id, void* value) {
    return call_for_pool(CallId::cuMemPoolGetAttribute, pool, [&](Driver&) -> Result {
        return value ? get_attribute(*pool, id, value) : result::invalid_value;
    });
}

Result cuMemPoolSetAccess(Pool* pool, const AccessDescription* descriptions, std::size_t count) {
    return call_for_pool(CallId::cuMemPoolSetAccess, pool, [&](Driver& d) -> Result {
        if (!descriptions) return result::invalid_value;
        for (std::size_t i = 0; i < count; ++i) {
            const AccessDescription& one = descriptions[i];
            if (one.location.type != 1 || !d.valid(one.location.id)) return result::invalid_device;
            if (one.location.id == pool->device) {
                if (one.flags != 3) return result::invalid_device;  // the owner's access cannot be taken away
                continue;
            }
            const auto* way = d.machine.peer(one.location.id, pool->device);
            if (!way || !way->access) return result::invalid_device;
            if (one.flags == 0) {
                pool->peers.erase(one.location.id);
            } else {
                pool->peers.insert(one.location.id);
            }
        }
        return result::ok;
    });
}

Result cuMemPoolGetAccess(int* flags, Pool* pool, Location* location) {
    return call_for_pool(CallId::cuMemPoolGetAccess, pool, [&](Driver&) -> Result {
        if (!flags || !location || location->type != 1) return result::invalid_value;
        *flags = location->id == pool->device || pool->peers.count(location->id) != 0 ? 3 : 0;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
