// SPDX-License-Identifier: Apache-2.0
// Device memory of another process by the older API: memory of cuMemAlloc, named by 64 bytes.
#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "ipc_memory.hpp"
#include "memory_file.hpp"
#include "named_file.hpp"
#include "written_bytes.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr char memory_magic[8] = "simipcm";
constexpr unsigned lazy_peer_access = 1;
constexpr int on_device = 1;

void open_to_owner(Driver& d, const Region& region) {
    const bool host =
        region.kind == Kind::pinned || region.device < 0 || d.machine.device(region.device).host_reads_device_memory;
    d.protection.open_file(region.host, region.mapped_bytes, region.device, {host, region.device, true});
}

bool write_all(int file, const void* from, std::size_t bytes) {
    const auto* next = static_cast<const std::byte*>(from);
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t wrote =
            ::pwrite(file, next + done, bytes - done, static_cast<off_t>(memory_file_offset_bytes + done));
        if (wrote <= 0) return false;
        done += static_cast<std::size_t>(wrote);
    }
    return true;
}

// Moves private memory into a file, at the same address and with the same bytes. No GPU work may run.
Result give_a_file(Driver& d, Region& region) {
    MemoryFileHeader header;
    header.bytes = region.mapped_bytes;
    header.properties.location = {on_device, region.device};
    std::memcpy(&header.device, d.machine.device(region.device).facts.uuid.bytes.data(), sizeof(header.device));
    const int file = create_memory_file(header);
    if (file < 0) return result::out_of_memory;
    d.protection.gpu_work_begins(~std::uint64_t{0});  // opens device memory to this thread
    const bool copied = write_all(file, region.host, region.mapped_bytes);
    d.protection.gpu_work_ends();
    if (!copied || !d.protection.map_file(region.host, region.mapped_bytes, file, memory_file_offset_bytes)) {
        ::close(file);
        return result::out_of_memory;
    }
    open_to_owner(d, region);
    region.file = file;
    written_bytes::end(region.host);  // other processes write to it
    return result::ok;
}

}  // namespace

Result with_memory_file(Driver& d, Address address, bool (*fits)(const Region&),
                        const std::function<Result(Region&)>& use) {
    for (;;) {
        {
            const std::lock_guard lock(d.mutex);
            const Found found = d.regions.find(address);
            if (!found || found.region->freed || found.region->foreign || !fits(*found.region)) {
                return result::invalid_value;
            }
            Region& region = *found.region;
            // Work that begins from here on takes the driver's mutex before it accesses memory.
            // Pairs with the hook at the end of work.
            const bool idle = d.gpu_work.load(std::memory_order_acquire) == 0;
            if (region.file < 0 && idle) {
                if (const Result code = give_a_file(d, region)) return code;
            }
            if (region.file >= 0) return use(region);
        }
        for (int device = 0; d.valid(device); ++device) {
            if (const Result lost = d.engine().synchronize_device(device)) return lost;
        }
        update_managed_access(d);
    }
}

Result name_memory(Driver& d, Address address, bool (*fits)(const Region&), const char (&magic)[8],
                   ShareableBytes& handle) {
    return with_memory_file(d, address, fits, [&](Region& region) -> Result {
        MemoryFileHeader header;
        if (!read_memory_file(region.file, header)) return result::unknown;
        handle = name_file(magic, region.file, header.nonce);
        return result::ok;
    });
}

namespace {

Result get_handle(Driver& d, Context& context, ShareableBytes* handle, Address address) {
    if (!handle) return result::invalid_value;
    if (!d.machine.device(context.device).legacy_ipc_usable) return result::not_supported;
    if (const Result code = d.engine().unsafe_call()) return code;  // it may wait (assumed)
    // Any address within the allocation is accepted (observed).
    return name_memory(
        d, address, [](const Region& region) { return region.kind == Kind::device && !region.external; }, memory_magic,
        *handle);
}

// The region that this context has already opened under the same name; nullptr: none.
Region* find_opened(Driver& d, const Context& context, std::uint64_t nonce) {
    for (Region* region : d.regions.all()) {
        if (region->foreign && !region->freed && region->context == &context && region->nonce == nonce) return region;
    }
    return nullptr;
}

Region* add_mapped_file(Driver& d, Region region, int file, const MemoryFileHeader& header) {
    region.mapped_bytes = static_cast<std::size_t>(header.bytes);
    region.host = d.protection.reserve_aligned(region.mapped_bytes, granularity_bytes, nullptr);
    if (!region.host) return nullptr;
    if (!d.protection.map_file(region.host, region.mapped_bytes, file, memory_file_offset_bytes)) {
        d.protection.unmap(region.host, region.mapped_bytes);
        return nullptr;
    }
    region.base = reinterpret_cast<Address>(region.host);
    region.file = file;
    open_to_owner(d, region);
    return d.regions.add(region);
}

}  // namespace

