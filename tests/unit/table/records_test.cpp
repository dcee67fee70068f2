// SPDX-License-Identifier: Apache-2.0
// The machine records: each classifies to its name, survives a round trip, and gives the source of its values; a
// malformed record is refused with the place of the error.
#include <gtest/gtest.h>

#include <machines/record.hpp>
#include <platform/detect.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::platform::machines;
using platform::detect;

MachineRecord known(std::string_view name) {
    return find_record(std::string(name)).value();
}

Capabilities capabilities_of(const MachineRecord& record, std::size_t device = 0) {
    return detect(record.facts, record.devices.at(device).facts);
}

TEST(Records, EveryKnownMachineIsHere) {
    const std::vector<std::string_view> expected = {"b300-hmm", "gb10",    "gb200",    "gh200-cdmm", "gh200-numa",
                                                    "h200",     "h200-x2", "igx",      "no-gpu",     "old-driver",
                                                    "orin",     "rtx-hmm", "rtx-wsl2", "station",    "thor"};
    EXPECT_EQ(known_machines(), expected);
    for (const std::string_view name : known_machines()) EXPECT_EQ(known(name).name, name);
}

TEST(Records, EveryDeviceClassifiesToItsName) {  // keeps D6, D11 (the facts' half)
    for (const std::string_view name : known_machines()) {
        const MachineRecord record = known(name);
        for (std::size_t i = 0; i < record.devices.size(); ++i) {
            ASSERT_TRUE(record.devices[i].row) << name;
            EXPECT_EQ(capabilities_of(record, i).model, *record.devices[i].row) << name << " device " << i;
        }
    }
}

TEST(Records, TheAxesOfTheKnownMachinesAreTheirs) {  // keeps D1, D6
    struct Expected {
        const char* machine;
        Translation translation;
        MemoryModel memory;
        ManagedModel managed;
        LinkAtomics link;
        Model model;
    };
    using T = Translation;
    using M = MemoryModel;
    using G = ManagedModel;
    using L = LinkAtomics;
    const Expected all[] = {
        {"h200", T::none, M::separate, G::concurrent, L::none, Model::discrete},
        {"h200-x2", T::none, M::separate, G::concurrent, L::none, Model::discrete},
        {"old-driver", T::none, M::separate, G::concurrent, L::none, Model::discrete},
        {"rtx-wsl2", T::none, M::separate, G::phase_guarded, L::none, Model::discrete},
        {"igx", T::none, M::separate, G::none, L::none, Model::discrete},
        {"rtx-hmm", T::hmm, M::separate, G::concurrent, L::none, Model::hmm},
        {"b300-hmm", T::hmm, M::separate, G::concurrent, L::none, Model::hmm},
        {"orin", T::none, M::shared_dram, G::phase_guarded, L::none, Model::integrated},
        {"thor", T::host_page_tables, M::shared_dram, G::concurrent, L::native, Model::ats},
        {"gb10", T::host_page_tables, M::shared_dram, G::concurrent, L::native, Model::ats},
        {"gh200-numa", T::host_page_tables, M::coherent_node, G::direct, L::native, Model::c2c},
        {"gh200-cdmm", T::host_page_tables, M::coherent_hidden, G::direct, L::native, Model::c2c},
        {"gb200", T::host_page_tables, M::coherent_node, G::direct, L::native, Model::c2c},
        {"station", T::host_page_tables, M::coherent_node, G::direct, L::native, Model::c2c},
    };
    for (const Expected& each : all) {
        SCOPED_TRACE(each.machine);
        const Capabilities c = capabilities_of(known(each.machine));
        EXPECT_EQ(c.translation, each.translation);
        EXPECT_EQ(c.memory, each.memory);
        EXPECT_EQ(c.managed, each.managed);
        EXPECT_EQ(c.link_atomics, each.link);
        EXPECT_EQ(c.model, each.model);
    }
}

TEST(Records, OneMachineHoldsDevicesOfDifferentModels) {  // keeps D8
    const MachineRecord station = known("station");
    ASSERT_EQ(station.devices.size(), 2u);
    EXPECT_EQ(capabilities_of(station, 0).model, Model::c2c);
    EXPECT_EQ(capabilities_of(station, 1).model, Model::discrete);
}

TEST(Records, NodesAreNotDense) {
    const MachineRecord gb200 = known("gb200");
    ASSERT_EQ(gb200.devices.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(capabilities_of(gb200, i).gpu_numa_node, static_cast<int>(2 + 8 * i));
        EXPECT_EQ(capabilities_of(gb200, i).host_numa_node, static_cast<int>(i / 2));
    }
}

