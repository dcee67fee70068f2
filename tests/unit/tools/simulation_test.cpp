// SPDX-License-Identifier: Apache-2.0
// What `isthmus simulate` makes of the simulator's counts: pure.
#include "simulate/simulation.hpp"

#include <driver_abi/sim_statistics.h>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace isthmus::tools::simulate {
namespace {

template <class Fill>
std::string bytes_with(Fill fill) {
    const auto file = std::make_unique<isthmus_sim_statistics>();
    file->magic = ISTHMUS_SIM_STATISTICS_MAGIC;
    file->size_bytes = sizeof *file;
    file->processes = 1;
    std::strcpy(file->calls[0].name, "cuInit");
    std::strcpy(file->calls[1].name, "cuMemcpyHtoD_v2");
    std::strcpy(file->calls[2].name, "cuMemAlloc_v2");
    fill(*file);
    return std::string(reinterpret_cast<const char*>(file.get()), sizeof *file);
}

std::string some_bytes() {
    return bytes_with([](isthmus_sim_statistics& file) {
        file.calls[0].count = 1;
        file.calls[1].count = 7;
        file.answers[5] = {std::uint64_t{2} << 32 | 700, 3};
        file.answers[6] = {std::uint64_t{3} << 32 | 2, 1};
        std::strcpy(file.refused[0].name, "cuArrayCreate");
        file.refused[0].count = 4;
        file.copies[0][1] = {2, 4096};
        file.copies[2][0] = {1, 8};
        file.fills = {1, 64};
        file.kernels = 9;
        file.kernels_from_ptx = 4;
        file.faults[3] = {700, 1};
        file.messages[0] = {11, 2, 1, "device 0 is lost: every call answers 700"};
        file.messages[1] = {12, 1, 1, "copies to and from arrays are not modelled"};
        file.messages[2] = {13, 1, 0, "half"};
    });
}

TEST(SimulateCounts, AreReadFromTheFile) {
    const auto counts = read_counts(some_bytes());
    ASSERT_TRUE(counts);
    ASSERT_EQ(counts->calls.size(), 2u);  // functions without a call are left out
    EXPECT_EQ(counts->calls.front().name, "cuMemcpyHtoD_v2");
    EXPECT_EQ(counts->all_calls(), 8u);
    ASSERT_EQ(counts->refusals.size(), 3u);
    EXPECT_EQ(counts->refusals[0].call, "cuArrayCreate");
    EXPECT_EQ(counts->refusals[0].code, 801);
    EXPECT_EQ(counts->refused(), 8u);
    EXPECT_EQ(counts->copied_bytes(), 4104u);
    ASSERT_EQ(counts->copies.size(), 2u);
    EXPECT_EQ(counts->copies[1].from, "managed");
    ASSERT_EQ(counts->faults.size(), 1u);
    EXPECT_EQ(counts->faults[0].code, 700);
    ASSERT_EQ(counts->caught.size(), 1u);  // a message that is not written yet is left out
    ASSERT_EQ(counts->unsupported.size(), 2u);
    EXPECT_TRUE(notes_of(*counts).empty());
}

TEST(SimulateCounts, OfAnotherSimulatorOrDamagedAreRefused) {
    EXPECT_FALSE(read_counts("short"));
    EXPECT_FALSE(read_counts(bytes_with([](isthmus_sim_statistics& file) { file.magic = 1; })));
    EXPECT_FALSE(read_counts(bytes_with([](isthmus_sim_statistics& file) { --file.size_bytes; })));
    // Texts without an end, and an index beyond all functions, are read within their bounds.
    const auto counts = read_counts(bytes_with([](isthmus_sim_statistics& file) {
        std::memset(file.calls[0].name, 'x', sizeof file.calls[0].name);
        file.calls[0].count = 1;
        std::memset(file.messages[0].text, 'y', sizeof file.messages[0].text);
        file.messages[0].key = file.messages[0].written = 1;
        file.answers[0] = {std::uint64_t{1} << 62, 1};
    }));
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->calls[0].name, std::string(56, 'x'));
    EXPECT_EQ(counts->caught[0].name, std::string(244, 'y'));
    EXPECT_TRUE(counts->refusals.empty());
}

