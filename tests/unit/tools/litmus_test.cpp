// SPDX-License-Identifier: Apache-2.0
// The pure parts of the trials: the meaning of outcomes and counts, and the parsing of a command line.
#include <litmus/crew.hpp>
#include <litmus/shapes.hpp>
#include <litmus/timing.hpp>
#include <litmus/verdict.hpp>

#include "no_more_threads.hpp"
#include "sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::tools::litmus;
using S = LitmusShape;

TEST(LitmusCrew, ThatGetsNoThreadThrowsAndEnds) {  // keeps G13
    if (sanitized) GTEST_SKIP() << "a sanitizer maps memory of its own for each thread";
    for (const std::size_t but : {0, 1, 2}) {  // those that started end, too
        const test::NoMoreThreads none(but);
        EXPECT_THROW(Crew(6), std::system_error);
    }
}

TEST(LitmusShapes, AMessageIsWeakWhereItsFlagCameBeforeItsData) {  // keeps G13
    for (const S shape : {S::message_to_device, S::message_to_host}) {
        EXPECT_EQ(judge(shape, outcome(0, 0)), Outcome::ordinary);
        EXPECT_EQ(judge(shape, outcome(1, 1)), Outcome::ordinary);
        EXPECT_EQ(judge(shape, outcome(0, 1)), Outcome::interleaved);
        EXPECT_EQ(judge(shape, outcome(1, 0)), Outcome::weak);
    }
}

TEST(LitmusShapes, BufferingIsWeakWhereBothReadTooEarlyOrTooLate) {  // keeps G13
    EXPECT_EQ(judge(S::store_buffering, outcome(0, 0)), Outcome::weak);
    EXPECT_EQ(judge(S::store_buffering, outcome(1, 1)), Outcome::interleaved);
    EXPECT_EQ(judge(S::load_buffering, outcome(1, 1)), Outcome::weak);
    EXPECT_EQ(judge(S::load_buffering, outcome(0, 0)), Outcome::interleaved);
    for (const S shape : {S::store_buffering, S::load_buffering}) {
        EXPECT_EQ(judge(shape, outcome(0, 1)), Outcome::ordinary);
        EXPECT_EQ(judge(shape, outcome(1, 0)), Outcome::ordinary);
    }
}

TEST(LitmusShapes, AWordMayGoOnAndNeverBack) {  // keeps G13
    for (const S shape : {S::coherence_to_device, S::coherence_to_host}) {
        for (unsigned before = 0; before < 3; ++before) {
            for (unsigned after = 0; after < 3; ++after) {
                EXPECT_EQ(judge(shape, outcome(before, after)) == Outcome::weak, after < before) << before << after;
            }
        }
    }
}

TEST(LitmusShapes, HalvesAndLossesAreWeak) {  // keeps G13
    for (const S shape : {S::tearing_to_device, S::tearing_to_host}) {
        EXPECT_EQ(judge(shape, outcome(0, 1)), Outcome::weak);
        EXPECT_EQ(judge(shape, outcome(1, 0)), Outcome::weak);
        EXPECT_EQ(judge(shape, outcome(0, 0)), Outcome::ordinary);
        EXPECT_EQ(judge(shape, outcome(1, 1)), Outcome::ordinary);
    }
    EXPECT_EQ(judge(S::lost_updates, 0), Outcome::weak);
    EXPECT_EQ(judge(S::lost_updates, 1), Outcome::weak);
    EXPECT_EQ(judge(S::lost_updates, 2), Outcome::ordinary);
    EXPECT_EQ(judge(static_cast<S>(99), 0), Outcome::weak) << "what nobody knows is no comfort";
}

TEST(LitmusShapes, EachHasANameAndSaysWhatItsWeakOutcomeIs) {
    for (int code = 0; code < litmus_shape_count; ++code) {
        const auto shape = static_cast<S>(code);
        EXPECT_EQ(shape_of(name(shape)), shape);
        EXPECT_NE(weak_means(shape), "unknown");
        EXPECT_TRUE(shape == S::lost_updates || reads(shape, true) || reads(shape, false));
    }
    EXPECT_FALSE(shape_of("message"));
    EXPECT_FALSE(shape_of(""));
}

// One instance of each shape, with either side first on one thread: never weak, for every order.
TEST(LitmusShapes, OneSideAfterTheOtherIsNeverWeak) {  // keeps G13
    for (int code = 0; code < litmus_shape_count; ++code) {
        const auto shape = static_cast<S>(code);
        for (const bool device_first : {true, false}) {
            for (const bool ordered : {true, false}) {
                alignas(16) Word words[8] = {};
                const Cell cell{words, words + 4};
                std::uint8_t saw[2] = {};
                for (const bool first : {true, false}) {
                    const bool device = first == device_first;
                    saw[device] = play_instance({shape, device, {ordered, false}, 40}, cell);
                }
                unsigned result = shape == S::lost_updates ? words[0] : reads(shape, true) ? saw[1] : saw[0];
                if (shape == S::store_buffering || shape == S::load_buffering) result = saw[0] + 3u * saw[1];
                EXPECT_NE(judge(shape, result), Outcome::weak) << name(shape) << " " << result;
            }
        }
    }
}