TEST(Records, MachinesWithoutAUsableDriverSayWhy) {  // keeps D9
    EXPECT_EQ(known("no-gpu").init_code, 100);
    EXPECT_TRUE(known("no-gpu").devices.empty());
    EXPECT_EQ(known("old-driver").facts.driver_version, 11000);
    const Capability pools = capabilities_of(known("old-driver")).feature(Feature::pools);
    EXPECT_EQ(pools.origin, Origin::absent);
    EXPECT_NE(pools.reason.find("CUDA 11.0"), std::string::npos);
}

TEST(Records, AnOlderDriverDoesNotKnowTheNewerQuestions) {  // keeps D7
    const MachineRecord orin = known("orin");
    EXPECT_EQ(capabilities_of(orin).feature(Feature::partial_atomics).origin, Origin::absent);
    EXPECT_FALSE(orin.devices[0].facts.host_atomics);
}

// keeps R10, D10: what opening a device asks for is all that decides
TEST(Records, TheDecidingAttributesDecideAsAllOfThemDo) {
    const std::vector<int> deciding = platform::deciding_attributes();
    EXPECT_TRUE(std::is_sorted(deciding.begin(), deciding.end()));
    EXPECT_LT(deciding.size(), 45u) << "each may cost microseconds";
    int devices = 0;
    for (const std::string_view name : known_machines()) {
        const MachineRecord record = known(name);
        for (const DeviceRecord& device : record.devices) {
            DeviceFacts few = device.facts;
            std::erase_if(few.attributes, [&](const AttributeFact& fact) {
                return !std::binary_search(deciding.begin(), deciding.end(), fact.id);
            });
            EXPECT_LE(few.attributes.size(), deciding.size());
            const Capabilities all = platform::detect(record.facts, device.facts);
            const Capabilities decided = platform::detect(record.facts, few);
            for (int feature = 0; feature < feature_count; ++feature) {
                const Capability& one = decided.feature(static_cast<Feature>(feature));
                const Capability& other = all.feature(static_cast<Feature>(feature));
                EXPECT_EQ(one.state, other.state) << name << " " << other.reason;
                EXPECT_EQ(one.origin, other.origin) << name << " " << other.reason;
                EXPECT_EQ(one.reason, other.reason) << name;
            }
            EXPECT_EQ(decided.translation, all.translation) << name;
            EXPECT_EQ(decided.memory, all.memory) << name;
            EXPECT_EQ(decided.managed, all.managed) << name;
            EXPECT_EQ(decided.link_atomics, all.link_atomics) << name;
            EXPECT_EQ(decided.model, all.model) << name;
            EXPECT_EQ(decided.compute_major, all.compute_major) << name;
            EXPECT_EQ(decided.compute_minor, all.compute_minor) << name;
            EXPECT_EQ(decided.host_numa_node, all.host_numa_node) << name;
            EXPECT_EQ(decided.gpu_numa_node, all.gpu_numa_node) << name;
            ++devices;
        }
    }
    EXPECT_GT(devices, 10);
}

MachineRecord with_litmus() {
    MachineRecord record = known("h200");
    DeviceRecord& device = record.devices[0];
    device.facts.uuid.bytes[0] = 0xab;
    device.litmus = LitmusFinding{device.facts.uuid, record.facts.driver_version, false, {}};
    device.litmus->results = {{MemoryKind::pinned, LitmusShape::lost_updates, 1000, 461, 2000, 900},
                              {MemoryKind::managed, LitmusShape::tearing_to_host, 1ull << 40, 0, 7, 0}};
    return record;
}

TEST(Records, WhatTrialsFoundSurvivesARoundTrip) {  // keeps G13, D12
    const std::string text = write_record(with_litmus());
    const Result<MachineRecord> read = read_record(text);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(write_record(*read), text);
    const std::vector<LitmusFinding> findings = litmus_findings(*read);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].device, read->devices[0].facts.uuid);
    EXPECT_EQ(findings[0].driver_version, read->facts.driver_version);
    EXPECT_FALSE(findings[0].simulated);
    ASSERT_EQ(findings[0].results.size(), 2u);
    EXPECT_EQ(findings[0].results[0].shape, LitmusShape::lost_updates);
    EXPECT_EQ(findings[0].results[0].forbidden, 461u);
    EXPECT_EQ(findings[0].results[0].control_weak, 900u);
    EXPECT_EQ(findings[0].results[1].kind, MemoryKind::managed);
    EXPECT_EQ(findings[0].results[1].instances, 1ull << 40);
    EXPECT_TRUE(litmus_findings(known("orin")).empty());
}

