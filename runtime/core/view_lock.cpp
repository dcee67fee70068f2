// SPDX-License-Identifier: Apache-2.0
// ViewLock: waiting for the lock, and unlocking.
#include "view_lock.hpp"

#include "futex.hpp"

#include <chrono>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

static_assert(sizeof(std::atomic<rules::ViewWord::Bits>) == 4);  // the size of a futex word

// Sleeps are bounded, so that a wake-up that is lost cannot hang.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(2);

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
            sleep_while(&word_, seen | Word::contended, longest_sleep);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
}

void ViewLock::wake_one() noexcept {
    wake_sleepers(&word_, 1);
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
