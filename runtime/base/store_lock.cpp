// SPDX-License-Identifier: Apache-2.0
// StoreLock: waiting for the lock, and waking a thread that waits.
#include "store_lock.hpp"

#include "cpu_pause.hpp"
#include "futex.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {

// A thread counts as a sleeper until it has the lock, and every unlock that looks before that wakes one: also a thread
// that was woken and came too late is woken again.
void StoreLock::lock_slowly() noexcept {
    constexpr int looks = 64;
    for (int look = 0; look < looks; ++look) {
        if (try_lock()) return;
        cpu_pause();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!try_lock()) sleep_while(&word_, 1, std::chrono::nanoseconds(longest_sleep_ns));
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void StoreLock::wake_one(const void* word) noexcept {
    wake_sleepers(word, 1);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
