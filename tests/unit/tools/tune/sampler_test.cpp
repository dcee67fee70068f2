// SPDX-License-Identifier: Apache-2.0
// What is measured, how often, and within which time: over synthetic machines, so that no test depends on a clock.
#include "synthetic_clock.hpp"
#include "tune/choices.hpp"
#include "tune/cost_model.hpp"
#include "tune/figures.hpp"
#include "tune/plan.hpp"
#include "tune/sampler.hpp"
#include "tune/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace isthmus::tools::tune {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr Way pinned{MemoryKind::pinned, Locality::anywhere};
constexpr Way managed{MemoryKind::managed, Locality::anywhere};
constexpr Way copied{MemoryKind::device, Locality::anywhere};
constexpr Way combined{MemoryKind::write_combined, Locality::anywhere};

// --- statistics -----------------------------------------------------------------------------------------------------

TEST(Statistics, TakeRanksThatEncloseTheMedianInNineteenOfTwentyCases) {
    // Tables of order statistics: with 10 values, 2nd and 9th (97.9 %); with 100, 40th and 61st (96.5 %).
    EXPECT_EQ(rank_of_confidence(1), 1u);
    EXPECT_EQ(rank_of_confidence(5), 1u);
    EXPECT_EQ(rank_of_confidence(6), 1u);
    EXPECT_EQ(rank_of_confidence(9), 2u);
    EXPECT_EQ(rank_of_confidence(10), 2u);
    EXPECT_EQ(rank_of_confidence(20), 6u);
    EXPECT_EQ(rank_of_confidence(100), 40u);
}

TEST(Statistics, EncloseTheMedianOfASkewedDistribution) {
    std::mt19937_64 random(1);
    std::exponential_distribution<double> times(1);
    const double median = std::log(2.0);
    int enclosed = 0;
    constexpr int tries = 2000;
    for (int i = 0; i < tries; ++i) {
        std::vector<double> values(15);
        for (double& value : values) value = times(random);
        const Sample sample = sample_of(values);
        enclosed += sample.low <= median && median <= sample.high ? 1 : 0;
    }
    EXPECT_GT(enclosed, tries * 94 / 100);
}

TEST(Statistics, AreNotMovedByAFewOutliers) {
    std::vector<double> values(20, 1.0);
    values[3] = 1000;
    values[11] = 1e-9;
    const Sample sample = sample_of(values);
    EXPECT_EQ(sample.median, 1.0);
    EXPECT_EQ(sample.low, 1.0);
    EXPECT_EQ(sample.high, 1.0);
    EXPECT_EQ(sample.count, 20);
    EXPECT_TRUE(is_stable(sample, 0.01));
}

TEST(Statistics, CallFewOrSpreadValuesUnstable) {
    EXPECT_EQ(sample_of({}).count, 0);
    EXPECT_FALSE(is_stable(sample_of({}), 0.1));
    EXPECT_FALSE(is_stable(sample_of({1.0, 1.0}), 0.1)) << "two values show no spread";
    EXPECT_TRUE(is_stable(sample_of({1.0, 1.0, 1.0}), 0.1));
    EXPECT_FALSE(is_stable(sample_of({1.0, 1.2, 1.4}), 0.1));
    EXPECT_TRUE(is_stable(sample_of({100e-9, 110e-9, 120e-9}), 0.01)) << "no clock tells these apart";
}

// --- plan -----------------------------------------------------------------------------------------------------------

TEST(TunePlan, HasSizesFromTheSmallestToTheLargest) {  // keeps P3
    for (const Effort& effort : {quick_effort(), ordinary_effort(), thorough_effort()}) {
        for (const std::size_t largest : {std::size_t{64}, 4 * KiB, 48 * MiB, 1024 * MiB}) {
            const std::vector<std::size_t> sizes = planned_sizes(effort, largest);
            ASSERT_FALSE(sizes.empty());
            EXPECT_EQ(sizes.front(), 64u);
            EXPECT_EQ(sizes.back(), largest);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                EXPECT_EQ(sizes[i] % 64, 0u);
                if (i == 0) continue;
                EXPECT_GT(sizes[i], sizes[i - 1]);
                EXPECT_LE(sizes[i], 4 * sizes[i - 1]);
            }
        }
    }
    EXPECT_GT(planned_sizes(ordinary_effort(), 1024 * MiB).size(), planned_sizes(quick_effort(), 1024 * MiB).size());
}

