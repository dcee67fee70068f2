// SPDX-License-Identifier: Apache-2.0
// MemoryPool: device or managed memory that is allocated and released in the order of streams.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <limits>
#include <memory>

namespace isthmus {
inline namespace v0 {

class Device;

namespace detail {
struct DeviceState;
struct PoolState;
}  // namespace detail

struct PoolOptions {
    MemoryKind kind = MemoryKind::pool;  // or managed_pool (CUDA 13)
    // Unused memory above this is returned to the device when a stream is synchronised. By default all of it is kept:
    // returned memory has to be mapped again by the next allocation.
    std::uint64_t release_threshold_bytes = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_bytes = 0;  // 0: as much as the device has (other values: CUDA 12.2)
};

// The driver's counts, in its own granules; of the device's own pool (Device::pool()) without what is kept for later
// allocations (Device::cache_usage()), except in the high marks.
struct PoolUsage {
    std::uint64_t reserved_bytes = 0;  // taken from the device
    std::uint64_t reserved_high_bytes = 0;
    std::uint64_t used_bytes = 0;  // of the reserved bytes: handed out, or released behind work that has not ended
    std::uint64_t used_high_bytes = 0;
};

// What a device keeps of released memory for its next allocations (RuntimeOptions::cache_bytes). The last two count
// since the runtime was opened.
struct CacheUsage {
    std::uint64_t kept_bytes = 0;
    std::uint64_t kept_pieces = 0;
    std::uint64_t limit_bytes = 0;  // kept at most; 0: nothing is kept
    std::uint64_t served = 0;       // allocations that kept memory served, without a driver or system call
    std::uint64_t missed = 0;       // allocations of kinds that are kept, for which the driver or the system was asked
};

// Made by Device::create_pool and Device::pool. A handle: copies name the same pool, which exists as long as a handle,
// an allocator or memory of it. Thread-safe. Errors of all functions: device_lost, and the driver's.
class ISTHMUS_API MemoryPool {
public:
    MemoryPool(std::shared_ptr<detail::DeviceState> device, std::shared_ptr<detail::PoolState> pool);
    MemoryPool(const MemoryPool&) = default;  // no move: a pool's handle is never empty
    MemoryPool& operator=(const MemoryPool&) = default;
    ~MemoryPool() = default;

    MemoryKind kind() const noexcept;
    // For Device::allocate (memory usable on every stream when the call returns) and Stream::allocate (usable on that
    // stream at once).
    const Allocator& allocator() const noexcept { return allocator_; }
    Result<PoolUsage> usage() const;
    Result<void> reset_high_marks();  // sets the high marks to the current values
    // Returns unused memory to the device until at most this much is reserved; of the device's own pool also what is
    // kept for later allocations. What work may still use goes back when that has ended.
    Result<void> trim(std::uint64_t keep_bytes);
    Result<void> set_release_threshold(std::uint64_t bytes);
    // Allows or forbids another device's access to all memory of this pool, present and future. Peer access between the
    // devices does not give this access (A5). Errors: unsupported (the devices cannot reach each other, the CPU),
    // wrong_device (a device of another runtime), invalid_argument (the owner's own access cannot be removed).
    Result<void> allow(const Device& other, bool allowed = true);
    bool allows(const Device& other) const noexcept;  // as recorded by the runtime: no driver call

private:
    std::shared_ptr<detail::DeviceState> device_;
    std::shared_ptr<detail::PoolState> pool_;
    Allocator allocator_;
};

}  // namespace v0
}  // namespace isthmus