// Both sides as threads of this CPU, over the same instances at the same time.
Counts play_both(S shape, int rounds) {
    constexpr std::size_t instances = 1024;
    std::vector<Word> words(2 * instances + 64);
    std::array<std::vector<std::uint8_t>, 2> saw = {std::vector<std::uint8_t>(instances),
                                                    std::vector<std::uint8_t>(instances)};
    std::array<std::atomic<int>, 2> at{};
    Counts counts{};
    const auto side = [&](bool device) {
        const auto meet = [&, device](int step) {
            at[device].store(step);
            while (at[!device].load() < step) std::this_thread::yield();
        };
        for (int round = 1; round <= rounds; ++round) {
            meet(3 * round);
            const Play play{shape, device, {true, false}, 100 + 2 * static_cast<Word>(round)};
            for (std::size_t i = 0; i < instances; ++i) {
                saw[device][i] = play_instance(play, {&words[i], &words[i + instances + 64]});
            }
            meet(3 * round + 1);
            for (std::size_t i = 0; i < instances && !device; ++i) {
                unsigned code = reads(shape, true) ? saw[1][i] : saw[0][i];
                if (reads(shape, true) && reads(shape, false)) code = saw[0][i] + 3u * saw[1][i];
                if (shape == S::lost_updates) code = std::exchange(words[i], 0);
                ++counts[std::min(code, 8u)];
            }
            meet(3 * round + 2);
        }
    };
    std::thread gpu([&] { side(true); });
    side(false);
    gpu.join();
    return counts;
}

TEST(LitmusShapes, WithTheirOrdersTwoThreadsOfACpuSeeNothingForbidden) {  // keeps G13
    for (int code = 0; code < litmus_shape_count; ++code) {
        const auto shape = static_cast<S>(code);
        if (words_of(shape) == 4) continue;  // not every emulator accesses 16 bytes at once
        const Counts counts = play_both(shape, 20);
        EXPECT_EQ(total(counts), 20u * 1024u);
        EXPECT_EQ(count(shape, counts, Outcome::weak), 0u) << name(shape);
    }
}

TEST(LitmusBound, IsTheExactOneWhereTablesHaveIt) {  // keeps G13
    EXPECT_NEAR(upper_bound(0, 10), 0.2589, 1e-4);
    EXPECT_NEAR(upper_bound(1, 10), 0.3942, 1e-4);
    EXPECT_NEAR(upper_bound(5, 10), 0.7776, 1e-4);
    EXPECT_NEAR(upper_bound(0, 100), 0.0295, 1e-4);
    EXPECT_NEAR(upper_bound(10, 100), 0.1637, 1e-4);
    EXPECT_EQ(upper_bound(7, 7), 1.0);
    EXPECT_EQ(upper_bound(0, 0), 1.0) << "nothing tried, nothing known";
}

TEST(LitmusBound, IsThreeOverNWhereNothingWasSeen) {  // keeps G13
    for (const std::uint64_t n : {1000ull, 1000000ull, 1000000000ull, 1000000000000ull}) {
        const double times_n = upper_bound(0, n) * static_cast<double>(n);
        EXPECT_GT(times_n, 2.98);
        EXPECT_LT(times_n, 3.0);
    }
}

TEST(LitmusBound, LiesAboveWhatWasSeenAndFallsWithMoreTrials) {  // keeps G13
    for (const std::uint64_t n : {100ull, 100000ull, 1000000000ull}) {
        double last = 0;
        for (const std::uint64_t seen : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, n / 20, n / 2, n - 1}) {
            const double bound = upper_bound(seen, n);
            EXPECT_GT(bound, static_cast<double>(seen) / static_cast<double>(n)) << seen << " of " << n;
            EXPECT_GT(bound, last) << seen << " of " << n;
            EXPECT_LE(bound, 1.0);
            last = bound;
        }
        EXPECT_LT(upper_bound(3, n * 10), upper_bound(3, n));
    }
}

Row row_with(S shape, Role role, unsigned seen, unsigned weak, unsigned control_weak) {
    Row row;
    row.kind = MemoryKind::pinned;
    row.shape = shape;
    row.role = role;
    row.ending = Ending::finished;
    row.seen[outcome(1, 1)] = seen - weak;
    row.seen[outcome(1, 0)] = weak;
    row.control[outcome(0, 0)] = 100;
    row.control[outcome(1, 0)] = control_weak;
    return row;
}

TEST(LitmusVerdict, WithoutAWeakControlNothingIsProved) {  // keeps G13
    EXPECT_EQ(answer_of(row_with(S::message_to_host, Role::test, 1000, 0, 3)), Answer::passes);
    EXPECT_EQ(answer_of(row_with(S::message_to_host, Role::test, 1000, 0, 0)), Answer::no_power);
    EXPECT_FALSE(is_problem(Answer::no_power));
}

