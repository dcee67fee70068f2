// Regions with their mappings and their share of a device's memory.
#include "allocate.hpp"

#include <unistd.h>

namespace isthmus::sim {
namespace {

// Half of the address space and more is refused before anything is tried.
constexpr std::size_t absurd_bytes = std::size_t{1} << 46;

bool has_room(const Driver& d, int device, std::size_t bytes) {
    const std::uint64_t total = d.machine.device(device).facts.total_memory_bytes;
    const std::uint64_t used = d.devices[static_cast<std::size_t>(device)].used_bytes;
    return bytes < absurd_bytes && bytes <= total && used <= total - bytes;
}

// Another address for memory that the CPU knows by region.host; the offset within a page is kept.
bool reserve_alias(Driver& d, Region& region, std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t offset = reinterpret_cast<Address>(region.host) % page;
    region.alias_start = d.protection.reserve(bytes + offset, region.alias_bytes);
    if (!region.alias_start) return false;
    region.base = reinterpret_cast<Address>(region.alias_start) + offset;
    return true;
}

bool counts(Kind kind) {
    return kind == Kind::device || kind == Kind::pool || kind == Kind::graph;
}

}  // namespace

Region* allocate_device_memory(Driver& d, Kind kind, int device, Context* context, std::size_t bytes, Pool* pool) {
    if (!has_room(d, device, bytes)) return nullptr;
    Region region;
    region.host = d.protection.map(bytes, region.mapped_bytes);
    if (!region.host) return nullptr;
    region.kind = kind;
    region.base = reinterpret_cast<Address>(region.host);
    region.bytes = bytes;
    region.device = device;
    region.context = context;
    region.pool = pool;
    if (!d.machine.device(device).host_reads_device_memory) {
        region.closed = true;
        d.protection.close(region.host, region.mapped_bytes, device, Why::device_memory);
    }
    d.devices[static_cast<std::size_t>(device)].used_bytes += bytes;
    if (pool) {
        pool->used_bytes += bytes;
        if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
    }
    return d.regions.add(region);
}

Region* allocate_managed(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags) {
    if (bytes >= absurd_bytes) return nullptr;  // more than the GPU has is lawful: pages move
    Region region;
    region.host = d.protection.map(bytes, region.mapped_bytes);
    if (!region.host) return nullptr;
    region.kind = Kind::managed;
    region.base = reinterpret_cast<Address>(region.host);
    region.bytes = bytes;
    region.device = device;
    region.context = context;
    region.flags = flags;
    region.attachment = flags;
    return d.regions.add(region);
}

Region* allocate_pinned(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags) {
    if (bytes >= absurd_bytes) return nullptr;
    Region region;
    region.host = d.protection.map(bytes, region.mapped_bytes);
    if (!region.host) return nullptr;
    region.kind = Kind::pinned;
    region.base = reinterpret_cast<Address>(region.host);
    // Documented: write-combined memory's device address is to be asked for, so here it is another one.
    constexpr unsigned write_combined = 4;
    if ((flags & write_combined) != 0) {
        if (!reserve_alias(d, region, bytes)) {
            d.protection.unmap(region.host, region.mapped_bytes);
            return nullptr;
        }
    }
    region.bytes = bytes;
    region.device = device;
    region.context = context;
    region.flags = flags;
    return d.regions.add(region);
}

Region* add_registered(Driver& d, int device, Context* context, void* host, std::size_t bytes, unsigned flags) {
    Region region;
    region.kind = Kind::registered;
    region.host = host;
    region.base = reinterpret_cast<Address>(host);
    // One visible device that cannot use host pointers makes them differ for all (PLATFORMS §1).
    bool differs = false;
    for (int any = 0; d.valid(any); ++any)
        differs = differs || d.fact(any, attribute::host_pointer_for_registered) == 0;
    if (differs && !reserve_alias(d, region, bytes)) return nullptr;
    region.bytes = bytes;
    region.device = device;
    region.context = context;
    region.flags = flags;
    return d.regions.add(region);
}

void release_region(Driver& d, Region* region) {
    if (counts(region->kind)) d.devices[static_cast<std::size_t>(region->device)].used_bytes -= region->bytes;
    if (region->pool) region->pool->used_bytes -= region->bytes;
    if (region->alias_start) d.protection.unmap(region->alias_start, region->alias_bytes);
    void* const host = region->host;
    const std::size_t mapped_bytes = region->mapped_bytes;
    d.regions.remove(region);
    if (mapped_bytes > 0) d.protection.unmap(host, mapped_bytes);
}

}  // namespace isthmus::sim
