// Which process this is: a runtime opened before fork() is of no use in the child.
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

// Keeps something until the process ends, reachable and untouched: what a hung kernel still holds (R5).
void keep_until_exit(std::shared_ptr<void> held);

}  // namespace isthmus::process
