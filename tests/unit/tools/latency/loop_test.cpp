// SPDX-License-Identifier: Apache-2.0
// The loop over a clock that the test moves. keeps T4
#include "counted_new.hpp"
#include "latency/loop.hpp"

#include <gtest/gtest.h>
#include <sanitized.hpp>

#include <cstdint>
#include <functional>

namespace isthmus::tools::latency {
namespace {

constexpr std::uint64_t period = 1'000'000;

class PlayedClock final : public LoopClock {
public:
    std::uint64_t now_ns() override { return now; }
    bool sleep_until(std::uint64_t time_ns) override {
        if (time_ns <= now) return false;
        ++sleeps;
        now = time_ns + oversleep_ns;
        return true;
    }
    std::uint64_t now = 5'000'000'000;
    std::uint64_t oversleep_ns = 0;
    std::uint64_t sleeps = 0;
};

// Each part takes what `times` says of the turn.
class PlayedWork final : public Work {
public:
    explicit PlayedWork(PlayedClock& clock) : clock_(clock) {}
    Result<void> submit(std::uint32_t turn) override {
        last = turn;
        return step(1);
    }
    Result<void> wait() override { return step(2); }
    Result<bool> view(std::uint32_t turn) override {
        if (Result<void> stepped = step(3); !stepped) return std::move(stepped).error();
        return turn != wrong_turn;
    }

