// SPDX-License-Identifier: Apache-2.0
// The loop at a period. It knows neither the device nor the clock, so that tests play both.
#pragma once

#include "tally.hpp"

#include <isthmus/result.hpp>

#include <cstdint>
#include <functional>
#include <optional>

namespace isthmus::tools::latency {

// The work of a turn, in the order of its parts. An error or a wrong answer ends the loop.
class Work {
public:
    virtual ~Work() = default;
    virtual Result<void> submit(std::uint32_t turn) = 0;
    virtual Result<void> wait() = 0;                    // until the answer may be viewed
    virtual Result<bool> view(std::uint32_t turn) = 0;  // whether the answer is that of this turn
};

class LoopClock {
public:
    virtual ~LoopClock() = default;
    virtual std::uint64_t now_ns() = 0;
    // Returns at this time or later, at once where it has passed, and early where a signal arrived. true: the thread
    // slept.
    virtual bool sleep_until(std::uint64_t time_ns) = 0;
};
// CLOCK_MONOTONIC and clock_nanosleep(TIMER_ABSTIME).
class SystemClock final : public LoopClock {
public:
    std::uint64_t now_ns() override;
    bool sleep_until(std::uint64_t time_ns) override;
};

struct LoopPlan {
    std::uint64_t period_ns = 0;
    std::uint64_t turns = 0;  // planned ones
};

// planned = turns of the tally + skipped + 1 where an error or a wrong answer ended the loop.
struct LoopEnd {
    std::uint64_t planned = 0;  // turns whose time has come
    std::uint64_t skipped = 0;  // turns that were not begun: their whole period had passed when the turn before ended
    std::uint64_t slept = 0;    // sleeps of the loop itself: each is a voluntary switch
    bool wrong_answer = false;
    std::optional<Error> trouble{};
};

// The first turn is planned a period from now. Times are kept in a grid: a turn that ends late shortens the sleep of
// the next, and turns whose whole period has passed are skipped. `stop` is asked before each turn. Without an error,
// the loop takes no memory and makes no system call but the clock's.
LoopEnd run_loop(Work& work, LoopClock& clock, const LoopPlan& plan, Tally& tally, const std::function<bool()>& stop);

}  // namespace isthmus::tools::latency
