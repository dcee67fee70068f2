// SPDX-License-Identifier: Apache-2.0
// PoolState: one stream-ordered pool of a driver, kept alive by its handles and by its memory. DevicePools: the pools
// of one device.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <platform/driver.hpp>

#include "peer_table.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceSession;
struct RuntimeConfig;
struct StreamState;

struct PoolState {
    // Holds the driver, but not the device: the device holds its own pools.
    PoolState(DeviceSession& owner, MemoryKind made_of, platform::PoolHandle made);
    ~PoolState();  // while a service runs, the driver's pool is destroyed only after the service stops
    PoolState(const PoolState&) = delete;
    PoolState& operator=(const PoolState&) = delete;

    const std::shared_ptr<const RuntimeConfig> config;
    const std::shared_ptr<platform::Driver> driver;
    const MemoryKind kind;
    const platform::PoolHandle handle;
    std::atomic<std::uint64_t> live_bytes{0};  // allocated and not yet released
    // Devices with access, by index (one bit each): the state that A5 asks for, independent of peer access.
    std::atomic<std::uint64_t> allowed{0};

    bool allows(std::size_t device) const noexcept {
        return device < 64 && ((allowed.load(std::memory_order_acquire) >> device) & 1u) != 0;
    }
    // A stream of the pool's own, for memory that is not ordered on any stream; created at the first use.
    Result<platform::StreamHandle> own_stream(DeviceSession& device);
    // Waits until the pool's own stream is idle, for at most the runtime's wait timeout.
    Result<void> settle(DeviceSession& device);

private:
    const std::weak_ptr<DeviceSession> device_;
    std::mutex mutex_;
    platform::StreamHandle stream_ = platform::StreamHandle::none;
};

// Thread-safe.
class DevicePools {
public:
    struct Amounts {
        std::uint64_t cached_bytes = 0;   // taken from the device and not allocated
        std::uint64_t pending_bytes = 0;  // released behind work that is still running
    };
    // The device's own pool of this kind. The first call creates it, with an unlimited release threshold.
    Result<std::shared_ptr<PoolState>> own(DeviceSession& device, MemoryKind kind);
    bool has_own(MemoryKind kind) const;  // true: it was created already
    bool is_own(const PoolState& pool) const;
    // nullptr: it was not created so far. Without a lock: once there, it stays until the device ends.
    const PoolState* own_so_far(MemoryKind kind) const noexcept;
    Result<std::shared_ptr<PoolState>> create(DeviceSession& device, const platform::PoolRequest& request);
    // Records in `peers` that the device with index `other` got or lost access.
    void record_access(const DeviceSession& device, PeerTable& peers, PoolState& pool, std::size_t other, bool allowed);
    Amounts amounts(DeviceSession& device) const;
    // Frees unused memory of all pools. false: there is no pool.
    bool trim(DeviceSession& device) const;

private:
    std::vector<std::shared_ptr<PoolState>> live() const;

    mutable std::mutex mutex_;
    std::array<std::shared_ptr<PoolState>, 2> own_;  // pool, managed_pool
    std::array<std::atomic<const PoolState*>, 2> own_so_far_{};
    mutable std::vector<std::weak_ptr<PoolState>> all_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
