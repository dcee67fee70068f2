// SPDX-License-Identifier: Apache-2.0
// DeviceAllocators: the allocators that a Device hands out, and its current one. They hold the device state, so Device
// owns them, not the state.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

class DeviceAllocators {
public:
    explicit DeviceAllocators(const std::shared_ptr<DeviceState>& device);

    // One fixed allocator per kind; an unknown kind gives that of MemoryKind::unknown.
    const Allocator& of(MemoryKind kind) const noexcept;
    bool is_own(const Allocator& allocator) const noexcept { return allocator == of(allocator.kind()); }
    // The allocator of this thread's innermost scope, otherwise the one that was set, otherwise device memory.
    Allocator current() const;
    // Whether current() is the allocator of device memory because neither a scope nor set() names one. No lock, and no
    // reference that other threads count, too: they would wait for each other at each allocation.
    bool is_unchanged() const;
    void set(Allocator allocator);  // empty: back to device memory

private:
    const Allocator* of_innermost_scope() const;

    const DeviceState* const device_;
    std::array<Allocator, memory_kind_count> by_kind_;
    std::atomic<bool> is_set_{false};
    mutable std::mutex mutex_;
    Allocator set_;  // guarded by mutex_; empty: none
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
