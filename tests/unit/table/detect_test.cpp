// SPDX-License-Identifier: Apache-2.0
// detect() against an oracle over every combination of the deciding attributes, and the promises of capabilities.
#include "platform_oracle.hpp"

#include <gtest/gtest.h>

#include <platform/capability_table.hpp>
#include <platform/detect.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using platform::apply_probe;
using platform::detect;
using platform::feature_row;

constexpr std::array<int, 9> deciding = {18, 41, 83, 86, 88, 89, 100, 101, 147};
constexpr int unknown_to_driver = -1;
constexpr int refused = -2;
constexpr int code_refused = 801;

struct Machine {
    MachineFacts machine;
    DeviceFacts device;
};

Machine machine_of(const oracle::Said& said, bool cdmm, bool gpu_is_node) {
    Machine out;
    out.machine.driver_version = 13000;
    if (cdmm) out.machine.nvidia_params = {{"CoherentGPUMemoryMode", "driver"}};
    out.device.ordinal = 0;
    oracle::Said all = said;
    if (gpu_is_node) {
        all[130] = 1;
        all[131] = 7;
    }
    for (const auto& [id, value] : all) {
        if (value == unknown_to_driver) continue;
        out.device.attributes.push_back(value == refused ? AttributeFact{id, 0, code_refused}
                                                         : AttributeFact{id, value, 0});
    }
    return out;
}

void expect_agreement(const oracle::Said& said, bool cdmm, bool gpu_is_node) {
    const Machine facts = machine_of(said, cdmm, gpu_is_node);
    const Capabilities c = detect(facts.machine, facts.device);
    EXPECT_EQ(name(c.translation), oracle::translation(said));
    EXPECT_EQ(name(c.memory), oracle::memory(said, gpu_is_node));
    EXPECT_EQ(name(c.managed), oracle::managed(said));
    EXPECT_EQ(name(c.link_atomics), oracle::link(said));
    EXPECT_EQ(name(c.model), oracle::row(said));
    for (int i = 0; i < feature_count; ++i) {  // keeps D3, D7
        const Capability& each = c.features[static_cast<std::size_t>(i)];
        const int id = feature_row(static_cast<Feature>(i)).attribute;
        const auto found = said.find(id);
        const int value = found == said.end() ? unknown_to_driver : found->second;
        EXPECT_EQ(each.state, value == 1 ? State::yes : State::no) << id;
        const Origin origin = value == unknown_to_driver ? Origin::absent
                              : value == refused         ? Origin::refused
                                                         : Origin::attribute;
        EXPECT_EQ(each.origin, origin) << id;
    }
    if (!testing::Test::HasFailure()) return;
    std::string combination;
    for (const auto& [id, value] : said) combination += std::to_string(id) + "=" + std::to_string(value) + " ";
    FAIL() << "first seen with " << combination << (cdmm ? "CDMM " : "") << (gpu_is_node ? "node" : "");
}

// Calls `each` with every combination of `values` for the deciding attributes.
template <class Each>
void for_every_combination(const std::vector<int>& values, Each each) {
    std::array<std::size_t, deciding.size()> digits{};
    for (;;) {
        oracle::Said said;
        for (std::size_t i = 0; i < deciding.size(); ++i) said[deciding[i]] = values[digits[i]];
        each(said);
        std::size_t at = 0;
        while (at < digits.size() && ++digits[at] == values.size()) digits[at++] = 0;
        if (at == digits.size()) return;
    }
}

TEST(Detect, AgreesWithTheOracleOnEveryCombinationOfAnswers) {  // keeps D3, D4, D6
    for_every_combination({0, 1}, [](const oracle::Said& said) {
        for (const bool cdmm : {false, true}) {
            for (const bool node : {false, true}) {
                if (!testing::Test::HasFatalFailure()) expect_agreement(said, cdmm, node);
            }
        }
    });
}

