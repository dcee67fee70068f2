// SPDX-License-Identifier: Apache-2.0
// Accounting of pools: reserves, use, and returned memory.
#include "pools.hpp"

#include "allocate.hpp"
#include "ipc_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace isthmus::sim {
namespace {

std::uint64_t whole_steps(std::uint64_t bytes) {
    return (bytes + reserve_step_bytes - 1) / reserve_step_bytes * reserve_step_bytes;
}

void set_reserved(Driver& d, Pool& pool, std::uint64_t bytes) {
    if (takes_device_memory(pool)) {
        DeviceState& state = d.devices[static_cast<std::size_t>(pool.device)];
        state.used_bytes = state.used_bytes - pool.reserved_bytes + bytes;
    }
    pool.reserved_bytes = bytes;
    pool.reserved_high = std::max(pool.reserved_high, bytes);
}

bool reserve_for(Driver& d, Pool& pool, std::uint64_t bytes) {
    const std::uint64_t used = pool.used_bytes + bytes;
    if (pool.max_bytes != 0 && used > pool.max_bytes) return false;
    if (used > pool.reserved_bytes) {
        const std::uint64_t wanted = whole_steps(used);
        if (takes_device_memory(pool) && !has_room(d, pool.device, wanted - pool.reserved_bytes)) return false;
        set_reserved(d, pool, wanted);
    }
    pool.used_bytes = used;
    pool.used_high = std::max(pool.used_high, used);
    return true;
}

// Observed (580.159.04, H200): memory of a graph is taken by its launch. More than the device has is refused before.
bool fits_into_a_graph(const Driver& d, const Pool& pool, std::uint64_t bytes) {
    return !takes_device_memory(pool) || has_room(d, pool.device, bytes);
}

void forget_if_unused(Driver& d, const Pool* pool) {
    if (pool->regions > 0) return;
    d.retired_pools.remove_if([&](const Pool& retired) { return &retired == pool; });
}

}  // namespace

bool takes_device_memory(const Pool& pool) {
    return pool.device >= 0 && pool.allocation_type == 1;
}

bool known(const Driver& d, const Pool* pool) {
    for (const DeviceState& state : d.devices) {
        if (pool == &state.default_pool) return true;
    }
    for (const auto& [where, slot] : d.location_pools) {
        if (pool == &slot.standard) return true;
    }
    return d.pools.alive(pool);
}

Region* allocate_from(Driver& d, Pool& pool, int device, Context* context, std::size_t bytes, bool of_graph) {
    if (!(of_graph ? fits_into_a_graph(d, pool, bytes) : reserve_for(d, pool, bytes))) return nullptr;
    const bool managed = pool.allocation_type == 2;
    const Kind kind = managed ? Kind::managed : of_graph ? Kind::graph : Kind::pool;
    // Managed memory without a preferred device belongs to the device of the requesting stream (assumed).
    const int owner = managed && pool.device < 0 ? device : pool.device;
    // The CPU may write to host memory at any time, so it cannot move into a file later.
    const bool is_shared = pool.device < 0 && pool.handle_types != 0 && !managed && !of_graph;
    Region* region = is_shared ? map_shared_host_memory(d, pool.location, context, bytes)
                               : map_region(d, kind, owner, context, bytes);
    if (!region) {
        Region never;
        never.bytes = bytes;
        never.of_graph = of_graph;
        never.pool = &pool;
        ++pool.regions;
        give_back(d, never);
        return nullptr;
    }
    region->pool = &pool;
    region->of_graph = of_graph;
    region->absent = of_graph;
    if (!managed) close_to_host(d, region);
    ++pool.regions;
    return region;
}

void give_back(Driver& d, const Region& region) {
    Pool& pool = *region.pool;
    --pool.regions;
    if (!region.of_graph) pool.used_bytes -= region.bytes;
    if (known(d, &pool)) return;
    trim(d, pool, 0);
    forget_if_unused(d, &pool);
}

void trim(Driver& d, Pool& pool, std::uint64_t keep_bytes) {
    const std::uint64_t keep = std::max(whole_steps(pool.used_bytes), std::min(keep_bytes, pool.reserved_bytes));
    if (keep < pool.reserved_bytes) set_reserved(d, pool, std::min(pool.reserved_bytes, whole_steps(keep)));
}

void release_idle_reserves(Driver& d) {
    const std::lock_guard lock(d.mutex);
    for (Pool* pool : d.pools.all()) trim(d, *pool, pool->release_threshold);
    for (DeviceState& state : d.devices) trim(d, state.default_pool, state.default_pool.release_threshold);
    for (auto& [where, slot] : d.location_pools) trim(d, slot.standard, slot.standard.release_threshold);
}

void retire(Driver& d, Pool* pool) {
    for (DeviceState& state : d.devices) {
        if (state.pool == pool) state.pool = &state.default_pool;
    }
    for (auto& [where, slot] : d.location_pools) {
        if (slot.current == pool) slot.current = &slot.standard;
    }
    Pool& retired = d.retired_pools.emplace_back(*pool);
    for (Region* region : d.regions.all()) {
        if (region->pool == pool) region->pool = &retired;
    }
    d.pools.destroy(pool);
    if (retired.file >= 0) ::close(std::exchange(retired.file, -1));  // exported descriptors stay valid
    trim(d, retired, 0);
    forget_if_unused(d, &retired);
}

}  // namespace isthmus::sim
