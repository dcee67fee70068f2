// SPDX-License-Identifier: Apache-2.0
// Hints: counted, never an error where the machine ignores them, and never a change of content.
#include "scenario.hpp"

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1000;
constexpr Advice all_advice[] = {Advice::read_mostly,           Advice::not_read_mostly, Advice::prefer_device,
                                 Advice::prefer_host,           Advice::no_preference,   Advice::accessed_by_device,
                                 Advice::not_accessed_by_device};

Buffer<std::int32_t> filled(Device& device, MemoryKind kind) {
    Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(count, kind).value();
    device.stream().fill(buffer, 41).value();
    device.stream().synchronize().value();
    return buffer;
}

HintOutcome expected(Device& device, MemoryKind kind, bool advice) {
    const Capabilities& can = device.capabilities();
    if (device.is_cpu()) return HintOutcome::not_needed;
    if (kind == MemoryKind::managed) {
        if (can.managed == ManagedModel::phase_guarded) return advice ? HintOutcome::unsupported : HintOutcome::done;
        return can.memory == MemoryModel::shared_dram ? HintOutcome::not_needed : HintOutcome::done;
    }
    if (kind == MemoryKind::host) {
        if (can.translation == Translation::none) return HintOutcome::unsupported;
        return can.memory == MemoryModel::shared_dram ? HintOutcome::not_needed : HintOutcome::done;
    }
    return HintOutcome::not_needed;
}

TEST(Hints, AreDoneOrExplainedForEveryKindAndNeverChangeContent) {  // keeps K21
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
            if (kind == MemoryKind::managed && !device.is_cpu() && !device.capabilities().has(Feature::managed)) {
                continue;
            }
            SCOPED_TRACE(isthmus::name(kind));
            Buffer<std::int32_t> buffer = filled(device, kind);
            Stream stream = device.create_stream().value();
            for (const HintPlace place : {HintPlace::on_device(), HintPlace::on_host()}) {
                const HintReport report = stream.prefetch(buffer, place).value();
                EXPECT_TRUE(unless_fault(report.outcome == expected(device, kind, false))) << report.reason;
                EXPECT_FALSE(report.reason.empty());
            }
            for (const Advice advice : all_advice) {
                const HintReport report = device.advise(buffer, advice).value();
                EXPECT_TRUE(unless_fault(report.outcome == expected(device, kind, true))) << report.reason;
                EXPECT_FALSE(report.reason.empty());
            }
            stream.synchronize().value();
            std::vector<std::int32_t> read(count);
            device.stream().copy_to_host(read, buffer).value();
            EXPECT_EQ(read, std::vector<std::int32_t>(count, 41));
        }
    });
}

TEST(Hints, AreCountedByWhatBecameOfThem) {  // keeps K21
    on_every_device([](Device& device) {
        Buffer<std::int32_t> pinned = device.allocate<std::int32_t>(count, MemoryKind::pinned).value();
        const HintCounts before = device.hint_counts();
        (void)device.stream().prefetch(pinned).value();
        (void)device.advise(pinned, Advice::read_mostly).value();
        const HintCounts after = device.hint_counts();
        EXPECT_EQ(after.not_needed, before.not_needed + 2);
        EXPECT_EQ(after.done, before.done);
        EXPECT_EQ(after.unsupported, before.unsupported);
    });
}

TEST(Hints, AboutSeveralBuffersReportForEachAndAreOneCallWhereTheDriverHasIt) {  // keeps K21
    on_every_device([](Device& device) {
        Buffer<std::int32_t> one = filled(device, MemoryKind::pinned);
        Buffer<std::int32_t> other = filled(device, MemoryKind::device);
        std::vector<const BufferBase*> all{&one, &other};
        const bool managed = device.is_cpu() || device.capabilities().has(Feature::managed);
        Buffer<std::int32_t> third = filled(device, managed ? MemoryKind::managed : MemoryKind::pinned);
        Buffer<std::int32_t> fourth = filled(device, managed ? MemoryKind::managed : MemoryKind::pinned);
        all.push_back(&third);
        all.push_back(&fourth);
        Stream stream = device.create_stream().value();
        const HintCounts before = device.hint_counts();
        const long calls = driver_calls("cuMemPrefetchBatchAsync") + driver_calls("cuMemPrefetchAsync_v2") +
                           driver_calls("cuMemPrefetchAsync");
        const std::vector<HintReport> reports = stream.prefetch(all).value();
        const long made = driver_calls("cuMemPrefetchBatchAsync") + driver_calls("cuMemPrefetchAsync_v2") +
                          driver_calls("cuMemPrefetchAsync") - calls;
        ASSERT_EQ(reports.size(), 4u);
        const MemoryKind kinds[] = {MemoryKind::pinned, MemoryKind::device, third.kind(), fourth.kind()};
        for (std::size_t at = 0; at < 4; ++at) {
            const HintOutcome wanted = expected(device, kinds[at], false);
            EXPECT_TRUE(unless_fault(reports[at].outcome == wanted)) << at << ": " << reports[at].reason;
        }
        const bool moves = expected(device, third.kind(), true) == HintOutcome::done;  // by the driver
        if (counts_calls(device)) {
            const bool batches = runtime().machine().driver_version >= 13000;
            EXPECT_TRUE(unless_fault(made == (!moves ? 0 : batches ? 1 : 2))) << made;
        }
        const HintCounts after = device.hint_counts();
        EXPECT_EQ(after.done + after.not_needed + after.unsupported,
                  before.done + before.not_needed + before.unsupported + 4);
        EXPECT_TRUE(stream.prefetch(std::vector<const BufferBase*>{}).value().empty());
        EXPECT_TRUE(refused_as(stream.prefetch(std::vector<const BufferBase*>{&one, nullptr}), Code::invalid_handle));
        stream.synchronize().value();
        std::vector<std::int32_t> read(count);
        device.stream().copy_to_host(read, third).value();
        EXPECT_EQ(read, std::vector<std::int32_t>(count, 41));
    });
}

