// SPDX-License-Identifier: Apache-2.0
// The facet of stream-ordered pools created by the runtime. Absent if the device has none (attribute 115).
#pragma once

#include <isthmus/memory_kind.hpp>

#include <platform/status.hpp>

#include <cstddef>
#include <cstdint>

namespace isthmus::platform {

struct Allocation;

struct PoolRequest {
    MemoryKind kind = MemoryKind::pool;         // pool, or managed_pool (CUDA 13)
    std::uint64_t release_threshold_bytes = 0;  // kept at synchronisation points instead of released
    std::uint64_t max_bytes = 0;                // 0: as much as the device has
};

struct PoolUsage {
    std::uint64_t reserved_bytes = 0;  // taken from the device
    std::uint64_t reserved_high_bytes = 0;
    std::uint64_t used_bytes = 0;  // handed out
    std::uint64_t used_high_bytes = 0;
};

class Pools {
public:
    virtual ~Pools() = default;
    virtual Status create(const PoolRequest& request, PoolHandle& out) = 0;
    virtual Status destroy(PoolHandle pool) = 0;  // also after Driver::context_died()
    // Ordered on `stream`; undone by Memory::release(). bytes > 0. In a capture it becomes a graph node.
    virtual Status allocate(PoolHandle pool, std::size_t bytes, StreamHandle stream, Allocation& out) = 0;
    // Returns unused memory to the device until at most `keep_bytes` are reserved.
    virtual Status trim(PoolHandle pool, std::size_t keep_bytes) = 0;
    virtual Status usage(PoolHandle pool, PoolUsage& out) = 0;
    virtual Status reset_high_marks(PoolHandle pool) = 0;
    virtual Status set_release_threshold(PoolHandle pool, std::uint64_t bytes) = 0;
    // Whether the device with this ordinal may access the pool's memory (cuMemPoolSetAccess). Code::wrong_device: no
    // such device.
    virtual Status set_access(PoolHandle pool, int ordinal, bool allowed) = 0;
};

}  // namespace isthmus::platform