TEST(TunePlan, TakesAQuarterOfTheFreeMemory) {  // keeps P3
    const std::vector<Way> ways{pinned, managed, copied, combined};
    const auto largest = [&](std::uint64_t host, std::uint64_t device, bool shared) {
        return largest_size({host, device, shared}, ways);
    };
    EXPECT_EQ(largest(std::uint64_t{1} << 40, std::uint64_t{1} << 40, false), most_bytes);
    // Four buffers on the host, two on the device.
    EXPECT_EQ(largest(16 * MiB, std::uint64_t{1} << 40, false), 1 * MiB);
    EXPECT_EQ(largest(std::uint64_t{1} << 40, 16 * MiB, false), 2 * MiB);
    // In one DRAM they are six.
    EXPECT_EQ(largest(24 * MiB, 24 * MiB, true), 1 * MiB);
    EXPECT_EQ(largest(0, 0, false), least_bytes);
}

TEST(TunePlan, MeasuresOneAndSixteenPassesEverywhere) {  // keeps P3
    std::set<int> all;
    for (std::size_t bytes = 64; bytes <= most_bytes; bytes *= 2) {
        const std::vector<int> passes = passes_at(bytes);
        EXPECT_TRUE(std::is_sorted(passes.begin(), passes.end()));
        EXPECT_NE(std::find(passes.begin(), passes.end(), 1), passes.end());
        EXPECT_NE(std::find(passes.begin(), passes.end(), 16), passes.end());
        all.insert(passes.begin(), passes.end());
    }
    EXPECT_EQ(*all.rbegin(), 256);
}

TEST(TunePlan, LetsTheHostNeverReadWriteCombinedMemory) {  // keeps P5
    EXPECT_TRUE(is_lawful(combined, Role::reads));
    EXPECT_FALSE(is_lawful(combined, Role::writes));
    EXPECT_FALSE(is_lawful(combined, Role::reads_and_writes));
    EXPECT_TRUE(is_lawful_for_host(combined, Role::writes));
    EXPECT_FALSE(is_lawful_for_host(combined, Role::reads));
    EXPECT_TRUE(is_lawful(pinned, Role::writes));
}

TEST(TunePlan, PlacesHostMemoryTwiceWhereItMayMigrate) {
    Capabilities device;
    device.memory = MemoryModel::coherent_node;
    const std::vector<Way> ways = candidate_ways(device);
    EXPECT_NE(std::find(ways.begin(), ways.end(), Way{MemoryKind::host, Locality::unbound}), ways.end());
    EXPECT_NE(std::find(ways.begin(), ways.end(), Way{MemoryKind::host, Locality::near_device}), ways.end());
    device.memory = MemoryModel::separate;
    for (const Way& way : candidate_ways(device)) EXPECT_EQ(way.locality, Locality::anywhere);
    device.memory = MemoryModel::host;
    EXPECT_EQ(candidate_ways(device).size(), 1u);
}

TEST(TunePlan, TakesTheEffortOfTheTime) {
    EXPECT_EQ(effort_for(10).growth, quick_effort().growth);
    EXPECT_EQ(effort_for(60).finest, ordinary_effort().finest);
    EXPECT_EQ(effort_for(600).least_repeats, thorough_effort().least_repeats);
    EXPECT_EQ(effort_for(600).budget, 600);
}

TEST(TunePlan, FindsTheSizeBetween) {
    EXPECT_EQ(size_between(64, 256), 128u);
    EXPECT_EQ(size_between(64, 128), 0u) << "90 bytes is no multiple of 64";
    EXPECT_EQ(size_between(1 * MiB, 4 * MiB), 2 * MiB);
}

// --- sampler --------------------------------------------------------------------------------------------------------

SamplerRequest request_for(SyntheticClock& clock, const Effort& effort, std::size_t largest = most_bytes) {
    return {effort, clock.ways(), largest, clock.now() + 0.75 * effort.budget, {}};
}

