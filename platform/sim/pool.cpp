// SPDX-License-Identifier: Apache-2.0
// The program's view of pools: creation and destruction, attributes, access, and current pools.
#include "call.hpp"
#include "pools.hpp"

#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int pinned_type = 1, managed_type = 2;
constexpr int nowhere = 0, on_device = 1, on_host = 2, on_node = 3;

DeviceState& state_of(Driver& d, int device) {
    return d.devices[static_cast<std::size_t>(device)];
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
        case 5: wide = pool.reserved_bytes; break;
        case 6: wide = pool.reserved_high; break;
        case 7: wide = pool.used_bytes; break;
        case 8: wide = pool.used_high; break;
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
    switch (id) {
        case 4: pool.release_threshold = wide; return result::ok;
        case 6:  // high-water marks can only be reset
            if (wide != 0) return result::invalid_value;
            pool.reserved_high = pool.reserved_bytes;
            return result::ok;
        case 8:
            if (wide != 0) return result::invalid_value;
            pool.used_high = pool.used_bytes;
            return result::ok;
        default: return result::invalid_value;
    }
}

constexpr int supported_handles = 119, posix_descriptor = 1;

// The handle types of any device.
int most_handles(const Driver& d) {
    int types = 0;
    for (int device = 0; d.valid(device); ++device) types |= d.fact(device, supported_handles);
    return types;
}

bool any_device_says(const Driver& d, int attribute) {
    for (int device = 0; d.valid(device); ++device) {
        if (d.fact(device, attribute) != 0) return true;
    }
    return false;
}

bool is_node(const Driver& d, int id) {
    for (const NumaNode& node : d.machine.record().facts.numa_nodes) {
        if (node.id == id) return true;
    }
    return false;
}

// Whether this machine supports pools of that type at that location.
Result check_place(const Driver& d, int allocation_type, Location where) {
    constexpr int node_pools = 142, host_pools = 144, with_managed_pools = 13000;
    if (allocation_type == managed_type) {
        // Older drivers do not know the type (assumed: they answer as for any unknown type).
        if (d.machine.record().facts.driver_version < with_managed_pools) return result::invalid_value;
        if (!any_device_says(d, attribute::managed)) return result::not_supported;
    } else if (allocation_type != pinned_type) {
        return result::invalid_value;
    }
    switch (where.type) {
        case nowhere: return allocation_type == managed_type ? result::ok : result::invalid_value;
        case on_device:
            if (!d.valid(where.id)) return result::invalid_device;
            return d.fact(where.id, attribute::memory_pools) != 0 ? result::ok : result::not_supported;
        case on_host: return any_device_says(d, host_pools) ? result::ok : result::not_supported;
        case on_node:
            if (!any_device_says(d, node_pools)) return result::not_supported;
            return is_node(d, where.id) ? result::ok : result::invalid_value;
        default: return result::invalid_value;  // documented: the calling thread's node
    }
}

Pool pool_at(int allocation_type, Location where) {
    Pool pool;
    pool.allocation_type = allocation_type;
    pool.location = {where.type, where.type == on_device || where.type == on_node ? where.id : 0};
    pool.device = where.type == on_device ? where.id : -1;
    return pool;
}

Result create_pool(Driver& d, Pool** pool, const PoolProperties* properties) {
    if (!pool || !properties) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;
    const Location where = properties->location;
    if (const Result code = check_place(d, properties->allocation_type, where)) return code;
    if (properties->handle_types != 0) {
        if (where.type == on_host || properties->allocation_type == managed_type) return result::invalid_value;
        // Observed (580.159.04, H200): pools at NUMA nodes have descriptors, too.
        const int sharing = where.type == on_device ? d.fact(where.id, supported_handles)
                            : where.type == on_node ? most_handles(d) & posix_descriptor
                                                    : 0;
        if ((properties->handle_types & ~sharing) != 0) return result::not_supported;
    }
    const std::lock_guard lock(d.mutex);
    Pool* made = d.pools.create();
    *made = pool_at(properties->allocation_type, where);
    made->max_bytes = properties->max_bytes;
    made->handle_types = properties->handle_types;
    *pool = made;
    return result::ok;
}

// The slot of a location, created at the first query; nullptr: pinned memory of a device, whose slot is in DeviceState.
PoolSlot* slot_of(Driver& d, int allocation_type, Location where) {
    if (allocation_type == pinned_type && where.type == on_device) return nullptr;
    const Pool standard = pool_at(allocation_type, where);
    PoolSlot& slot = d.location_pools[{allocation_type, standard.location.type, standard.location.id}];
    if (!slot.current) {
        slot.standard = standard;
        slot.standard.by_default = true;
        slot.current = &slot.standard;
    }
    return &slot;
}