TEST(Records, AFindingThatSaysLessThanItShouldIsRefusedWithItsPlace) {  // keeps G13
    const std::string whole = write_record(with_litmus());
    const auto refused = [&](const std::string& part, const std::string& instead, const std::string& place) {
        std::string text = whole;
        const std::size_t at = text.find(part);
        ASSERT_NE(at, std::string::npos) << part;
        const Result<MachineRecord> read = read_record(text.replace(at, part.size(), instead));
        ASSERT_FALSE(read) << instead;
        EXPECT_NE(read.error().message().find(place), std::string::npos) << read.error().text();
    };
    refused("\"forbidden\": 461", "\"forbidden\": 1001", "litmus.results[0].forbidden");
    refused("\"forbidden\": 461,", "", "litmus.results[0].forbidden");
    refused("\"simulated\": false,", "", "litmus.simulated");
    refused("\"lost_updates\"", "\"lost_sheep\"", "litmus.results[0].shape");
    refused("\"kind\": \"pinned\"", "\"kind\": \"pinne\"", "litmus.results[0].kind");
    refused("\"uuid\": \"ab000000000000000000000000000000\",", "", "litmus");
}

TEST(Records, EveryFileIsCanonicalAndSurvivesARoundTrip) {  // keeps D12
    for (const std::string_view name : known_machines()) {
        const std::string text(known_record(name));
        const Result<MachineRecord> record = read_record(text);
        ASSERT_TRUE(record) << name << ": " << record.error().text();
        EXPECT_EQ(write_record(*record), text) << name;
    }
}

TEST(Records, EveryAnswerOfADriversVersionIsThere) {
    for (const std::string_view name : known_machines()) {
        const MachineRecord record = known(name);
        const int last = record.facts.driver_version >= 13000 ? 147 : record.facts.driver_version >= 12060 ? 135 : 111;
        for (const DeviceRecord& device : record.devices) {
            for (int id = 1; id <= last; ++id) {
                EXPECT_TRUE(device.facts.attribute(id)) << name << " " << attribute_name(id);
            }
            EXPECT_EQ(device.facts.attributes.size(), static_cast<std::size_t>(last)) << name;
        }
    }
}

TEST(Records, EveryValueHasASourceAndAReportOfOthersIsNeitherADocumentNorAnObservation) {  // keeps P2
    for (const std::string_view name : known_machines()) {
        const MachineRecord record = known(name);
        ASSERT_NE(source_of(record.evidence, "page_size_bytes"), nullptr) << name;
        for (const DeviceRecord& device : record.devices) {
            for (const AttributeFact& fact : device.facts.attributes) {
                const Source* source = source_of(device.evidence, attribute_name(fact.id));
                ASSERT_NE(source, nullptr) << name;
                EXPECT_FALSE(source->from.empty()) << name;
            }
        }
    }
    const auto is = [](const char* machine, const char* attribute) {
        return source_of(known(machine).devices[0].evidence, attribute)->is;
    };
    EXPECT_EQ(is("h200", "PAGEABLE_MEMORY_ACCESS"), Evidence::observed);
    EXPECT_EQ(is("thor", "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST"), Evidence::reported) << "others saw it";
    EXPECT_EQ(is("thor", "HOST_ALLOC_DMA_BUF_SUPPORTED"), Evidence::assumed) << "a document, but not of the value";
    EXPECT_EQ(is("orin", "GPU_DIRECT_RDMA_SUPPORTED"), Evidence::documented);
    EXPECT_EQ(is("rtx-hmm", "DMA_BUF_SUPPORTED"), Evidence::reported);
    EXPECT_EQ(is("gb10", "HOST_REGISTER_SUPPORTED"), Evidence::reported) << "contested: asked for, then tried";
    EXPECT_EQ(is("igx", "MANAGED_MEMORY"), Evidence::documented);
    EXPECT_EQ(is("gh200-numa", "NUMA_CONFIG"), Evidence::documented);
    EXPECT_EQ(is("orin", "HOST_NATIVE_ATOMIC_SUPPORTED"), Evidence::assumed);
    EXPECT_EQ(is("rtx-wsl2", "INTEGRATED"), Evidence::assumed);
}

