// SPDX-License-Identifier: Apache-2.0
// The effect of litmus trials: no finding changes an answer of any rule from no to yes, on any combination of facts.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <atomic_rules.hpp>
#include <launch_path.hpp>
#include <litmus_rules.hpp>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using S = LitmusShape;

LitmusFinding seen(K kind, S shape, std::uint64_t forbidden = 1) {
    LitmusFinding finding;
    finding.results.push_back({kind, shape, 1000, forbidden, 1000, 10});
    return finding;
}

template <class Each>
void for_every_shape(Each each) {
    for (int shape = 0; shape < litmus_shape_count; ++shape) each(static_cast<S>(shape));
}

// Every question whose answer a finding may change, as one row of bits.
std::vector<bool> all_answers(const Capabilities& c) {
    std::vector<bool> answers;
    for_every_kind([&](K kind) {
        for (const int width : {1, 2, 4, 8, 16, 32}) answers.push_back(bool(shared_load_store(c, kind, width)));
        for (const auto operation :
             {AtomicOperation::add, AtomicOperation::compare_exchange, AtomicOperation::float_add}) {
            for (const int width : {4, 8, 16}) {
                for (const bool flag : {false, true}) {
                    answers.push_back(bool(shared_atomic(c, {kind, operation, width, flag, flag})));
                }
            }
        }
    });
    return answers;
}

// Questions whose answers no finding may change.
std::vector<bool> all_access(const Capabilities& c) {
    std::vector<bool> answers;
    for_every_kind([&](K kind) {
        answers.push_back(bool(host_access(c, kind)));
        answers.push_back(bool(device_access(c, kind)));
    });
    for (int feature = 0; feature < feature_count; ++feature) answers.push_back(c.has(static_cast<Feature>(feature)));
    return answers;
}

void expect_narrower(const Capabilities& before, const std::vector<bool>& was, const LitmusFinding& finding,
                     const std::string& where) {
    const Capabilities after = narrowed(before, finding);
    const std::vector<bool> is = all_answers(after);
    ASSERT_EQ(was.size(), is.size());
    for (std::size_t i = 0; i < was.size(); ++i) ASSERT_FALSE(is[i] && !was[i]) << where << ", question " << i;
    ASSERT_EQ(all_access(before), all_access(after)) << where;
}

TEST(Litmus, NoFindingTurnsANoIntoAYesOnAnyCombinationOfFacts) {  // keeps G13
    HostAtomics some{};
    some[0] = atomic_bits::is_unsigned | atomic_bits::scalar_32;
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits, some);
        const std::vector<bool> was = all_answers(c);
        for_every_kind([&](K kind) {
            for (const S shape : {S::message_to_device, S::tearing_to_host, S::lost_updates}) {
                expect_narrower(c, was, seen(kind, shape), std::to_string(bits) + " " + std::string(name(shape)));
            }
        });
    }
}

TEST(Litmus, NoFindingTurnsANoIntoAYesOnAnyKnownMachine) {  // keeps G13
    for (const char* machine : gpu_machines) {
        const Capabilities before = of_machine(machine);
        const std::vector<bool> was = all_answers(before);
        Capabilities after = before;
        for_every_kind([&](K kind) {
            for_every_shape([&](S shape) {
                expect_narrower(before, was, seen(kind, shape), machine);
                expect_narrower(after, all_answers(after), seen(kind, shape), machine);  // and after other findings
                after = narrowed(after, seen(kind, shape));
            });
        });
    }
}

TEST(Litmus, TrialsThatSawNothingChangeNothing) {  // keeps G13
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for_every_kind([&](K kind) {
            for_every_shape(
                [&](S shape) { EXPECT_EQ(all_answers(narrowed(c, seen(kind, shape, 0))), all_answers(c)); });
        });
    }
}

