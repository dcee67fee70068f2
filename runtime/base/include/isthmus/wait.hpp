// How long a call may wait for device work.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace isthmus::inline v0 {

// How a waiting thread spends its time (RuntimeOptions::wait_policy).
enum class WaitPolicy : std::uint8_t {
    adaptive,  // spins for 100 µs, then sleeps for a tenth of the time waited so far, at most 500 µs
    spin,      // never sleeps: the lowest latency, at one core per waiting thread
    sleep,     // never spins: returns up to 20 µs late, up to 500 µs late after long waits
};

// Default: wait for at most RuntimeOptions::wait_timeout. An expired wait answers Code::timed_out and leaves the work
// running. Runtime::synchronize and Device::synchronize take at most one timeout in all. A host view or a release
// that waits for several streams may take one timeout for each.
struct Wait {
    std::optional<std::chrono::nanoseconds> timeout{};  // empty: the runtime's default
    bool refuse = false;                                // do not wait: answer Code::not_ready instead

    static Wait at_most(std::chrono::nanoseconds timeout) { return Wait{timeout, false}; }
    static Wait never() { return Wait{std::nullopt, true}; }
};

}  // namespace isthmus::inline v0