// The record's values that other sources changed last.
TEST(Records, TheContestedAttributesAreThoseOfTheirSources) {
    const auto value = [](const char* machine, int attribute) {
        return known(machine).devices[0].facts.attribute(attribute).value_or(-1);
    };
    EXPECT_EQ(value("orin", 116), 1);
    EXPECT_EQ(value("rtx-hmm", 124), 0);
    EXPECT_EQ(value("thor", 124), 1);
    EXPECT_EQ(value("thor", 146), 1);
    EXPECT_EQ(value("gb10", 99), 1);
    EXPECT_EQ(value("igx", 83), 0);
}

TEST(Records, AMachineCanBeRecordedAndReplayed) {  // keeps D12
    const MachineRecord thor = known("thor");
    const MachineRecord taken = record_of("mine", thor.facts, {thor.devices[0].facts, DeviceFacts{}});
    ASSERT_EQ(taken.devices.size(), 1u) << "the CPU device is everywhere and not recorded";
    const Result<MachineRecord> replayed = read_record(write_record(taken));
    ASSERT_TRUE(replayed) << replayed.error().text();
    const Capabilities before = capabilities_of(thor);
    const Capabilities after = capabilities_of(*replayed);
    EXPECT_EQ(after.model, before.model);
    for (std::size_t i = 0; i < before.features.size(); ++i) {
        EXPECT_EQ(after.features[i].state, before.features[i].state);
        EXPECT_EQ(after.features[i].reason, before.features[i].reason);
    }
    EXPECT_EQ(source_of(replayed->devices[0].evidence, "INTEGRATED")->is, Evidence::observed);
}

TEST(Records, RefusedAndUnnamedAttributesTravel) {
    MachineRecord record = known("thor");
    record.devices[0].facts.attributes.push_back({160, 3, 0});
    record.devices[0].facts.attributes[85] = {86, 0, 801};
    record.devices[0].facts.uuid.bytes[0] = 0xab;
    record.devices[0].facts.uuid.bytes[15] = 0x07;
    const Result<MachineRecord> again = read_record(write_record(record));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(again->devices[0].facts.attribute(160), 3);
    EXPECT_EQ(again->devices[0].facts.attributes[85].refused_code, 801);
    EXPECT_EQ(again->devices[0].facts.uuid, record.devices[0].facts.uuid);
    EXPECT_NE(write_record(record).find("\"ATTRIBUTE_160\": 3"), std::string::npos);
}

TEST(Records, PlacesOnThePciBusAndListsOfCpusTravel) {  // keeps D12
    MachineRecord record = known("h200-x2");
    record.facts.numa_nodes.front().cpus = "0-15,32-47";
    record.devices[1].facts.pci = PciPlace{2500, 8, 32000, 16, 0, "0-15"};
    const Result<MachineRecord> again = read_record(write_record(record));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(again->facts.numa_nodes.front().cpus, "0-15,32-47");
    EXPECT_FALSE(again->devices[0].facts.pci) << "not stated stays not stated";
    ASSERT_TRUE(again->devices[1].facts.pci);
    EXPECT_EQ(again->devices[1].facts.pci->speed_mt_per_s, 2500);
    EXPECT_EQ(again->devices[1].facts.pci->lanes, 8);
    EXPECT_EQ(again->devices[1].facts.pci->max_speed_mt_per_s, 32000);
    EXPECT_EQ(again->devices[1].facts.pci->max_lanes, 16);
    EXPECT_EQ(again->devices[1].facts.pci->numa_node, 0);
    EXPECT_EQ(again->devices[1].facts.pci->near_cpus, "0-15");
    EXPECT_EQ(write_record(*again), write_record(record));
}

// `thor` with one piece of its text replaced.
std::string altered(const std::string& what, const std::string& with) {
    std::string text(known_record("thor"));
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
}

