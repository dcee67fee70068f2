// SPDX-License-Identifier: Apache-2.0
// DeviceAllocators: the allocators that a Device hands out, and its current one. They hold the device state, so Device
// owns them, not the state.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>

#include <array>
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
    void set(Allocator allocator);  // empty: back to device memory

private:
    const DeviceState* const device_;
    std::array<Allocator, memory_kind_count> by_kind_;
    mutable std::mutex mutex_;
    Allocator default_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
