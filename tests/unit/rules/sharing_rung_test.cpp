// SPDX-License-Identifier: Apache-2.0
// The rung of sharing between processes, for every use, both ends' every ability, one machine and two.
#include "sharing_rung.hpp"
#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using isthmus::SeenBy;
using isthmus::SharingRung;
using isthmus::rules::choose_rung;
using isthmus::rules::RungAnswer;
using isthmus::rules::sharing_end;
using isthmus::rules::SharingEnd;

SharingEnd end_of(unsigned bits) {
    return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}
// The first rung of the ladder on which both ends can stand.
SharingRung expected(bool cpus, unsigned both, bool same_machine) {
    if (cpus || (both & 1) == 0) return same_machine ? SharingRung::host_memory : SharingRung::none;
    if ((both & 2) != 0 && same_machine) return SharingRung::posix_fd;
    if ((both & 4) != 0) return SharingRung::fabric;
    return (both & 8) != 0 && same_machine ? SharingRung::legacy_ipc : SharingRung::none;
}

// keeps I1
TEST(SharingRungs, EveryUseAndEveryPairOfEndsHasItsRungAndTheSentenceWhy) {
    std::set<SharingRung> met;
    for (const SeenBy seen : {SeenBy::cpus_and_gpus, SeenBy::gpus_only}) {
        for (unsigned bits = 0; bits < 16 * 16 * 2; ++bits) {
            const unsigned one = bits & 15, other = bits >> 4 & 15;
            const bool same = bits >> 8 != 0;
            SCOPED_TRACE(bits);
            const RungAnswer answer = choose_rung(seen, end_of(one), end_of(other), same);
            EXPECT_EQ(answer.rung, expected(seen == SeenBy::cpus_and_gpus, one & other, same));
            EXPECT_EQ(choose_rung(seen, end_of(other), end_of(one), same).rung, answer.rung)
                << "who exports is no matter";
            EXPECT_FALSE(answer.reason.empty());
            EXPECT_EQ(answer.remedy.empty(), answer.rung != SharingRung::none) << "a refusal says what works";
            met.insert(answer.rung);
        }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(isthmus::sharing_rung_count));
}

// keeps I1, D4
TEST(SharingRungs, AnEndIsWhatTheDeviceAnswersAndNotItsName) {
    EXPECT_EQ(sharing_end(some_devices::cpu()), SharingEnd{});
    const SharingEnd h200 = sharing_end(some_devices::of_machine("h200"));
    EXPECT_TRUE(h200.gpu && h200.posix_fd && h200.legacy_ipc);
    EXPECT_FALSE(h200.fabric) << "the attribute is no round trip";
    EXPECT_FALSE(sharing_end(some_devices::of_machine("orin")).legacy_ipc) << "its driver refuses the old handles";
    for (const char* machine : some_devices::gpu_machines) {
        SCOPED_TRACE(machine);
        const isthmus::Capabilities device = some_devices::of_machine(machine);
        EXPECT_TRUE(sharing_end(device).gpu);
        EXPECT_FALSE(sharing_end(device).fabric &&
                     device.feature(isthmus::Feature::export_fabric).state != isthmus::State::probed);
    }
}

// keeps I1
TEST(SharingRungs, EveryWayToUseSharedMemoryOfTheHostHasItsSentence) {
    using isthmus::LaunchPath;
    using isthmus::MemoryKind;
    using isthmus::rules::host_rung_reason;
    const std::set<std::string_view> sentences = {
        host_rung_reason(true, MemoryKind::host, LaunchPath::pass, MemoryKind::host),
        host_rung_reason(false, MemoryKind::host, LaunchPath::pass, MemoryKind::host),
        host_rung_reason(false, MemoryKind::registered, LaunchPath::pass, MemoryKind::registered),
        host_rung_reason(false, MemoryKind::device, LaunchPath::stage, MemoryKind::registered),
        host_rung_reason(false, MemoryKind::device, LaunchPath::stage, MemoryKind::host)};
    EXPECT_EQ(sentences.size(), 5u);
    for (const std::string_view sentence : sentences) EXPECT_EQ(sentence.find("shared memory of the host"), 0u);
}

// keeps I1
TEST(SharingRungs, TheirNamesAreDistinct) {
    std::set<std::string> names;
    for (int rung = 0; rung < isthmus::sharing_rung_count; ++rung) {
        names.emplace(isthmus::name(static_cast<SharingRung>(rung)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(isthmus::sharing_rung_count));
    EXPECT_EQ(isthmus::name(static_cast<SharingRung>(99)), "unknown");
    EXPECT_NE(isthmus::name(SeenBy::gpus_only), isthmus::name(SeenBy::cpus_and_gpus));
}

}  // namespace
