// SPDX-License-Identifier: Apache-2.0
// Which process this is, and whether this thread runs a host function: both bar calls of a runtime. A runtime that was
// opened before fork() cannot be used in the child.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace isthmus::process {

// Incremented in the child of every fork(). One load; no system call.
extern constinit std::atomic<std::uint64_t> forks;
inline std::uint64_t generation() noexcept {
    return forks.load(std::memory_order_relaxed);
}

// Does the calling thread run a host function? The driver then answers most calls with 800, or may wait for ever, so
// calls of the runtime are refused (S20). Initial-exec: one load, and no call, at every launch.
extern constinit thread_local bool in_host_function [[gnu::tls_model("initial-exec")]];

// Keeps an object reachable and unchanged until the process ends: memory that a hung kernel may still use (R5).
void keep_until_exit(std::shared_ptr<void> held);

}  // namespace isthmus::process
