// SPDX-License-Identifier: Apache-2.0
// Creates regions with their mappings and their share of a device's memory.
#include "allocate.hpp"

#include "pools.hpp"
#include "written_bytes.hpp"

#include <unistd.h>

namespace isthmus::sim {
namespace {

// Observed (580, H100): whole chunks, which allocations of less share in their context. Assumed for other machines.
std::uint64_t whole_chunks(std::uint64_t bytes) {
    return (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
}

// Reserves another address for memory that the CPU accesses at region.host; keeps the offset within a page.
bool reserve_alias(Driver& d, Region& region, std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t offset = reinterpret_cast<Address>(region.host) % page;
    region.alias_start = d.protection.reserve(bytes + offset, region.alias_bytes);
    if (!region.alias_start) return false;
    region.base = reinterpret_cast<Address>(region.alias_start) + offset;
    return true;
}

std::uint64_t pinned_bytes_of(const Region& region) {
    const bool registered = region.kind == Kind::registered && (region.flags & register_io_memory) == 0;
    return registered || region.kind == Kind::pinned ? region.bytes : 0;
}

}  // namespace

bool host_has_room(const Driver& d, std::uint64_t bytes) {
    std::uint64_t host_bytes = 0;
    for (const NumaNode& node : d.machine.record().facts.numa_nodes) {
        if (node.cpu_count > 0) host_bytes += node.memory_bytes;
    }
    return host_bytes == 0 || (bytes <= host_bytes && d.pinned_bytes <= host_bytes - bytes);
}

bool has_room(const Driver& d, int device, std::size_t bytes) {
    const DeviceState& state = d.devices[static_cast<std::size_t>(device)];
    return bytes < absurd_bytes && bytes <= state.total_bytes && state.used_bytes <= state.total_bytes - bytes;
}

Region* map_region(Driver& d, Kind kind, int device, Context* context, std::size_t bytes) {
    if (bytes >= absurd_bytes) return nullptr;
    Region region;
    region.host = d.protection.map(bytes, region.mapped_bytes);
    if (!region.host) return nullptr;
    region.kind = kind;
    region.base = reinterpret_cast<Address>(region.host);
    region.bytes = bytes;
    region.device = device;
    region.context = context;
    const bool is_recorded = kind == Kind::device || kind == Kind::pool || kind == Kind::array || kind == Kind::heap;
    if (is_recorded) written_bytes::begin(region.host, bytes);
    return d.regions.add(region);
}

void close_to_host(Driver& d, Region* region) {
    if (region->device < 0 || d.machine.device(region->device).host_reads_device_memory) return;
    region->closed = true;
    d.protection.close(region->host, region->mapped_bytes, region->device, Why::device_memory);
}

Region* allocate_device_memory(Driver& d, int device, Context* context, std::size_t bytes) {
    DeviceState& state = d.devices[static_cast<std::size_t>(device)];
    if (bytes >= absurd_bytes) return nullptr;
    std::optional<Chunks::Place> place;
    if (bytes < chunk_bytes) place = state.chunks.find(context, bytes);
    const std::uint64_t taken = place ? 0 : whole_chunks(bytes);
    if (!has_room(d, device, taken)) return nullptr;
    Region* region = map_region(d, Kind::device, device, context, bytes);
    if (!region) return nullptr;
    close_to_host(d, region);
    if (bytes < chunk_bytes) state.chunks.take(region->id, context, bytes, place);
    state.used_bytes += taken;
    return region;
}

Region* allocate_managed(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags) {
    // May exceed the GPU's memory: pages migrate.
    Region* region = map_region(d, Kind::managed, device, context, bytes);
    if (!region) return nullptr;
    region->flags = flags;
    region->attachment = flags;
    return region;
}

Region* allocate_pinned(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags) {
    if (bytes >= absurd_bytes || !host_has_room(d, bytes)) return nullptr;
    Region region;
    region.host = d.protection.map(bytes, region.mapped_bytes, Protection::InChild::copied);
    if (!region.host) return nullptr;
    region.kind = Kind::pinned;
    region.base = reinterpret_cast<Address>(region.host);
    // Documented: the device address of write-combined memory must be queried, so the simulator makes it differ.
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
    d.pinned_bytes += bytes;
    return d.regions.add(region);
}

Region* add_registered(Driver& d, int device, Context* context, void* host, std::size_t bytes, unsigned flags) {
    Region region;
    region.kind = Kind::registered;
    region.bytes = bytes;
    region.flags = flags;
    if (!host_has_room(d, pinned_bytes_of(region))) return nullptr;
    region.host = host;
    region.base = reinterpret_cast<Address>(host);
    // One visible device that cannot use host pointers makes device addresses differ for all (PLATFORMS §1).
    bool differs = false;
    for (int any = 0; d.valid(any); ++any)
        differs = differs || d.fact(any, attribute::host_pointer_for_registered) == 0;
    if (differs && !reserve_alias(d, region, bytes)) return nullptr;
    region.device = device;
    region.context = context;
    d.pinned_bytes += pinned_bytes_of(region);
    return d.regions.add(region);
}

void release_region(Driver& d, Region* region) {
    const bool is_device_memory = region->kind == Kind::device && !region->foreign && !region->external;
    if (is_device_memory) {
        DeviceState& state = d.devices[static_cast<std::size_t>(region->device)];
        const bool ends = region->bytes >= chunk_bytes || state.chunks.give_back(region->id);
        if (ends) state.used_bytes -= whole_chunks(region->bytes);
    } else if (region->kind == Kind::array || region->kind == Kind::heap) {
        d.devices[static_cast<std::size_t>(region->device)].used_bytes -= region->bytes;
    }
    d.pinned_bytes -= pinned_bytes_of(*region);
    if (region->pool) give_back(d, *region);
    if (region->alias_start) d.protection.unmap(region->alias_start, region->alias_bytes);
    void* const host = region->host;
    written_bytes::end(host);
    const std::size_t mapped_bytes = region->mapped_bytes;
    if (region->file >= 0) ::close(region->file);
    d.regions.remove(region);
    if (mapped_bytes > 0) d.protection.unmap(host, mapped_bytes);
}

}  // namespace isthmus::sim
