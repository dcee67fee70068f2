// SPDX-License-Identifier: Apache-2.0
// Which process this is, and whether this thread runs a host function: what bars calls of a runtime. A runtime that was
// opened before fork() is of no use in the child.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace isthmus::process {

// Grows in the child of every fork(). One load; no system call.
extern constinit std::atomic<std::uint64_t> forks;
inline std::uint64_t generation() noexcept {
    return forks.load(std::memory_order_relaxed);
}

// Does the calling thread run a host function? The driver then answers most calls with 800, or may wait for ever, so
// that the runtime is refused to it (S20). Initial-exec: one load, and no call, on the way to every launch.
extern constinit thread_local bool in_host_function [[gnu::tls_model("initial-exec")]];

// Keeps something until the process ends, reachable and untouched: what a hung kernel still holds (R5).
void keep_until_exit(std::shared_ptr<void> held);

}  // namespace isthmus::process