TEST(LitmusVerdict, OneForbiddenOutcomeIsEnoughAlsoWhereTheTrialDidNotEnd) {  // keeps G13
    Row row = row_with(S::message_to_host, Role::test, 1000, 1, 0);
    for (const Ending ending : {Ending::finished, Ending::stalled, Ending::hung}) {
        row.ending = ending;
        EXPECT_EQ(answer_of(row), Answer::forbidden_seen);
    }
    EXPECT_TRUE(is_problem(Answer::forbidden_seen));
}

TEST(LitmusVerdict, WhatDidNotEndPassesNever) {  // keeps G13
    for (const Role role : {Role::test, Role::refused, Role::mutant}) {
        for (const Ending ending : {Ending::not_run, Ending::stalled, Ending::failed, Ending::hung, Ending::crashed}) {
            Row row = row_with(S::message_to_host, role, 1000, 0, 50);
            row.ending = ending;
            EXPECT_EQ(answer_of(row), Answer::incomplete) << name(ending);
        }
    }
    EXPECT_EQ(answer_of(row_with(S::message_to_host, Role::test, 0, 0, 50)), Answer::incomplete);
    EXPECT_TRUE(is_problem(Answer::incomplete));
}

TEST(LitmusVerdict, LossesWhereTheRulesRefuseAreNoProblemAndNoGrant) {  // keeps G13
    EXPECT_EQ(answer_of(row_with(S::lost_updates, Role::refused, 100, 46, 0)), Answer::lost_as_expected);
    Row none = row_with(S::lost_updates, Role::refused, 100, 0, 0);
    none.seen = {};
    none.seen[2] = 100;
    EXPECT_EQ(answer_of(none), Answer::nothing_lost);
    EXPECT_FALSE(is_problem(Answer::nothing_lost));
}

TEST(LitmusVerdict, OnlyTestsBecomeResults) {  // keeps G13
    const std::vector<Row> rows = {
        row_with(S::message_to_host, Role::test, 1000, 2, 7), row_with(S::message_to_host, Role::mutant, 1000, 9, 7),
        row_with(S::lost_updates, Role::refused, 1000, 9, 7), row_with(S::store_buffering, Role::test, 0, 0, 7)};
    const std::vector<LitmusResult> results = results_of(rows);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].shape, S::message_to_host);
    EXPECT_EQ(results[0].instances, 1000u);
    EXPECT_EQ(results[0].forbidden, 2u);
    EXPECT_EQ(results[0].control_instances, 107u);
    EXPECT_EQ(results[0].control_weak, 7u);
}

TEST(LitmusVerdict, MutantsAreFoundByTheirNames) {
    std::set<std::string_view> names;
    for (const Mutant& mutant : mutants) {
        EXPECT_TRUE(names.insert(mutant.name).second);
        EXPECT_EQ(find_mutant(mutant.name), &mutant);
        EXPECT_FALSE(mutant.host_ordered && mutant.device_ordered && !mutant.device_narrow) << "no mistake at all";
    }
    EXPECT_EQ(find_mutant("correct"), nullptr);
}

TEST(LitmusTiming, EveryChoiceIsAnotherOneAndIsTriedAtFirst) {
    std::set<std::array<std::uint32_t, 3>> paces;
    for (std::size_t choice = 0; choice < Timing::choices; ++choice) {
        const Pace pace = Timing::pace(choice);
        EXPECT_TRUE(paces.insert({pace.percent, pace.host_late_ns, pace.device_late_ns}).second) << choice;
        EXPECT_TRUE(pace.host_late_ns == 0 || pace.device_late_ns == 0);
    }
    std::uint64_t random = 1;
    std::set<std::size_t> tried;
    const Timing timing;
    for (int i = 0; i < 2000; ++i) tried.insert(timing.choose(random));
    EXPECT_EQ(tried.size(), Timing::choices);
}

TEST(LitmusTiming, WhatMeetsMostIsChosenHalfOfTheTimeAndTheOthersStay) {
    Timing timing;
    timing.learn(3, 1, 1000);
    timing.learn(17, 40, 1000);
    timing.learn(5, 0, 1000);
    timing.learn(Timing::choices, 999, 1000);  // not a valid choice
    std::uint64_t random = 7;
    std::array<int, Timing::choices> chosen{};
    for (int i = 0; i < 10000; ++i) ++chosen[timing.choose(random)];
    EXPECT_GT(chosen[17], 4500);
    EXPECT_LT(chosen[17], 5700);
    for (const int times : chosen) EXPECT_GT(times, 0);
    for (int i = 0; i < 40; ++i) timing.learn(17, 0, 1000);  // the machine now behaves differently
    chosen = {};
    for (int i = 0; i < 10000; ++i) ++chosen[timing.choose(random)];
    EXPECT_GT(chosen[3], 4500);
}

}  // namespace
