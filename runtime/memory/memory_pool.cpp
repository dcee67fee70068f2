// SPDX-License-Identifier: Apache-2.0
// MemoryPool: statistics, limits and peer access.
#include <isthmus/device.hpp>
#include <isthmus/memory_pool.hpp>

#include "device_state.hpp"
#include "memory_errors.hpp"
#include "memory_pool_state.hpp"
#include "memory_source.hpp"
#include "piece_release.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

// Calls the pool interface of a usable device.
template <class Ask>
Result<void> ask(detail::DeviceState& device, std::string_view what, Ask ask_pools) {
    if (device.bars(rules::PublicCall::use_pool)) return device.refusal(rules::PublicCall::use_pool, what);
    const platform::Status status = ask_pools(*device.driver->pools());
    if (!status.ok()) return device.failure(status, what);
    return {};
}

Result<void> no_pools(const detail::DeviceState& device, MemoryKind kind) {
    if (kind != MemoryKind::pool && kind != MemoryKind::managed_pool) {
        return make_error<errors::no_pools_of_kind>(name(kind));
    }
    if (device.synchronous) return make_error<errors::no_pools_on_cpu>();
    return detail::offers(device, kind);
}

}  // namespace

MemoryPool::MemoryPool(std::shared_ptr<detail::DeviceState> device, std::shared_ptr<detail::PoolState> pool)
    : device_(std::move(device)), pool_(std::move(pool)), allocator_(detail::MemorySource(device_, pool_)) {}

MemoryKind MemoryPool::kind() const noexcept {
    return pool_->kind;
}

Result<PoolUsage> MemoryPool::usage() const {
    platform::PoolUsage found;
    Result<void> asked = ask(*device_, "asking a pool", [&](auto& pools) { return pools.usage(pool_->handle, found); });
    if (!asked) return std::move(asked).error();
    // What is kept for later allocations is in use for the driver only.
    const std::uint64_t kept = device_->pools.is_own(*pool_) ? device_->cache.kept_bytes(pool_->kind) : 0;
    const std::uint64_t used = found.used_bytes - std::min(found.used_bytes, kept);
    return PoolUsage{found.reserved_bytes, found.reserved_high_bytes, used, found.used_high_bytes};
}

Result<void> MemoryPool::reset_high_marks() {
    return ask(*device_, "resetting a pool's high marks",
               [&](auto& pools) { return pools.reset_high_marks(pool_->handle); });
}

Result<void> MemoryPool::trim(std::uint64_t keep_bytes) {
    if (device_->usable() && device_->pools.is_own(*pool_)) detail::trim_cache_of(*device_, pool_->kind);
    return ask(*device_, "trimming a pool", [&](auto& pools) { return pools.trim(pool_->handle, keep_bytes); });
}

Result<void> MemoryPool::set_release_threshold(std::uint64_t bytes) {
    return ask(*device_, "setting a pool's release threshold",
               [&](auto& pools) { return pools.set_release_threshold(pool_->handle, bytes); });
}

Result<void> MemoryPool::allow(const Device& other, bool allowed) {
    detail::DeviceState& user = *other.state();
    if (user.books != device_->books) return make_error<errors::pool_letting_in_another_runtime>();
    if (&user == device_.get()) {
        if (allowed) return {};
        return make_error<errors::pool_shutting_out_its_device>();
    }
    if (user.synchronous) return make_error<errors::pool_letting_in_the_cpu>();
    if (user.bars(rules::PublicCall::pool_access)) return user.refusal(rules::PublicCall::pool_access);
    if (device_->bars(rules::PublicCall::pool_access)) return device_->refusal(rules::PublicCall::pool_access);
    const int owner = device_->driver->facts().ordinal;
    bool reaches = false;
    if (platform::Transfers* transfers = user.driver->transfers()) {
        const platform::Status status = transfers->can_reach(owner, reaches);
        if (!status.ok()) return user.failure(status, "asking whether devices reach each other");
    }
    if (!reaches) return make_error<errors::pool_letting_in_unreachable_device>();
    Result<void> set = ask(*device_, "letting a device into a pool", [&](auto& pools) {
        return pools.set_access(pool_->handle, user.driver->facts().ordinal, allowed);
    });
    if (set) device_->pools.record_access(*device_, device_->books->peers, *pool_, user.index, allowed);
    return set;
}

bool MemoryPool::allows(const Device& other) const noexcept {
    const detail::DeviceState& user = *other.state();
    return &user == device_.get() || (user.books == device_->books && pool_->allows(user.index));
}

Result<MemoryPool> Device::create_pool(const PoolOptions& options) {
    if (state_->bars(rules::PublicCall::create_pool)) return state_->refusal(rules::PublicCall::create_pool);
    if (Result<void> possible = no_pools(*state_, options.kind); !possible) return std::move(possible).error();
    platform::PoolRequest request;
    request.kind = options.kind;
    request.release_threshold_bytes = options.release_threshold_bytes;
    request.max_bytes = options.max_bytes;
    Result<std::shared_ptr<detail::PoolState>> made = state_->pools.create(*state_, request);
    if (!made) return std::move(made).error();
    return MemoryPool(state_, std::move(made).value());
}

Result<MemoryPool> Device::pool(MemoryKind kind) {
    if (state_->bars(rules::PublicCall::take_pool)) return state_->refusal(rules::PublicCall::take_pool);
    if (Result<void> possible = no_pools(*state_, kind); !possible) return std::move(possible).error();
    if (state_->books->captures.here() && !state_->pools.has_own(kind)) return detail::in_capture("creating a pool");
    Result<std::shared_ptr<detail::PoolState>> own = state_->pools.own(*state_, kind);
    if (!own) return std::move(own).error();
    return MemoryPool(state_, std::move(own).value());
}

}  // namespace v0
}  // namespace isthmus
