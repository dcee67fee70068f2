// SPDX-License-Identifier: Apache-2.0
// Stream-ordered pools of one CUDA device.
#pragma once

#include "context.hpp"

namespace isthmus::platform::cuda {

class CudaPools final : public Pools {
public:
    explicit CudaPools(DeviceContext& context) noexcept : context_(context) {}
    // Has this driver every function of the facet?
    static bool complete(const Api& api) noexcept;

    Status create(const PoolRequest& request, PoolHandle& out) override;
    Status destroy(PoolHandle pool) override;
    Status allocate(PoolHandle pool, std::size_t bytes, StreamHandle stream, Allocation& out) override;
    Status trim(PoolHandle pool, std::size_t keep_bytes) override;
    Status usage(PoolHandle pool, PoolUsage& out) override;
    Status reset_high_marks(PoolHandle pool) override;
    Status set_release_threshold(PoolHandle pool, std::uint64_t bytes) override;
    Status set_access(PoolHandle pool, int ordinal, bool allowed) override;

private:
    Status set(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t value);

    DeviceContext& context_;
};

}  // namespace isthmus::platform::cuda
