// SPDX-License-Identifier: Apache-2.0
// The effect of hints on every known machine and for any combination of attributes.
#include "hint_rules.hpp"
#include "launch_path.hpp"

#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;
using rules::HintAction;
using rules::HintPlan;

// A buffer of this kind only; staged buffers have two kinds.
HintPlan prefetch(const Capabilities& device, MemoryKind kind, bool to_host = false, bool own = true) {
    const LaunchPath path = rules::launch_path(device, kind).path;
    return rules::plan_prefetch(device, {kind, path == LaunchPath::stage ? LaunchPath::refuse : path, own, to_host});
}

TEST(HintRules, TheDriverIsToldOnlyWhereMemoryWouldMove) {  // keeps K21
    for (unsigned bits = 0; bits < some_devices::combinations; ++bits) {
        const Capabilities device = some_devices::of_bits(bits);
        some_devices::for_every_kind([&](MemoryKind kind) {
            for (const bool to_host : {false, true}) {
                const HintPlan plan = rules::plan_prefetch(device, {kind, LaunchPath::pass, true, to_host});
                const HintPlan advice = rules::plan_advice(device, kind, false);
                ASSERT_FALSE(plan.report.reason.empty());
                ASSERT_EQ(plan.action == HintAction::none, plan.report.outcome != HintOutcome::done);
                ASSERT_TRUE(advice.action == HintAction::none || advice.action == HintAction::tell);
                const bool managed = kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
                const bool pageable = kind == MemoryKind::host || kind == MemoryKind::host_numa;
                if (plan.action == HintAction::tell) {
                    ASSERT_TRUE(managed ? some_devices::bit(bits, 89) : pageable && some_devices::bit(bits, 88));
                    ASSERT_FALSE(some_devices::bit(bits, 18)) << "one DRAM";
                }
                if (plan.action == HintAction::attach || plan.action == HintAction::detach) {
                    ASSERT_TRUE(kind == MemoryKind::managed && !some_devices::bit(bits, 89));
                    ASSERT_EQ(plan.action == HintAction::detach, to_host);
                }
            }
        });
    }
}

// keeps K21: a discard goes to the driver where advice does, and the driver tells the advice for managed memory only
TEST(HintRules, DiscardsAndQuestionsGoWhereAdviceGoes) {
    for (unsigned bits = 0; bits < some_devices::combinations; ++bits) {
        const Capabilities device = some_devices::of_bits(bits);
        some_devices::for_every_kind([&](MemoryKind kind) {
            const bool managed = kind == MemoryKind::managed || kind == MemoryKind::managed_pool;
            for (const bool staged : {false, true}) {
                const HintPlan advice = rules::plan_advice(device, kind, staged);
                const HintPlan discard = rules::plan_discard(device, kind, staged);
                const HintPlan query = rules::plan_advice_query(device, kind, staged);
                ASSERT_EQ(discard.action, advice.action);
                ASSERT_EQ(discard.report.outcome, advice.report.outcome);
                const HintPlan beside = rules::plan_discard(device, kind, staged, true);
                const bool told = discard.action == HintAction::tell;
                ASSERT_EQ(beside.action, HintAction::none) << "neighbours keep their content";
                ASSERT_EQ(beside.report.outcome, told ? HintOutcome::not_needed : discard.report.outcome);
                ASSERT_FALSE(discard.report.reason.empty() || query.report.reason.empty());
                ASSERT_EQ(query.action == HintAction::tell, advice.action == HintAction::tell && managed);
                ASSERT_EQ(query.action == HintAction::none, query.report.outcome != HintOutcome::done);
            }
        });
    }
}

TEST(HintRules, KnownMachinesAnswerAsTheirRowsSay) {  // keeps K21
    EXPECT_EQ(prefetch(some_devices::of_machine("h200"), MemoryKind::managed).action, HintAction::tell);
    EXPECT_EQ(prefetch(some_devices::of_machine("h200"), MemoryKind::host).report.outcome, HintOutcome::unsupported);
    EXPECT_EQ(rules::plan_prefetch(some_devices::of_machine("h200"), {MemoryKind::host, LaunchPath::stage, true, false})
                  .action,
              HintAction::upload);
    EXPECT_EQ(prefetch(some_devices::of_machine("rtx-hmm"), MemoryKind::host).action, HintAction::tell);
    EXPECT_EQ(prefetch(some_devices::of_machine("gh200-numa"), MemoryKind::host).action, HintAction::tell);
    EXPECT_EQ(prefetch(some_devices::of_machine("orin"), MemoryKind::managed).action, HintAction::attach);
    EXPECT_EQ(prefetch(some_devices::of_machine("orin"), MemoryKind::managed, true).action, HintAction::detach);
    EXPECT_EQ(prefetch(some_devices::of_machine("orin"), MemoryKind::managed, false, false).report.outcome,
              HintOutcome::unsupported);
    EXPECT_EQ(rules::plan_advice(some_devices::of_machine("orin"), MemoryKind::managed, false).report.outcome,
              HintOutcome::unsupported);
    for (const char* const machine : {"thor", "gb10"}) {
        EXPECT_EQ(prefetch(some_devices::of_machine(machine), MemoryKind::managed).report.outcome,
                  HintOutcome::not_needed);
    }
    EXPECT_EQ(prefetch(some_devices::cpu(), MemoryKind::host).report.outcome, HintOutcome::not_needed);
    for (const char* const machine : some_devices::gpu_machines) {
        EXPECT_EQ(prefetch(some_devices::of_machine(machine), MemoryKind::device).report.outcome,
                  HintOutcome::not_needed);
    }
}

}  // namespace