TEST(Detect, AgreesWithTheOracleWhereTheDriverDoesNotKnowOrRefuses) {  // keeps D6, D7
    for_every_combination({1, 0}, [](const oracle::Said& said) {
        // Every no becomes "unknown" or "refused": all of one, all of the other, and mixed both ways.
        for (unsigned pattern : {0u, ~0u, 0x155u, 0x0aau}) {
            oracle::Said variant = said;
            for (auto& [id, value] : variant) {
                if (value == 0) value = (pattern & 1u) != 0 ? refused : unknown_to_driver;
                pattern >>= 1;
            }
            expect_agreement(variant, false, false);
        }
    });
}

TEST(Detect, AnyCombinationOfAllFeaturesComesBackAsThatCombination) {  // keeps D3
    std::uint32_t state = 20250817;
    for (int round = 0; round < 2000; ++round) {
        oracle::Said said;
        for (int i = 0; i < feature_count; ++i) {
            state = state * 1664525u + 1013904223u;
            said[feature_row(static_cast<Feature>(i)).attribute] = static_cast<int>(state >> 31);
        }
        expect_agreement(said, false, false);
    }
}

TEST(Detect, NoNameDecidesAnything) {  // keeps D4
    Machine facts = machine_of({{18, 1}, {83, 1}}, false, false);
    const Capabilities before = detect(facts.machine, facts.device);
    for (const char* product : {"NVIDIA GH200 480GB", "NVIDIA GB10", "Orin", "NVIDIA Thor", "NVIDIA H200", ""}) {
        SCOPED_TRACE(product);
        facts.device.name = product;
        facts.machine.addressing_mode = "ATS";
        const Capabilities after = detect(facts.machine, facts.device);
        EXPECT_EQ(after.model, before.model);
        EXPECT_EQ(after.translation, before.translation);
        EXPECT_EQ(after.memory, before.memory);
        EXPECT_EQ(after.managed, before.managed);
        EXPECT_EQ(after.link_atomics, before.link_atomics);
    }
}

TEST(Detect, TheCpuDeviceHasNoGpuProperties) {  // keeps D2
    MachineFacts machine;
    machine.driver_version = 13000;
    machine.nvidia_params = {{"CoherentGPUMemoryMode", "driver"}};
    DeviceFacts device;  // ordinal -1
    device.attributes = {{41, 1, 0}, {83, 1, 0}, {88, 1, 0}};
    const Capabilities c = detect(machine, device);
    EXPECT_EQ(c.model, Model::cpu);
    EXPECT_EQ(c.memory, MemoryModel::host);
    for (const Capability& each : c.features) {
        EXPECT_FALSE(each);
        EXPECT_FALSE(each.reason.empty());
    }
}

TEST(Detect, PageTablesWithoutDirectManagedAccessAreAccepted) {  // keeps D5
    const Machine facts = machine_of({{18, 1}, {83, 1}, {88, 1}, {89, 1}, {100, 1}, {101, 0}}, false, false);
    const Capabilities c = detect(facts.machine, facts.device);
    EXPECT_TRUE(c.has(Feature::pageable_access));
    EXPECT_TRUE(c.has(Feature::host_page_tables));
    EXPECT_FALSE(c.has(Feature::direct_managed));
    EXPECT_EQ(c.managed, ManagedModel::concurrent);
    EXPECT_EQ(c.model, Model::ats);
}

TEST(Detect, EachReasonIsASentenceThatNamesItsAttribute) {  // keeps D7
    const Machine facts = machine_of({{18, 1}, {83, 0}, {88, refused}}, false, false);
    const Capabilities c = detect(facts.machine, facts.device);
    for (int i = 0; i < feature_count; ++i) {
        const Capability& each = c.features[static_cast<std::size_t>(i)];
        const int id = feature_row(static_cast<Feature>(i)).attribute;
        EXPECT_NE(each.reason.find(attribute_name(id)), std::string::npos) << each.reason;
        EXPECT_NE(each.reason.find(std::to_string(id)), std::string::npos) << each.reason;
        EXPECT_EQ(each.reason.back(), '.');
    }
    EXPECT_NE(c.feature(Feature::pageable_access).reason.find(std::to_string(code_refused)), std::string::npos);
    EXPECT_NE(c.feature(Feature::pools).reason.find("13.0"), std::string::npos);
}

