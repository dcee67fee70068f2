// SPDX-License-Identifier: Apache-2.0
// ScopedAllocator: the allocator of one thread for one device, for the duration of a scope.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/export.hpp>

namespace isthmus {
inline namespace v0 {

class Device;

// For its lifetime, Device::allocate<T>(count) of this device on this thread uses the allocator. Other threads and
// devices are unaffected, and the previous allocator returns on every exit path (K5). Scopes nest and end in reverse
// order, on the thread that began them. Buffers may outlive the scope. The scope may outlive the device.
class [[nodiscard]] ISTHMUS_API ScopedAllocator {
public:
    ScopedAllocator(const Device& device, Allocator allocator);
    ScopedAllocator(const ScopedAllocator&) = delete;
    ScopedAllocator& operator=(const ScopedAllocator&) = delete;
    ~ScopedAllocator();
};

}  // namespace v0
}  // namespace isthmus