Result set_access(Driver& d, Pool& pool, const AccessDescription& one) {
    if (one.location.type != on_device || !d.valid(one.location.id)) return result::invalid_device;
    if (one.flags != 0 && one.flags != 1 && one.flags != 3) return result::invalid_value;
    const int device = one.location.id;
    // A device keeps access to its own pool.
    if (device == pool.device) return one.flags == 3 ? result::ok : result::invalid_device;
    if (pool.device >= 0) {
        const auto* way = d.machine.peer(device, pool.device);
        if (!way || !way->access) return result::invalid_device;
    }
    if (one.flags == 0) {
        pool.devices.erase(device);
    } else {
        pool.devices[device] = one.flags;
    }
    return result::ok;
}

// Body: Result(Driver&), called with a valid pool and the driver's mutex held.
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

// Body: Result(Driver&), called with the driver's mutex held, if the machine supports pools at the location.
template <class Body>
Result call_for_location(CallId id, const Location* location, int allocation_type, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        if (!location) return result::invalid_value;
        if (const Result code = check_place(d, allocation_type, *location)) return code;
        const std::lock_guard lock(d.mutex);
        return body(d);
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
        if (!d.valid(device)) return result::invalid_device;
        if (pool->device != device || pool->allocation_type != pinned_type || pool->imported) {
            return result::invalid_value;
        }
        state_of(d, device).pool = pool;
        return result::ok;
    });
}

Result cuMemGetDefaultMemPool(Pool** pool, Location* location, int allocation_type) {
    return call_for_location(CallId::cuMemGetDefaultMemPool, location, allocation_type, [&](Driver& d) -> Result {
        if (!pool) return result::invalid_value;
        PoolSlot* const slot = slot_of(d, allocation_type, *location);
        *pool = slot ? &slot->standard : &state_of(d, location->id).default_pool;
        return result::ok;
    });
}

Result cuMemGetMemPool(Pool** pool, Location* location, int allocation_type) {
    return call_for_location(CallId::cuMemGetMemPool, location, allocation_type, [&](Driver& d) -> Result {
        if (!pool) return result::invalid_value;
        PoolSlot* const slot = slot_of(d, allocation_type, *location);
        *pool = slot ? slot->current : state_of(d, location->id).pool;
        return result::ok;
    });
}

Result cuMemSetMemPool(Location* location, int allocation_type, Pool* pool) {
    return call_for_location(CallId::cuMemSetMemPool, location, allocation_type, [&](Driver& d) -> Result {
        const Pool like = pool_at(allocation_type, *location);
        if (!known(d, pool) || pool->allocation_type != allocation_type || pool->location.type != like.location.type ||
            pool->location.id != like.location.id) {
            return result::invalid_value;
        }
        PoolSlot* const slot = slot_of(d, allocation_type, *location);
        (slot ? slot->current : state_of(d, location->id).pool) = pool;
        return result::ok;
    });
}

Result cuMemPoolCreate(Pool** pool, const PoolProperties* properties) {
    return call(CallId::cuMemPoolCreate, [&](Driver& d) { return create_pool(d, pool, properties); });
}

Result cuMemPoolDestroy(Pool* pool) {
    return call_for_pool(CallId::cuMemPoolDestroy, pool, [&](Driver& d) -> Result {
        if (pool->by_default) return result::invalid_value;
        retire(d, pool);
        return result::ok;
    });
}

Result cuMemPoolTrimTo(Pool* pool, std::size_t keep_bytes) {
    return call_for_pool(CallId::cuMemPoolTrimTo, pool, [&](Driver& d) -> Result {
        trim(d, *pool, keep_bytes);
        return result::ok;
    });
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
            if (const Result code = set_access(d, *pool, descriptions[i])) return code;
        }
        return result::ok;
    });
}

Result cuMemPoolGetAccess(int* flags, Pool* pool, Location* location) {
    return call_for_pool(CallId::cuMemPoolGetAccess, pool, [&](Driver& d) -> Result {
        if (!flags || !location) return result::invalid_value;
        if (location->type == on_host || location->type == on_node) {  // the CPU's access: assumed
            *flags = pool->device < 0 || pool->allocation_type == managed_type ? 3 : 0;
            return result::ok;
        }
        if (location->type != on_device || !d.valid(location->id)) return result::invalid_value;
        *flags = pool->access(location->id);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