// keeps K21: a discard claims as a write does, and where nobody takes it the content stays
TEST(Hints, ADiscardEndsTheContentOrIsExplained) {
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
            if (kind == MemoryKind::managed && !device.is_cpu() && !device.capabilities().has(Feature::managed)) {
                continue;
            }
            SCOPED_TRACE(isthmus::name(kind));
            Buffer<std::int32_t> buffer = filled(device, kind);
            Stream stream = device.create_stream().value();
            const bool tells = runtime().machine().driver_version >= 13000;
            HintOutcome wanted = expected(device, kind, true);
            if (wanted == HintOutcome::done && !tells) wanted = HintOutcome::unsupported;
            // The driver discards nothing while another of its devices shares managed memory by phases.
            for (const Device& other : all_devices()) {
                const bool phases = !other.is_cpu() && other.capabilities().managed == ManagedModel::phase_guarded;
                if (phases && wanted == HintOutcome::done) wanted = HintOutcome::unsupported;
            }
            const HintReport report = stream.discard(buffer).value();
            EXPECT_TRUE(unless_fault(report.outcome == wanted)) << report.reason;
            EXPECT_FALSE(report.reason.empty());
            std::int32_t content = 41;
            if (report.outcome == HintOutcome::done) {
                content = 42;
                stream.fill(buffer, content).value();
            }
            stream.synchronize().value();
            std::vector<std::int32_t> read(count);
            stream.copy_to_host(read, buffer).value();
            EXPECT_EQ(read, std::vector<std::int32_t>(count, content));
            EXPECT_TRUE(unless_fault(stream.discard(buffer, HintPlace::on_device()).value().outcome == wanted));
            stream.fill(buffer, 43).value();
            stream.synchronize().value();
            stream.copy_to_host(read, buffer).value();
            EXPECT_EQ(read, std::vector<std::int32_t>(count, 43));
            if (kind == MemoryKind::managed && wanted == HintOutcome::done) {
                const auto view = buffer.read_on_host().value();
                EXPECT_EQ(stream.discard(buffer).value().outcome, HintOutcome::unsupported) << "open: no error";
                EXPECT_EQ(view[count - 1], 43);
            }
            Buffer<std::int32_t> moved = std::move(buffer);
            EXPECT_TRUE(refused_as(stream.discard(buffer), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
            EXPECT_TRUE(refused_as(stream.discard(moved, HintPlace::on_host(12345)), Code::invalid_argument));
        }
    });
}

