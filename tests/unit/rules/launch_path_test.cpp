// SPDX-License-Identifier: Apache-2.0
// What a launch does with each kind, and how a staged launch lays out and copies what the device cannot access.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <launch_path.hpp>
#include <platform/capability_table.hpp>
#include <staging_plan.hpp>

#include <map>
#include <random>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using V = Verdict;

TEST(LaunchPath, FollowsAccessAndAttachesWherePhasesAreGuarded) {  // keeps K6, L4
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            const LaunchPath path = launch_path(c, kind).path;
            const bool managed = kind == K::managed || kind == K::managed_pool;
            if (managed && !bit(bits, 83)) {
                EXPECT_EQ(path, LaunchPath::refuse);
            } else if (managed && !bit(bits, 89)) {
                EXPECT_EQ(path, kind == K::managed ? LaunchPath::attach : LaunchPath::refuse);
            } else {
                // A prefetch pays where a link separates the memories and the GPU keeps its own managed pages, and once
                // where CPU and GPU share DRAM and page tables.
                const bool tables = bit(bits, 88) && bit(bits, 100);
                const bool pays = kind == K::managed && bit(bits, 18) == tables;
                const LaunchPath in_place = pays ? LaunchPath::prefetch : LaunchPath::pass;
                EXPECT_EQ(launch_path(c, kind).once, path == LaunchPath::prefetch && tables)
                    << name(kind) << " " << bits;
                const bool no = promised_to_device(bits, kind) == V::no;
                EXPECT_EQ(path, no ? LaunchPath::stage : in_place) << name(kind) << " " << bits;
            }
        });
    }
    EXPECT_EQ(launch_path(cpu(), K::host).path, LaunchPath::pass);
    for (const K kind : {K::managed, K::managed_pool, K::imported}) {
        EXPECT_EQ(launch_path(cpu(), kind).path, LaunchPath::refuse)
            << name(kind) << ", which the CPU device never has";
    }
}

TEST(LaunchPath, APrefetchIsATraitOfTheAxesAndNeverOfPhaseGuardedMemory) {
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        const PathAnswer answer = launch_path(c, K::managed);
        const platform::Prefetching prefetching = platform::traits_of(c).prefetching.value;
        if (answer.path == LaunchPath::prefetch) {
            EXPECT_EQ(answer.once, prefetching == platform::Prefetching::first_use) << machine;
            EXPECT_NE(prefetching, platform::Prefetching::never) << machine;
            EXPECT_TRUE(c.has(Feature::concurrent_managed)) << machine;
        }
    }
    EXPECT_EQ(launch_path(of_machine("h200"), K::managed).path, LaunchPath::prefetch);
    EXPECT_FALSE(launch_path(of_machine("h200"), K::managed).once);
    EXPECT_EQ(launch_path(of_machine("rtx-wsl2"), K::managed).path, LaunchPath::attach);
    EXPECT_EQ(launch_path(of_machine("orin"), K::managed).path, LaunchPath::attach);
    for (const char* machine : {"thor", "gb10"}) {  // keeps P1
        EXPECT_EQ(launch_path(of_machine(machine), K::managed).path, LaunchPath::prefetch) << machine;
        EXPECT_TRUE(launch_path(of_machine(machine), K::managed).once) << machine;
    }
    for (const char* machine : {"gh200-numa", "gh200-cdmm"}) {
        EXPECT_EQ(launch_path(of_machine(machine), K::managed).path, LaunchPath::pass) << machine;
    }
}

// Every byte outside has one place inside; what is read is copied in, what is written is copied back, once.
TEST(Staging, AnyRangesEndAsTheyWouldInPlaceAndNoByteIsCopiedTwice) {  // keeps L4
    std::mt19937 random(20260401);
    const auto below = [&](std::uint64_t most) {
        return std::uniform_int_distribution<std::uint64_t>(0, most - 1)(random);
    };
    for (int round = 0; round < 2000; ++round) {
        std::vector<StagedRange> ranges(1 + below(5));
        for (StagedRange& range : ranges) {
            const ArgumentUse uses[] = {ArgumentUse::read, ArgumentUse::write, ArgumentUse::read_write};
            range = {5000 + below(60), 1 + below(40), uses[below(3)], static_cast<int>(below(2)) - 1};
        }
        const StagingPlan plan = plan_staging(ranges);
        std::vector<int> temporary(plan.bytes, -1);  // −1: nothing was copied in
        std::map<std::pair<int, std::uint64_t>, int> copied_in, copied_out;
        for (const StagedCopy& copy : plan.in) {
            for (std::uint64_t i = 0; i < copy.bytes; ++i) {
                temporary[copy.offset + i] = static_cast<int>((copy.address + i) % 251);
                ++copied_in[{copy.ordinal, copy.address + i}];
            }
        }
        for (const StagedCopy& copy : plan.out) {
            for (std::uint64_t i = 0; i < copy.bytes; ++i) ++copied_out[{copy.ordinal, copy.address + i}];
        }
        std::map<std::pair<int, std::uint64_t>, std::uint64_t> place;  // one byte outside is one byte inside
        for (std::size_t r = 0; r < ranges.size(); ++r) {
            EXPECT_EQ(plan.offsets[r] % StagingPlan::alignment, ranges[r].address % StagingPlan::alignment);
            for (std::uint64_t i = 0; i < ranges[r].bytes; ++i) {
                const std::pair<int, std::uint64_t> outside{ranges[r].ordinal, ranges[r].address + i};
                const std::uint64_t inside = plan.offsets[r] + i;
                ASSERT_LT(inside, plan.bytes);
                EXPECT_EQ(place.emplace(outside, inside).first->second, inside);
                const ArgumentUse use = ranges[r].use;
                if (use != ArgumentUse::write) {
                    EXPECT_EQ(copied_in[outside], 1);
                    EXPECT_EQ(temporary[inside], static_cast<int>(outside.second % 251));
                }
                if (use != ArgumentUse::read) {
                    EXPECT_EQ(copied_out[outside], 1);
                }
            }
        }
        std::map<std::uint64_t, int> owners;  // and two bytes outside are two inside
        for (const auto& [outside, inside] : place) EXPECT_EQ(++owners[inside], 1);
        for (const auto& [outside, times] : copied_in) EXPECT_TRUE(times == 0 || place.count(outside) == 1);
        for (const auto& [outside, times] : copied_out) EXPECT_TRUE(times == 0 || place.count(outside) == 1);
    }
}

TEST(Staging, OverlappingArgumentsAreOneCopyAndNeighboursAreTwo) {  // keeps L4
    const StagingPlan one = plan_staging({{1024, 64, ArgumentUse::read, -1}, {1056, 64, ArgumentUse::read, -1}});
    ASSERT_EQ(one.in.size(), 1u);
    EXPECT_EQ(one.in[0].bytes, 96u);
    EXPECT_TRUE(one.out.empty());
    EXPECT_EQ(one.offsets[1] - one.offsets[0], 32u);
    const StagingPlan two = plan_staging({{1024, 64, ArgumentUse::read, -1}, {1024, 64, ArgumentUse::write, 0}});
    EXPECT_EQ(two.in.size(), 1u);
    EXPECT_EQ(two.out.size(), 1u);
    EXPECT_NE(two.offsets[0], two.offsets[1]) << "one address in two memories";
}

}  // namespace
