// SPDX-License-Identifier: Apache-2.0
// Choices of machines whose true costs are planted: the profile finds the best way, between the measured points too.
#include "synthetic.hpp"
#include "tune/choices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace isthmus::tools::tune {
namespace {

constexpr UseCase reads{Role::reads, Role::writes, false, Prefer::throughput};
constexpr Way pinned{MemoryKind::pinned, Locality::anywhere};
constexpr Way managed{MemoryKind::managed, Locality::anywhere};
constexpr Way copied{MemoryKind::device, Locality::anywhere};
constexpr Way bound{MemoryKind::host, Locality::near_device};
constexpr Way unbound{MemoryKind::host, Locality::unbound};
constexpr Way write_combined{MemoryKind::write_combined, Locality::anywhere};

std::string text(const UseCase& use, double bytes, int passes) {
    return "device " + std::to_string(int(use.device)) + ", host " + std::to_string(int(use.host)) +
           (use.host_often ? " often" : "") + (use.prefer == Prefer::latency ? ", latency, " : ", ") +
           std::to_string(passes) + " passes, " + std::to_string(static_cast<long>(bytes)) + " bytes";
}

double best_time(const SyntheticMachine& machine, const UseCase& use, double bytes, int passes) {
    double best = std::numeric_limits<double>::infinity();
    for (const WayCosts& costs : machine.ways) {
        if (!is_lawful(costs.way, use) || !machine.measures(costs.way, use.device)) continue;
        best = std::min(best, machine.seconds(costs.way, use, bytes, passes));
    }
    return best;
}

// Of measurements without noise.
const std::vector<ProfileChoice>& clean_choices(const SyntheticMachine& machine) {
    static std::map<std::string, std::vector<ProfileChoice>> kept;
    std::vector<ProfileChoice>& choices = kept[machine.name];
    if (choices.empty()) choices = choices_of(measured(machine));
    return choices;
}

struct Found {
    int points = 0;
    int above = 0;  // more than 5 % slower than the best
    double worst = 1;
    std::string where;
};

// Points between the measured ones: any size, any number of passes.
Found check_points(const SyntheticMachine& machine, const std::vector<ProfileChoice>& choices, int points_per_use,
                   std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> size_power(6, 30), passes_power(0, 8);
    Found found;
    for (const UseCase& use : use_cases()) {
        // Rows of one use only: the lookup is linear.
        std::vector<ProfileChoice> rows;
        for (const ProfileChoice& choice : choices) {
            if (use_of(choice) == use) rows.push_back(choice);
        }
        const auto look = [&](std::size_t bytes, int passes) {
            const ProfileChoice* const choice = choice_for(rows, use, passes, bytes);
            if (choice == nullptr) {
                ADD_FAILURE() << machine.name << ": no choice: " << text(use, double(bytes), passes);
                return;
            }
            EXPECT_TRUE(is_lawful(way_of(*choice), use)) << machine.name << ": " << text(use, double(bytes), passes);
            const double size = static_cast<double>(bytes);
            const double ratio =
                machine.seconds(way_of(*choice), use, size, passes) / best_time(machine, use, size, passes);
            ++found.points;
            if (ratio > 1.05) ++found.above;
            if (ratio <= found.worst) return;
            found.worst = ratio;
            found.where = machine.name + ": " + text(use, size, passes) + ": " + std::string(name(choice->kind));
        };
        for (int i = 0; i < points_per_use; ++i) {
            look(static_cast<std::size_t>(std::exp2(size_power(random))),
                 static_cast<int>(std::exp2(passes_power(random))));
        }
        // Both sides of each border, for the first and the last number of passes of its row.
        for (const ProfileChoice& choice : rows) {
            const auto next = std::find_if(rows.begin(), rows.end(),
                                           [&](const ProfileChoice& other) { return other.passes > choice.passes; });
            const int last = std::min(256, next == rows.end() ? 256 : next->passes - 1);
            for (const int passes : {std::min(choice.passes, last), last}) {
                if (choice.from_bytes == 0) continue;
                look(choice.from_bytes, passes);
                look(choice.from_bytes - 1, passes);
            }
        }
    }
    return found;
}

TEST(Choices, AreWithinFivePercentOfTheBestEverywhere) {  // keeps P7
    for (const SyntheticMachine& machine : synthetic_machines()) {
        const Found found = check_points(machine, clean_choices(machine), 400, 7);
        EXPECT_LE(found.worst, 1.05) << found.where;
        EXPECT_GT(found.points, 10000) << machine.name;
        RecordProperty(machine.name, std::to_string(found.worst));
    }
}

TEST(Choices, StandNoiseAndOutliers) {  // keeps P7
    for (const SyntheticMachine& machine : synthetic_machines()) {
        for (const std::uint64_t seed : {1U, 2U}) {
            const Noise noise{0.05, 0.05, 25, seed};
            const Found found = check_points(machine, choices_of(measured(machine, noise)), 200, seed);
            EXPECT_LE(found.above, found.points / 100) << found.above << " of " << found.points << ", " << found.where;
            EXPECT_LE(found.worst, 1.15) << found.where;
            RecordProperty(machine.name, std::to_string(found.worst));
        }
    }
}

// The way on both sides of a planted border, a factor of two away from it.
void expect_border(const SyntheticMachine& machine, const std::vector<ProfileChoice>& choices, const Way& before,
                   const Way& after, const UseCase& use, int passes) {
    const double border = true_border(machine, before, after, use, passes);
    for (const double factor : {0.5, 0.25}) {
        const ProfileChoice* const below = choice_for(choices, use, passes, static_cast<std::size_t>(border * factor));
        ASSERT_NE(below, nullptr);
        EXPECT_EQ(way_of(*below), before)
            << machine.name << ": " << name(below->kind) << " below " << text(use, border, passes);
        const ProfileChoice* const above = choice_for(choices, use, passes, static_cast<std::size_t>(border / factor));
        ASSERT_NE(above, nullptr);
        EXPECT_EQ(way_of(*above), after) << machine.name << ": " << name(above->kind) << " above "
                                         << text(use, border, passes);
    }
}

TEST(Choices, FindWhereOrinsManagedMemoryPays) {
    const SyntheticMachine machine = orin_with_slow_pinned_reads();
    // 30 us / (passes × 0.04 ns)
    EXPECT_NEAR(true_border(machine, pinned, managed, reads, 1), 750e3, 1e3);
    EXPECT_NEAR(true_border(machine, pinned, managed, reads, 10), 75e3, 1e2);
    for (const Noise& noise : {Noise{}, Noise{0.05, 0.05, 25, 3}}) {
        const std::vector<ProfileChoice> choices = choices_of(measured(machine, noise));
        for (const int passes : {1, 2, 3, 5, 7, 10, 20, 32}) {
            expect_border(machine, choices, pinned, managed, reads, passes);
            const UseCase both{Role::reads_and_writes, Role::reads_and_writes, false, Prefer::throughput};
            expect_border(machine, choices, pinned, managed, both, passes);
        }
    }
}

TEST(Choices, FindAfterHowManyPassesGracesMigrationPays) {
    const SyntheticMachine machine = grace_that_pays_after_four();
    const std::vector<ProfileChoice>& choices = clean_choices(machine);
    for (const UseCase& use : {reads, UseCase{Role::writes, Role::reads, false, Prefer::throughput}}) {
        for (const std::size_t bytes : {std::size_t{3} << 20, std::size_t{100} << 20, std::size_t{1} << 30}) {
            for (const int passes : {1, 2, 3}) {
                EXPECT_EQ(way_of(*choice_for(choices, use, passes, bytes)), bound) << text(use, double(bytes), passes);
            }
            for (const int passes : {6, 9, 40, 1000}) {
                EXPECT_EQ(way_of(*choice_for(choices, use, passes, bytes)), unbound)
                    << text(use, double(bytes), passes);
            }
        }
    }
}

TEST(Choices, FindWhereACopyPaysOnADiscreteGpu) {
    const SyntheticMachine machine = discrete_gpu();
    for (const Noise& noise : {Noise{}, Noise{0.03, 0.05, 25, 4}}) {
        const std::vector<ProfileChoice> choices = choices_of(measured(machine, noise));
        for (const int passes : {2, 3, 6, 16, 31}) {
            expect_border(machine, choices, pinned, copied, {Role::writes, Role::reads, false, Prefer::throughput},
                          passes);
        }
    }
}

TEST(Choices, TakeTheFirstWayWhereAllAreEqual) {
    const Measurements measurements = measured(all_equal());
    for (const ProfileChoice& choice : choices_of(measurements)) {
        const Way first = measurements.ways.front();
        EXPECT_EQ(way_of(choice), first);
        EXPECT_EQ(choice.passes, 1);
        EXPECT_EQ(choice.from_bytes, 0U);
    }
}

TEST(Choices, TakeTheFirstWayWithinTwoPercent) {
    SyntheticMachine machine = all_equal();
    for (std::size_t i = 1; i < machine.ways.size(); ++i) machine.ways[i].device_reads.rate *= 1.015;
    for (const ProfileChoice& choice : choices_of(measured(machine))) {
        EXPECT_EQ(way_of(choice), machine.ways.front().way);
    }
    for (std::size_t i = 1; i < machine.ways.size(); ++i) machine.ways[i].device_reads.rate *= 1.5;
    const std::vector<ProfileChoice> choices = choices_of(measured(machine));
    EXPECT_EQ(way_of(*choice_for(choices, reads, 200, 1 << 28)), machine.ways[1].way);
}

TEST(Choices, TakeWriteCombinedMemoryOnlyWhereTheHostNeverReads) {  // keeps P5
    Measurements measurements = measured(write_combined_wins());
    // Even where somebody measured that the host reads it fast.
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 30}) {
        const double seconds = static_cast<double>(bytes) / 1e12;
        measurements.hosts.push_back({write_combined, Role::reads, bytes, {seconds, seconds, seconds, 9}});
    }
    const std::vector<ProfileChoice> choices = choices_of(measurements);
    EXPECT_EQ(way_of(*choice_for(choices, reads, 3, 1 << 24)), write_combined);
    for (const ProfileChoice& choice : choices) {
        if (choice.host != Role::writes) {
            EXPECT_NE(choice.kind, MemoryKind::write_combined);
        }
    }
}

