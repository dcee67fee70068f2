// SPDX-License-Identifier: Apache-2.0
// Pools of another process: a descriptor stands for the pool, 64 bytes for an allocation of it.
#include "allocate.hpp"
#include "call.hpp"
#include "ipc_memory.hpp"
#include "memory_file.hpp"
#include "named_file.hpp"
#include "pools.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr char pointer_magic[8] = "simpool";
constexpr int posix_descriptor = 1, on_device = 1;

// Of a pool: its file has no data. An allocation of the pool is named with the pool's nonce behind its own.
struct PointerName {
    FileName file;
    std::uint64_t pool = 0;
};
static_assert(sizeof(PointerName) <= sizeof(ShareableBytes));

// Requires the driver's mutex.
Result give_a_nonce(Driver& d, Pool& pool) {
    if (pool.file >= 0) return result::ok;
    MemoryFileHeader header;
    header.bytes = 1;
    header.properties.location = pool.location;
    header.properties.handle_types = pool.handle_types;
    if (pool.device >= 0) {
        std::memcpy(&header.device, d.machine.device(pool.device).facts.uuid.bytes.data(), sizeof(header.device));
    }
    const int file = create_memory_file(header);
    if (file < 0) return result::out_of_memory;
    pool.file = file;
    pool.nonce = header.nonce;
    return result::ok;
}

Result export_pool(Driver& d, void* shareable, Pool* pool, int type, unsigned long long flags) {
    const std::lock_guard lock(d.mutex);
    if (!shareable || !known(d, pool) || pool->imported || flags != 0) return result::invalid_value;
    // Observed (580.159.04, H200): 1 for a pool without a handle type, and for one at the host.
    if (type != posix_descriptor || (pool->handle_types & type) == 0) return result::invalid_value;
    if (const Result code = give_a_nonce(d, *pool)) return code;
    const int copy = duplicate_file(pool->file);
    if (copy < 0) return result::out_of_memory;
    std::memcpy(shareable, &copy, sizeof(copy));
    return result::ok;
}

Result import_pool(Driver& d, Pool** pool, void* shareable, int type, unsigned long long flags) {
    if (!pool || type != posix_descriptor || flags != 0) return result::invalid_value;
    const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    MemoryFileHeader header;
    // Another file than a pool's (assumed: as for other handles).
    if (!read_memory_file(file, header) || header.bytes != 1) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    const bool in_device = header.properties.location.type == on_device;
    const int device = in_device ? device_of(d, header) : -1;
    if (in_device && device < 0) return result::invalid_device;
    Pool* const made = d.pools.create();
    made->location = in_device ? Location{on_device, device} : header.properties.location;
    made->device = device;
    made->handle_types = header.properties.handle_types;
    made->imported = true;
    made->nonce = header.nonce;
    *pool = made;
    return result::ok;
}

bool is_shared_pool_memory(const Region& region) {
    return region.kind == Kind::pool && region.pool && !region.of_graph &&
           (region.pool->handle_types & posix_descriptor) != 0;
}

Result export_pointer(Driver& d, ShareableBytes* out, Address address) {
    if (!out) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;  // it may wait (assumed)
    ShareableBytes named = {};
    if (const Result code = name_memory(d, address, is_shared_pool_memory, pointer_magic, named)) return code;
    PointerName name;
    std::memcpy(&name.file, named.bytes, sizeof(name.file));
    const std::lock_guard lock(d.mutex);
    const Found found = d.regions.find(address);
    if (!found || !found.region->pool) return result::invalid_value;
    if (const Result code = give_a_nonce(d, *found.region->pool)) return code;
    name.pool = found.region->pool->nonce;
    *out = {};
    std::memcpy(out->bytes, &name, sizeof(name));
    return result::ok;
}

Result import_pointer(Driver& d, Context* context, Address* address, Pool* pool, const ShareableBytes* bytes) {
    const std::lock_guard lock(d.mutex);
    if (!address || !bytes || !known(d, pool) || !pool->imported) return result::invalid_value;
    PointerName name;
    std::memcpy(&name, bytes->bytes, sizeof(name));
    FileName file_name;
    if (!read_name(*bytes, pointer_magic, file_name) || name.pool != pool->nonce) return result::invalid_value;
    MemoryFileHeader header;
    const int file = open_named_memory(file_name, header);
    if (file < 0) return ::kill(file_name.process, 0) == 0 ? result::not_permitted : result::invalid_handle;
    const int device = std::max(0, pool->device);  // whose context the region has: memory of a NUMA node is no device's
    Context* const owner = context ? context : &d.devices[static_cast<std::size_t>(device)].primary;
    Region* const region = map_named_memory(d, Kind::pool, pool->device, owner, file, header);
    if (!region) {
        ::close(file);
        return result::out_of_memory;
    }
    region->pool = pool;
    ++pool->regions;
    pool->used_bytes += region->bytes;  // of this process; the memory itself is the exporter's
    *address = region->base;
    return result::ok;
}

}  // namespace

extern "C" {

Result cuMemPoolExportToShareableHandle(void* shareable, Pool* pool, int type, unsigned long long flags) {
    return call(CallId::cuMemPoolExportToShareableHandle,
                [&](Driver& d) { return export_pool(d, shareable, pool, type, flags); });
}

Result cuMemPoolImportFromShareableHandle(Pool** pool, void* shareable, int type, unsigned long long flags) {
    return call(CallId::cuMemPoolImportFromShareableHandle,
                [&](Driver& d) { return import_pool(d, pool, shareable, type, flags); });
}

Result cuMemPoolExportPointer(ShareableBytes* data, Address address) {
    return call(CallId::cuMemPoolExportPointer, [&](Driver& d) { return export_pointer(d, data, address); });
}

Result cuMemPoolImportPointer(Address* address, Pool* pool, ShareableBytes* data) {
    return call(CallId::cuMemPoolImportPointer,
                [&](Driver& d) { return import_pointer(d, current_context(d), address, pool, data); });
}
}

}  // namespace isthmus::sim
