// SPDX-License-Identifier: Apache-2.0
// The pauses of a wait for device work, and its remaining time.
#pragma once

#include <isthmus/wait.hpp>

#include <algorithm>
#include <chrono>

namespace isthmus {
inline namespace v0 {
namespace detail {

// How long a wait that has lasted `waited` pauses before its next query; 0: not at all. A query costs about 0.1 µs.
// Adaptive: spins for short kernels. For long kernels each pause is a tenth of the time waited (20 to 500 µs), and the
// core is free for other threads.
constexpr std::chrono::nanoseconds pause_after(WaitPolicy policy, std::chrono::nanoseconds waited) noexcept {
    constexpr std::chrono::nanoseconds least = std::chrono::microseconds(20);
    constexpr std::chrono::nanoseconds most = std::chrono::microseconds(500);
    if (policy == WaitPolicy::spin) return {};
    if (policy == WaitPolicy::adaptive && waited <= std::chrono::microseconds(100)) return {};
    return std::clamp(waited / 10, least, most);
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