TEST(Choices, StayInPlaceOnSharedDramWhateverComesFirst) {
    const std::vector<ProfileChoice> choices = clean_choices(in_place_always());
    for (const ProfileChoice& choice : choices) {
        EXPECT_EQ(way_of(choice), bound) << text(use_of(choice), double(choice.from_bytes), choice.passes);
    }
}

TEST(Choices, NeverCopyForLatency) {
    for (const SyntheticMachine& machine : synthetic_machines()) {
        for (const ProfileChoice& choice : clean_choices(machine)) {
            if (choice.prefer == Prefer::latency) {
                EXPECT_TRUE(is_in_place(way_of(choice))) << machine.name;
            }
        }
    }
}

TEST(Choices, HaveRowsInOrderForEveryUse) {
    for (const SyntheticMachine& machine : synthetic_machines()) {
        const std::vector<ProfileChoice>& choices = clean_choices(machine);
        const auto key = [](const ProfileChoice& c) {
            return std::tuple(c.device, c.host, c.host_often, c.prefer, c.passes, c.from_bytes);
        };
        for (std::size_t i = 0; i < choices.size(); ++i) {
            if (i > 0) {
                EXPECT_LT(key(choices[i - 1]), key(choices[i])) << machine.name;
            }
            const bool is_new_row =
                i == 0 || use_of(choices[i - 1]) != use_of(choices[i]) || choices[i - 1].passes != choices[i].passes;
            if (is_new_row) {
                EXPECT_EQ(choices[i].from_bytes, 0U) << machine.name;
            }
        }
        for (const UseCase& use : use_cases()) {
            const ProfileChoice* const first = choice_for(choices, use, 1, 0);
            ASSERT_NE(first, nullptr) << machine.name << ": " << text(use, 0, 1);
            EXPECT_EQ(first->passes, 1);
        }
        EXPECT_LT(choices.size(), 3000U) << machine.name;
    }
}

