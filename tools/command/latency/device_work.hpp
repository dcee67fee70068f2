// SPDX-License-Identifier: Apache-2.0
// The turns on a device: a launch, a graph whose argument changes, or a request to a service. One shared buffer, by the
// public interface alone.
#pragma once

#include "loop.hpp"
#include "plan.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>

#include <memory>

namespace isthmus::tools::latency {

// For one thread; the device must outlive it. Turns take no memory from the heap, but the library does for graphs
// (docs/performance.md).
class DeviceWork : public Work {
public:
    virtual const BufferBase& buffer() const noexcept = 0;
    // Ends the service. timed_out: it did not end, and was told to end at once.
    virtual Result<void> end() { return {}; }
};

// Allocates the buffer of this kind and loads the kernel. Errors: those of allocate_shared(), and of starting a graph
// or a service: unsupported and not_accessible where this machine cannot do it.
Result<std::unique_ptr<DeviceWork>> make_work(Device& device, const Request& request, std::optional<MemoryKind> kind);

}  // namespace isthmus::tools::latency
