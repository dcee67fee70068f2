// The facet of virtual memory: addresses are reserved, memory is created, and the one is mapped at the other. Absent
// where the device lacks it (attribute 102). Undone in the order unmap → release → free_address; a driver answers
// anything else with an error or, at worst, with somebody else's memory, so the runtime keeps that order.
#pragma once

#include <isthmus/memory_place.hpp>

#include <platform/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::platform {

// A piece of physical memory, or a multicast object, before it has an address.
enum class PhysicalHandle : std::uint64_t { none = 0 };

struct PhysicalRequest {
    MemoryPlace place;
    std::size_t bytes = 0;  // a multiple of the granularity
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
};

// What the driver says of a piece that exists (V3). Nothing tells its size: whoever creates or imports it knows.
struct PhysicalFacts {
    MemoryPlace place;
    ExportKinds exports = ExportKinds::none;
    bool compressible = false;
    bool gpudirect_rdma = false;
};

struct Granularity {
    std::size_t minimum_bytes = 0;      // sizes are multiples of it
    std::size_t recommended_bytes = 0;  // best for performance
};

struct AccessGrant {
    MemoryPlace place;  // who: a device, or the host as the place of host memory
    RangeAccess access = RangeAccess::none;
};

// What fabric export gives: opaque bytes that other nodes import.
using FabricHandle = std::array<unsigned char, 64>;

class VirtualMemory {
public:
    virtual ~VirtualMemory() = default;
    // For memory like this; `request.bytes` does not matter.
    virtual Status granularity(const PhysicalRequest& request, Granularity& out) = 0;

    // Addresses without memory. `alignment` 0: the driver's.
    virtual Status reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) = 0;
    // All of a reservation, with nothing mapped in it.
    virtual Status free_address(std::uint64_t address, std::size_t bytes) = 0;

    // Memory without an address. Survives its context; zero-filled where it can be exported.
    virtual Status create(const PhysicalRequest& request, PhysicalHandle& out) = 0;
    // Drops one reference; the memory goes when it is mapped nowhere and exported to nobody.
    virtual Status release(PhysicalHandle memory) = 0;
    virtual Status properties(PhysicalHandle memory, PhysicalFacts& out) = 0;

    // All of one piece at `address`. Grants access to nobody.
    virtual Status map(std::uint64_t address, std::size_t bytes, PhysicalHandle memory) = 0;
    // One mapping or several whole ones. May wait for the device.
    virtual Status unmap(std::uint64_t address, std::size_t bytes) = 0;
    // For all devices in one call, over whole mappings. May wait for the device. Code::wrong_device: no such device.
    virtual Status set_access(std::uint64_t address, std::size_t bytes, const AccessGrant* grants,
                              std::size_t count) = 0;
    // What `place` may do at this address.
    virtual Status access(std::uint64_t address, const MemoryPlace& place, RangeAccess& out) = 0;

    // The descriptor is the caller's, and has CLOEXEC. Importing leaves the descriptor to the caller, too.
    virtual Status export_fd(PhysicalHandle memory, int& fd) = 0;
    virtual Status import_fd(int fd, PhysicalHandle& out) = 0;
    virtual Status export_fabric(PhysicalHandle memory, FabricHandle& out) = 0;
    virtual Status import_fabric(const FabricHandle& handle, PhysicalHandle& out) = 0;
};

}  // namespace isthmus::platform
