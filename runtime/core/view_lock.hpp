// ViewLock: a buffer's lock, and in the same word the host views that are open. Where there is nothing to look at,
// opening and closing a view are one operation each, without the lock (ADR 77).
#pragma once

#include "view_word.hpp"

#include <atomic>

namespace isthmus::inline v0::detail {

// A lock for std::lock_guard and std::unique_lock. While it is held no view opens, but views close all the same: who
// finds none open knows that none is until he unlocks. Not recursive.
class ViewLock {
public:
    using Word = rules::ViewWord;

    void lock() noexcept {
        if (!try_lock()) lock_slowly();
    }
    bool try_lock() noexcept {
        Word::Bits seen = word_.load(std::memory_order_relaxed);
        // Acquire, here and below: pairs with the release of unlock() and of close().
        return (seen & Word::locked) == 0 &&
               word_.compare_exchange_strong(seen, seen | Word::locked, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    void unlock() noexcept { (void)unlock_without(0); }

    // Expect the lock not to be held.
    // A view of all of the buffer. false: it takes the lock.
    bool open_at_once(bool writes) noexcept {
        Word::Bits seen = 0;  // as it mostly is: to look first takes half as long as the operation
        do {
            if (!Word{seen}.opens_at_once(writes)) return false;
        } while (!word_.compare_exchange_weak(seen, seen + Word::step(writes), std::memory_order_acquire,
                                              std::memory_order_relaxed));
        return true;
    }
    // … is closed. true: the buffer is to be ended; else it may be gone. Acquire, too: the end comes behind what every
    // view did.
    bool close(bool writes) noexcept {
        return Word{word_.fetch_sub(Word::step(writes), std::memory_order_acq_rel) - Word::step(writes)}.ends();
    }
    // Nothing but views holds the buffer any more. true: nothing does, and it is to be ended.
    bool abandon() noexcept {
        return Word{word_.fetch_or(Word::abandoned, std::memory_order_acq_rel) | Word::abandoned}.ends();
    }

    // With the lock or without. Without it, what is found may be over.
    Word seen() const noexcept { return {word_.load(std::memory_order_acquire)}; }

    // Expect the lock to be held.
    void opened(bool writes) noexcept { word_.fetch_add(Word::step(writes), std::memory_order_relaxed); }
    void opened_another() noexcept { set(Word::others); }
    // … the last of those was closed. As close().
    bool unlock_without_others() noexcept { return unlock_without(Word::others); }
    // From here on opening takes the lock, until it is allowed without.
    void open_slowly() noexcept { set(Word::slow); }
    void allow_at_once(bool read_only) noexcept {
        if (read_only) set(Word::read_only);
        if (seen().has(Word::slow)) word_.fetch_and(~Word::slow, std::memory_order_relaxed);
    }

private:
    void set(Word::Bits bit) noexcept {
        if (!seen().has(bit)) word_.fetch_or(bit, std::memory_order_relaxed);
    }
    bool unlock_without(Word::Bits others) noexcept;
    void lock_slowly() noexcept;

    std::atomic<Word::Bits> word_{Word().bits};
};

}  // namespace isthmus::inline v0::detail
