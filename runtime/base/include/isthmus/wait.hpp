// SPDX-License-Identifier: Apache-2.0
// How long a call may wait for device work.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace isthmus {
inline namespace v0 {

// How a waiting thread spends its time (RuntimeOptions::wait_policy).
enum class WaitPolicy : std::uint8_t {
    adaptive,  // spins for 100 µs, yields its core between queries until 2 ms are over, then sleeps for a 200th of the
               // time waited so far (20 to 500 µs)
    spin,      // never sleeps: the lowest latency, at one core per waiting thread
    sleep,     // never spins: returns up to 20 µs late, up to 500 µs late after long waits
};

// Default: wait for at most RuntimeOptions::wait_timeout. An expired wait answers Code::timed_out and leaves the work
// running. Runtime::synchronize and Device::synchronize take at most one timeout in all. A host view or a release
// that waits for several streams may take one timeout for each.
struct Wait {
    std::optional<std::chrono::nanoseconds> timeout{};  // nothing: the runtime's default
    bool refuse = false;                                // do not wait: Code::not_ready instead

    Wait() = default;
    // At most this long: `stream.synchronize(5ms)`. A duration that nanoseconds cannot count (over 292 years) becomes
    // the longest that they can.
    template <class Number, class Period>
    Wait(std::chrono::duration<Number, Period> at_most)  // NOLINT(google-explicit-constructor)
        : timeout(nanoseconds_of(at_most)) {}

    static Wait at_most(std::chrono::nanoseconds timeout) { return timeout; }
    static Wait never() {
        Wait wait;
        wait.refuse = true;
        return wait;
    }

private:
    template <class Number, class Period>
    static constexpr std::chrono::nanoseconds nanoseconds_of(std::chrono::duration<Number, Period> length) noexcept {
        using std::chrono::nanoseconds;
        using Seconds = std::chrono::duration<double>;
        if (Seconds(length) >= Seconds(nanoseconds::max())) return nanoseconds::max();
        if (Seconds(length) <= Seconds(nanoseconds::min())) return nanoseconds::min();
        return std::chrono::duration_cast<nanoseconds>(length);
    }
};

}  // namespace v0
}  // namespace isthmus
