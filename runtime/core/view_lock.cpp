// SPDX-License-Identifier: Apache-2.0
// ViewLock: waiting for the lock, and unlocking.
#include "view_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

static_assert(sizeof(std::atomic<rules::ViewWord::Bits>) == 4);  // the size of a futex word

// The waits and notifications of std::atomic throw if the system call fails. Here a failure only costs time: a thread
// that could not sleep looks again, and sleeps are capped at 2 ms, so that a lost wake-up cannot hang.
void sleep_while(std::atomic<rules::ViewWord::Bits>& word, rules::ViewWord::Bits seen) noexcept {
    constexpr timespec longest{0, 2'000'000};
    if (::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &longest, nullptr, 0) == 0) return;
    if (errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT) std::this_thread::yield();
}

}  // namespace

// A thread that has slept takes the lock as contended, because others may still sleep: unlocking wakes one, and that
// one wakes the next.
void ViewLock::lock_slowly() noexcept {
    Word::Bits slept = 0;
    Word::Bits seen = word_.load(std::memory_order_relaxed);
    for (;;) {
        if ((seen & Word::locked) == 0) {
            if (word_.compare_exchange_weak(seen, seen | Word::locked | slept, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
                return;
            }
        } else if ((seen & Word::contended) != 0 ||
                   word_.compare_exchange_weak(seen, seen | Word::contended, std::memory_order_relaxed)) {
            slept = Word::contended;
            sleep_while(word_, seen | Word::contended);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
}

void ViewLock::wake_one() noexcept {
    (void)::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

bool ViewLock::unlock_without_others() noexcept {
    constexpr Word::Bits gone = Word::locked | Word::contended | Word::others;
    const Word::Bits before = word_.fetch_and(~gone, std::memory_order_acq_rel);
    if ((before & Word::contended) != 0) wake_one();
    return Word{before & ~gone}.ends();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