Measurements measurements_of(SyntheticClock& clock, const Sampled& sampled) {
    Measurements measured;
    measured.ways = clock.ways();
    measured.turns = sampled.turns;
    measured.hosts = sampled.hosts;
    return measured;
}

std::set<std::size_t> sizes_of(const Sampled& sampled) {
    std::set<std::size_t> sizes;
    for (const TurnSample& turn : sampled.turns) sizes.insert(turn.bytes);
    return sizes;
}

TEST(Sampler, KeepsItsTime) {  // keeps P3
    for (const SyntheticMachine& machine : synthetic_machines()) {
        for (const Effort& effort : {effort_for(2), quick_effort(), ordinary_effort()}) {
            SyntheticClock clock(machine, {0.03, 0.03, 1, 5});
            const double begin = clock.now();
            const SamplerRequest request = request_for(clock, effort);
            const Sampled sampled = sample_turns(clock, request);
            EXPECT_LE(clock.now() - begin, 0.8 * effort.budget) << machine.name << ", " << effort.budget << " s";
            EXPECT_FALSE(sampled.turns.empty()) << machine.name << ", " << effort.budget << " s";
        }
    }
}

TEST(Sampler, KeepsItsTimeWhereTurnsBecomeLonger) {  // keeps P3
    for (const double from : {0.2, 0.5, 0.9}) {
        SyntheticClock clock(discrete_gpu(), {0.1, 0, 1, 8});
        Effort effort = quick_effort();
        effort.most_repeats = 1000;
        SamplerRequest request = request_for(clock, effort, 16 * MiB);
        request.until = clock.now() + 5;
        clock.slower_from = clock.now() + from * 5;
        clock.slower = 50;
        (void)sample_turns(clock, request);
        const double longest = 50 * discrete_gpu().turn(pinned, Role::reads_and_writes, 16.0 * MiB, 64);
        EXPECT_GE(clock.now(), request.until - longest) << "noisy: it repeats as long as there is time";
        EXPECT_LE(clock.now(), request.until + longest) << "one turn may end late";
    }
}

TEST(Sampler, MeasuresEveryPointOfASizeBeforeItRepeatsOne) {
    SyntheticClock clock(discrete_gpu());
    (void)sample_turns(clock, request_for(clock, quick_effort(), 4 * KiB));
    // The first rounds: the smallest size, forwards and then backwards.
    std::vector<SyntheticClock::Call> round;
    for (const auto& call : clock.calls) {
        if (std::find(round.begin(), round.end(), call) != round.end()) break;
        round.push_back(call);
    }
    ASSERT_GT(round.size(), 20u);
    ASSERT_GE(clock.calls.size(), 2 * round.size());
    for (std::size_t i = 0; i < round.size(); ++i) {
        EXPECT_TRUE(clock.calls[round.size() + i] == round[round.size() - 1 - i]) << i;
        EXPECT_EQ(round[i].bytes, 64u);
    }
}

// keeps P7: a buffer's place in caches and memory channels is no property of its way
TEST(Sampler, MeasuresSeveralBuffersOfASmallSize) {
    const auto mean_error = [](bool renewed) {
        SyntheticClock clock(discrete_gpu(), {0.005, 0, 1, 6});
        clock.places = 0.15;
        Effort effort = ordinary_effort();
        if (!renewed) {
            effort.repeats_of_one_allocation = effort.most_repeats;
            effort.least_visits = 1;
        }
        const Sampled sampled = sample_turns(clock, request_for(clock, effort, 1 * MiB));
        double errors = 0;
        for (const TurnSample& turn : sampled.turns) {
            const double right =
                discrete_gpu().turn(turn.way, turn.device, static_cast<double>(turn.bytes), turn.passes);
            errors += std::abs(turn.seconds.median / right - 1);
        }
        return errors / static_cast<double>(sampled.turns.size());
    };
    EXPECT_GT(mean_error(false), 0.065) << "one buffer tells its place as well";
    EXPECT_LT(mean_error(true), 0.045);
}

TEST(Sampler, KeepsTheBuffersOfLargeSizes) {
    SyntheticClock clock(discrete_gpu(), {0.1, 0, 1, 6});
    (void)sample_turns(clock, request_for(clock, ordinary_effort()));
    for (const auto& [bytes, times] : clock.renewed) EXPECT_EQ(times > 0, bytes <= ordinary_effort().renewed_to_bytes);
}

