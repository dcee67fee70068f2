// SPDX-License-Identifier: Apache-2.0
// Export refusals: each kind and origin has its own, and no kind alone is enough to export. Trial exports: which of
// them count, and how they change a capability.
#include "export_finding_rules.hpp"
#include "export_rules.hpp"
#include "share_method.hpp"
#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace {

using isthmus::AccessAnswer;
using isthmus::MemoryKind;
using isthmus::Verdict;
using isthmus::rules::exportable;
using isthmus::rules::ExportOrigin;

// keeps K15
TEST(ExportRules, ManagedMemoryViewsAndForeignMemoryAreRefusedEachForItsOwnReason) {
    const AccessAnswer managed = exportable(MemoryKind::managed, ExportOrigin::own);
    const AccessAnswer view = exportable(MemoryKind::device, ExportOrigin::view);
    const AccessAnswer foreign = exportable(MemoryKind::device, ExportOrigin::foreign);
    std::set<std::string_view> reasons;
    const AccessAnswer shared = exportable(MemoryKind::registered, ExportOrigin::shared);
    for (const AccessAnswer& answer : {managed, view, foreign, shared}) {
        EXPECT_EQ(answer.verdict, Verdict::no);
        EXPECT_FALSE(answer.remedy.empty());
        reasons.insert(answer.reason);
    }
    EXPECT_EQ(reasons.size(), 4u);
    // Nor the reason of another kind.
    for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::managed_pool}) {
        const std::string_view reason = exportable(kind, ExportOrigin::own).reason;
        EXPECT_NE(reason.find("managed memory"), std::string_view::npos) << reason;
        EXPECT_NE(reason, exportable(MemoryKind::pool, ExportOrigin::own).reason);
    }
}

// keeps K15
TEST(ExportRules, NoKindIsGrantedAndOnlyWhatMayHaveAHandleIsLeftOpen) {
    for (int number = 0; number < isthmus::memory_kind_count; ++number) {
        const auto kind = static_cast<MemoryKind>(number);
        SCOPED_TRACE(isthmus::name(kind));
        const bool open = kind == MemoryKind::device || kind == MemoryKind::vmm || kind == MemoryKind::unknown;
        EXPECT_EQ(exportable(kind, ExportOrigin::own).verdict, open ? Verdict::not_verified : Verdict::no);
        EXPECT_EQ(exportable(kind, ExportOrigin::view).verdict, Verdict::no);
        EXPECT_EQ(exportable(kind, ExportOrigin::foreign).verdict, Verdict::no);
        EXPECT_FALSE(exportable(kind, ExportOrigin::own).remedy.empty());
    }
}

// The finding of a trial export of one kind on a device with this capability set.
isthmus::ExportFinding finding_of(isthmus::ExportKinds kind, bool works, isthmus::ExportStep failed) {
    isthmus::ExportFinding finding;
    finding.kind = kind;
    finding.works = works;
    finding.failed = failed;
    if (!works && failed != isthmus::ExportStep::survive) finding.driver_code = 800, finding.call = "cuMemCreate";
    return finding;
}

// keeps V5, D10: whatever a try showed, on every known machine, nothing goes from no to yes
TEST(ExportFindings, ConfirmAYesOrTakeItAwayAndLeaveEverythingElse) {
    using namespace isthmus;
    std::set<std::string> sentences;
    for (const char* machine : some_devices::gpu_machines) {
        const Capabilities before = some_devices::of_machine(machine);
        for (const ExportKinds kind : {ExportKinds::posix_fd, ExportKinds::fabric}) {
            const Feature feature = rules::feature_of(kind).value();
            for (int step = 0; step <= export_step_count; ++step) {
                const bool works = step == export_step_count;
                SCOPED_TRACE(std::string(machine) + " " + std::to_string(step));
                const auto probe = rules::probe_of(finding_of(kind, works, static_cast<ExportStep>(step)));
                Capabilities after = before;
                platform::apply_probe(after, probe);
                const bool had = before.has(feature);
                EXPECT_EQ(after.feature(feature).state, !had ? State::no : works ? State::probed : State::no);
                EXPECT_EQ(after.feature(feature).origin, had ? Origin::probe : before.feature(feature).origin);
                if (had) sentences.insert(after.feature(feature).reason);
                EXPECT_EQ(after.feature(feature).reason.back(), '.');
                const bool fabric = kind == ExportKinds::fabric && had && works;
                EXPECT_EQ(rules::sharing_end(after).fabric, fabric && after.has(Feature::virtual_memory));
                for (int each = 0; each < feature_count; ++each) {
                    if (static_cast<Feature>(each) == feature) continue;
                    EXPECT_EQ(after.has(static_cast<Feature>(each)), before.has(static_cast<Feature>(each)));
                }
            }
        }
    }
    EXPECT_EQ(sentences.size(), 2u * (export_step_count + 1)) << "each step and kind has words of its own";
}

