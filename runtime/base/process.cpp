// SPDX-License-Identifier: Apache-2.0
// Counts forks, and keeps objects until the process ends.
#include "process.hpp"

#include <pthread.h>

#include <utility>

namespace isthmus::process {

constinit std::atomic<std::uint64_t> forks{0};
constinit thread_local ThreadState here;
constinit thread_local std::uint32_t numbered = 0;

std::uint32_t number_thread() noexcept {
    static constinit std::atomic<std::uint32_t> last{0};
    do {
        numbered = last.fetch_add(1, std::memory_order_relaxed) + 1;
    } while (numbered == 0);  // after 2^32 threads
    return numbered;
}

namespace {
void in_child() {
    forks.fetch_add(1, std::memory_order_relaxed);
}
// In a forked child drivers answer 3, and an access to managed memory faults. The counter lets the runtime recognize a
// child before it makes any call.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, in_child);
}  // namespace

// Without a lock, which another thread of the parent might have held at a fork. Never freed: exit handlers must not.
void keep_until_exit(std::shared_ptr<void> held) {
    struct Kept {
        std::shared_ptr<void> held;
        Kept* next;
    };
    static constinit std::atomic<Kept*> all{nullptr};
    auto* const kept = new Kept{std::move(held), all.load(std::memory_order_relaxed)};
    while (!all.compare_exchange_weak(kept->next, kept, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

}  // namespace isthmus::process