TEST(Sampler, AsksOnlyForWhatIsLawful) {  // keeps P5
    SyntheticClock clock(write_combined_wins());
    (void)sample_turns(clock, request_for(clock, quick_effort(), 1 * MiB));
    bool seen = false;
    for (const auto& call : clock.calls) {
        if (call.way.kind != MemoryKind::write_combined) continue;
        seen = true;
        EXPECT_EQ(call.role, call.passes == 0 ? Role::writes : Role::reads);
    }
    EXPECT_TRUE(seen);
}

TEST(Sampler, StopsRepeatingWhatIsStable) {
    SyntheticClock quiet(discrete_gpu()), noisy(discrete_gpu(), {0.1, 0.05, 1, 3});
    const Sampled few = sample_turns(quiet, request_for(quiet, quick_effort(), 64 * KiB));
    const Sampled many = sample_turns(noisy, request_for(noisy, quick_effort(), 64 * KiB));
    const auto most = [](const Sampled& sampled) {
        int repeats = 0;
        for (const TurnSample& turn : sampled.turns) repeats = std::max(repeats, turn.seconds.count);
        return repeats;
    };
    EXPECT_LE(most(few), 2 * quick_effort().least_repeats + 3);
    EXPECT_GT(most(many), 2 * most(few));
}

TEST(Sampler, ReportsNothingThatItRepeatedTooSeldom) {
    for (const double budget : {0.02, 0.1, 0.5, 2.0}) {
        SyntheticClock clock(discrete_gpu(), {0.02, 0.02, 1, 9});
        Effort effort = quick_effort();
        effort.budget = budget;
        const Sampled sampled = sample_turns(clock, request_for(clock, effort));
        for (const TurnSample& turn : sampled.turns) EXPECT_GE(turn.seconds.count, 3);
        for (const HostSample& host : sampled.hosts) EXPECT_GE(host.seconds.count, 3);
    }
}

TEST(Sampler, SaysWhatItLeftOut) {
    SyntheticClock clock(discrete_gpu());
    Effort effort = quick_effort();
    effort.budget = 0.5;
    const Sampled sampled = sample_turns(clock, request_for(clock, effort));
    ASSERT_FALSE(sampled.notes.empty());
    EXPECT_NE(sampled.notes.front().find("too little time"), std::string::npos) << sampled.notes.front();
    EXPECT_LT(*sizes_of(sampled).rbegin(), most_bytes);
}

TEST(Sampler, GoesOnWithoutAWayThatFails) {
    SyntheticClock clock(discrete_gpu());
    clock.broken = managed;
    const Sampled sampled = sample_turns(clock, request_for(clock, quick_effort(), 64 * KiB));
    for (const TurnSample& turn : sampled.turns) EXPECT_FALSE(turn.way == managed);
    EXPECT_EQ(sizes_of(sampled).count(64 * KiB), 1u);
    ASSERT_FALSE(sampled.notes.empty());
    EXPECT_NE(sampled.notes.front().find("there is none left"), std::string::npos);
}

TEST(Sampler, NoticesAMachineThatBecomesSlower) {
    SyntheticClock steady(discrete_gpu(), {0.02, 0, 1, 4}), heated(discrete_gpu(), {0.02, 0, 1, 4});
    EXPECT_NEAR(sample_turns(steady, request_for(steady, ordinary_effort())).drift, 1, 0.03);
    heated.slower_from = heated.now() + 0.5 * 0.75 * 60;
    heated.slower = 1.5;
    EXPECT_GT(sample_turns(heated, request_for(heated, ordinary_effort())).drift, 1.2);
}

TEST(Sampler, RefinesWhereTheBestWayChanges) {  // keeps P3
    const SyntheticMachine machine = orin_with_slow_pinned_reads();
    SyntheticClock clock(machine, {0.01, 0.02, 1, 2});
    const Sampled sampled = sample_turns(clock, request_for(clock, quick_effort()));
    const UseCase use{Role::reads, Role::writes, false, Prefer::throughput};
    const double border = true_border(machine, pinned, managed, use, 1);
    const std::set<std::size_t> sizes = sizes_of(sampled);
    const auto above = sizes.lower_bound(static_cast<std::size_t>(border));
    ASSERT_NE(above, sizes.end());
    ASSERT_NE(above, sizes.begin());
    const double step = static_cast<double>(*above) / static_cast<double>(*std::prev(above));
    EXPECT_LE(step, quick_effort().finest) << "planned sizes of this effort are a factor of four apart";
}