TEST(SimulateCounts, OfAProgramWithoutTheDriverSayWhy) {
    const auto counts = read_counts("");
    ASSERT_TRUE(counts);
    ASSERT_EQ(notes_of(*counts).size(), 1u);
    EXPECT_NE(notes_of(*counts)[0].find("no call of the simulated driver"), std::string::npos);
}

TEST(SimulateCounts, OfAProgramOnTheRuntimeLibraryGetOneLine) {
    const auto counts = read_counts(bytes_with([](isthmus_sim_statistics& file) {
        std::strcpy(file.refused[9].name, "cuGetExportTable");
        file.refused[9].count = 1;
    }));
    ASSERT_EQ(notes_of(*counts).size(), 1u);
    EXPECT_NE(notes_of(*counts)[0].find("CUDA runtime library"), std::string::npos);
}

TEST(SimulateMessages, AboutTheSimulatorAreNoFindings) {
    EXPECT_TRUE(is_about_the_simulator("cuGraphInstantiate: flags 0x2 are not modelled"));
    EXPECT_TRUE(is_about_the_simulator("no function stands in for the entry f of a ready-made image"));
    EXPECT_FALSE(is_about_the_simulator("kernel f touched 0x10, which device 0 cannot reach"));
}

TEST(SimulateMessages, OfSeveralRunsAreTheSameButForAddresses) {
    EXPECT_EQ(without_addresses("the CPU touched 0x7f00beef, memory"), "the CPU touched 0x…, memory");
    EXPECT_EQ(without_addresses("0x1 and 0x2"), "0x… and 0x…");
    EXPECT_EQ(without_addresses("device 0"), "device 0");
}

TEST(SimulateEnding, IsGivenOnAsShellsDo) {
    EXPECT_EQ((Ending{0, 0, ""}.exit_code()), 0);
    EXPECT_EQ((Ending{3, 0, ""}.exit_code()), 3);
    EXPECT_EQ((Ending{0, SIGSEGV, ""}.exit_code()), 139);
    EXPECT_EQ((Ending{0, 0, "did not end"}.exit_code()), 1);
    EXPECT_EQ((Ending{3, 0, ""}.text()), "exit code 3");
    EXPECT_NE((Ending{0, SIGSEGV, ""}.text().find("signal 11")), std::string::npos);
}

Simulation simulation_on(std::string machine, int status) {
    return {
        std::move(machine), {"./program", "--of", "[a,b]"}, {status, 0, ""}, *read_counts(some_bytes()), "last words"};
}

TEST(SimulateReport, SaysWhatWasCaughtRefusedAndDone) {
    const std::string text = as_text(simulation_on("orin", 1), {});
    for (const char* const words : {"simulated on orin", "exit code 1; 8 calls of 2 functions", "device 0 is lost",
                                    "700 CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemAlloc_v2", "2 CUDA_ERROR_OUT_OF_MEMORY",
                                    "copies to and from arrays are not modelled", "cuArrayCreate",
                                    "copy from host to device memory", "4096", "fill", "kernel", "of them from PTX"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
}

TEST(SimulateReport, OfSeveralMachinesIsAMatrix) {
    Simulation well = simulation_on("h200", 0);
    well.counts.caught.clear();
    const std::string text = as_matrix({well, simulation_on("orin", 1)}, {200, false});
    EXPECT_NE(text.find("h200"), std::string::npos) << text;
    EXPECT_EQ(text.find("last words"), text.rfind("last words")) << text;  // of the run that failed only
    EXPECT_NE(text.find("h200, orin"), std::string::npos) << text;         // what both do not model
}

TEST(SimulateReport, IsAlsoADocument) {
    const auto document = nlohmann::json::parse(as_json(simulation_on("orin", 1)));
    EXPECT_EQ(document["schema"], 1);
    EXPECT_EQ(document["exit_code"], 1);
    EXPECT_EQ(document["program"][2], "[a,b]");
    EXPECT_EQ(document["calls"]["cuMemcpyHtoD_v2"], 7);
    EXPECT_EQ(document["faults"][0]["code"], 700);
    EXPECT_EQ(document["copies"][0]["bytes"], 4096);
    const auto several =
        nlohmann::json::parse(as_json(std::vector{simulation_on("orin", 1), simulation_on("h200", 0)}));
    EXPECT_EQ(several["machines"].size(), 2u);
}

}  // namespace
}  // namespace isthmus::tools::simulate
