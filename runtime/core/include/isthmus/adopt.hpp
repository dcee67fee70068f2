// SPDX-License-Identifier: Apache-2.0
// Adopting memory that other code allocated: a camera's frame, a decoder's picture, a file, another library's buffer.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/event.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <functional>
#include <optional>

namespace isthmus {
inline namespace v0 {

// Options of Device::adopt(). The memory still belongs to its owner, which must keep it valid until `release` was
// called.
//   Memory that the driver knows (pinned, registered, managed or device memory of other code) is used as what it is.
//   Ordinary memory is used in place where the device can access it, registered where that is needed or pays, and
//   copied around each use (LaunchPath::stage) where neither is possible: driver mappings without pages (VM_IO,
//   VM_PFNMAP), and files and read-only memory that the driver refuses. BufferBase::explain() says which, and why.
// If the owner writes the memory from outside, as a camera does, it must write while a write view is open
// (write_on_host()): then no kernel reads half of it, and the next use sees the new contents.
struct AdoptOptions {
    // As for allocate_shared(), but the placement stays as it is. `kind` overrides the choice: host (in place,
    // unregistered), registered, or device (copied). Memory that may not be written must be declared as read by both
    // sides.
    SharedUse use{};
    // Called exactly once when no use of the memory is left, from the thread that ends the last one: after release(),
    // or the end of the buffer, of a graph that holds it, or of the runtime; also on a lost device, whose work has
    // ended. If the driver does not unregister the memory at once, it is called from a later call on the device that
    // has tried again.
    // Not called:
    //   - if adopt() fails: the memory was not adopted;
    //   - in the child of a fork(): the parent still has the memory;
    //   - while a hung kernel uses the memory, until that ends;
    //   - if the driver still has the memory registered when the device closes (the log says so): the memory must then
    //     stay as it is until the process ends.
    // It must be noexcept and must not call this library.
    std::function<void(void* pointer, std::size_t bytes)> release{};
    isthmus_adopt_callbacks c_release{};  // the same in C; called after `release` if both are given
    // The first use, on either side, waits for both: an event of any device (for other code's work, record it on a
    // wrapped stream), and a function that returns when the memory is ready, such as poll() on a sync file. The
    // function runs on a thread of the driver and must not call this library. On the CPU device, and where the CPU has
    // to copy the memory, adopt() itself waits.
    std::optional<Event> after_event{};
    std::function<void()> after_function{};
};

}  // namespace v0
}  // namespace isthmus