TEST(Choices, CountTheHostsFurtherPasses) {  // keeps P7
    // Where the CPU reads managed memory much faster, a host that reads often changes the choice.
    SyntheticMachine machine = orin_with_slow_pinned_reads();
    machine.ways[0].host_reads.rate = 1e9;
    const std::vector<ProfileChoice> choices = choices_of(measured(machine));
    const UseCase once{Role::writes, Role::reads, false, Prefer::throughput};
    UseCase often = once;
    often.host_often = true;
    EXPECT_EQ(way_of(*choice_for(choices, once, 1, 20000)), pinned);
    EXPECT_EQ(way_of(*choice_for(choices, often, 1, 20000)), managed);
}

TEST(Choices, KnowNothingWithoutMeasurements) {
    EXPECT_TRUE(choices_of({}).empty());
    Measurements measurements = measured(discrete_gpu());
    for (TurnSample& turn : measurements.turns) turn.seconds.count = 0;
    EXPECT_TRUE(choices_of(measurements).empty());
    // A role that was not measured has no row, and the policy's table stays in force for it.
    measurements = measured(discrete_gpu());
    std::erase_if(measurements.turns, [](const TurnSample& turn) { return turn.device == Role::writes; });
    for (const ProfileChoice& choice : choices_of(measurements)) EXPECT_NE(choice.device, Role::writes);
}

