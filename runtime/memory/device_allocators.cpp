// SPDX-License-Identifier: Apache-2.0
// Allocators of a device: one per kind, the current one of each thread, and allocation through
// them.
#include "device_allocators.hpp"

#include "allocation.hpp"
#include "device_state.hpp"
#include "memory_source.hpp"
#include "piece_release.hpp"
#include "stream_state.hpp"

#include <isthmus/device.hpp>
#include <isthmus/scoped_allocator.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

struct AllocatorScope {
    // A weak_ptr keeps the state's storage, so that no later device gets the same address.
    std::weak_ptr<const detail::DeviceState> known;
    const detail::DeviceState* device;
    Allocator allocator;
};
// Destructors of static objects may run after the thread's own objects, such as this list, are destroyed.
constinit thread_local bool gone = false;

// The scopes of the thread that are open: most threads have none, and then look no further.
constinit thread_local std::size_t open_here [[gnu::tls_model("initial-exec")]] = 0;

struct OpenScopes {
    std::vector<AllocatorScope> open;
    OpenScopes() = default;
    OpenScopes(const OpenScopes&) = delete;
    OpenScopes& operator=(const OpenScopes&) = delete;
    ~OpenScopes() { gone = true; }
};

// This thread's scopes, innermost last; nullptr once destroyed. Device pointers are compared, never dereferenced.
std::vector<AllocatorScope>* scopes() {
    if (gone) return nullptr;
    thread_local OpenScopes of_thread;
    return &of_thread.open;
}

}  // namespace

namespace detail {

DeviceAllocators::DeviceAllocators(const std::shared_ptr<DeviceState>& device) : device_(device.get()) {
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        by_kind_[static_cast<std::size_t>(kind)] = MemorySource(device, static_cast<MemoryKind>(kind));
    }
}

const Allocator& DeviceAllocators::of(MemoryKind kind) const noexcept {
    const auto at = static_cast<std::size_t>(kind);
    return by_kind_[at < by_kind_.size() ? at : 0];
}

const Allocator* DeviceAllocators::of_innermost_scope() const {
    if (open_here == 0) return nullptr;
    const std::vector<AllocatorScope>* const open = scopes();
    if (open == nullptr) return nullptr;
    const auto inner = std::find_if(open->rbegin(), open->rend(),
                                    [&](const AllocatorScope& scope) { return scope.device == device_; });
    return inner != open->rend() ? &inner->allocator : nullptr;
}

bool DeviceAllocators::is_unchanged() const {
    return !is_set_.load(std::memory_order_acquire) && of_innermost_scope() == nullptr;  // pairs with set()
}

Allocator DeviceAllocators::current() const {
    if (const Allocator* const inner = of_innermost_scope()) return *inner;
    // Another thread of the parent may have held the lock at the fork, also below.
    if (device_->config->forked()) return of(MemoryKind::device);
    const std::lock_guard lock(mutex_);
    return set_ ? set_ : of(MemoryKind::device);
}

void DeviceAllocators::set(Allocator allocator) {
    if (device_->config->forked()) return;
    const std::lock_guard lock(mutex_);
    std::swap(set_, allocator);
    is_set_.store(static_cast<bool>(set_), std::memory_order_release);
}

namespace {

// A buffer of the device's own allocator does not keep it: its memory is known to be the device's.
Untyped allocate_by(const DeviceAllocators& own, const std::shared_ptr<DeviceState>& device, const Allocator& allocator,
                    const Amount& amount, KindReason reason) {
    if (own.is_own(allocator)) return allocate_kind(device, allocator.kind(), amount, reason);
    return allocate_from(device, allocator, amount, text(reason));
}

}  // namespace

}  // namespace detail

ScopedAllocator::ScopedAllocator(const Device& device, Allocator allocator) {
    if (std::vector<AllocatorScope>* const open = scopes()) {
        open->push_back({device.state(), device.state().get(), std::move(allocator)});
        open_here = open->size();
    }
}
ScopedAllocator::~ScopedAllocator() {
    std::vector<AllocatorScope>* const open = scopes();
    if (open == nullptr || open->empty()) return;
    // Destroyed last: an allocator's destructor may run user code.
    const AllocatorScope ended = std::move(open->back());
    open->pop_back();
    open_here = open->size();
}

Allocator Device::allocator(MemoryKind kind) const {
    return allocators_->of(kind);
}
Allocator Device::host_allocator(const HostPlacement& placement) const {
    return detail::MemorySource(state_, MemoryKind::host, placement);
}
Allocator Device::current_allocator() const {
    return allocators_->current();
}
void Device::set_allocator(Allocator allocator) {
    allocators_->set(std::move(allocator));
}
CacheUsage Device::cache_usage() const {
    if (state_->config->forked()) return {};  // another thread of the parent may have held the cache's lock
    const detail::PieceCache::Usage usage = state_->cache.usage();
    return {usage.bytes, usage.pieces, state_->cache.limit_bytes(), usage.taken, usage.missed};
}
Result<std::uint64_t> Device::trim_cache(std::uint64_t keep_bytes) {
    if (state_->bars(rules::PublicCall::release_memory)) return state_->refusal(rules::PublicCall::release_memory);
    detail::end_dropped_buffers(*state_, true);
    return detail::trim_cache(*state_, keep_bytes);
}
void Device::set_out_of_memory_handler(std::function<bool(std::size_t bytes)> handler) {
    if (!state_->config->forked()) state_->set_out_of_memory_handler(std::move(handler));
}

Result<std::shared_ptr<detail::BufferState>> Stream::allocate_bytes(const Allocator* allocator, std::size_t count,
                                                                    std::size_t element_bytes, std::size_t alignment) {
    constexpr auto reason = detail::KindReason::in_order;
    const detail::Amount amount{count, element_bytes, alignment};
    if (allocator != nullptr) return detail::allocate_from(state_->device, *allocator, amount, text(reason), this);
    return detail::allocate_kind(state_->device, MemoryKind::pool, amount, reason, this);
}

Device::Untyped Device::allocate_current(std::size_t count, std::size_t element_bytes, std::size_t alignment) {
    constexpr auto reason = detail::KindReason::by_current_allocator;
    const detail::Amount amount{count, element_bytes, alignment};
    if (allocators_->is_unchanged()) return detail::allocate_kind(state_, MemoryKind::device, amount, reason);
    return detail::allocate_by(*allocators_, state_, allocators_->current(), amount, reason);
}
Device::Untyped Device::allocate_from(const Allocator& allocator, std::size_t count, std::size_t element_bytes,
                                      std::size_t alignment) {
    constexpr auto reason = detail::KindReason::by_allocator;
    return detail::allocate_by(*allocators_, state_, allocator, {count, element_bytes, alignment}, reason);
}
Device::Untyped Device::allocate_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                       MemoryKind kind) {
    using detail::KindReason;
    const bool known = static_cast<std::size_t>(kind) < static_cast<std::size_t>(memory_kind_count);
    return detail::allocate_kind(state_, known ? kind : MemoryKind::unknown, {count, element_bytes, alignment},
                                 state_->synchronous ? KindReason::on_cpu_device : KindReason::by_kind);
}
Device::Untyped Device::allocate_host_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                            const HostPlacement& placement) {
    return detail::allocate_host(state_, {count, element_bytes, alignment}, placement);
}
Device::Untyped Device::allocate_shared_bytes(std::size_t count, std::size_t element_bytes, std::size_t alignment,
                                              const SharedUse& use, bool is_signed) {
    return detail::allocate_shared(state_, {count, element_bytes, alignment}, use, is_signed);
}

}  // namespace v0
}  // namespace isthmus
