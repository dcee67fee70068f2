// SPDX-License-Identifier: Apache-2.0
// Access decisions of the simulated GPU, from provenance and attribute values.
#include "access.hpp"

#include <cstdio>

namespace isthmus::sim {
namespace {

GpuAccess refuse(std::string reason) {
    return {false, nullptr, std::move(reason)};
}

bool concurrent(const Driver& d, int device) {
    return !d.devices[static_cast<std::size_t>(device)].limits.phase_guarded;
}

std::string check_owner(const Driver& d, const GpuAgent& agent, const Region& region, bool writes) {
    if (region.kind == Kind::managed) {
        if (concurrent(d, agent.device)) return {};
        if (region.attachment == 2) {
            return "the memory is attached to the host, and CONCURRENT_MANAGED_ACCESS is 0: attach it to the stream";
        }
        if (region.attachment == 4 && region.attached_to != agent.stream) {
            return "the memory is attached to another stream, and CONCURRENT_MANAGED_ACCESS is 0";
        }
        return {};
    }
    if (region.kind == Kind::pinned || region.kind == Kind::registered) return {};
    return check_reach(region, agent, writes);
}

}  // namespace

std::string check_reach(const Region& region, const GpuAgent& agent, bool writes) {
    if (region.kind == Kind::mapping) {
        const auto found = region.device_access.find(agent.device);
        const int access = found == region.device_access.end() ? 0 : found->second;
        if (access == 3 || (access == 1 && !writes)) return {};
        return access == 1 ? "this device may only read it (cuMemSetAccess)"
                           : "it is mapped without access for this device (cuMemSetAccess)";
    }
    const bool of_a_device = region.kind == Kind::device || region.kind == Kind::pool || region.kind == Kind::graph;
    if (!of_a_device) return {};
    if (region.pool) {
        const int access = region.pool->access(agent.device);
        if (access == 3 || (access == 1 && !writes)) return {};
        return access == 1 ? "its pool lets this device read only (cuMemPoolSetAccess)"
                           : "its pool gives this device no access (cuMemPoolSetAccess)";
    }
    if (region.device == agent.device) return {};
    return agent.context && agent.context->peers.count(region.device) != 0
               ? std::string()
               : "it belongs to another device, and peer access is not enabled (cuCtxEnablePeerAccess)";
}

GpuAccess check_gpu_access(const Driver& d, const GpuAgent& agent, Address address, std::size_t bytes, bool writes) {
    if (bytes == 0) return {true, reinterpret_cast<void*>(address), {}};
    const Found found = d.regions.find(address);
    const bool pageable = d.fact(agent.device, attribute::pageable) != 0;
    if (!found || (found.by_host_name && pageable)) {
        if (address == 0) return refuse("it is null");
        if (pageable) return {true, reinterpret_cast<void*>(address), {}};
        return refuse(
            "the driver does not know this memory, and PAGEABLE_MEMORY_ACCESS is 0: allocate it as pinned or "
            "managed memory, register it, or copy it");
    }
    const Region& region = *found.region;
    if (region.kind == Kind::mapping) {  // the range may continue in the next mapping
        std::string reason = check_mappings(d, agent.device, address, bytes, writes);
        if (!reason.empty()) return refuse(std::move(reason));
        if (const char* const outside = check_blocks(d, address, bytes)) return refuse(outside);
        return {true, found.pointer(), {}};
    }
    if (found.by_host_name) {
        return refuse("the GPU has another address for it: ask cuMemHostGetDevicePointer");
    }
    if (region.absent) return refuse("its graph has not allocated it yet, or it was freed");
    if (region.is_released(found.offset_bytes))
        return refuse("it was released, and its program keeps it for a later allocation");
    if (bytes > region.usable_bytes(found.offset_bytes)) return refuse("it leaves its allocation");
    if (writes && region.kind == Kind::registered && (region.flags & 8) != 0) {
        return refuse("it was registered as read-only");
    }
    std::string owner = check_owner(d, agent, region, writes);
    if (!owner.empty()) return refuse(std::move(owner));
    return {true, found.pointer(), {}};
}

CopySide check_copy_side(const Driver& d, int device, Address address, std::size_t bytes, bool device_address) {
    CopySide side;
    const Found found = d.regions.find(address);
    if (!found) {
        const bool lawful = address != 0 && (!device_address || d.fact(device, attribute::pageable) != 0);
        if (!lawful) side.code = result::invalid_value;
        side.pointer = reinterpret_cast<void*>(address);
        side.pageable = true;
        return side;
    }
    if (found.region->kind == Kind::mapping) {
        bool gapless = false;
        mappings_of(d, address, bytes, gapless);
        if (!gapless || check_blocks(d, address, bytes) != nullptr) side.code = result::invalid_value;
    } else if (found.region->freed || bytes > found.region->usable_bytes_next(found.offset_bytes)) {
        side.code = result::invalid_value;
    }
    side.pointer = found.pointer();
    side.region = found.region;
    return side;
}

void update_managed_access(Driver& d) {
    if (!d.phase_guarded) return;
    const int devices = static_cast<int>(d.devices.size());
    const std::lock_guard lock(d.mutex);
    int busy = -1;  // a phase-guarded device with work whose end the host has not observed
    for (int device = 0; device < devices && busy < 0; ++device) {
        if (!concurrent(d, device) && d.engine().has_unobserved_work(device)) busy = device;
    }
    for (Region* region : d.regions.all()) {
        if (region->kind != Kind::managed || region->lent_bytes == 0) continue;
        bool close = region->attachment == 1 && busy >= 0;
        if (region->attachment == 4) close = d.engine().has_unobserved_work(region->attached_to);
        if (close == region->closed) continue;
        region->closed = close;
        if (close) {
            d.protection.close(region->host, region->mapped_bytes, busy >= 0 ? busy : region->device,
                               Why::device_work_unfinished);
        } else {
            d.protection.open(region->host, region->mapped_bytes);
        }
    }
}

}  // namespace isthmus::sim
