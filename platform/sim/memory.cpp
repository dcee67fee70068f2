// SPDX-License-Identifier: Apache-2.0
// Device, managed and pinned memory, and registered host memory.
#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "graph_memory.hpp"
#include "pools.hpp"

#include <algorithm>
#include <cstdio>

namespace isthmus::sim {

Result wait_and_release(Driver& d, Region* region, int device) {
    const Result lost = d.engine().synchronize_device(region->device >= 0 ? region->device : device);
    update_managed_access(d);
    {
        const std::lock_guard lock(d.mutex);
        if (region->of_graph) {
            leave_graph_memory(d, region);
        } else {
            release_region(d, region);
        }
    }
    release_idle_reserves(d);
    return lost;
}

namespace {

constexpr unsigned attach_global = 1, attach_host = 2, attach_single = 4;

enum class Pages { missing, readable, writable };

// The program's own access rights to its pages, from the kernel.
Pages pages_of(const void* pointer, std::size_t bytes) {
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return Pages::writable;
    const Address end = reinterpret_cast<Address>(pointer) + bytes;
    Address covered = reinterpret_cast<Address>(pointer);
    Pages pages = Pages::writable;
    char line[512];
    while (covered < end && std::fgets(line, sizeof(line), maps)) {
        Address from = 0, to = 0;
        char access[5] = {};
        if (std::sscanf(line, "%llx-%llx %4s", &from, &to, access) != 3) continue;
        if (to <= covered || from > covered) continue;
        if (access[0] != 'r') break;
        if (access[1] != 'w') pages = Pages::readable;
        covered = to;
    }
    std::fclose(maps);
    return covered >= end ? pages : Pages::missing;
}

// Marks the region as freed, so that a second free finds an unknown address.
Result claim(Driver& d, Address address, bool (*fits)(const Region&), Region*& region) {
    const std::lock_guard lock(d.mutex);
    const Found found = d.regions.find(address);
    if (!found || found.offset_bytes != 0 || found.region->freed || !fits(*found.region)) return result::invalid_value;
    if (found.region->of_graph) {
        if (const Result code = claim_from_graph(*found.region)) return code;
    }
    found.region->freed = true;
    region = found.region;
    return result::ok;
}

Result allocate_host(Driver& d, Context& context, void** pointer, std::size_t bytes, unsigned flags) {
    if (!pointer || flags > 7) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;
    *pointer = nullptr;
    if (bytes == 0) return result::ok;  // observed; other allocations refuse it
    const std::lock_guard lock(d.mutex);
    const Region* region = allocate_pinned(d, context.device, &context, bytes, flags);
    if (!region) return result::out_of_memory;
    *pointer = region->host;
    return result::ok;
}

Result register_host(Driver& d, Context& context, void* pointer, std::size_t bytes, unsigned flags) {
    if (!pointer || bytes == 0 || flags > 15) return result::invalid_value;
    // Observed (580, H100). For 2^62 bytes a driver answers 801, for 2^46 bytes 2; here both are 1.
    if (reinterpret_cast<std::uintptr_t>(pointer) > UINTPTR_MAX - bytes) return result::invalid_value;
    if (d.fact(context.device, attribute::host_register) == 0) return result::not_supported;
    if ((flags & register_read_only) != 0 && d.fact(context.device, attribute::read_only_register) == 0) {
        return result::not_supported;
    }
    if (const Result code = d.engine().unsafe_call()) return code;
    const std::lock_guard lock(d.mutex);
    const Address address = reinterpret_cast<Address>(pointer);
    if (d.regions.overlaps(address, bytes)) {
        const Found found = d.regions.find(address);
        const bool host = !found || found.region->kind == Kind::registered || found.region->kind == Kind::pinned;
        return host ? result::already_registered : result::invalid_value;
    }
    const Pages pages = pages_of(pointer, bytes);
    if (pages == Pages::missing && (flags & register_io_memory) == 0) return result::invalid_value;
    if (pages == Pages::readable && (flags & register_read_only) == 0) return result::invalid_value;
    return add_registered(d, context.device, &context, pointer, bytes, flags) ? result::ok : result::out_of_memory;
}

Result unregister_host(Driver& d, void* pointer) {
    if (!pointer) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;
    Region* region = nullptr;
    {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(reinterpret_cast<Address>(pointer));
        if (!found || found.region->freed) return result::not_registered;
        if (found.region->kind != Kind::registered || found.offset_bytes != 0) return result::invalid_value;
        region = found.region;
        region->freed = true;
    }
    return wait_and_release(d, region, region->device);
}

Result attach(Driver& d, Stream* handle, Address address, std::size_t bytes, unsigned flags) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (flags != attach_global && flags != attach_host && flags != attach_single) return result::invalid_value;
    if (flags == attach_single && stream.legacy) return result::invalid_value;
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found) return d.fact(stream.device, attribute::pageable) != 0 ? result::ok : result::invalid_value;
        const Region& region = *found.region;
        if (region.kind != Kind::managed || found.offset_bytes != 0 || region.freed) return result::invalid_value;
        if (bytes != 0 && bytes != region.bytes) return result::invalid_value;  // whole allocations only
        id = region.id;
    }
    if (d.engine().capture_info(stream.id).state != engine::CaptureState::none) {
        d.engine().invalidate_capture(stream.id);
        return result::capture_unsupported;
    }
    engine::Operation operation;
    operation.kind = engine::Kind::allocate;
    operation.label = "cuStreamAttachMemAsync";
    operation.body = [&d, address, id, flags, to = stream.id] {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.region->id != id) return 0;
        found.region->attachment = flags;
        found.region->attached_to = to;
        return 0;
    };
    const Result code = d.engine().submit(stream.id, std::move(operation));
    update_managed_access(d);
    return code;
}

}  // namespace

