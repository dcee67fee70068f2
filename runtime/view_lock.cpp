// ViewLock: waiting for the lock, and letting go of it.
#include "view_lock.hpp"

namespace isthmus::inline v0::detail {

// Who has slept takes the lock as contended, because others may sleep still: unlocking wakes one, and that one wakes
// the next.
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
            word_.wait(seen | Word::contended, std::memory_order_relaxed);
            seen = word_.load(std::memory_order_relaxed);
        }
    }
}

// One operation: behind it the lock, and the buffer with it, may be gone. Waking needs its address only.
bool ViewLock::unlock_without(Word::Bits others) noexcept {
    constexpr Word::Bits held = Word::locked | Word::contended;
    const Word::Bits before = word_.fetch_and(~(held | others), std::memory_order_acq_rel);
    if ((before & Word::contended) != 0) word_.notify_one();
    return others != 0 && Word{before & ~(held | others)}.ends();
}

}  // namespace isthmus::inline v0::detail
