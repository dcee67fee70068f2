// SPDX-License-Identifier: Apache-2.0
// PolledLock: a lock that is nearly always free. Taking it is one operation, and releasing it a store.
#pragma once

#include <isthmus/wait.hpp>

#include "wait_pause.hpp"

#include <atomic>
#include <chrono>

namespace isthmus {
inline namespace v0 {
namespace detail {

// For std::lock_guard and std::unique_lock. Not recursive, not fair. For objects that several threads rarely use at the
// same time. A thread that does not get it asks again, as waits for the device do: the holder may be blocked in the
// driver.
class PolledLock {
public:
    void lock() noexcept {
        if (!try_lock()) lock_slowly();
    }
    bool try_lock() noexcept {
        // Acquire: pairs with the release in unlock(). The load keeps threads that ask again from taking the line away.
        return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
    }
    void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
    [[gnu::cold, gnu::noinline]] void lock_slowly() noexcept {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point begin = Clock::now();
        while (!try_lock()) {
            pause_between_queries(WaitPolicy::adaptive, Clock::now() - begin, std::chrono::nanoseconds::max());
        }
    }

    std::atomic<bool> held_{false};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
