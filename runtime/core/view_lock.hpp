// SPDX-License-Identifier: Apache-2.0
// ViewLock: a buffer's lock and its open host views, in one word. With nothing to look at, opening and closing a view
// are one operation each, without the lock (ADR 77).
#pragma once

#include "view_word.hpp"

#include <atomic>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A lock for std::lock_guard and std::unique_lock. Not recursive. While it is held, views can close but not open: if no
// view is open, none is until it is unlocked.
class ViewLock {
public:
    using Word = rules::ViewWord;

    // Of a buffer that nobody else knows: as a new one.
    void begin() noexcept { word_.store(Word().bits, std::memory_order_relaxed); }

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
    // One operation: after it, the lock and the buffer may be gone. Waking needs only the address.
    void unlock() noexcept {
        constexpr Word::Bits held = Word::locked | Word::contended;
        if ((word_.fetch_and(~held, std::memory_order_acq_rel) & Word::contended) != 0) [[unlikely]]
            wake_one();
    }

    // These expect the lock not to be held.
    // Opens a view of the whole buffer. false: the lock must be taken.
    bool open_at_once(bool writes) noexcept {
        Word::Bits seen = 0;  // the usual value: loading it first takes half as long as the operation
        do {
            if (!Word{seen}.opens_at_once(writes)) return false;
        } while (!word_.compare_exchange_weak(seen, seen + Word::step(writes), std::memory_order_acquire,
                                              std::memory_order_relaxed));
        return true;
    }
    // Closes a view. true: the caller has to end the buffer; otherwise it may be gone already. Acquire, too: the end
    // comes after everything that any view did.
    bool close(bool writes) noexcept {
        return Word{word_.fetch_sub(Word::step(writes), std::memory_order_acq_rel) - Word::step(writes)}.ends();
    }
    // From now on only views hold the buffer. true: none does, and the caller has to end it. Without an open view
    // nobody else can open one any more: a load sees that, and all that closed views did.
    bool abandon() noexcept {
        if (!seen().any_open()) return true;
        return Word{word_.fetch_or(Word::abandoned, std::memory_order_acq_rel) | Word::abandoned}.ends();
    }

    // With the lock or without. Without it, the answer may be outdated.
    Word seen() const noexcept { return {word_.load(std::memory_order_acquire)}; }

    // These expect the lock to be held.
    void opened(bool writes) noexcept { word_.fetch_add(Word::step(writes), std::memory_order_relaxed); }
    void opened_another() noexcept { set(Word::others); }
    // Unlocks after the last view that the word does not count was closed. Returns as close().
    bool unlock_without_others() noexcept;
    // From here on opening takes the lock, until allow_at_once().
    void open_slowly() noexcept { set(Word::slow); }
    void allow_at_once(bool read_only) noexcept {
        if (read_only) set(Word::read_only);
        if (seen().has(Word::slow)) word_.fetch_and(~Word::slow, std::memory_order_relaxed);
    }

private:
    void set(Word::Bits bit) noexcept {
        if (!seen().has(bit)) word_.fetch_or(bit, std::memory_order_relaxed);
    }
    void lock_slowly() noexcept;
    void wake_one() noexcept;

    std::atomic<Word::Bits> word_{Word().bits};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
