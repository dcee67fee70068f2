// MemoryPool: device or managed memory that is allocated and released in the order of streams.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <limits>
#include <memory>

namespace isthmus::inline v0 {

class Device;

namespace detail {
struct DeviceState;
struct PoolState;
}  // namespace detail

struct PoolOptions {
    MemoryKind kind = MemoryKind::pool;  // or managed_pool (CUDA 13)
    // Unused memory above this goes back to the device when a stream is synchronised. All of it is kept by default:
    // what goes back has to be mapped again by the next allocation.
    std::uint64_t release_threshold_bytes = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t most_bytes = 0;  // 0: as much as the device has (others: CUDA 12.2)
};

// As the driver counts: in its own granules.
struct PoolUsage {
    std::uint64_t reserved_bytes = 0;  // taken from the device
    std::uint64_t reserved_high_bytes = 0;
    std::uint64_t used_bytes = 0;  // of these handed out, or released behind work that has not ended
    std::uint64_t used_high_bytes = 0;
};

// Made by Device::create_pool and Device::pool. A handle: copies name the same pool, which stays as long as a handle,
// an allocator or memory of it does. Thread-safe. Errors of all functions: device_lost, and the driver's.
class ISTHMUS_API MemoryPool {
public:
    MemoryPool(std::shared_ptr<detail::DeviceState> device, std::shared_ptr<detail::PoolState> pool);
    MemoryPool(const MemoryPool&) = default;  // no move: a pool's handle is never empty
    MemoryPool& operator=(const MemoryPool&) = default;
    ~MemoryPool() = default;

    MemoryKind kind() const noexcept;
    // For Device::allocate (usable everywhere at return) and Stream::allocate (usable on that stream at once).
    const Allocator& allocator() const noexcept { return allocator_; }
    Result<PoolUsage> usage() const;
    Result<void> reset_high_marks();  // to what is current
    // Gives unused memory back to the device until at most this much is reserved.
    Result<void> trim(std::uint64_t keep_bytes);
    Result<void> set_release_threshold(std::uint64_t bytes);
    // Lets another device touch this pool's memory, all of it, now and later, or no more. Peer access between the
    // devices alone does not (A5). Errors: unsupported (the devices cannot reach each other, the CPU), wrong_device
    // (of another runtime), invalid_argument (the owner's own access cannot be taken away).
    Result<void> allow(const Device& other, bool allowed = true);
    bool allows(const Device& other) const noexcept;  // what was recorded: no driver call

private:
    std::shared_ptr<detail::DeviceState> device_;
    std::shared_ptr<detail::PoolState> pool_;
    Allocator allocator_;
};

}  // namespace isthmus::inline v0
