// SPDX-License-Identifier: Apache-2.0
// Reserves, creates, maps, grants access, and undoes all of it, also after the context was destroyed.
#include "cuda_virtual_memory.hpp"

#include "virtual_memory_words.hpp"

#include <array>
#include <vector>

namespace isthmus::platform::cuda {
namespace {

CUmemAccess_flags flags_of(RangeAccess access) noexcept {
    switch (access) {
        case RangeAccess::none: return access_none;
        case RangeAccess::read: return access_read;
        case RangeAccess::read_write: return access_read_write;
    }
    return access_none;
}

}  // namespace

bool CudaVirtualMemory::complete(const Api& api) noexcept {
    return api.address_reserve && api.address_free && api.mem_create && api.mem_release && api.mem_map &&
           api.mem_unmap && api.mem_set_access && api.mem_get_access && api.mem_get_granularity &&
           api.mem_get_properties && api.mem_export && api.mem_import;
}

// Ordinals and CUdevices have the same numbers today, but nothing guarantees it: the CUdevice is looked up.
Status CudaVirtualMemory::location_of(const MemoryPlace& place, const char* call, CUmemLocation& out) const {
    switch (place.where) {
        case MemoryPlace::Where::device: {
            const DeviceContext* device = context_.library().context(place.id);
            if (device == nullptr) return {Code::wrong_device, 0, call};
            out = {location_type::device, device->device()};
            return {Code::ok, 0, call};
        }
        case MemoryPlace::Where::host: out = {location_type::host, 0}; return {Code::ok, 0, call};
        case MemoryPlace::Where::host_node: out = {location_type::host_numa, place.id}; return {Code::ok, 0, call};
    }
    return {Code::wrong_device, 0, call};
}

Status CudaVirtualMemory::properties_of(const PhysicalRequest& request, const char* call,
                                        CUmemAllocationProp& out) const {
    out = {};
    out.type = allocation_type::pinned;
    out.requestedHandleTypes = handle_types(request.exports);
    out.allocFlags.compressionType = request.compressible ? compression_generic : compression_none;
    out.allocFlags.gpuDirectRDMACapable = request.gpudirect_rdma ? 1 : 0;
    out.allocFlags.usage = usage_bits(request.usage);
    return location_of(request.place, call, out.location);
}

Status CudaVirtualMemory::granularity(const PhysicalRequest& request, Granularity& out) {
    constexpr const char* call = "cuMemGetAllocationGranularity";
    CUmemAllocationProp properties;
    if (Status placed = properties_of(request, call, properties); !placed.ok()) return placed;
    Granularity found;
    Status status = context_.anywhere(call, [&] {
        return context_.api().mem_get_granularity(&found.minimum_bytes, &properties, granularity_minimum);
    });
    if (!status.ok()) return status;
    status = context_.anywhere(call, [&] {
        return context_.api().mem_get_granularity(&found.recommended_bytes, &properties, granularity_recommended);
    });
    if (status.ok()) out = found;
    return status;
}

Status CudaVirtualMemory::reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) {
    CUdeviceptr found = 0;
    const Status status = context_.anywhere(
        "cuMemAddressReserve", [&] { return context_.api().address_reserve(&found, bytes, alignment, 0, 0); });
    if (status.ok()) address = found;
    return status;
}

Status CudaVirtualMemory::free_address(std::uint64_t address, std::size_t bytes) {
    return context_.undo("cuMemAddressFree", [&] { return context_.api().address_free(address, bytes); });
}

Status CudaVirtualMemory::create(const PhysicalRequest& request, PhysicalHandle& out) {
    CUmemAllocationProp properties;
    if (Status placed = properties_of(request, "cuMemCreate", properties); !placed.ok()) return placed;
    CUmemGenericAllocationHandle made = 0;
    const Status status = context_.anywhere(
        "cuMemCreate", [&] { return context_.api().mem_create(&made, request.bytes, &properties, 0); });
    if (status.ok()) out = static_cast<PhysicalHandle>(made);
    return status;
}

Status CudaVirtualMemory::release(PhysicalHandle memory) {
    return context_.undo("cuMemRelease", [&] { return context_.api().mem_release(driver_handle(memory)); });
}

Status CudaVirtualMemory::properties(PhysicalHandle memory, PhysicalFacts& out) {
    CUmemAllocationProp found{};
    const Status status = context_.anywhere("cuMemGetAllocationPropertiesFromHandle", [&] {
        return context_.api().mem_get_properties(&found, driver_handle(memory));
    });
    if (!status.ok()) return status;
    PhysicalFacts facts;
    facts.place = {MemoryPlace::Where::host, 0};
    if (found.location.type == location_type::host_numa) {
        facts.place = {MemoryPlace::Where::host_node, found.location.id};
    } else if (found.location.type == location_type::device) {
        facts.place = {MemoryPlace::Where::device, -1};
        const auto& contexts = context_.library().contexts;
        for (std::size_t ordinal = 0; ordinal < contexts.size(); ++ordinal) {
            if (contexts[ordinal] && contexts[ordinal]->device() == found.location.id)
                facts.place.id = static_cast<int>(ordinal);
        }
    }
    const auto types = static_cast<int>(found.requestedHandleTypes);
    if ((types & handle_type::posix_file_descriptor) != 0) facts.exports = facts.exports | ExportKinds::posix_fd;
    if ((types & handle_type::fabric) != 0) facts.exports = facts.exports | ExportKinds::fabric;
    facts.compressible = found.allocFlags.compressionType != compression_none;
    facts.gpudirect_rdma = found.allocFlags.gpuDirectRDMACapable != 0;
    facts.usage = usage_of(found.allocFlags.usage);
    out = facts;
    return status;
}

