// SPDX-License-Identifier: Apache-2.0
// Memory that leaves the driver as a dma-buf, and dma-bufs of others in a device's address space. A process cannot make
// a dma-buf without help of the kernel, so an exported one is a memory file, and memory files are imported like
// dma-bufs.
#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "ipc_memory.hpp"
#include "memory_file.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int dma_buf_fd = 1;           // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
constexpr int external_dma_buf_fd = 9;  // CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD
constexpr long dma_buf_magic = 0x444d4142;

std::uint64_t page_bytes() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The attribute that decides whether memory of this kind can be exported; 0: none does. Observed on a discrete GPU (124
// is 1, 146 is 0): device memory of cuMemAlloc and of cuMemCreate is exported, pinned, registered, managed and mapped
// host memory answer 1, a mapping through the PCIe BAR 801.
int deciding_attribute(const Region& region) {
    switch (region.kind) {
        case Kind::device: return region.foreign || region.external ? 0 : attribute::dma_buf;
        case Kind::mapping: return region.device >= 0 ? attribute::dma_buf : 0;
        case Kind::pinned: return region.aliased() ? 0 : attribute::host_alloc_dma_buf;
        default: return 0;
    }
}

// 0, or why this range is none that can be exported; `file` gets the memory file of mapped memory.
Result judge_range(Driver& d, Address address, std::size_t bytes, int& file) {
    const std::lock_guard lock(d.mutex);
    const Found found = d.regions.find(address);
    if (!found || found.region->freed || bytes > found.region->bytes - found.offset_bytes) return result::invalid_value;
    const Region& region = *found.region;
    const int attribute = deciding_attribute(region);
    if (attribute == 0 || d.fact(std::max(region.device, 0), attribute) == 0) return result::invalid_value;
    if (found.offset_bytes != 0) return result::not_supported;  // not modelled: a file begins with its allocation
    file = region.physical ? region.physical->file : -1;
    return result::ok;
}

Result export_range(Driver& d, void* handle, Address address, std::size_t bytes, int type, unsigned long long flags) {
    if (!handle || bytes == 0 || (address | bytes) % page_bytes() != 0) return result::invalid_value;  // documented
    if (type != dma_buf_fd || flags > 1) return result::invalid_value;
    if (flags == 1) return result::not_supported;  // a mapping through the PCIe BAR is not modelled
    int file = -1;
    if (const Result code = judge_range(d, address, bytes, file)) return code;
    if (file < 0) {
        const Result code = with_memory_file(
            d, address, [](const Region& region) { return deciding_attribute(region) != 0; },
            [&](Region& region) {
                file = region.file;
                return result::ok;
            });
        if (code != result::ok) return code;
    }
    const int given = duplicate_file(file);
    if (given < 0) return result::operating_system;
    std::memcpy(handle, &given, sizeof(given));
    return result::ok;
}

bool is_dma_buf(int file) {
    struct statfs system = {};
    MemoryFileHeader header;
    return (::fstatfs(file, &system) == 0 && system.f_type == dma_buf_magic) || read_memory_file(file, header);
}

Result import(Driver& d, const Context& context, ExternalMemory** out, const ExternalMemoryDescription* from) {
    if (!out || !from || from->flags != 0 || from->bytes == 0) return result::invalid_value;
    if (from->handle.descriptor < 0) return result::invalid_value;        // observed, as the next but one
    if (from->type != external_dma_buf_fd) return result::not_supported;  // not modelled
    if (!d.machine.device(context.device).imports_dma_bufs) return result::not_supported;  // assumed
    if (!is_dma_buf(from->handle.descriptor)) return result::invalid_value;                // assumed
    struct stat facts = {};
    const bool fits =
        ::fstat(from->handle.descriptor, &facts) == 0 && from->bytes <= static_cast<unsigned long long>(facts.st_size);
    if (!fits) return result::invalid_value;  // assumed
    const int file = duplicate_file(from->handle.descriptor);
    if (file < 0) return result::operating_system;
    const std::lock_guard lock(d.mutex);
    *out = d.external_memories.create();
    **out = {file, from->bytes, context.device};
    return result::ok;
}

Result map_external(Driver& d, Context& context, Address* address, ExternalMemory* memory, const ExternalRange* range) {
    if (!address || !range || range->flags != 0 || range->bytes == 0) return result::invalid_value;
    if (const Result code = d.engine().unsafe_call()) return code;
    const std::lock_guard lock(d.mutex);
    if (!d.external_memories.alive(memory)) return result::invalid_handle;
    if (range->offset > memory->bytes || range->bytes > memory->bytes - range->offset) return result::invalid_value;
    if (range->offset % page_bytes() != 0) return result::invalid_value;  // assumed
    Region region;
    region.mapped_bytes = static_cast<std::size_t>((range->bytes + page_bytes() - 1) / page_bytes() * page_bytes());
    region.host = d.protection.reserve_aligned(region.mapped_bytes, static_cast<std::size_t>(page_bytes()), nullptr);
    if (!region.host) return result::out_of_memory;
    if (!d.protection.map_file(region.host, region.mapped_bytes, memory->file,
                               static_cast<std::size_t>(range->offset))) {
        d.protection.unmap(region.host, region.mapped_bytes);
        return result::out_of_memory;
    }
    const bool host = d.machine.device(memory->device).host_reads_device_memory;
    d.protection.open_file(region.host, region.mapped_bytes, memory->device, {host, memory->device, true});
    region.kind = Kind::device;
    region.external = true;
    region.base = reinterpret_cast<Address>(region.host);
    region.bytes = static_cast<std::size_t>(range->bytes);
    region.device = memory->device;
    region.context = &context;
    *address = d.regions.add(region)->base;
    return result::ok;
}

// Mappings made from it stay: each has its own cuMemFree (documented).
Result destroy(Driver& d, ExternalMemory* memory) {
    const std::lock_guard lock(d.mutex);
    if (!d.external_memories.alive(memory)) return result::invalid_handle;
    ::close(memory->file);
    d.external_memories.destroy(memory);
    return result::ok;
}

}  // namespace

extern "C" {

Result cuMemGetHandleForAddressRange(void* handle, Address address, std::size_t bytes, int type,
                                     unsigned long long flags) {
    return call(CallId::cuMemGetHandleForAddressRange,
                [&](Driver& d) { return export_range(d, handle, address, bytes, type, flags); });
}

Result cuImportExternalMemory(ExternalMemory** memory, const ExternalMemoryDescription* from) {
    return call_in_context(CallId::cuImportExternalMemory,
                           [&](Driver& d, Context& context) { return import(d, context, memory, from); });
}

Result cuExternalMemoryGetMappedBuffer(Address* address, ExternalMemory* memory, const ExternalRange* range) {
    return call_in_context(CallId::cuExternalMemoryGetMappedBuffer, [&](Driver& d, Context& context) {
        return map_external(d, context, address, memory, range);
    });
}

Result cuExternalMemoryGetMappedMipmappedArray(MipmappedArray** array, ExternalMemory* memory,
                                               const ExternalMipmappedArray* description) {
    return call_in_context(CallId::cuExternalMemoryGetMappedMipmappedArray, [&](Driver& d, Context&) -> Result {
        if (!array || !description) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (!d.external_memories.alive(memory)) return result::invalid_handle;
        say("cuExternalMemoryGetMappedMipmappedArray: arrays in external memory are not modelled");
        return result::not_supported;
    });
}

Result cuDestroyExternalMemory(ExternalMemory* memory) {
    return call(CallId::cuDestroyExternalMemory, [&](Driver& d) { return destroy(d, memory); });
}
}

}  // namespace isthmus::sim
