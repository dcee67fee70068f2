// Adopting memory that somebody else allocated: a camera's frame, a decoder's picture, a file, another library's
// buffer.
#pragma once

#include <isthmus/adopt.h>
#include <isthmus/event.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <functional>
#include <optional>

namespace isthmus::inline v0 {

// What Device::adopt() is told. The memory stays its owner's, who lets it stand until `release` was called.
//   Where the driver knows it (pinned, registered, managed or device memory of other code), it is used as what it is.
//   Ordinary memory is used in place where the device reaches it, registered where that is needed or pays, and copied
//   around each use (LaunchPath::stage) where neither is possible: mappings of drivers that have no pages (VM_IO,
//   VM_PFNMAP), files and read-only memory that the driver refuses. BufferBase::explain() says which, and why.
// What the owner writes from outside, as a camera does, it writes while a write view is open (write_on_host()), so that
// no kernel reads half of it, and the next use knows of it.
struct AdoptOptions {
    // As for allocate_shared(); the placement is what it is. `kind` overrides the choice: host (in place as it is),
    // registered, or device (copied). Memory that may not be written has to be declared as read by both sides.
    SharedUse use{};
    // Called exactly once, from whichever thread lets go last, when no use of the memory is left: behind release(), the
    // buffer's end, a graph's that holds it, or the runtime's; also on a lost device, whose work has ended. Where the
    // driver does not let go of registered memory at once, from a later call on the device that tried again. Not
    // called: where adopt() fails (the memory was never taken); in the child of a fork(), whose parent still has it;
    // while a kernel hangs that uses it, until that ends; and where the driver has it registered even when the device
    // closes (the log says so): then the memory must stay as it is until the process ends. It must be noexcept and
    // calls nothing of this library.
    std::function<void(void* pointer, std::size_t bytes)> release{};
    isthmus_adopt_callbacks c_release{};  // the same in C; called behind `release` where both are given
    // The first use, on whichever side, waits for these: an event of any device (of code beside the runtime: record it
    // on a wrapped stream), and a function that returns when the memory is ready, as poll() on a sync file. The
    // function runs on a thread of the driver's and calls nothing of this library; on the CPU device, and where the
    // memory has to be copied by the CPU, adopt() itself waits.
    std::optional<Event> after_event{};
    std::function<void()> after_function{};
};

}  // namespace isthmus::inline v0
