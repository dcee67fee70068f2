// SPDX-License-Identifier: Apache-2.0
// The facet of virtual memory: addresses are reserved, memory is created, and the memory is mapped at the addresses.
// Absent if the device lacks it (attribute 102). Undone in the order unmap → release → free_address; a driver answers
// any other order with an error or, at worst, with other code's memory, so the runtime keeps that order.
#pragma once

#include <isthmus/memory_place.hpp>

#include <platform/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::platform {

// Physical memory, or a multicast object, before it has an address.
enum class PhysicalHandle : std::uint64_t { none = 0 };

struct PhysicalRequest {
    MemoryPlace place;
    std::size_t bytes = 0;  // a multiple of the granularity
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
    PhysicalUsage usage = PhysicalUsage::none;
};

// The driver's facts about existing memory (V3). No call states the size: its creator or importer must keep it.
struct PhysicalFacts {
    MemoryPlace place;
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
    PhysicalUsage usage = PhysicalUsage::none;
};

// A handle to mapped memory, which its receiver releases, and the whole mapping.
struct RetainedMemory {
    PhysicalHandle memory = PhysicalHandle::none;
    std::uint64_t base = 0;
    std::size_t bytes = 0;
};

struct Granularity {
    std::size_t minimum_bytes = 0;      // sizes are multiples of it
    std::size_t recommended_bytes = 0;  // best for performance
};

struct AccessGrant {
    MemoryPlace place;  // a device, or the host as the place of host memory
    RangeAccess access = RangeAccess::none;
};

// The result of a fabric export: opaque bytes that other nodes import.
using FabricHandle = std::array<unsigned char, 64>;

class VirtualMemory {
public:
    virtual ~VirtualMemory() = default;
    // For memory of this kind; `request.bytes` is ignored.
    virtual Status granularity(const PhysicalRequest& request, Granularity& out) = 0;

    // Reserves addresses without memory. `alignment` 0: the driver's default.
    virtual Status reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) = 0;
    // Frees a whole reservation with nothing mapped in it.
    virtual Status free_address(std::uint64_t address, std::size_t bytes) = 0;

    // Memory without an address. Survives its context; zero-filled if exportable.
    virtual Status create(const PhysicalRequest& request, PhysicalHandle& out) = 0;
    // Drops one reference; the memory is freed once it is neither mapped nor exported.
    virtual Status release(PhysicalHandle memory) = 0;
    virtual Status properties(PhysicalHandle memory, PhysicalFacts& out) = 0;
    // One more handle to the memory mapped at this address, by whatever code of the process.
    virtual Status retain(std::uint64_t /*address*/, RetainedMemory& /*out*/) {
        return {Code::unsupported, 0, "cuMemRetainAllocationHandle"};
    }

    // Maps all of the memory at `address`. Grants no access.
    virtual Status map(std::uint64_t address, std::size_t bytes, PhysicalHandle memory) = 0;
    // Unmaps one or several whole mappings. May wait for the device.
    virtual Status unmap(std::uint64_t address, std::size_t bytes) = 0;
    // Sets access for all listed places in one call, over whole mappings. May wait for the device. Code::wrong_device:
    // no such device.
    virtual Status set_access(std::uint64_t address, std::size_t bytes, const AccessGrant* grants,
                              std::size_t count) = 0;
    // The access of `place` at this address.
    virtual Status access(std::uint64_t address, const MemoryPlace& place, RangeAccess& out) = 0;

    // The caller owns the exported descriptor, which has CLOEXEC, and keeps ownership of one that it imports.
    virtual Status export_fd(PhysicalHandle memory, int& fd) = 0;
    virtual Status import_fd(int fd, PhysicalHandle& out) = 0;
    virtual Status export_fabric(PhysicalHandle memory, FabricHandle& out) = 0;
    virtual Status import_fabric(const FabricHandle& handle, PhysicalHandle& out) = 0;
};

}  // namespace isthmus::platform