TEST(Records, MalformedRecordsAreRefusedWithTheirPlace) {
    const struct {
        std::string text;
        const char* place;
    } cases[] = {
        {"", "malformed"},
        {"{", "byte"},
        {"[]", "must be an object"},
        {"{}", "format is missing"},
        {std::string(known_record("thor")) + "x", "byte"},
        {std::string(100, '['), "nests deeper"},
        {altered("\"format\": 1", "\"format\": 2"), "format must be"},
        {altered("\"title\"", "\"titel\""), "titel is not a field"},
        {altered("\"name\": \"thor\"", "\"name\": 7"), "name must be a string"},
        {altered("\"init_code\": 0", "\"init_code\": 100"), "devices must be empty"},
        {altered("\"init_code\": 0", "\"init_code\": -1"), "machine.driver_version"},
        {altered("\"page_size_bytes\": 4096", "\"page_size_bytes\": 5000"), "machine.page_size_bytes"},
        {altered("\"page_size_bytes\": 4096", "\"page_size_bytes\": 4096.5"), "machine.page_size_bytes"},
        {altered("\"id\": 0", "\"id\": -1"), "machine.numa_nodes[0].id"},
        {altered("\"id\": 0", "\"id\": 0, \"cpu_list\": \"0-3 and more\""), "machine.numa_nodes[0].cpu_list"},
        {altered("\"row\"", "\"pci\": {\"lanes\": 33}, \"row\""), "devices[0].pci.lanes"},
        {altered("\"row\"", "\"pci\": {\"near_cpus\": \"\\u001b[2J\"}, \"row\""), "devices[0].pci.near_cpus"},
        {altered("\"ordinal\": 0", "\"ordinal\": 1"), "devices[0].ordinal"},
        {altered("\"row\": \"ats\"", "\"row\": \"cpu\""), "devices[0].row"},
        {altered("\"fabric_usable\": false", "\"fabric_usable\": 0"), "devices[0].fabric_usable"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATED\": 2147483648"), "devices[0].attributes.INTEGRATED"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATED\": \"1\""), "devices[0].attributes.INTEGRATED"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATED\": {\"refused\": 0}"), "devices[0].attributes.INTEGRATED.refused"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATD\": 1"), "devices[0].attributes.INTEGRATD"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATED\": 1, \"INTEGRATED\": 0"), "given twice"},
        {altered("\"INTEGRATED\": 1", "\"INTEGRATED\": 1, \"ATTRIBUTE_18\": 0"), "attribute 18 under two names"},
        {altered("\"is\": \"assumed\"", "\"is\": \"known\""), "evidence[0].is"},
        {altered("\"reported\"", "\"guessed\""), "devices[0].evidence"},
        {altered("\"prefetch_code\"\n", "\"nothing\"\n"), "names neither a field nor an attribute"},
        {altered("\"host_atomic_capabilities\": [", "\"host_atomic_capabilities\": [ 1,"), "13 operations"},
    };
    for (const auto& each : cases) {
        const Result<MachineRecord> record = read_record(each.text);
        ASSERT_FALSE(record) << each.place;
        EXPECT_EQ(record.code(), Code::invalid_argument);
        EXPECT_NE(record.error().message().find(each.place), std::string::npos)
            << each.place << " is not in: " << record.error().message();
        EXPECT_FALSE(record.error().remedy().empty());
    }
}

TEST(Records, EveryPrefixOfARecordIsRefusedWithoutHarm) {
    const std::string text(known_record("no-gpu"));
    for (std::size_t length = 0; length + 2 < text.size(); ++length) {
        EXPECT_FALSE(read_record(std::string_view(text).substr(0, length))) << length;
    }
}

TEST(Records, AnUnknownMachineIsRefusedWithTheKnownOnes) {
    const Result<MachineRecord> record = find_record("xavier");
    ASSERT_FALSE(record);
    EXPECT_NE(record.error().remedy().find("gh200-cdmm"), std::string::npos);
}

TEST(Records, APathIsReadAndAMissingOneRefused) {
    const std::string path = testing::TempDir() + "isthmus-record-" + std::to_string(::getpid()) + ".json";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    const std::string text(known_record("gb10"));
    ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
    ASSERT_EQ(std::fclose(file), 0);
    EXPECT_EQ(find_record(path).value().name, "gb10");
    ASSERT_EQ(std::remove(path.c_str()), 0);
    const Result<MachineRecord> gone = find_record(path);
    ASSERT_FALSE(gone);
    EXPECT_NE(gone.error().message().find(path), std::string::npos);
    EXPECT_FALSE(find_record("/")) << "a directory";
}

TEST(Records, AFileThatIsTooLargeForARecordIsNotReadToItsEnd) {
    const Result<MachineRecord> endless = find_record("/dev/zero");
    ASSERT_EQ(endless.code(), Code::invalid_argument);
    EXPECT_EQ(endless.error().message(), "machine record /dev/zero is larger than 16 MiB");
}

}  // namespace
