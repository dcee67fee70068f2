// SPDX-License-Identifier: Apache-2.0
// Counts forks, and keeps objects until the process ends.
#include "process.hpp"

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

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

void keep_until_exit(std::shared_ptr<void> held) {
    static std::mutex mutex;
    static auto* kept = new std::vector<std::shared_ptr<void>>;  // never destroyed: exit handlers must not free it
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(held));
}

}  // namespace isthmus::process
