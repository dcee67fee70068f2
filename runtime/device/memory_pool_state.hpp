// PoolState: one stream-ordered pool of a driver, kept by its handles and by the memory that came from it; and the
// pools of one device.
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

namespace isthmus::inline v0::detail {

struct DeviceSession;
struct RuntimeConfig;
struct StreamState;

struct PoolState {
    // Keeps the driver, not the device: the device keeps its own pools.
    PoolState(DeviceSession& owner, MemoryKind made_of, platform::PoolHandle made);
    ~PoolState();  // beside a service the pool itself stays until that stops
    PoolState(const PoolState&) = delete;
    PoolState& operator=(const PoolState&) = delete;

    const std::shared_ptr<const RuntimeConfig> config;
    const std::shared_ptr<platform::Driver> driver;
    const MemoryKind kind;
    const platform::PoolHandle handle;
    std::atomic<std::uint64_t> live_bytes{0};  // handed out and not released yet
    // Devices, by index, that were given access (one bit each): what A5 asks, and nobody's peer access.
    std::atomic<std::uint64_t> allowed{0};

    bool allows(std::size_t device) const noexcept {
        return device < 64 && ((allowed.load(std::memory_order_acquire) >> device) & 1u) != 0;
    }
    // For memory that nobody has ordered on a stream: a stream of the pool's own, made at its first use.
    Result<platform::StreamHandle> own_stream(DeviceSession& device);
    // Waits until the pool's own stream has done everything, within the runtime's wait timeout.
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
        std::uint64_t cached_bytes = 0;   // taken from the device and not handed out
        std::uint64_t pending_bytes = 0;  // released behind work that has not ended
    };
    // The device's own pool of this kind; makes it, keeping all that it was ever given, if it is not there yet.
    Result<std::shared_ptr<PoolState>> own(DeviceSession& device, MemoryKind kind);
    bool has_own(MemoryKind kind) const;  // made already?
    Result<std::shared_ptr<PoolState>> create(DeviceSession& device, const platform::PoolRequest& request);
    // Writes down in `peers` that the device with the index `other` was let in, or is no more.
    void record_access(const DeviceSession& device, PeerTable& peers, PoolState& pool, std::size_t other, bool allowed);
    Amounts amounts(DeviceSession& device) const;
    // Gives back what all pools keep unused. False: there is no pool.
    bool trim(DeviceSession& device) const;

private:
    std::vector<std::shared_ptr<PoolState>> live() const;

    mutable std::mutex mutex_;
    std::array<std::shared_ptr<PoolState>, 2> own_;  // pool, managed_pool
    mutable std::vector<std::weak_ptr<PoolState>> all_;
};

}  // namespace isthmus::inline v0::detail