TEST(Choices, IgnoreSamplesThatAreNoTimes) {
    Measurements measurements = measured(discrete_gpu());
    const std::vector<ProfileChoice> expected = clean_choices(discrete_gpu());
    const double not_a_number = std::numeric_limits<double>::quiet_NaN();
    for (const double bad : {0.0, -1.0, not_a_number, std::numeric_limits<double>::infinity()}) {
        measurements.turns.push_back({copied, Role::reads, 1 << 14, 1, {bad, bad, bad, 99}});
        measurements.hosts.push_back({pinned, Role::reads, 1 << 14, {bad, bad, bad, 99}});
    }
    const std::vector<ProfileChoice> found = choices_of(measurements);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].from_bytes, expected[i].from_bytes);
}

TEST(Choices, TrustAWayOnlyNearItsMeasuredSizes) {
    Measurements measurements = measured(discrete_gpu());
    std::erase_if(measurements.turns,
                  [](const TurnSample& turn) { return turn.way == copied && turn.bytes > (1 << 16); });
    const std::vector<ProfileChoice> choices = choices_of(measurements);
    EXPECT_EQ(way_of(*choice_for(choices, reads, 16, 1 << 16)), copied);
    EXPECT_NE(way_of(*choice_for(choices, reads, 16, 1 << 22)), copied);
}

TEST(CostModel, LendsTheCostOfFurtherPassesToSizesWithoutThem) {
    const SyntheticMachine machine = grace_that_pays_after_four();
    Measurements measurements = measured(machine);
    std::erase_if(measurements.turns, [](const TurnSample& turn) {
        return turn.passes > 1 && turn.bytes != (1 << 10) && turn.bytes != (1 << 22) && turn.bytes != (1 << 30);
    });
    const CostModel model(measurements);
    for (std::size_t way = 0; way < model.ways().size(); ++way) {
        for (const double bytes : {5000.0, 3e5, 7e7, 8e8}) {
            for (const double passes : {1.0, 2.0, 17.0, 300.0}) {
                EXPECT_NEAR(
                    model.seconds(way, reads, passes, bytes) / machine.seconds(model.ways()[way], reads, bytes, passes),
                    1, 0.01)
                    << bytes << " " << passes;
            }
        }
    }
}

TEST(CostModel, TakesAShortPassFromNeighboursWhereItsOwnTimesAreNoise) {
    // A pass of 64 us in turns of 9 ms, whose noise is as large; and small sizes alone have turns of many passes, whose
    // cost is all latency.
    const SyntheticMachine machine = grace_that_pays_after_four();
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        Measurements measurements = measured(machine, {0.02, 0.02, 9, seed});
        std::erase_if(measurements.turns,
                      [](const TurnSample& turn) { return turn.passes > 16 && turn.bytes > (1 << 18); });
        const CostModel model(measurements);
        for (std::size_t way = 0; way < model.ways().size(); ++way) {
            for (const double bytes : {4e6, 4e7, 229e6, 9e8}) {
                EXPECT_NEAR(
                    model.seconds(way, reads, 248, bytes) / machine.seconds(model.ways()[way], reads, bytes, 248), 1,
                    0.2)
                    << name(model.ways()[way].kind) << " " << bytes;
            }
        }
    }
}

TEST(CostModel, ReplacesTheHostsPart) {
    const SyntheticMachine machine = orin_with_slow_pinned_reads();
    const CostModel model(measured(machine));
    for (const UseCase& use : use_cases()) {
        for (std::size_t way = 0; way < model.ways().size(); ++way) {
            if (!model.serves(way, use)) continue;
            EXPECT_NEAR(model.seconds(way, use, 5, 3e6) / machine.seconds(model.ways()[way], use, 3e6, 5), 1, 1e-6)
                << text(use, 3e6, 5);
        }
    }
}

}  // namespace
}  // namespace isthmus::tools::tune
