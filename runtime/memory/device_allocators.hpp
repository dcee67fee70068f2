// DeviceAllocators: the allocators that a Device hands out, and the one that it uses itself. They keep the device, so
// the Device holds them and not its state.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/memory_kind.hpp>

#include <array>
#include <memory>
#include <mutex>

namespace isthmus::inline v0::detail {

struct DeviceState;

class DeviceAllocators {
public:
    explicit DeviceAllocators(const std::shared_ptr<DeviceState>& device);

    // Always the same one for a kind; unknown kinds answer as MemoryKind::unknown.
    const Allocator& of(MemoryKind kind) const noexcept;
    // The innermost scope of this thread, else what was set, else device memory.
    Allocator current() const;
    void set(Allocator allocator);  // empty: device memory again

private:
    const DeviceState* const device_;
    std::array<Allocator, memory_kind_count> by_kind_;
    mutable std::mutex mutex_;
    Allocator default_;
};

}  // namespace isthmus::inline v0::detail
