// SPDX-License-Identifier: Apache-2.0
// What follows from the options. keeps T4
#include "latency/plan.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace isthmus::tools::latency {
namespace {

TEST(LatencyPlan, TheDeadlineIsThePeriodUntilItIsGiven) {
    Request request;
    EXPECT_EQ(period_ns(request), 1'000'000u);
    EXPECT_EQ(deadline_ns(request), 1'000'000u);
    request.period_us = 8333.333;
    EXPECT_EQ(period_ns(request), 8'333'333u);
    EXPECT_EQ(deadline_ns(request), 8'333'333u);
    request.deadline_us = 500;
    EXPECT_EQ(deadline_ns(request), 500'000u);
}

TEST(LatencyPlan, TurnsAreGivenOrFollowFromTheDuration) {
    Request request;
    EXPECT_EQ(planned_turns(request), 10'000u);
    EXPECT_EQ(warm_up_turns(request), 1'000u) << "a second";
    request.seconds = 240;
    EXPECT_EQ(planned_turns(request), 240'000u);
    request.turns = 7;
    EXPECT_EQ(planned_turns(request), 7u);
    request.warm_up = 3;
    EXPECT_EQ(warm_up_turns(request), 3u);
    request.turns = 0;
    request.warm_up = 0;
    request.period_us = 1e7;
    request.seconds = 1;
    EXPECT_EQ(planned_turns(request), 1u);
    EXPECT_EQ(warm_up_turns(request), 1u);
}

TEST(LatencyPlan, OneRunOrSeveralInOneReport) {
    Request request;
    request.work = WorkKind::graph;
    request.sealed = true;
    ASSERT_EQ(plan_runs(request).size(), 1u);
    EXPECT_EQ(plan_runs(request)[0].label, "graph");
    EXPECT_TRUE(plan_runs(request)[0].sealed);
    EXPECT_FALSE(plan_runs(request)[0].kind);

    request.sealed = false;
    request.kind = MemoryKind::managed;
    request.compare = Comparison::sealed;
    const std::vector<RunPlan> both = plan_runs(request);
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].label, "unsealed");
    EXPECT_FALSE(both[0].sealed);
    EXPECT_EQ(both[1].label, "sealed");
    EXPECT_TRUE(both[1].sealed);
    for (const RunPlan& run : both) EXPECT_EQ(run.kind, MemoryKind::managed);

    request.kind.reset();
    request.compare = Comparison::kinds;
    std::set<MemoryKind> kinds;
    for (const RunPlan& run : plan_runs(request)) {
        ASSERT_TRUE(run.kind);
        EXPECT_EQ(run.label, isthmus::name(*run.kind));
        EXPECT_FALSE(run.sealed);
        kinds.insert(*run.kind);
    }
    EXPECT_EQ(kinds, (std::set<MemoryKind>{MemoryKind::pinned, MemoryKind::registered, MemoryKind::host,
                                           MemoryKind::managed, MemoryKind::device}));
}

TEST(LatencyPlan, WordsNameOneThingEachAndOthersNothing) {
    for (const WorkKind work : {WorkKind::launch, WorkKind::graph, WorkKind::service}) {
        EXPECT_EQ(work_of(name(work)), work);
    }
    for (const LoadKind load :
         {LoadKind::cpu, LoadKind::memory, LoadKind::page_cache, LoadKind::stream, LoadKind::copies}) {
        EXPECT_EQ(load_of(name(load)), load);
    }
    EXPECT_EQ(load_of("page-cache"), LoadKind::page_cache);
    for (const MemoryKind kind : tried_kinds) EXPECT_EQ(kind_of(isthmus::name(kind)), kind);
    EXPECT_FALSE(work_of("Launch"));
    EXPECT_FALSE(load_of("page_cache"));
    EXPECT_FALSE(load_of(""));
    EXPECT_FALSE(kind_of("write_combined")) << "the CPU does not read it";
    EXPECT_FALSE(kind_of("pool"));
}

TEST(LatencyPlan, CpusAreNumbersAndRanges) {
    using Cpus = std::vector<int>;
    EXPECT_EQ(cpus_of("3"), Cpus{3});
    EXPECT_EQ(cpus_of("2,4-7"), (Cpus{2, 4, 5, 6, 7}));
    EXPECT_EQ(cpus_of("8,0-1"), (Cpus{0, 1, 8}));
    for (const char* const bad :
         {"", ",", "1,", ",1", "-1", "1-", "-", "3-1", "1,1", "0-2,2", "a", "1 2", "1-2-3", "65536", "1.5", "0x1"}) {
        EXPECT_FALSE(cpus_of(bad)) << bad;
    }
}

}  // namespace
}  // namespace isthmus::tools::latency
