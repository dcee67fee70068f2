// SPDX-License-Identifier: Apache-2.0
// Locks a mutex whose owner may be blocked in the driver, for no longer than the caller may wait.
#pragma once

#include <isthmus/wait.hpp>

#include "wait_pause.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A driver call that submits work to a stream blocks while the stream's queue is full, for ever if a kernel hangs
// there. Its thread holds the locks that order the work with other work. Calls with a deadline take these locks with
// lock_within(). Calls that submit work may block, as the driver's own calls do.
constexpr std::chrono::nanoseconds lock_grace = std::chrono::milliseconds(1);  // ordinary calls return within it

// Polls, as waits for events do, instead of using a timed lock: that needs no function of newer C libraries, and
// ThreadSanitizer sees it. The result does not own the lock if `wait` ran out, but lock_grace is waited at least, so
// that another thread's ordinary call is not taken for a blocked one. The time waited is subtracted from `wait`.
template <class Mutex>
std::unique_lock<Mutex> lock_within(Mutex& mutex, Wait& wait, std::chrono::nanoseconds otherwise, WaitPolicy policy) {
    std::unique_lock<Mutex> lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) return lock;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const std::chrono::nanoseconds timeout =
        wait.refuse ? std::chrono::nanoseconds(0) : wait.timeout.value_or(otherwise);
    const std::chrono::nanoseconds longest = std::max(timeout, lock_grace);
    for (;;) {
        const std::chrono::nanoseconds waited = Clock::now() - begin;
        if (lock.try_lock()) {
            if (!wait.refuse) wait.timeout = std::max(timeout - waited, std::chrono::nanoseconds(0));
            return lock;
        }
        if (waited >= longest) return lock;
        pause_between_queries(policy, waited, longest - waited);
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