TEST(Litmus, LostUpdatesTakeTheAtomicsOfThatKindAndLeaveLoadsAndStores) {  // keeps G13
    const Capabilities thor = of_machine("thor");
    const Capabilities after = narrowed(thor, seen(K::pinned, S::lost_updates));
    ASSERT_TRUE(shared_atomic(thor, {.kind = K::pinned}));
    const AccessAnswer refused = shared_atomic(after, {.kind = K::pinned});
    EXPECT_EQ(refused.verdict, Verdict::no);
    EXPECT_NE(refused.reason.find("trials on this device lost updates"), std::string_view::npos);
    EXPECT_FALSE(refused.remedy.empty());
    EXPECT_TRUE(shared_load_store(after, K::pinned, 8));
    EXPECT_TRUE(shared_atomic(after, {.kind = K::managed})) << "another kind, which nothing was seen of";
}

TEST(Litmus, TornSixteenBytesLeaveEight) {  // keeps G13
    for (const S shape : {S::tearing_to_device, S::tearing_to_host}) {
        const Capabilities after = narrowed(of_machine("h200"), seen(K::pinned, shape));
        EXPECT_FALSE(shared_load_store(after, K::pinned, 16));
        EXPECT_TRUE(shared_load_store(after, K::pinned, 8));
        EXPECT_TRUE(shared_load_store(after, K::registered, 16));
    }
}

TEST(Litmus, AMessageThatOvertookItsDataTakesLoadsStoresAndAtomics) {  // keeps G13
    for (const S shape : {S::message_to_device, S::message_to_host, S::store_buffering, S::load_buffering,
                          S::coherence_to_device, S::coherence_to_host}) {
        const Capabilities after = narrowed(of_machine("gh200-numa"), seen(K::host, shape));
        for (const K kind : {K::host, K::host_numa}) {  // host_numa has no trials of its own
            const AccessAnswer refused = shared_load_store(after, kind, 4);
            EXPECT_FALSE(refused) << name(shape);
            EXPECT_FALSE(refused.remedy.empty());
            EXPECT_FALSE(shared_atomic(after, {.kind = kind})) << name(shape);
        }
        EXPECT_TRUE(shared_load_store(after, K::pinned, 4));
    }
}

TEST(Litmus, KindsAndShapesThatNobodyKnowsAreRefusedRatherThanGranted) {  // keeps G13
    const Capabilities c = of_machine("thor");
    const auto odd_kind = static_cast<K>(200);
    EXPECT_EQ(all_answers(narrowed(c, seen(odd_kind, S::lost_updates))), all_answers(c));
    EXPECT_FALSE(shared_load_store(narrowed(c, seen(K::pinned, static_cast<S>(99))), K::pinned, 4));
}

TEST(Litmus, AFindingCountsForItsDeviceAndDriverOnly) {  // keeps G13
    MachineFacts machine;
    machine.driver_version = 13000;
    DeviceFacts device;
    device.ordinal = 0;
    device.uuid.bytes[3] = 7;
    LitmusFinding finding;
    finding.device = device.uuid;
    finding.driver_version = 13000;
    EXPECT_TRUE(finding_applies(finding, machine, device));

    finding.driver_version = 12060;
    EXPECT_NE(finding_applies(finding, machine, device).reason.find("another driver"), std::string_view::npos);
    finding.driver_version = 13000;
    finding.device.bytes[3] = 8;
    EXPECT_NE(finding_applies(finding, machine, device).reason.find("another device"), std::string_view::npos);
    finding.device = {};
    device.uuid = {};
    EXPECT_FALSE(finding_applies(finding, machine, device)) << "no name is nobody's, not everybody's";
}

TEST(Litmus, WhatASimulatedMachineShowedCountsInSimulationOnly) {  // keeps G13
    MachineFacts machine;
    machine.driver_version = 13000;
    DeviceFacts device;
    device.uuid.bytes[0] = 1;
    LitmusFinding finding{device.uuid, 13000, true, {}};
    EXPECT_FALSE(finding_applies(finding, machine, device));
    machine.simulated = true;
    EXPECT_TRUE(finding_applies(finding, machine, device));
    finding.simulated = false;
    EXPECT_TRUE(finding_applies(finding, machine, device)) << "a real machine's, replayed";
}

}  // namespace
