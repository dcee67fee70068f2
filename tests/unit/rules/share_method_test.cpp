// SPDX-License-Identifier: Apache-2.0
// The share method between processes, for every use, every ability of both ends, one machine and two.
#include "share_method.hpp"
#include "some_devices.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using isthmus::SeenBy;
using isthmus::ShareMethod;
using isthmus::rules::choose_share_method;
using isthmus::rules::ShareMethodAnswer;
using isthmus::rules::sharing_end;
using isthmus::rules::SharingEnd;

SharingEnd end_of(unsigned bits) {
    return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}
// The first method that both ends support.
ShareMethod expected(bool cpus, unsigned both, bool same_machine) {
    if (cpus || (both & 1) == 0) return same_machine ? ShareMethod::host_memory : ShareMethod::none;
    if ((both & 2) != 0 && same_machine) return ShareMethod::posix_fd;
    if ((both & 4) != 0) return ShareMethod::fabric;
    return (both & 8) != 0 && same_machine ? ShareMethod::legacy_ipc : ShareMethod::none;
}

// keeps I1
TEST(ShareMethods, EveryUseAndEveryPairOfEndsHasItsMethodAndTheSentenceWhy) {
    std::set<ShareMethod> met;
    for (const SeenBy seen : {SeenBy::cpus_and_gpus, SeenBy::gpus_only}) {
        for (unsigned bits = 0; bits < 16 * 16 * 2; ++bits) {
            const unsigned one = bits & 15, other = bits >> 4 & 15;
            const bool same = bits >> 8 != 0;
            SCOPED_TRACE(bits);
            const ShareMethodAnswer answer = choose_share_method(seen, end_of(one), end_of(other), same);
            EXPECT_EQ(answer.method, expected(seen == SeenBy::cpus_and_gpus, one & other, same));
            EXPECT_EQ(choose_share_method(seen, end_of(other), end_of(one), same).method, answer.method)
                << "who exports is no matter";
            EXPECT_FALSE(answer.reason.empty());
            EXPECT_EQ(answer.remedy.empty(), answer.method != ShareMethod::none) << "a refusal says what works";
            met.insert(answer.method);
        }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(isthmus::share_method_count));
}

// keeps I1, D4
TEST(ShareMethods, AnEndIsWhatTheDeviceAnswersAndNotItsName) {
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
TEST(ShareMethods, EveryWayToUseSharedMemoryOfTheHostHasItsSentence) {
    using isthmus::LaunchPath;
    using isthmus::MemoryKind;
    using isthmus::rules::host_method_reason;
    const std::set<std::string_view> sentences = {
        host_method_reason(true, MemoryKind::host, LaunchPath::pass, MemoryKind::host),
        host_method_reason(false, MemoryKind::host, LaunchPath::pass, MemoryKind::host),
        host_method_reason(false, MemoryKind::registered, LaunchPath::pass, MemoryKind::registered),
        host_method_reason(false, MemoryKind::device, LaunchPath::stage, MemoryKind::registered),
        host_method_reason(false, MemoryKind::device, LaunchPath::stage, MemoryKind::host)};
    EXPECT_EQ(sentences.size(), 5u);
    for (const std::string_view sentence : sentences) EXPECT_EQ(sentence.find("shared memory of the host"), 0u);
}

// keeps I1
TEST(ShareMethods, TheirNamesAreDistinct) {
    std::set<std::string> names;
    for (int method = 0; method < isthmus::share_method_count; ++method) {
        names.emplace(isthmus::name(static_cast<ShareMethod>(method)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(isthmus::share_method_count));
    EXPECT_EQ(isthmus::name(static_cast<ShareMethod>(99)), "unknown");
    EXPECT_NE(isthmus::name(SeenBy::gpus_only), isthmus::name(SeenBy::cpus_and_gpus));
}

}  // namespace