TEST(Hints, AdviceReadsBackAsItWasGiven) {  // keeps K21
    on_every_device([](Device& device) {
        const bool managed = device.is_cpu() || device.capabilities().has(Feature::managed);
        Buffer<std::int32_t> buffer = filled(device, managed ? MemoryKind::managed : MemoryKind::pinned);
        const HintOutcome wanted = expected(device, buffer.kind(), true);
        AdviceReport report = device.advice_for(buffer).value();
        EXPECT_TRUE(unless_fault(report.outcome == wanted)) << report.reason;
        EXPECT_FALSE(report.reason.empty());
        EXPECT_FALSE(report.read_mostly || report.accessed_by_device || report.preferred);
        EXPECT_TRUE(refused_as(device.advise(buffer, Advice::prefer_host, 12345), Code::invalid_argument));
        const auto& nodes = runtime().machine().numa_nodes;
        if (!nodes.empty()) {
            EXPECT_TRUE(refused_as(device.advise(buffer, Advice::read_mostly, nodes[0].id), Code::invalid_argument));
        }
        const int node = nodes.empty() ? -1 : nodes[0].id;
        for (const Advice advice : {Advice::read_mostly, Advice::accessed_by_device}) {
            EXPECT_TRUE(worked(device.advise(buffer, advice)));
        }
        EXPECT_TRUE(worked(device.advise(buffer, Advice::prefer_host, node)));
        report = device.advice_for(buffer).value();
        if (report.outcome != HintOutcome::done) return;
        EXPECT_TRUE(unless_fault(report.read_mostly && report.accessed_by_device));
        // A real driver may tell no preferred place of the host (580.159.04 on one H100).
        const bool real = std::getenv("ISTHMUS_TEST_REAL") != nullptr;
        EXPECT_TRUE(unless_fault(report.preferred.has_value() || real));
        if (report.preferred) {
            EXPECT_TRUE(report.preferred->on_host());
            // Drivers before CUDA 12.2 know the host as a whole.
            EXPECT_TRUE(report.preferred->where == MemoryPlace::Where::host || report.preferred->id == node);
            const bool nodes_known = node >= 0 && runtime().machine().driver_version >= 12020;
            EXPECT_TRUE(real || (report.preferred->where == MemoryPlace::Where::host_node) == nodes_known);
        }
        EXPECT_TRUE(worked(device.advise(buffer, Advice::prefer_device)));
        EXPECT_TRUE(worked(device.advise(buffer, Advice::not_read_mostly)));
        EXPECT_TRUE(worked(device.stream().prefetch(buffer)));
        report = device.advice_for(buffer).value();
        const MemoryPlace here{MemoryPlace::Where::device, device.facts().ordinal};
        EXPECT_TRUE(unless_fault(!report.read_mostly && report.preferred == here && report.prefetched == here));
        Buffer<std::int32_t> moved = std::move(buffer);
        EXPECT_TRUE(refused_as(device.advice_for(buffer), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
    });
}

TEST(Hints, OfAPhaseGuardedMachineAttachAndGiveBack) {  // keeps K21, K6
    Device& device = runtime().default_device();
    if (device.capabilities().managed != ManagedModel::phase_guarded) GTEST_SKIP() << "managed memory is no phase here";
    Buffer<std::int32_t> buffer = filled(device, MemoryKind::managed);
    Stream one = device.create_stream().value();
    Stream other = device.create_stream().value();
    EXPECT_TRUE(worked(one.prefetch(buffer)));
    EXPECT_TRUE(refused_as(other.launch(add_one, count, buffer), Code::in_use)) << "it is the first one's";
    EXPECT_EQ(other.prefetch(buffer).value().outcome, HintOutcome::unsupported) << "a hint is no error";
    EXPECT_TRUE(worked(one.launch(add_one, count, buffer)));
    EXPECT_TRUE(worked(other.prefetch(buffer, HintPlace::on_host())));
    one.synchronize().value();
    EXPECT_TRUE(worked(other.launch(add_one, count, buffer)));
    EXPECT_EQ(buffer.read_on_host().value()[count - 1], 43);
}

TEST(Hints, ForStagedBuffersBringTheDevicesSideUpToDate) {  // keeps K21, L4
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "nothing is staged on the CPU device";
    SharedUse two_sides;
    two_sides.kind = MemoryKind::device;
    Buffer<std::int32_t> buffer = device.allocate_shared<std::int32_t>(count, two_sides).value();
    { buffer.write_on_host().value()[0] = 6; }
    const std::uint64_t before = buffer.staged_bytes();
    EXPECT_EQ(device.stream().prefetch(buffer).value().outcome, HintOutcome::done);
    EXPECT_EQ(buffer.staged_bytes(), before + buffer.size_bytes());
    (void)device.stream().launch(add_one, 1, buffer).value();
    EXPECT_EQ(buffer.staged_bytes(), before + buffer.size_bytes()) << "once is enough";
    EXPECT_EQ(buffer.read_on_host().value()[0], 7);
}

TEST(Hints, AboutNoBufferAnotherRuntimesOrNoNodeAreErrors) {  // keeps K21, K18
    Runtime second = Runtime::open().value();
    on_every_device([&](Device& device) {
        Buffer<std::int32_t> mine = device.allocate<std::int32_t>(count, MemoryKind::pinned).value();
        Buffer<std::int32_t> theirs = second.cpu().allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> moved = std::move(mine);
        EXPECT_TRUE(
            refused_as(device.stream().prefetch(mine), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(refused_as(device.advise(mine, Advice::read_mostly), Code::invalid_handle));
        EXPECT_TRUE(refused_as(device.stream().prefetch(theirs), Code::wrong_device));
        EXPECT_TRUE(refused_as(device.advise(theirs, Advice::read_mostly), Code::wrong_device));
        EXPECT_TRUE(refused_as(device.stream().prefetch(moved, HintPlace::on_host(12345)), Code::invalid_argument));
        EXPECT_TRUE(worked(device.stream().prefetch(moved)));
        Buffer<std::int32_t> nothing = device.allocate<std::int32_t>(0, MemoryKind::pinned).value();
        EXPECT_EQ(device.stream().prefetch(nothing).value().outcome, HintOutcome::not_needed);
    });
}

}  // namespace
}  // namespace conformance
