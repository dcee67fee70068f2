// SPDX-License-Identifier: Apache-2.0
// PoolState and DevicePools: creation at the first use, access, usage and trimming of pools.
#include "memory_pool_state.hpp"

#include "device_errors.hpp"
#include "device_session.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// No release threshold: memory returned at a synchronisation would have to be mapped again right after. trim() frees
// it.
constexpr std::uint64_t keep_everything = std::numeric_limits<std::uint64_t>::max();

std::size_t own_index(MemoryKind kind) noexcept {
    return kind == MemoryKind::managed_pool ? 1 : 0;
}

// A device that no longer exists runs no service.
void destroy_pool(const std::weak_ptr<DeviceSession>& device, const std::shared_ptr<platform::Driver>& driver,
                  platform::PoolHandle pool) {
    const std::shared_ptr<DeviceSession> owner = device.lock();
    std::optional<CallInFlight> call;
    if (owner && !owner->is_lost()) {
        call = owner->services.enter_or_put_off(rules::DriverUse::destroy_pool,
                                                [device, driver, pool] { destroy_pool(device, driver, pool); });
        if (!call) return;
    }
    (void)driver->pools()->destroy(pool);
}

}  // namespace

PoolState::PoolState(DeviceSession& owner, MemoryKind made_of, platform::PoolHandle made)
    : config(owner.config), driver(owner.driver), kind(made_of), handle(made), device_(owner.weak_from_this()) {}

PoolState::~PoolState() {
    if (config->forked()) return;
    // A failure here cannot be handled. The driver keeps the memory of pending stream-ordered frees.
    if (stream_ != platform::StreamHandle::none) (void)driver->execution().destroy_stream(stream_);
    destroy_pool(device_, driver, handle);
}

Result<platform::StreamHandle> PoolState::own_stream(DeviceSession& device) {
    const std::lock_guard lock(mutex_);
    if (stream_ == platform::StreamHandle::none) {
        constexpr std::string_view what = "creating a pool's stream";
        if (Result<void> fine = device.allow_now(SealedAct::make_object, "cuStreamCreate", what); !fine) {
            return std::move(fine).error();
        }
        const platform::Status status = driver->execution().create_stream(0, stream_);
        if (!status.ok()) return device.failure(status, what);
    }
    return stream_;
}

Result<void> PoolState::settle(DeviceSession& device) {
    using Clock = std::chrono::steady_clock;
    Result<platform::StreamHandle> stream = own_stream(device);
    if (!stream) return std::move(stream).error();
    const Clock::time_point begin = Clock::now();
    for (;;) {
        const platform::Status status = driver->execution().query_stream(*stream);
        if (status.ok()) return {};
        if (status.code != Code::not_ready) return device.failure(status, "waiting for pool memory");
        const auto waited = Clock::now() - begin;
        if (waited >= config->wait_timeout) {
            return make_error<errors::pool_memory_not_free_in_time>();
        }
        if (waited > std::chrono::microseconds(100)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

Result<std::shared_ptr<PoolState>> DevicePools::own(DeviceSession& device, MemoryKind kind) {
    {
        const std::lock_guard lock(mutex_);
        if (own_[own_index(kind)]) return own_[own_index(kind)];
    }
    platform::PoolRequest request;
    request.kind = kind;
    request.release_threshold_bytes = keep_everything;
    Result<std::shared_ptr<PoolState>> made = create(device, request);
    if (!made) return made;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<PoolState>& place = own_[own_index(kind)];
    if (!place) place = std::move(made).value();  // otherwise another thread was faster, and `made` is destroyed
    own_so_far_[own_index(kind)].store(place.get(), std::memory_order_release);
    return place;
}

void DevicePools::record_access(const DeviceSession& device, PeerTable& peers, PoolState& pool, std::size_t other,
                                bool allowed) {
    const std::uint64_t bit = other < 64 ? std::uint64_t{1} << other : 0;
    if (allowed) {
        pool.allowed.fetch_or(bit, std::memory_order_release);
    } else {
        pool.allowed.fetch_and(~bit, std::memory_order_release);
    }
    const std::lock_guard lock(mutex_);
    // The access recorded for the device as a whole is that of its own pool.
    if (own_[own_index(MemoryKind::pool)].get() == &pool) peers.record_pool(other, device.index, allowed);
}

bool DevicePools::is_own(const PoolState& pool) const {
    const std::lock_guard lock(mutex_);
    return own_[own_index(pool.kind)].get() == &pool;
}

const PoolState* DevicePools::own_so_far(MemoryKind kind) const noexcept {
    return own_so_far_[own_index(kind)].load(std::memory_order_acquire);
}

bool DevicePools::has_own(MemoryKind kind) const {
    const std::lock_guard lock(mutex_);
    return own_[own_index(kind)] != nullptr;
}

Result<std::shared_ptr<PoolState>> DevicePools::create(DeviceSession& device, const platform::PoolRequest& request) {
    platform::PoolHandle handle = platform::PoolHandle::none;
    const platform::Status status = device.driver->pools()->create(request, handle);
    if (!status.ok()) return device.failure(status, "creating a memory pool");
    auto made = std::make_shared<PoolState>(device, request.kind, handle);
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const std::weak_ptr<PoolState>& known) { return known.expired(); });
    all_.push_back(made);
    return made;
}

std::vector<std::shared_ptr<PoolState>> DevicePools::live() const {
    std::vector<std::shared_ptr<PoolState>> found;
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<PoolState>& known : all_) {
        if (std::shared_ptr<PoolState> pool = known.lock()) found.push_back(std::move(pool));
    }
    return found;
}

DevicePools::Amounts DevicePools::amounts(DeviceSession& device) const {
    Amounts sum;
    platform::Pools* pools = device.driver->pools();
    if (pools == nullptr) return sum;
    for (const std::shared_ptr<PoolState>& pool : live()) {
        platform::PoolUsage usage;
        if (!pools->usage(pool->handle, usage).ok()) continue;
        const std::uint64_t live = std::min(pool->live_bytes.load(std::memory_order_relaxed), usage.used_bytes);
        sum.cached_bytes += usage.reserved_bytes - std::min(usage.reserved_bytes, usage.used_bytes);
        sum.pending_bytes += usage.used_bytes - live;
    }
    return sum;
}

bool DevicePools::trim(DeviceSession& device) const {
    platform::Pools* pools = device.driver->pools();
    const std::vector<std::shared_ptr<PoolState>> all = live();
    if (pools == nullptr || all.empty()) return false;
    for (const std::shared_ptr<PoolState>& pool : all) (void)pools->trim(pool->handle, 0);
    return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
