// How long a call may wait for device work.
#pragma once

#include <chrono>
#include <optional>

namespace isthmus::inline v0 {

// Default: wait, at most RuntimeOptions::wait_timeout. A wait that runs out answers Code::timed_out and leaves the
// work running. Where several streams have to be waited for, each may take that long.
struct Wait {
    std::optional<std::chrono::nanoseconds> timeout{};  // nothing: the runtime's default
    bool refuse = false;                                // do not wait: Code::not_ready where one would have to

    static Wait at_most(std::chrono::nanoseconds timeout) { return Wait{timeout, false}; }
    static Wait never() { return Wait{std::nullopt, true}; }
};

}  // namespace isthmus::inline v0
