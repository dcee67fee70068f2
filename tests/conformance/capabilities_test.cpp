// SPDX-License-Identifier: Apache-2.0
// Capabilities as a user sees them, on the machine at hand.
#include "scenario.hpp"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace conformance {
namespace {

TEST(Capabilities, TheCpuDeviceIsAlwaysThereAndClaimsNothing) {  // keeps D2, D9
    Device& cpu = runtime().cpu();
    EXPECT_TRUE(cpu.is_cpu());
    EXPECT_EQ(cpu.capabilities().model, Model::cpu);
    for (const Capability& capability : cpu.capabilities().features) EXPECT_FALSE(capability) << capability.reason;
    EXPECT_EQ(runtime().device(runtime().device_count() - 1).value(), &cpu);
}

TEST(Capabilities, EveryAnswerSaysWhereItComesFromAndWhy) {  // keeps D7
    on_every_device([](Device& device) {
        for (int f = 0; f < isthmus::feature_count; ++f) {
            const Capability& capability = device.capabilities().feature(static_cast<Feature>(f));
            EXPECT_FALSE(capability.reason.empty()) << isthmus::name(static_cast<Feature>(f));
            if (capability.origin == Origin::absent || capability.origin == Origin::refused) {
                EXPECT_FALSE(capability) << isthmus::name(static_cast<Feature>(f));
            }
        }
    });
}

TEST(Capabilities, FeaturesAreTheAttributesThemselves) {  // keeps D3, D10
    const std::map<Feature, int> deciding = {
        {Feature::pageable_access, 88}, {Feature::host_page_tables, 100},
        {Feature::managed, 83},         {Feature::concurrent_managed, 89},
        {Feature::direct_managed, 101}, {Feature::unified_addressing, 41},
        {Feature::integrated, 18},      {Feature::native_atomics, 86},
        {Feature::host_register, 99},   {Feature::pools, 115},
        {Feature::virtual_memory, 102}, {Feature::export_posix_fd, 103},
    };
    on_every_device([&](Device& device) {
        if (device.is_cpu()) return;
        int compared = 0;
        for (const auto& [feature, attribute] : deciding) {
            const Capability& capability = device.capabilities().feature(feature);
            if (capability.origin != Origin::attribute) continue;
            ++compared;
            EXPECT_EQ(static_cast<bool>(capability), device.facts().attribute(attribute).value_or(0) != 0)
                << isthmus::name(feature);
        }
        EXPECT_GE(compared, 8) << "features answered by their attributes";
    });
}

TEST(Capabilities, ADriverThatIsAbsentOrRefusesSaysWhy) {  // keeps D9, R1
    const bool has_gpu = runtime().device_count() > 1;
    if (has_gpu) {
        EXPECT_FALSE(runtime().default_device().is_cpu());
        return;
    }
    ASSERT_TRUE(runtime().cuda_absence().has_value());
    EXPECT_FALSE(runtime().cuda_absence()->message().empty());
    EXPECT_FALSE(runtime().cuda_absence()->remedy().empty());
    EXPECT_TRUE(runtime().default_device().is_cpu());
}

TEST(Capabilities, EverySimulatedMachineClassifiesToItsName) {  // keeps D6, D8, D11
    const std::map<std::string, std::vector<Model>> expected = {
        {"h200", {Model::discrete}},  {"h200-x2", {Model::discrete, Model::discrete}},
        {"rtx-hmm", {Model::hmm}},    {"rtx-wsl2", {Model::discrete}},
        {"igx", {Model::discrete}},   {"orin", {Model::integrated}},
        {"thor", {Model::ats}},       {"gb10", {Model::ats}},
        {"gh200-numa", {Model::c2c}}, {"gh200-cdmm", {Model::c2c}},
        {"b300-hmm", {Model::hmm}},   {"no-gpu", {}},
        {"old-driver", {}},
    };
    const char* machine = std::getenv("ISTHMUS_SIM");
    if (machine == nullptr) GTEST_SKIP() << "no simulated machine";
    std::vector<Model> models;
    for (std::size_t at = 0; at + 1 < runtime().device_count(); ++at) {
        models.push_back(runtime().device(at).value()->capabilities().model);
    }
    if (std::string(machine) == "station") {
        ASSERT_EQ(models.size(), 2u);
        EXPECT_NE(models[0], models[1]) << "a coherent GPU beside a PCIe one: capabilities are per device";
        return;
    }
    if (std::string(machine) == "gb200") {
        for (const Model model : models) EXPECT_EQ(model, Model::c2c);
        EXPECT_FALSE(models.empty());
        return;
    }
    const auto known = expected.find(machine);
    if (known == expected.end()) GTEST_SKIP() << "no expectation for " << machine;
    EXPECT_EQ(models, known->second);
}

TEST(Capabilities, WhatTrialsFoundOnADeviceTakesFromItsCapabilitiesAlone) {  // keeps G13
    on_every_device([](Device& device) {
        const MachineFacts& machine = runtime().machine();
        LitmusFinding finding{device.facts().uuid, machine.driver_version, machine.simulated, {}};
        finding.results = {{MemoryKind::pinned, LitmusShape::lost_updates, 100, 1, 100, 50},
                           {MemoryKind::managed, LitmusShape::lost_updates, 100, 0, 100, 50}};
        LitmusFinding of_another_driver = finding;
        of_another_driver.driver_version += 10;
        of_another_driver.results[0].shape = LitmusShape::tearing_to_host;
        std::vector<std::string> lines;
        RuntimeOptions options;
        options.litmus_findings = {finding, of_another_driver};
        options.log = [&](Severity, std::string_view line) { lines.emplace_back(line); };
        Runtime second = Runtime::open(options).value();

        std::size_t unused = 0;
        for (const std::string& line : lines) unused += line.find("is not used") != std::string::npos;
        EXPECT_TRUE(unless_fault(unused == (device.is_cpu() ? 2u : 1u)));
        for (std::size_t at = 0; at < second.device_count(); ++at) {
            const Device& each = *second.device(at).value();
            const bool found = !device.is_cpu() && each.facts().uuid == device.facts().uuid;
            EXPECT_EQ(each.capabilities().lossy_kinds, found ? 1u << static_cast<unsigned>(MemoryKind::pinned) : 0u);
            EXPECT_EQ(each.capabilities().torn_kinds, 0u);
            EXPECT_EQ(each.capabilities().disordered_kinds, 0u);
        }
    });
}

}  // namespace
}  // namespace conformance
