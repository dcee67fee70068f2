// How long a call may wait for device work.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace isthmus::inline v0 {

// How a thread that waits spends its time (RuntimeOptions::wait_policy).
enum class WaitPolicy : std::uint8_t {
    adaptive,  // spins for the first 100 µs, then sleeps for a tenth of what it has waited, at most 500 µs
    spin,      // never sleeps: the shortest answer, and a core for each waiting thread
    sleep,     // never spins: answers come up to 20 µs later, up to 500 µs after long waits
};

// Default: wait, at most RuntimeOptions::wait_timeout. A wait that runs out answers Code::timed_out and leaves the
// work running. Runtime::synchronize and Device::synchronize take that long at most; where a host view or a release has
// to wait for several streams, each may.
struct Wait {
    std::optional<std::chrono::nanoseconds> timeout{};  // nothing: the runtime's default
    bool refuse = false;                                // do not wait: Code::not_ready where one would have to

    static Wait at_most(std::chrono::nanoseconds timeout) { return Wait{timeout, false}; }
    static Wait never() { return Wait{std::nullopt, true}; }
};

}  // namespace isthmus::inline v0
