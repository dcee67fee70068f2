// SPDX-License-Identifier: Apache-2.0
// StoreLock: waiting for the lock, and waking a thread that waits.
#include "store_lock.hpp"

#include "cpu_pause.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <thread>

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
    const int before = errno;  // a call that succeeds changes no errno
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!try_lock()) {
        constexpr timespec longest{0, longest_sleep_ns};
        const long slept = ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 1, &longest, nullptr, 0);
        const bool may_sleep = slept == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT;
        if (!may_sleep) std::this_thread::yield();  // a filter of system calls refuses the sleep
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    errno = before;
}

void StoreLock::wake_one(const void* word) noexcept {
    (void)::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