// The handle tells no size. The attributes of the mapping do; RANGE_SIZE would be that of the whole reservation
// (documented at CU_POINTER_ATTRIBUTE_RANGE_SIZE). This call answers 0 for an address that it does not know.
Status CudaVirtualMemory::retain(std::uint64_t address, RetainedMemory& out) {
    constexpr const char* call = "cuMemRetainAllocationHandle";
    if (!context_.api().mem_retain_handle) return {Code::unsupported, 0, call};
    RetainedMemory found;
    CUpointer_attribute asked[] = {pointer_attribute::mapping_base_addr, pointer_attribute::mapping_size};
    void* answers[] = {&found.base, &found.bytes};
    Status status = context_.anywhere(
        "cuPointerGetAttributes", [&] { return context_.api().pointer_get_attributes(2, asked, answers, address); });
    if (!status.ok()) return status;
    CUmemGenericAllocationHandle retained = 0;
    status =
        context_.anywhere(call, [&] { return context_.api().mem_retain_handle(&retained, host_pointer(address)); });
    if (!status.ok()) return status;
    found.memory = static_cast<PhysicalHandle>(retained);
    out = found;
    return status;
}

Status CudaVirtualMemory::map(std::uint64_t address, std::size_t bytes, PhysicalHandle memory) {
    return context_.anywhere("cuMemMap",
                             [&] { return context_.api().mem_map(address, bytes, 0, driver_handle(memory), 0); });
}

Status CudaVirtualMemory::unmap(std::uint64_t address, std::size_t bytes) {
    return context_.undo("cuMemUnmap", [&] { return context_.api().mem_unmap(address, bytes); });
}

Status CudaVirtualMemory::set_access(std::uint64_t address, std::size_t bytes, const AccessGrant* grants,
                                     std::size_t count) {
    std::vector<CUmemAccessDesc> descriptions(count);
    for (std::size_t at = 0; at < count; ++at) {
        descriptions[at].flags = flags_of(grants[at].access);
        const Status placed = location_of(grants[at].place, "cuMemSetAccess", descriptions[at].location);
        if (!placed.ok()) return placed;
    }
    return context_.anywhere("cuMemSetAccess",
                             [&] { return context_.api().mem_set_access(address, bytes, descriptions.data(), count); });
}

Status CudaVirtualMemory::access(std::uint64_t address, const MemoryPlace& place, RangeAccess& out) {
    CUmemLocation location{};
    if (Status placed = location_of(place, "cuMemGetAccess", location); !placed.ok()) return placed;
    unsigned long long flags = 0;
    const Status status =
        context_.anywhere("cuMemGetAccess", [&] { return context_.api().mem_get_access(&flags, &location, address); });
    if (!status.ok()) return status;
    out = flags == access_read_write ? RangeAccess::read_write
                                     : (flags == access_read ? RangeAccess::read : RangeAccess::none);
    return status;
}

Status CudaVirtualMemory::export_fd(PhysicalHandle memory, int& fd) {
    int made = -1;
    const Status status = context_.anywhere("cuMemExportToShareableHandle", [&] {
        return context_.api().mem_export(&made, driver_handle(memory), handle_type::posix_file_descriptor, 0);
    });
    if (status.ok()) fd = made;
    return status;
}

// The driver takes the descriptor by value, in a pointer parameter.
Status CudaVirtualMemory::import_fd(int fd, PhysicalHandle& out) {
    CUmemGenericAllocationHandle made = 0;
    const Status status = context_.anywhere("cuMemImportFromShareableHandle", [&] {
        return context_.api().mem_import(&made, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                         handle_type::posix_file_descriptor);
    });
    if (status.ok()) out = static_cast<PhysicalHandle>(made);
    return status;
}

Status CudaVirtualMemory::export_fabric(PhysicalHandle memory, FabricHandle& out) {
    CUmemFabricHandle made{};
    const Status status = context_.anywhere("cuMemExportToShareableHandle", [&] {
        return context_.api().mem_export(&made, driver_handle(memory), handle_type::fabric, 0);
    });
    if (status.ok()) out = std::to_array(made.data);
    return status;
}

Status CudaVirtualMemory::import_fabric(const FabricHandle& handle, PhysicalHandle& out) {
    FabricHandle copy = handle;
    CUmemGenericAllocationHandle made = 0;
    const Status status = context_.anywhere("cuMemImportFromShareableHandle", [&] {
        return context_.api().mem_import(&made, copy.data(), handle_type::fabric);
    });
    if (status.ok()) out = static_cast<PhysicalHandle>(made);
    return status;
}

}  // namespace isthmus::platform::cuda
