// SPDX-License-Identifier: Apache-2.0
// Virtual memory of one CUDA device: one driver call per function of the facet, two where the driver has no single one.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaVirtualMemory final : public VirtualMemory {
public:
    explicit CudaVirtualMemory(DeviceContext& context) noexcept : context_(context) {}
    // Does this driver have every function of the facet?
    static bool complete(const Api& api) noexcept;

    Status granularity(const PhysicalRequest& request, Granularity& out) override;
    Status reserve(std::size_t bytes, std::size_t alignment, std::uint64_t& address) override;
    Status free_address(std::uint64_t address, std::size_t bytes) override;
    Status create(const PhysicalRequest& request, PhysicalHandle& out) override;
    Status release(PhysicalHandle memory) override;
    Status properties(PhysicalHandle memory, PhysicalFacts& out) override;
    Status retain(std::uint64_t address, RetainedMemory& out) override;
    Status map(std::uint64_t address, std::size_t bytes, PhysicalHandle memory) override;
    Status unmap(std::uint64_t address, std::size_t bytes) override;
    Status set_access(std::uint64_t address, std::size_t bytes, const AccessGrant* grants, std::size_t count) override;
    Status access(std::uint64_t address, const MemoryPlace& place, RangeAccess& out) override;
    Status export_fd(PhysicalHandle memory, int& fd) override;
    Status import_fd(int fd, PhysicalHandle& out) override;
    Status export_fabric(PhysicalHandle memory, FabricHandle& out) override;
    Status import_fabric(const FabricHandle& handle, PhysicalHandle& out) override;

private:
    Status location_of(const MemoryPlace& place, const char* call, CUmemLocation& out) const;
    Status properties_of(const PhysicalRequest& request, const char* call, CUmemAllocationProp& out) const;

    DeviceContext& context_;
};

}  // namespace isthmus::platform::cuda