    std::function<std::uint64_t(std::uint32_t turn, int part)> times = [](std::uint32_t, int) { return 0; };
    std::uint32_t last = 0;
    std::uint32_t wrong_turn = ~0u;
    std::uint32_t failing_turn = ~0u;
    int failing_part = 0;

private:
    Result<void> step(int part) {
        if (last == failing_turn && part == failing_part) return Error(Code::device_lost, "gone", "");
        clock_.now += times(last, part);
        return {};
    }
    PlayedClock& clock_;
};

class Loop : public testing::Test {
protected:
    LoopEnd run(std::uint64_t turns) {
        return run_loop(work, clock, {period, turns}, tally, [this] { return stop_at != 0 && clock.now >= stop_at; });
    }
    PlayedClock clock;
    PlayedWork work{clock};
    Tally tally{period};
    std::uint64_t stop_at = 0;
};

TEST_F(Loop, EveryPartIsMeasuredFromThePlannedTimeOn) {
    clock.oversleep_ns = 7;
    work.times = [](std::uint32_t, int part) { return std::uint64_t{100} * static_cast<std::uint64_t>(part); };
    const LoopEnd end = run(50);
    EXPECT_FALSE(end.trouble);
    EXPECT_FALSE(end.wrong_answer);
    EXPECT_EQ(end.planned, 50u);
    EXPECT_EQ(end.skipped, 0u);
    EXPECT_EQ(end.slept, 50u);
    EXPECT_EQ(tally.turns(), 50u);
    EXPECT_EQ(tally.late(), 0u);
    EXPECT_EQ(tally.part(Part::wake_up).sum_ns(), 50 * 7u);
    EXPECT_EQ(tally.part(Part::submit).sum_ns(), 50 * 100u);
    EXPECT_EQ(tally.part(Part::device).sum_ns(), 50 * 200u);
    EXPECT_EQ(tally.part(Part::view).sum_ns(), 50 * 300u);
    EXPECT_EQ(tally.total().maximum_ns(), 607u);
    EXPECT_EQ(clock.now, 5'000'000'000 + 50 * period + 607) << "the times lie in a grid";
}

TEST_F(Loop, ATurnThatEndsLateMakesTheNextOneBeginLate) {
    work.times = [](std::uint32_t turn, int part) { return turn == 2 && part == 2 ? period + period / 2 : 0; };
    const LoopEnd end = run(6);
    EXPECT_EQ(end.planned, 6u);
    EXPECT_EQ(end.skipped, 0u);
    EXPECT_EQ(end.slept, 5u) << "turn 3 began without a sleep";
    EXPECT_EQ(tally.late(), 1u);
    EXPECT_EQ(tally.late_by(Part::device), 1u);
    EXPECT_EQ(tally.worst_turn(), 2u);
    EXPECT_EQ(tally.part(Part::wake_up).maximum_ns(), period / 2);
    EXPECT_EQ(clock.now, 5'000'000'000 + 6 * period);
}

TEST_F(Loop, TurnsWhoseWholePeriodHasPassedAreSkippedAndCounted) {
    work.times = [](std::uint32_t turn, int part) { return turn == 1 && part == 3 ? 4 * period + 1 : 0; };
    const LoopEnd end = run(10);
    EXPECT_EQ(end.planned, 10u);
    EXPECT_EQ(end.skipped, 3u) << "of the turns 2 to 5, the last has some of its period left";
    EXPECT_EQ(tally.turns(), 7u);
    EXPECT_EQ(work.last, 9u);
    EXPECT_EQ(tally.part(Part::wake_up).maximum_ns(), 1u);
}

TEST_F(Loop, SkippedTurnsStayWithinThePlan) {
    work.times = [](std::uint32_t, int part) { return part == 2 ? 100 * period : 0; };
    const LoopEnd end = run(8);
    EXPECT_EQ(end.planned, 8u);
    EXPECT_EQ(end.skipped, 7u);
    EXPECT_EQ(tally.turns(), 1u);
}

TEST_F(Loop, AnErrorInAnyPartEndsItWithTheTurnsBefore) {
    for (const int part : {1, 2, 3}) {
        Tally turns(period);
        work.failing_turn = 4;
        work.failing_part = part;
        const LoopEnd end = run_loop(work, clock, {period, 20}, turns, [] { return false; });
        ASSERT_TRUE(end.trouble);
        EXPECT_EQ(end.trouble->code(), Code::device_lost);
        EXPECT_FALSE(end.wrong_answer);
        EXPECT_EQ(end.planned, 5u);
        EXPECT_EQ(turns.turns(), 4u);
    }
}

TEST_F(Loop, AWrongAnswerEndsIt) {
    work.wrong_turn = 3;
    const LoopEnd end = run(20);
    EXPECT_TRUE(end.wrong_answer);
    EXPECT_FALSE(end.trouble);
    EXPECT_EQ(end.planned, 4u);
    EXPECT_EQ(tally.turns(), 3u);
}

TEST_F(Loop, AStopIsNoticedBetweenTurnsAndWithinALongSleep) {
    stop_at = clock.now + 10 * period + period / 2;
    EXPECT_EQ(run(1000).planned, 10u);
    EXPECT_EQ(tally.turns(), 10u);
    stop_at = clock.now + 250'000'000;
    const LoopEnd end = run_loop(work, clock, {10'000'000'000, 5}, tally, [this] { return clock.now >= stop_at; });
    EXPECT_EQ(end.planned, 0u);
    EXPECT_LE(clock.now, stop_at + 100'000'000);
}

TEST_F(Loop, TakesNoMemoryFromTheHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    work.times = [](std::uint32_t turn, int) { return std::uint64_t{turn} * 37 % 900'000; };
    const std::function<bool()> never = [] { return false; };
    (void)run_loop(work, clock, {period, 2}, tally, never);
    const std::uint64_t before = counted_new();
    (void)run_loop(work, clock, {period, 5000}, tally, never);
    EXPECT_EQ(counted_new(), before);
    auto* const planted = new int(1);
    EXPECT_EQ(counted_new(), before + 1) << "the count notices one";
    delete planted;
}

TEST(LoopClockOfTheSystem, SleepsUntilATimeAndNotForOneThatHasPassed) {
    SystemClock clock;
    const std::uint64_t begin = clock.now_ns();
    EXPECT_FALSE(clock.sleep_until(begin));
    std::uint64_t until = 0;
    bool slept = false;
    for (int tries = 0; tries < 100 && !slept; ++tries) {  // on a busy machine the time may pass before the call
        until = clock.now_ns() + 20'000'000;
        slept = clock.sleep_until(until);
    }
    EXPECT_TRUE(slept);
    EXPECT_GE(clock.now_ns(), until);
}

}  // namespace
}  // namespace isthmus::tools::latency