// keeps D10
TEST(ExportFindings, CountForTheDeviceAndDriverTheyWereMadeOnOnly) {
    using namespace isthmus;
    MachineFacts machine;
    machine.driver_version = 13000;
    DeviceFacts device;
    device.ordinal = 0;
    device.uuid.bytes[3] = 7;
    ExportFinding mine = finding_of(ExportKinds::fabric, true, ExportStep::create);
    mine.device = device.uuid;
    mine.driver_version = machine.driver_version;
    EXPECT_TRUE(rules::finding_applies(mine, machine, device));
    std::set<std::string_view> reasons;
    const auto refused = [&](auto spoil) {
        ExportFinding other = mine;
        spoil(other);
        const AccessAnswer answer = rules::finding_applies(other, machine, device);
        EXPECT_EQ(answer.verdict, Verdict::no);
        EXPECT_FALSE(answer.remedy.empty());
        reasons.insert(answer.reason);
    };
    refused([](ExportFinding& other) { other.device.bytes[3] = 8; });
    refused([](ExportFinding& other) { other.driver_version = 12080; });
    refused([](ExportFinding& other) { other.simulated = true; });
    refused([](ExportFinding& other) { other.kind = ExportKinds::none; });
    EXPECT_EQ(reasons.size(), 4u);
    refused([](ExportFinding& other) { other.kind = ExportKinds::fabric | ExportKinds::posix_fd; });
    machine.simulated = true;
    mine.simulated = true;
    EXPECT_TRUE(rules::finding_applies(mine, machine, device));
}

// keeps V5: no room and no device say nothing of handles
TEST(ExportFindings, OnlyAnswersThatSpeakOfHandlesAreFindings) {
    using isthmus::Code;
    const std::set<Code> speak = {Code::not_permitted, Code::unsupported, Code::invalid_argument, Code::driver_error,
                                  Code::system_error};
    for (int code = 0; code <= static_cast<int>(Code::ended); ++code) {
        EXPECT_EQ(isthmus::rules::tells_of_exports(static_cast<Code>(code)), speak.count(static_cast<Code>(code)) == 1)
            << isthmus::name(static_cast<Code>(code));
    }
}

// keeps Y5, M6: attribute 124 decides device memory, 146 pinned memory, and nothing else is exported.
TEST(ExportRules, DmaBufsAreOfDeviceMemoryAndPinnedMemoryEachByItsAttribute) {
    for (const bool device_memory : {false, true}) {
        for (const bool pinned_memory : {false, true}) {
            isthmus::Capabilities device;
            device.memory = isthmus::MemoryModel::separate;
            const auto set = [&](isthmus::Feature feature, bool works) {
                device.features[static_cast<std::size_t>(feature)].state =
                    works ? isthmus::State::yes : isthmus::State::no;
            };
            set(isthmus::Feature::dma_buf, device_memory);
            set(isthmus::Feature::host_dma_buf, pinned_memory);
            for (int number = 0; number < isthmus::memory_kind_count; ++number) {
                const auto kind = static_cast<MemoryKind>(number);
                SCOPED_TRACE(isthmus::name(kind));
                const bool of_device = kind == MemoryKind::device || kind == MemoryKind::vmm;
                const bool wanted = of_device ? device_memory : kind == MemoryKind::pinned && pinned_memory;
                const AccessAnswer answer = isthmus::rules::dma_buf_export(device, kind);
                EXPECT_EQ(static_cast<bool>(answer), wanted);
                EXPECT_EQ(answer.remedy.empty(), wanted);
            }
            isthmus::Capabilities cpu = device;
            cpu.memory = isthmus::MemoryModel::host;
            EXPECT_FALSE(isthmus::rules::dma_buf_export(cpu, MemoryKind::pinned));
        }
    }
}

}  // namespace
