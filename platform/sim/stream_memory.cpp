// SPDX-License-Identifier: Apache-2.0
// Allocation and free in stream order, outside and inside captures.
#include "allocate.hpp"
#include "call.hpp"
#include "graph_memory.hpp"
#include "pools.hpp"

namespace isthmus::sim {
namespace {

Result allocate_async(Driver& d, Address* address, std::size_t bytes, Pool* pool, bool current_pool, Stream* handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (!address) return result::invalid_value;
    if (d.fact(stream.device, attribute::memory_pools) == 0) return result::not_supported;
    *address = 0;
    if (bytes == 0) return result::ok;
    const bool captured = d.engine().capture_info(stream.id).state == engine::CaptureState::active;
    Region* region = nullptr;
    {
        const std::lock_guard lock(d.mutex);
        if (current_pool) pool = d.devices[static_cast<std::size_t>(stream.device)].pool;
        if (!known(d, pool) || pool->imported) return result::invalid_value;  // documented: no new allocations
        region = allocate_from(d, *pool, stream.device, stream.context, bytes, captured);
        if (!region) return result::out_of_memory;
        *address = region->base;
    }
    engine::Operation operation;
    if (captured) {
        operation = allocation_node(d, region);
    } else {
        operation.kind = engine::Kind::allocate;
        operation.label = "cuMemAllocAsync";
    }
    const Result code = d.engine().submit(stream.id, std::move(operation));
    if (code != 0) {
        *address = 0;
        if (captured) return code;  // the node is destroyed, and its memory with it
        const std::lock_guard lock(d.mutex);
        release_region(d, region);
    }
    return code;
}

// Marks the memory as freed in the program's order; the pages are released in the stream's order.
Result claim(Driver& d, Address address, bool capturing, Region*& region) {
    const std::lock_guard lock(d.mutex);
    const Found found = d.regions.find(address);
    if (!found || found.offset_bytes != 0 || found.region->freed) return result::invalid_value;
    region = found.region;
    if (capturing) return claim_for_node(*region);
    if (region->of_graph) return claim_from_graph(*region);
    if (region->kind == Kind::managed && !region->pool) return result::not_supported;  // observed
    if (!region->pool && region->kind != Kind::device) return result::invalid_value;
    region->freed = true;
    return result::ok;
}

Result free_async(Driver& d, Address address, Stream* handle) {
    if (handle > reinterpret_cast<Stream*>(2)) {
        const std::lock_guard lock(d.mutex);
        if (d.streams.was_alive(handle) && !d.streams.lost(handle))
            die_like_the_driver("cuMemFreeAsync on a destroyed stream");
    }
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (address == 0) return result::ok;
    const bool capturing = d.engine().capture_info(stream.id).state == engine::CaptureState::active;
    Region* region = nullptr;
    if (const Result code = claim(d, address, capturing, region)) return code;
    if (capturing) return d.engine().submit(stream.id, free_node(d, region->id));
    engine::Operation operation;
    operation.kind = engine::Kind::free;
    operation.label = "cuMemFreeAsync";
    operation.body = [&d, id = region->id] {
        const std::lock_guard lock(d.mutex);
        Region* const freed = d.regions.find_id(id);
        if (!freed) return 0;
        if (freed->of_graph) {
            leave_graph_memory(d, freed);
        } else {
            release_region(d, freed);
        }
        return 0;
    };
    return d.engine().submit(stream.id, std::move(operation));
}

}  // namespace

extern "C" {

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
}

}  // namespace isthmus::sim
