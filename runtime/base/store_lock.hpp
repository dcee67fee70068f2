// SPDX-License-Identifier: Apache-2.0
// StoreLock: a lock that is taken by one operation and given back by a store, and whose waiters sleep.
#pragma once

#include <atomic>
#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For std::lock_guard and std::unique_lock. Not recursive, not fair. For locks of hot paths that are nearly always
// free: one that is only tried (a lane's), or one whose holder may be blocked in the driver (a stream's). A thread that
// does not get it looks again for about a microsecond and then sleeps, so that a holder of lower priority can go on.
class StoreLock {
public:
    void lock() noexcept {
        if (!try_lock()) lock_slowly();
    }
    // The load keeps threads that ask again from taking the line away. Acquire: pairs with the release in unlock().
    bool try_lock() noexcept {
        return word_.load(std::memory_order_relaxed) == 0 && word_.exchange(1, std::memory_order_acquire) == 0;
    }
    // Looks first: with the store the next holder has the lock, and may end what it is part of (a lane's device).
    // Waking needs only the address. A thread that goes to sleep behind the load is missed: it sleeps for at most
    // longest_sleep_ns then.
    void unlock() noexcept {
        const bool any_sleeper = sleepers_.load(std::memory_order_relaxed) != 0;
        word_.store(0, std::memory_order_release);
        if (any_sleeper) [[unlikely]]
            wake_one(&word_);
    }
    static constexpr long longest_sleep_ns = 1'000'000;

private:
    void lock_slowly() noexcept;
    static void wake_one(const void* word) noexcept;

    std::atomic<std::uint32_t> word_{0};  // a futex; 0: nobody has it
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
