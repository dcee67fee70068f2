// ScopedAllocator: what a thread allocates with on one device, for as long as a scope lasts.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>

namespace isthmus::inline v0 {

class Device;

// While it lives, Device::allocate<T>(count) of this device on this thread uses the allocator; other threads and other
// devices are as they were, and so is this one afterwards, however the scope is left (K5). Scopes nest and end in
// reverse order, on the thread that began them. Buffers outlive it. It may outlive the device.
class [[nodiscard]] ISTHMUS_API ScopedAllocator {
public:
    ScopedAllocator(const Device& device, Allocator allocator);
    ScopedAllocator(const ScopedAllocator&) = delete;
    ScopedAllocator& operator=(const ScopedAllocator&) = delete;
    ~ScopedAllocator();
};

}  // namespace isthmus::inline v0