TEST(Detect, InvalidValueMeansThatTheDriverDoesNotKnowTheQuestion) {  // keeps D7
    Machine facts = machine_of({}, false, false);
    facts.device.attributes = {{144, 0, 1}};
    EXPECT_EQ(detect(facts.machine, facts.device).feature(Feature::host_pools).origin, Origin::absent);
}

TEST(Detect, WithoutADriverTheReasonSaysSo) {  // keeps D9
    Machine facts = machine_of({}, false, false);
    facts.machine.driver_version = 0;
    const Capability pools = detect(facts.machine, facts.device).feature(Feature::pools);
    EXPECT_EQ(pools.origin, Origin::absent);
    EXPECT_NE(pools.reason.find("no CUDA driver"), std::string::npos);
}

TEST(Detect, NumaNodesAreReadFromTheirAttributes) {
    const Machine facts = machine_of({{134, 1}}, false, true);
    const Capabilities c = detect(facts.machine, facts.device);
    EXPECT_EQ(c.host_numa_node, 1);
    EXPECT_EQ(c.gpu_numa_node, 7);
    const Machine none = machine_of({{130, 0}, {131, 7}, {134, -3}}, false, false);
    EXPECT_EQ(detect(none.machine, none.device).gpu_numa_node, -1) << "131 counts only where 130 says node";
    EXPECT_EQ(detect(none.machine, none.device).host_numa_node, -1);
}

TEST(Detect, CdmmIsKnownByTheMissingNodeAndNotByTheMachinesMode) {  // keeps D8, P1
    for (const bool stated : {false, true}) {
        const Machine coherent = machine_of({{18, 0}, {83, 1}, {88, 1}, {89, 1}, {100, 1}}, stated, false);
        const Machine node = machine_of({{18, 0}, {83, 1}, {88, 1}, {89, 1}, {100, 1}}, stated, true);
        const Machine shared = machine_of({{18, 1}, {83, 1}, {88, 1}, {89, 1}, {100, 1}}, stated, false);
        const Machine pcie = machine_of({{83, 1}, {88, 0}, {89, 1}, {100, 0}}, stated, false);
        EXPECT_EQ(detect(coherent.machine, coherent.device).memory, MemoryModel::coherent_hidden) << stated;
        EXPECT_EQ(detect(node.machine, node.device).memory, MemoryModel::coherent_node) << stated;
        EXPECT_EQ(detect(shared.machine, shared.device).memory, MemoryModel::shared_dram) << stated;
        EXPECT_EQ(detect(pcie.machine, pcie.device).memory, MemoryModel::separate) << stated;
        // 131 without 130, and -1: no node either.
        Machine minus = coherent;
        minus.device.attributes.insert(minus.device.attributes.end(), {{130, 0, 0}, {131, -1, 0}});
        EXPECT_EQ(detect(minus.machine, minus.device).memory, MemoryModel::coherent_hidden) << stated;
    }
}

TEST(Probe, AFailedTryLowersItsFeatureAndNothingWidens) {  // keeps D10
    for_every_combination({0, 1}, [](const oracle::Said& said) {
        const Machine facts = machine_of(said, false, false);
        const Capabilities before = detect(facts.machine, facts.device);
        for (int i = 0; i < feature_count; ++i) {
            Capabilities after = before;
            apply_probe(after, {static_cast<Feature>(i), false, 700, "The try failed"});
            EXPECT_FALSE(after.has(static_cast<Feature>(i)));
            for (int j = 0; j < feature_count; ++j) {
                const auto other = static_cast<Feature>(j);
                if (j != i) {
                    EXPECT_EQ(after.feature(other).state, before.feature(other).state);
                }
            }
            EXPECT_LE(after.translation, before.translation);
            EXPECT_LE(after.managed, before.managed);
            EXPECT_LE(after.link_atomics, before.link_atomics);
        }
        // The axes follow the features: none may promise what a feature no longer grants.
        const auto without = [&](Feature feature) {
            Capabilities after = before;
            apply_probe(after, {feature, false, 700, "The try failed"});
            return after;
        };
        EXPECT_EQ(without(Feature::pageable_access).translation, Translation::none);
        EXPECT_LE(without(Feature::host_page_tables).translation, Translation::hmm);
        EXPECT_EQ(without(Feature::managed).managed, ManagedModel::none);
        EXPECT_LE(without(Feature::concurrent_managed).managed, ManagedModel::phase_guarded);
        EXPECT_LE(without(Feature::direct_managed).managed, ManagedModel::concurrent);
    });
}