Region* map_shared_host_memory(Driver& d, Location where, Context* context, std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    MemoryFileHeader header;
    header.bytes = (bytes + page - 1) / page * page;
    header.properties.location = where;
    const int file = create_memory_file(header);
    if (file < 0) return nullptr;
    Region region;
    region.kind = Kind::pool;
    region.device = -1;
    region.bytes = bytes;
    region.context = context;
    Region* const made = add_mapped_file(d, region, file, header);
    if (!made) ::close(file);
    return made;
}

int device_of(const Driver& d, const MemoryFileHeader& header) {
    for (int device = 0; d.valid(device); ++device) {
        const auto& uuid = d.machine.device(device).facts.uuid.bytes;
        if (std::memcmp(uuid.data(), &header.device, sizeof(header.device)) == 0) return device;
    }
    return -1;
}

int open_named_memory(const FileName& name, MemoryFileHeader& header) {
    const int file = open_named_file(name);
    if (file >= 0 && read_memory_file(file, header) && header.nonce == name.nonce) return file;
    if (file >= 0) ::close(file);
    return -1;
}

Region* map_named_memory(Driver& d, Kind kind, int device, Context* context, int file, const MemoryFileHeader& header) {
    Region region;
    region.kind = kind;
    region.bytes = static_cast<std::size_t>(header.bytes);
    region.device = device;
    region.context = context;
    region.foreign = true;
    region.opened = 1;
    region.nonce = header.nonce;
    return add_mapped_file(d, region, file, header);
}

namespace {

// Takes ownership of the file where it returns 0.
Result map_foreign(Driver& d, Context& context, int file, const MemoryFileHeader& header, Address& address) {
    const int device = device_of(d, header);
    if (device < 0) return result::invalid_handle;
    if (device != context.device) {
        const auto* way = d.machine.peer(context.device, device);
        if (!way || !way->access) return result::peer_unsupported;
    }
    Region* const region = map_named_memory(d, Kind::device, device, &context, file, header);
    if (!region) return result::out_of_memory;
    if (device != context.device) context.peers.insert(device);  // the effect of the flag
    address = region->base;
    return result::ok;
}

Result open_handle(Driver& d, Context& context, Address* address, const ShareableBytes& bytes, unsigned flags) {
    if (!address || flags != lazy_peer_access) return result::invalid_value;  // documented: the flag is mandatory
    if (!d.machine.device(context.device).legacy_ipc_usable) return result::not_supported;
    FileName name;
    if (!read_name(bytes, memory_magic, name)) return result::invalid_value;  // observed, as the checks below
    if (name.process == ::getpid()) return result::invalid_context;           // the handle is for other processes
    if (const Result code = d.engine().unsafe_call()) return code;
    const std::lock_guard lock(d.mutex);
    if (Region* const known = find_opened(d, context, name.nonce)) {
        ++known->opened;
        *address = known->base;
        return result::ok;
    }
    MemoryFileHeader header;
    const int file = open_named_memory(name, header);
    if (file < 0) return ::kill(name.process, 0) == 0 ? result::not_permitted : result::invalid_handle;
    const Result code = map_foreign(d, context, file, header, *address);
    if (code != result::ok) ::close(file);
    return code;
}

Result close_handle(Driver& d, Context& context, Address address) {
    if (const Result code = d.engine().unsafe_call()) return code;
    Region* region = nullptr;
    {
        const std::lock_guard lock(d.mutex);
        const Found found = d.regions.find(address);
        if (!found || found.offset_bytes != 0 || !found.region->foreign || found.region->freed) {
            return result::invalid_value;
        }
        region = found.region;
        if (--region->opened > 0) return result::ok;
        region->freed = true;
    }
    const Result lost = d.engine().synchronize_device(context.device);
    update_managed_access(d);
    const std::lock_guard lock(d.mutex);
    release_region(d, region);
    return lost;
}

}  // namespace

extern "C" {

Result cuIpcGetMemHandle(ShareableBytes* handle, Address address) {
    return call_in_context(CallId::cuIpcGetMemHandle,
                           [&](Driver& d, Context& context) { return get_handle(d, context, handle, address); });
}

Result cuIpcOpenMemHandle_v2(Address* address, ShareableBytes handle, unsigned flags) {
    return call_in_context(CallId::cuIpcOpenMemHandle_v2, [&](Driver& d, Context& context) {
        return open_handle(d, context, address, handle, flags);
    });
}

Result cuIpcCloseMemHandle(Address address) {
    return call_in_context(CallId::cuIpcCloseMemHandle,
                           [&](Driver& d, Context& context) { return close_handle(d, context, address); });
}
}

}  // namespace isthmus::sim