TEST(Figures, TakeTheSpeedOfAPassFromTheDifferenceOfTurns) {
    const Sample one{2e-3, 2e-3, 2e-3, 5}, many{17e-3, 17e-3, 17e-3, 5};
    std::vector<TurnSample> turns{{pinned, Role::reads, 64, 1, {5e-6, 4e-6, 6e-6, 9}},
                                  {pinned, Role::reads, 1 * MiB, 1, one},
                                  {pinned, Role::reads, 1 * MiB, 4, {5e-3, 5e-3, 5e-3, 5}},
                                  {pinned, Role::reads, 1 * MiB, 16, many},
                                  {managed, Role::reads, 1 * MiB, 16, many}};
    const std::vector<Figure> speeds = bandwidth_figures(turns);
    ASSERT_EQ(speeds.size(), 1u) << "one pass or many alone say nothing";
    EXPECT_EQ(speeds[0].kind, "pinned");
    EXPECT_EQ(speeds[0].unit, "GB/s");
    EXPECT_NEAR(speeds[0].value.median, 1.048576, 1e-6) << "a MiB in a millisecond";
    const std::vector<Figure> latencies = latency_figures(turns);
    ASSERT_EQ(latencies.size(), 1u);
    EXPECT_EQ(latencies[0].bytes, 64u);
    EXPECT_EQ(latencies[0].value.median, 5e-6);
    // More passes in less time: the spread of the repeats, no speed.
    turns[3].seconds = turns[2].seconds = {1e-3, 1e-3, 1e-3, 5};
    EXPECT_TRUE(bandwidth_figures(turns).empty());
}

// The whole way: what the sampler measured of a machine with planted costs, and what is chosen by it, at sizes and
// passes that were not measured.
TEST(Sampler, MeasuresEnoughForTheRightChoices) {  // keeps P7
    const auto is_good = [](const SyntheticMachine& machine, const Effort& effort, double most_above) {
        SyntheticClock clock(machine, {0.02, 0.03, 1, 11});
        const Sampled sampled = sample_turns(clock, request_for(clock, effort));
        const std::vector<ProfileChoice> choices = choices_of(measurements_of(clock, sampled));
        const double largest = static_cast<double>(*sizes_of(sampled).rbegin());
        std::mt19937_64 random(23);
        std::uniform_real_distribution<double> share(0, 1);
        int points = 0, above = 0;
        double worst = 1;
        for (const UseCase& use : use_cases()) {
            if (use.host_often) continue;
            for (int i = 0; i < 60; ++i) {
                const auto bytes = static_cast<std::size_t>(64 * std::exp(share(random) * std::log(largest / 64)));
                const int passes = static_cast<int>(std::exp(share(random) * std::log(256.0)));
                const ProfileChoice* const choice = choice_for(choices, use, passes, bytes);
                ASSERT_NE(choice, nullptr) << machine.name;
                const auto size = static_cast<double>(bytes);
                double best = std::numeric_limits<double>::infinity();
                for (const WayCosts& costs : machine.ways) {
                    if (!is_lawful(costs.way, use) || !machine.measures(costs.way, use.device)) continue;
                    best = std::min(best, machine.seconds(costs.way, use, size, passes));
                }
                const double ratio = machine.seconds(way_of(*choice), use, size, passes) / best;
                ++points;
                above += ratio > 1.05 ? 1 : 0;
                worst = std::max(worst, ratio);
            }
        }
        EXPECT_LE(above, points * most_above) << machine.name << ", worst " << worst;
        EXPECT_LE(worst, 1.25) << machine.name;
    };
    for (const SyntheticMachine& machine : synthetic_machines()) is_good(machine, ordinary_effort(), 0.01);
    is_good(orin_with_slow_pinned_reads(), quick_effort(), 0.03);
}

}  // namespace
}  // namespace isthmus::tools::tune
