// SPDX-License-Identifier: Apache-2.0
// Multicast objects with one CUDA device: one driver call per function of the facet.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaMulticast final : public Multicast {
public:
    explicit CudaMulticast(DeviceContext& context) noexcept : context_(context) {}
    // Does this driver have every function of the facet (CUDA 12.1)?
    static bool complete(const Api& api) noexcept;

    Status granularity(const TeamRequest& request, Granularity& out) override;
    Status create(const TeamRequest& request, PhysicalHandle& out) override;
    Status add_device(PhysicalHandle team) override;
    Status bind(PhysicalHandle team, std::size_t offset, PhysicalHandle memory, std::size_t memory_offset,
                std::size_t bytes) override;
    Status bind_address(PhysicalHandle team, std::size_t offset, std::uint64_t address, std::size_t bytes) override;
    Status unbind(PhysicalHandle team, std::size_t offset, std::size_t bytes) override;

private:
    DeviceContext& context_;
};

}  // namespace isthmus::platform::cuda
