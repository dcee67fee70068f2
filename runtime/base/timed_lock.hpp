// SPDX-License-Identifier: Apache-2.0
// Taking a lock whose owner may stand in the driver: only for as long as the caller has.
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

// A driver call that gives work to a stream blocks while the stream's queue is full, for ever behind a kernel that
// hangs, and whoever made it holds the locks that order it with other work. Who has a deadline asks for those here; who
// gives work itself may wait as the driver would let it wait.
constexpr std::chrono::nanoseconds lock_grace = std::chrono::milliseconds(1);  // other calls return within it

// Asks again and again, as waits for events do, rather than by a timed lock: no function of newer C libraries, and
// ThreadSanitizer sees it. Not owned: `wait` ran out, but after lock_grace at the earliest, so that a call of another
// thread that is just being made does not pass for one that stands. What was waited is taken off `wait`.
inline std::unique_lock<std::mutex> lock_within(std::mutex& mutex, Wait& wait, std::chrono::nanoseconds otherwise,
                                                WaitPolicy policy) {
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
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
        const std::chrono::nanoseconds pause = pause_after(policy, waited);
        if (pause.count() > 0) std::this_thread::sleep_for(std::min(pause, longest - waited));
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