TEST(Probe, ASuccessfulTryConfirmsYesAndLeavesNo) {  // keeps D10
    const Machine facts = machine_of({{88, 0}, {128, 1}}, false, false);
    Capabilities c = detect(facts.machine, facts.device);
    apply_probe(c, {Feature::export_fabric, true, 0, "A fabric handle made the round trip."});
    EXPECT_EQ(c.feature(Feature::export_fabric).state, State::probed);
    EXPECT_EQ(c.feature(Feature::export_fabric).origin, Origin::probe);
    EXPECT_EQ(c.feature(Feature::export_fabric).reason, "A fabric handle made the round trip.");
    apply_probe(c, {Feature::pageable_access, true, 0, "It seemed to work."});
    EXPECT_EQ(c.feature(Feature::pageable_access).state, State::no);
    EXPECT_EQ(c.feature(Feature::pageable_access).origin, Origin::attribute);
}

TEST(Probe, AFailedTryKeepsTheFindingAndTheCode) {  // keeps D7
    const Machine facts = machine_of({{128, 1}}, false, false);
    Capabilities c = detect(facts.machine, facts.device);
    apply_probe(c, {Feature::export_fabric, false, 800, "cuMemCreate with a fabric handle was not permitted"});
    EXPECT_EQ(c.feature(Feature::export_fabric).origin, Origin::probe);
    EXPECT_NE(c.feature(Feature::export_fabric).reason.find("800"), std::string::npos);
}

TEST(Table, TraitsAreFoundByAxesAlone) {  // keeps P1
    using platform::traits_of;
    using T = Translation;
    using M = MemoryModel;
    const auto differ = [](T a, M b, T c, M d) { return &traits_of(a, b) != &traits_of(c, d); };
    EXPECT_TRUE(differ(T::host_page_tables, M::coherent_node, T::host_page_tables, M::coherent_hidden));
    EXPECT_TRUE(differ(T::host_page_tables, M::shared_dram, T::none, M::shared_dram));
    EXPECT_TRUE(differ(T::hmm, M::separate, T::none, M::separate));
    EXPECT_FALSE(differ(T::hmm, M::shared_dram, T::none, M::shared_dram)) << "never seen: the weaker promise";
    EXPECT_FALSE(differ(T::none, M::coherent_node, T::none, M::separate)) << "no coherence without page tables";
    EXPECT_FALSE(differ(T::hmm, M::coherent_hidden, T::hmm, M::separate));
    EXPECT_FALSE(differ(T::host_page_tables, M::separate, T::host_page_tables, M::coherent_hidden));
    EXPECT_FALSE(differ(T::none, M::host, T::host_page_tables, M::host)) << "the CPU device";
    EXPECT_TRUE(differ(T::none, M::host, T::none, M::separate));
}

TEST(Table, TheRowThatAxesLeadToCarriesTheNameOfThoseAxes) {  // keeps D10
    using platform::row_of;
    EXPECT_EQ(row_of(Translation::none, MemoryModel::host).model, Model::cpu);
    EXPECT_EQ(row_of(Translation::hmm, MemoryModel::shared_dram).model, Model::integrated) << "the weakest that fits";
    EXPECT_EQ(row_of(Translation::none, MemoryModel::coherent_node).model, Model::discrete) << "the weakest that fits";
    EXPECT_EQ(row_of(Translation::host_page_tables, MemoryModel::separate).model, Model::c2c);
    for (int model = 0; model < model_count; ++model) {
        EXPECT_EQ(static_cast<int>(platform::row(static_cast<Model>(model)).model), model);
    }
}

}  // namespace
