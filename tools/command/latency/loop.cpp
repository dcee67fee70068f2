// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <algorithm>
#include <ctime>

namespace isthmus::tools::latency {
namespace {

// A sleep is cut into pieces of this length, so that a signal that another thread takes is noticed.
constexpr std::uint64_t longest_sleep_ns = 100'000'000;

// One turn from its planned time on; whether its answer was right. An error leaves `times` unfinished.
Result<bool> take_turn(Work& work, LoopClock& clock, std::uint64_t planned_ns, std::uint32_t turn, TurnTimes& times) {
    std::uint64_t before = clock.now_ns();
    times[static_cast<std::size_t>(Part::wake_up)] = before > planned_ns ? before - planned_ns : 0;
    const auto end_part = [&](Part part) {
        const std::uint64_t now = clock.now_ns();
        times[static_cast<std::size_t>(part)] = now - before;
        before = now;
    };
    if (Result<void> submitted = work.submit(turn); !submitted) return std::move(submitted).error();
    end_part(Part::submit);
    if (Result<void> waited = work.wait(); !waited) return std::move(waited).error();
    end_part(Part::device);
    Result<bool> viewed = work.view(turn);
    end_part(Part::view);
    return viewed;
}

}  // namespace

std::uint64_t SystemClock::now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool SystemClock::sleep_until(std::uint64_t time_ns) {
    if (now_ns() >= time_ns) return false;
    const timespec until{static_cast<std::time_t>(time_ns / 1'000'000'000), static_cast<long>(time_ns % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);  // EINTR: the caller looks at the time
    return true;
}

LoopEnd run_loop(Work& work, LoopClock& clock, const LoopPlan& plan, Tally& tally, const std::function<bool()>& stop) {
    LoopEnd end;
    std::uint64_t due = clock.now_ns() + plan.period_ns;
    while (end.planned < plan.turns) {
        for (std::uint64_t now = clock.now_ns(); now < due; now = clock.now_ns()) {
            if (stop()) return end;
            if (clock.sleep_until(std::min(due, now + longest_sleep_ns))) ++end.slept;
        }
        if (stop()) return end;
        const std::uint64_t turn = end.planned++;
        TurnTimes times{};
        Result<bool> right = take_turn(work, clock, due, static_cast<std::uint32_t>(turn), times);
        if (!right || !*right) {
            end.wrong_answer = bool(right);
            if (!right) end.trouble = std::move(right).error();
            return end;
        }
        tally.add(turn, times);
        due += plan.period_ns;
        const std::uint64_t now = clock.now_ns();
        if (now < due + plan.period_ns) continue;
        const std::uint64_t passed = std::min((now - due) / plan.period_ns, plan.turns - end.planned);
        end.planned += passed;
        end.skipped += passed;
        due += passed * plan.period_ns;
    }
    return end;
}

}  // namespace isthmus::tools::latency