extern "C" {

Result cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
    return call_in_context(CallId::cuMemGetInfo_v2, [&](Driver& d, Context& context) -> Result {
        if (!free_bytes || !total_bytes) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        const DeviceState& state = d.devices[static_cast<std::size_t>(context.device)];
        *total_bytes = state.total_bytes;
        *free_bytes = state.total_bytes - std::min(state.total_bytes, state.used_bytes);
        return result::ok;
    });
}

Result cuMemAlloc_v2(Address* address, std::size_t bytes) {
    return call_in_context(CallId::cuMemAlloc_v2, [&](Driver& d, Context& context) -> Result {
        if (!address || bytes == 0) return result::invalid_value;
        if (const Result code = d.engine().unsafe_call()) return code;
        const std::lock_guard lock(d.mutex);
        const Region* region = allocate_device_memory(d, context.device, &context, bytes);
        if (!region) return result::out_of_memory;
        *address = region->base;
        return result::ok;
    });
}

Result cuMemFree_v2(Address address) {
    return call_in_context(CallId::cuMemFree_v2, [&](Driver& d, Context& context) -> Result {
        if (const Result code = d.engine().unsafe_call()) return code;
        if (address == 0) return result::ok;
        Region* region = nullptr;
        const auto fits = [](const Region& r) {
            return (r.kind == Kind::device && !r.foreign) || r.kind == Kind::managed || r.pool;
        };
        if (const Result code = claim(d, address, fits, region)) return code;
        return wait_and_release(d, region, context.device);
    });
}

Result cuMemGetAddressRange_v2(Address* base, std::size_t* bytes, Address address) {
    return call(CallId::cuMemGetAddressRange_v2, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found) return result::not_found;
        const int device = found.region->device;
        if (const Result lost = device >= 0 ? d.engine().device_code(device) : result::ok) return lost;  // observed
        if (base) *base = found.region->base;
        if (bytes) *bytes = found.region->bytes;
        return result::ok;
    });
}

Result cuMemAllocManaged(Address* address, std::size_t bytes, unsigned flags) {
    return call_in_context(CallId::cuMemAllocManaged, [&](Driver& d, Context& context) -> Result {
        if (!address || bytes == 0 || (flags != attach_global && flags != attach_host)) return result::invalid_value;
        if (d.fact(context.device, attribute::managed) == 0) return result::not_supported;
        if (const Result code = d.engine().unsafe_call()) return code;
        {
            const std::lock_guard lock(d.mutex);
            const Region* region = allocate_managed(d, context.device, &context, bytes, flags);
            if (!region) return result::out_of_memory;
            *address = region->base;
        }
        update_managed_access(d);
        return result::ok;
    });
}

Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    return call_in_context(CallId::cuMemHostAlloc, [&](Driver& d, Context& context) {
        return allocate_host(d, context, pointer, bytes, flags);
    });
}

Result cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
    return call_in_context(CallId::cuMemAllocHost_v2,
                           [&](Driver& d, Context& context) { return allocate_host(d, context, pointer, bytes, 0); });
}

Result cuMemFreeHost(void* pointer) {
    return call_in_context(CallId::cuMemFreeHost, [&](Driver& d, Context&) -> Result {
        if (const Result code = d.engine().unsafe_call()) return code;
        if (!pointer) return result::ok;
        Region* region = nullptr;
        const auto fits = [](const Region& r) { return r.kind == Kind::pinned; };
        if (const Result code = claim(d, reinterpret_cast<Address>(pointer), fits, region)) return code;
        return wait_and_release(d, region, region->device);
    });
}

Result cuMemHostGetDevicePointer_v2(Address* address, void* pointer, unsigned flags) {
    return call_in_context(CallId::cuMemHostGetDevicePointer_v2, [&](Driver& d, Context&) -> Result {
        if (!address || !pointer || flags != 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(reinterpret_cast<Address>(pointer));
        if (!found || (found.region->kind != Kind::pinned && found.region->kind != Kind::registered)) {
            return result::invalid_value;
        }
        *address = found.region->base + found.offset_bytes;
        return result::ok;
    });
}

Result cuMemHostGetFlags(unsigned* flags, void* pointer) {
    return call_in_context(CallId::cuMemHostGetFlags, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(reinterpret_cast<Address>(pointer));
        if (!flags || !found) return result::invalid_value;
        const Region& region = *found.region;
        constexpr unsigned portable_and_mapped = 3;  // the flags that registering and allocating share
        if (region.kind == Kind::pinned) {
            *flags = region.flags;
        } else if (region.kind == Kind::registered) {
            *flags = region.flags & portable_and_mapped;  // observed: the same answer as for pinned memory
        } else {
            return result::invalid_value;
        }
        return result::ok;
    });
}

Result cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
    return call_in_context(CallId::cuMemHostRegister_v2, [&](Driver& d, Context& context) {
        return register_host(d, context, pointer, bytes, flags);
    });
}

Result cuMemHostUnregister(void* pointer) {
    return call_in_context(CallId::cuMemHostUnregister,
                           [&](Driver& d, Context&) { return unregister_host(d, pointer); });
}

Result cuStreamAttachMemAsync(Stream* stream, Address address, std::size_t bytes, unsigned flags) {
    return call(CallId::cuStreamAttachMemAsync, [&](Driver& d) { return attach(d, stream, address, bytes, flags); });
}
}

}  // namespace isthmus::sim
