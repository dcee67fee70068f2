// SPDX-License-Identifier: Apache-2.0
// What a wait for device work does between two queries, and its remaining time.
#pragma once

#include <isthmus/wait.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A wait of the adaptive policy spins for this long, which covers short kernels, then yields its core between two
// queries until `yielding` is over. A sleep takes about 60 µs longer than asked for (Linux, timer slack of 50 µs),
// which is a twentieth of a pinned copy of 64 MiB: no shorter sleep would help a wait of a millisecond.
inline constexpr std::chrono::nanoseconds spinning = std::chrono::microseconds(100);
inline constexpr std::chrono::nanoseconds yielding = std::chrono::milliseconds(2);

// How long a wait that has lasted `waited` sleeps before its next query; 0: not at all. A query costs about 0.1 µs.
// Adaptive: each sleep is a 200th of the time waited (20 to 500 µs), and the core is free for other threads. Sleep: a
// tenth.
constexpr std::chrono::nanoseconds pause_after(WaitPolicy policy, std::chrono::nanoseconds waited) noexcept {
    constexpr std::chrono::nanoseconds least = std::chrono::microseconds(20);
    constexpr std::chrono::nanoseconds most = std::chrono::microseconds(500);
    if (policy == WaitPolicy::spin) return {};
    if (policy == WaitPolicy::adaptive && waited <= yielding) return {};
    return std::clamp(waited / (policy == WaitPolicy::adaptive ? 200 : 10), least, most);
}

// Does the wait let another thread have the core where it does not sleep?
constexpr bool yields_after(WaitPolicy policy, std::chrono::nanoseconds waited) noexcept {
    return policy == WaitPolicy::adaptive && waited > spinning && waited <= yielding;
}

// What a wait does between two queries, for at most `left`.
inline void pause_between_queries(WaitPolicy policy, std::chrono::nanoseconds waited, std::chrono::nanoseconds left) {
    const std::chrono::nanoseconds pause = pause_after(policy, waited);
    if (pause.count() > 0) {
        std::this_thread::sleep_for(std::min(pause, left));
    } else if (yields_after(policy, waited)) {
        std::this_thread::yield();
    }
}

// One deadline for several waits.
class Deadline {
public:
    Deadline(const Wait& wait, std::chrono::nanoseconds otherwise) noexcept
        : refuse_(wait.refuse), timeout_(wait.timeout.value_or(otherwise)) {}
    Wait left() const noexcept {
        if (refuse_) return Wait::never();
        const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin_;
        return Wait::at_most(waited < timeout_ ? timeout_ - waited : std::chrono::nanoseconds(0));
    }

private:
    const bool refuse_;
    const std::chrono::nanoseconds timeout_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
