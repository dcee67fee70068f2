// SPDX-License-Identifier: Apache-2.0
// Turns and loads on the CPU device. keeps T4
#include "counted_new.hpp"
#include "latency/device_work.hpp"
#include "latency/latency_kernel.hpp"
#include "latency/load.hpp"
#include "latency/measure.hpp"
#include "latency/sealed.hpp"

#include <common/console.hpp>
#include <common/exit_codes.hpp>
#include <sanitized.hpp>

#include <isthmus/runtime.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>

namespace isthmus::tools::latency {
namespace {

Runtime cpu_runtime() {
    RuntimeOptions options;
    options.use_cuda = false;
    options.profile = "none";
    return Runtime::open(options).value();
}

Buffer<std::uint32_t> device_words(Device& device) {
    return device.allocate<std::uint32_t>(1000).value();
}

class CpuWork : public testing::TestWithParam<WorkKind> {
protected:
    Request request() const {
        Request request;
        request.work = GetParam();
        return request;
    }
    Runtime runtime = cpu_runtime();
};

TEST_P(CpuWork, EveryTurnHasItsOwnAnswer) {
    const auto work = make_work(runtime.cpu(), request(), std::nullopt).value();
    for (std::uint32_t turn = 0; turn < 20; ++turn) {
        ASSERT_TRUE(work->submit(turn));
        ASSERT_TRUE(work->wait());
        EXPECT_TRUE(work->view(turn).value());
    }
    ASSERT_TRUE(work->submit(20));
    ASSERT_TRUE(work->wait());
    EXPECT_FALSE(work->view(21).value()) << "the answer of another turn";
    EXPECT_EQ(work->buffer().size_bytes(), 256u);
    EXPECT_TRUE(work->end());
}

// Graphs are left out: their launches and patches use the heap (docs/performance.md).
TEST(LatencyWork, NoTurnOfALaunchTakesMemoryFromTheHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    Runtime runtime = cpu_runtime();
    const auto work = make_work(runtime.cpu(), {}, std::nullopt).value();
    Tally tally(1'000'000);
    SystemClock clock;
    const std::function<bool()> never = [] { return false; };
    (void)run_loop(*work, clock, {100'000, 200}, tally, never);
    const std::uint64_t before = counted_new();
    const LoopEnd end = run_loop(*work, clock, {100'000, 500}, tally, never);
    EXPECT_EQ(counted_new(), before);
    EXPECT_EQ(end.planned, 500u);
    EXPECT_FALSE(end.trouble || end.wrong_answer);
    const auto planted = device_words(runtime.cpu());
    EXPECT_GT(counted_new(), before) << "the count notices what the library takes";
}

TEST_P(CpuWork, ADeliberateErrorIsNoticed) {
    for (const Mutant mutant : {Mutant::wrong_answer, Mutant::no_answer}) {
        Request broken = request();
        broken.mutant = mutant;
        const auto work = make_work(runtime.cpu(), broken, std::nullopt).value();
        bool all_right = true;
        for (std::uint32_t turn = 0; turn < 5; ++turn) {
            ASSERT_TRUE(work->submit(turn));
            ASSERT_TRUE(work->wait());
            all_right = work->view(turn).value() && all_right;
        }
        EXPECT_FALSE(all_right);
    }
}

INSTANTIATE_TEST_SUITE_P(LaunchAndGraph, CpuWork, testing::Values(WorkKind::launch, WorkKind::graph),
                         [](const auto& chosen) { return std::string(name(chosen.param)); });

TEST(LatencyWork, AServiceOfTheCpuDeviceIsRefused) {
    Runtime runtime = cpu_runtime();
    Request request;
    request.work = WorkKind::service;
    EXPECT_EQ(make_work(runtime.cpu(), request, std::nullopt).code(), Code::unsupported);
    Report report;
    report.request = request;
    try {
        measure(
            runtime, runtime.cpu(), [] { return 0; }, report);
        ADD_FAILURE() << "it ran";
    } catch (const Failure& failure) {
        EXPECT_EQ(failure.exit_code(), exit_cannot);
    }
}

TEST(LatencyWork, AnAnswerIsThatOfOneQuestionAndOneSalt) {
    std::set<std::uint32_t> answers;
    for (std::uint32_t turn = 0; turn < 64; ++turn) {
        for (std::uint32_t at = 0; at < 64; ++at) answers.insert(answer(question(turn, at), turn));
        EXPECT_NE(answer(question(turn, 0), turn), question(turn, 0));
        EXPECT_NE(answer(question(turn, 0), turn), answer(question(turn, 0), turn + 1));
    }
    EXPECT_GT(answers.size(), 64 * 64 - 8u);
}

TEST(LatencyLoads, EachWorksUntilItIsStoppedAndAgainInTheNextRun) {
    Runtime runtime = cpu_runtime();
    Request request;
    request.loads = {LoadKind::cpu, LoadKind::memory, LoadKind::page_cache, LoadKind::stream, LoadKind::copies};
    const std::unique_ptr<Loads> loads = Loads::make(runtime.cpu(), request, true);
    for (int run = 0; run < 2; ++run) {
        std::uint64_t rounds = 0;
        for (int tries = 0; tries < 100 && rounds == 0; ++tries) {  // a slow machine may not end a round in time
            loads->start();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            const std::vector<LoadReport> reports = loads->stop();
            ASSERT_EQ(reports.size(), load_count);
            for (const LoadReport& report : reports) {
                EXPECT_EQ(report.trouble, "") << name(report.kind);
                EXPECT_GE(report.threads, 1u) << name(report.kind);
                rounds += report.rounds;
            }
        }
        EXPECT_GT(rounds, 0u);
        for (const LoadReport& report : loads->stop()) EXPECT_EQ(report.rounds, 0u) << "they have ended";
    }
}

TEST(LatencyLoads, APageCacheWithoutAFolderIsNamed) {
    Runtime runtime = cpu_runtime();
    Request request;
    request.loads = {LoadKind::page_cache};
    const char* const before = std::getenv("TMPDIR");
    const std::optional<std::string> kept = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
    ::setenv("TMPDIR", "/nonexistent/folder", 1);
    const std::unique_ptr<Loads> loads = Loads::make(runtime.cpu(), request, true);
    kept ? ::setenv("TMPDIR", kept->c_str(), 1) : ::unsetenv("TMPDIR");
    loads->start();
    std::vector<LoadReport> reports = loads->stop();
    for (int look = 0; look < 100 && reports[0].trouble.empty(); ++look) {  // the thread may have been stopped first
        loads->start();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        reports = loads->stop();
    }
    EXPECT_NE(reports[0].trouble.find("mkostemp"), std::string::npos) << reports[0].trouble;
}

TEST(LatencyMeasure, ComparesTheKindsThatTheDeviceHasAndNamesTheOthers) {
    Runtime runtime = cpu_runtime();
    Report report;
    report.request.compare = Comparison::kinds;
    report.request.period_us = 200;
    report.request.turns = 20;
    report.request.warm_up = 2;
    measure(
        runtime, runtime.cpu(), [] { return 0; }, report);
    EXPECT_EQ(report.runs.size() + report.left_out.size(), std::size(tried_kinds));
    ASSERT_FALSE(report.runs.empty());
    for (const RunReport& run : report.runs) {
        EXPECT_FALSE(run.trouble) << run.trouble->text;
        EXPECT_EQ(run.planned, 20u);
        EXPECT_EQ(run.tally->turns() + run.skipped, 20u);
        EXPECT_EQ(run.warm_up, 2u);
        EXPECT_FALSE(run.kind.empty());
        EXPECT_TRUE(run.counts);
    }
}

TEST(LatencyMeasure, ASignalEndsTheRunsWithWhatThereIs) {
    Runtime runtime = cpu_runtime();
    Report report;
    report.request.compare = Comparison::sealed;
    report.request.period_us = 200;
    report.request.turns = 1'000'000;
    report.request.warm_up = 2;
    int asked = 0;
    measure(
        runtime, runtime.cpu(), [&] { return ++asked > 50 ? 2 : 0; }, report);
    EXPECT_EQ(report.signal, 2);
    ASSERT_EQ(report.runs.size(), 1u) << "the second run is not begun";
    EXPECT_GT(report.runs[0].tally->turns(), 0u);
    EXPECT_LT(report.runs[0].planned, 1'000'000u);
}

TEST(LatencyMeasure, ASealedLoopIsRefusedNothingAndAnUnsealedOneHasNoSeal) {
    for (const WorkKind work : {WorkKind::launch, WorkKind::graph}) {
        Runtime runtime = cpu_runtime();
        Report report;
        report.request.work = work;
        report.request.compare = Comparison::sealed;
        report.request.period_us = 200;
        report.request.turns = 100;
        report.request.warm_up = 20;
        measure(
            runtime, runtime.cpu(), [] { return 0; }, report);
        ASSERT_EQ(report.runs.size(), 2u);
        for (const RunReport& run : report.runs) {
            EXPECT_FALSE(run.trouble) << run.trouble->text;
            EXPECT_EQ(run.planned, 100u);
            EXPECT_EQ(run.prepared.sealed, run.plan.sealed);
            ASSERT_EQ(run.sealed.has_value(), run.plan.sealed);
        }
        EXPECT_EQ(report.runs[1].sealed->count, 0u);
        EXPECT_TRUE(report.runs[1].sealed->places.empty());
    }
}

TEST(LatencyMeasure, ASealRefusesWhatAllocatesSaysWhereAndEnds) {
    Runtime runtime = cpu_runtime();
    Seal seal = runtime.seal().value();
    EXPECT_EQ(runtime.cpu().allocate<int>(1 << 22).code(), Code::not_permitted);
    const SealedCounts counts = end_and_count(seal);
    EXPECT_GE(counts.count, 1u);
    ASSERT_FALSE(counts.places.empty());
    EXPECT_FALSE(counts.places[0].call.empty());
    EXPECT_NE(counts.places[0].act, "unknown");
    EXPECT_TRUE(runtime.cpu().allocate<int>(1 << 22));
}

}  // namespace
}  // namespace isthmus::tools::latency
