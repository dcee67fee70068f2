// SPDX-License-Identifier: Apache-2.0
// What `isthmus report` leaves out of its file, what it keeps, and what becomes of the file.
#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "common/program.hpp"
#include "report/report_document.hpp"
#include "report/scrub.hpp"
#include "report/test_results.hpp"

#include <machines/record.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::tools::report {
namespace {

using Json = nlohmann::ordered_json;
namespace machines = platform::machines;

const Identity anna{.hosts = {"annas-orin.example.org", "annas-orin"},
                    .users = {"anna", "root"},
                    .homes = {"/data/people/anna", "/root"},
                    .serials = {"1420521099X"}};

std::string scrubbed(const std::string& text) {
    return scrub(Json{{"evidence", text}}, anna).at("evidence").get<std::string>();
}

Json record_json(const char* machine) {
    return Json::parse(machines::known_record(machine));
}

Parts parts_of(const char* machine) {
    Parts parts;
    parts.written_on = "2026-11-24";
    parts.record = record_json(machine);
    return parts;
}

TEST(Scrub, ReplacesWhatIdentifiesAComputerOrAPerson) {
    const std::pair<const char*, const char*> cases[] = {
        {"ssh anna@annas-orin.example.org", "ssh <user>@<host>"},
        {"on ANNAS-ORIN: done", "on <host>: done"},
        {"/data/people/anna/isthmus/build", "<home>/isthmus/build"},
        {"/home/bob.smith/x and /home/eve", "/home/<user>/x and /home/<user>"},
        {"(/root/.nv)", "(<home>/.nv)"},
        {"link 48:b0:2d:aa:bb:cc up", "link <mac> up"},
        {"48-B0-2D-AA-BB-CC", "<mac>"},
        {"Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc", "Device Serial Number <serial>"},
        {"Serial Number : 1320921004567", "Serial Number : <serial>"},
        {"serial=PG-5007", "serial=<serial>"},
        {"board 1420521099X works", "board <serial> works"},
        {"GPU-8e2c0c4f-1b7d-4f3a-9c1e-0123456789ab", "GPU-00000000-0000-0000-0000-000000000001"},
        {"MIG-8e2c0c4f-1b7d-4f3a-9c1e-0123456789ab", "MIG-00000000-0000-0000-0000-000000000001"},
        {"8E2C0C4F1B7D4F3A9C1E0123456789AB", "00000000000000000000000000000001"},
    };
    for (const auto& [given, expected] : cases) EXPECT_EQ(scrubbed(given), expected);
}

TEST(Scrub, KeepsWhatDescribesTheMachine) {
    for (const char* const kept :
         {"NVIDIA H200", "580.159.04", "6.8.12-tegra", "0000:01:00.0", "00000000:3B:00.0", "a serial link",
          "0x80000000", "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1", "channel 12:30:59", "Susanna and annals",
          "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef", "/rooted/path", "serialised 100 accesses",
          "GPU-00000000-0000-0000-0000-000000000000"}) {
        EXPECT_EQ(scrubbed(kept), kept);
    }
    EXPECT_EQ(scrubbed("root may do it"), "root may do it") << "a name that every computer has";
}

TEST(Scrub, EqualUuidsStayEqualInEveryForm) {
    const Json in = {{"a", "GPU-8e2c0c4f-1b7d-4f3a-9c1e-0123456789ab"},
                     {"b", {{"uuid", "8e2c0c4f1b7d4f3a9c1e0123456789ab"}}},
                     {"c", "GPU-11111111-2222-3333-4444-555555555555, 8E2C0C4F-1B7D-4F3A-9C1E-0123456789AB"},
                     {"GPU-11111111-2222-3333-4444-555555555555", 7}};
    const Json out = scrub(in, {});
    EXPECT_EQ(out.at("a"), "GPU-00000000-0000-0000-0000-000000000001");
    EXPECT_EQ(out.at("b").at("uuid"), "00000000000000000000000000000001");
    EXPECT_EQ(out.at("c"), "GPU-00000000-0000-0000-0000-000000000002, 00000000-0000-0000-0000-000000000001");
    EXPECT_EQ(out.at("GPU-00000000-0000-0000-0000-000000000002"), 7);
}

// In every section, at the depth and in the fields where such text comes from.
Json planted_everywhere() {
    const std::string text =
        "anna at annas-orin in /data/people/anna/x, GPU-8e2c0c4f-1b7d-4f3a-9c1e-0123456789ab, "
        "48:b0:2d:aa:bb:cc, serial number 1320921004567, board 1420521099X, /home/carol/y";
    Parts parts = parts_of("thor");
    Json& device = parts.record["devices"][0];
    device["uuid"] = "8e2c0c4f1b7d4f3a9c1e0123456789ab";
    device["evidence"][0]["from"] = text;
    parts.record["machine"]["nvidia_params"]["Path"] = text;
    parts.record["machine"]["evidence"][0]["from"] = text;
    parts.litmus = {{"from", "trials"},
                    {"device", "NVIDIA Thor"},
                    {"uuid", text},
                    {"end", text},
                    {"rows", {{{"kind", "pinned"}, {"trouble", text}}}},
                    {"left_out", {text}}};
    parts.tests = {{"passed", 1},
                   {"failures", {{{"name", text}, {"result", "status 1"}, {"output", text}}}},
                   {"names", {{"passed", {text}}, {"skipped", {text}}}}};
    parts.profile = {{"schema", "isthmus-profile-1"},
                     {"devices",
                      {{{"uuid", text},
                        {"name", "NVIDIA Thor"},
                        {"conditions", {{"notes", {text}}}},
                        {"record", record_json("thor")},
                        {text, text}}}},
                     {"serial_number", 1320921004567}};
    parts.profile["devices"][0]["record"]["machine"]["nvidia_params"]["Path"] = text;
    parts.doctor = {{"module_version", "580.159.04"},
                    {"library", "/data/people/anna/libcuda.so.1"},
                    {"devices", {"NVIDIA Thor"}},
                    {"findings", {{{"id", "D001"}, {"title", text}, {"evidence", text}, {"remedy", text}}}}};
    parts.doctor["findings"][0]["title"] = "a title";
    parts.left_out = {"profile: " + text};
    return document_of(parts);
}

TEST(Scrub, LeavesNothingOfItInAnySection) {
    const Json out = scrub(planted_everywhere(), anna);
    const std::string text = out.dump();
    for (const char* const planted :
         {"anna", "/data/people", "8e2c0c4f", "48:b0", "1320921004567", "1420521099X", "carol", "example.org"}) {
        EXPECT_EQ(text.find(planted), std::string::npos) << planted << " in " << text.substr(text.find(planted), 80);
    }
    const Json original = record_json("thor");
    EXPECT_EQ(out.at("record").at("devices")[0].at("attributes"), original.at("devices")[0].at("attributes"));
    EXPECT_EQ(out.at("record").at("devices")[0].at("name"), "NVIDIA Thor");
    EXPECT_EQ(out.at("record").at("devices")[0].at("uuid"), "00000000000000000000000000000001");
    EXPECT_EQ(out.at("record").at("machine").at("kernel_release"), "6.8.12-tegra");
    EXPECT_EQ(out.at("record").at("machine").at("driver_version"), 13000);
    EXPECT_EQ(out.at("record").at("machine").at("cpu_name"), original.at("machine").at("cpu_name"));
    EXPECT_EQ(out.at("doctor").at("module_version"), "580.159.04");
    EXPECT_EQ(out.at("doctor").at("devices"), Json::array({"NVIDIA Thor"}));
    EXPECT_EQ(out.at("profile").at("serial_number"), "<serial>");
    EXPECT_TRUE(machines::read_record(out.at("record").dump()).ok());
}

TEST(Scrub, ARecordSurvivesUsersWithNamesOfItsFieldsAndHardware) {
    for (const std::string_view machine : machines::known_machines()) {
        const Identity awkward{.hosts = {"tegra", "Thor", "reads", "ATS", "bus"},
                               .users = {"nvidia", "grace", "machine", "host", "orin", "memory", "pinned", "id"},
                               .homes = {"/"},
                               .serials = {"0", "none"}};
        Json record = Json::parse(machines::known_record(machine));
        const Json out = scrub(Json{{"record", record}}, awkward).at("record");
        const auto read = machines::read_record(out.dump());
        ASSERT_TRUE(read.ok()) << machine << ": " << read.error().text();
        const auto original = machines::read_record(machines::known_record(machine));
        ASSERT_EQ(read->devices.size(), original->devices.size());
        EXPECT_EQ(read->facts.kernel_release, original->facts.kernel_release);
        EXPECT_EQ(read->facts.cpu_name, original->facts.cpu_name);
        for (std::size_t i = 0; i < read->devices.size(); ++i) {
            EXPECT_EQ(read->devices[i].facts.name, original->devices[i].facts.name);
            EXPECT_EQ(out.at("devices")[i].at("attributes"), record.at("devices")[i].at("attributes"));
        }
    }
}

TEST(TestResults, AreReadFromWhatRunTestsPrints) {
    const Json results = test_results(
        "passed  unit.rules\nskipped hardware.torch\nFAILED  conformance.real (1)\nfirst line\nsecond (7)\n"
        "passed  unit.table\nFAILED  unit.os (139)\n2 passed, 2 failed, 1 skipped\n");
    EXPECT_EQ(results.at("passed"), 2);
    EXPECT_EQ(results.at("failed"), 2);
    EXPECT_EQ(results.at("skipped"), 1);
    EXPECT_EQ(results.at("failures")[0].at("name"), "conformance.real");
    EXPECT_EQ(results.at("failures")[0].at("result"), "status 1");
    EXPECT_EQ(results.at("failures")[0].at("output"), "first line\nsecond (7)\n");
    EXPECT_EQ(results.at("failures")[1].at("output"), "");
    EXPECT_EQ(results.at("names").at("passed"), Json::array({"unit.rules", "unit.table"}));
}

TEST(TestResults, AreReadFromTheLogOfMesonTest) {
    const Json results = test_results(
        "{\"name\": \"a\", \"result\": \"OK\"}\n{\"name\": \"b\", \"result\": \"FAIL\", \"stdout\": "
        "\"out\", \"stderr\": \"err\"}\n{\"name\": \"c\", \"result\": \"SKIP\"}\n{\"name\": \"d\", "
        "\"result\": \"TIMEOUT\"}\n{\"broken\n");
    EXPECT_EQ(results.at("passed"), 1);
    EXPECT_EQ(results.at("failed"), 2);
    EXPECT_EQ(results.at("skipped"), 1);
    EXPECT_EQ(results.at("failures")[0].at("output"), "outerr");
    EXPECT_EQ(results.at("failures")[1].at("result"), "TIMEOUT");
}

TEST(TestResults, WhatHasNoneIsRefusedAndLongOutputIsCut) {
    for (const char* const none : {"", "\n\n", "hello", "{}", "{\"name\": 7, \"result\": []}", "[1, 2]"}) {
        EXPECT_TRUE(test_results(none).is_null()) << none;
    }
    std::string text = "FAILED  long (1)\n";
    for (int line = 0; line < 3000; ++line) text += "line " + std::to_string(line) + "\n";
    const std::string output = test_results(text).at("failures")[0].at("output");
    EXPECT_LT(output.size(), kept_output_bytes + 10);
    EXPECT_NE(output.find("line 2999"), std::string::npos) << "the end is what explains a failure";
}

TEST(ReportDocument, SaysWhatIsInItAndWhatWasLeftOut) {
    Parts parts = parts_of("thor");
    parts.tests = test_results("FAILED  unit.os (1)\npassed  unit.table\n");
    parts.left_out = {"profile: there is none"};
    const Json document = read_report(text_of(document_of(parts)), "file");
    const std::string text = summary_of(document);
    for (const char* const part : {"2026-11-24", "NVIDIA Thor", "6.8.12-tegra", "13.0", "1 passed, 1 failed", "unit.os",
                                   "left out   profile: there is none"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    }
    EXPECT_EQ(text.find("SIMULATED"), std::string::npos);
    parts.simulated = true;
    EXPECT_NE(summary_of(document_of(parts)).find("SIMULATED"), std::string::npos);
}

TEST(ReportDocument, WhatIsNoReportIsRefusedByName) {
    const auto refused = [](const std::string& text) {
        try {
            (void)read_report(text, "sent.json");
            return std::string();
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.exit_code(), exit_bad_usage);
            return std::string(failure.what());
        }
    };
    for (const char* const text : {"", "{", "7", "[]", "{}", "{\"schema\": 3}"}) {
        EXPECT_NE(refused(text).find("'sent.json' is no report"), std::string::npos) << text;
    }
    const std::string nested = std::string(1000000, '[') + std::string(1000000, ']');
    EXPECT_NE(refused("{\"schema\": \"isthmus-report-1\", \"doctor\": {\"x\": " + nested + "}}").find("is no report"),
              std::string::npos);
    EXPECT_NE(refused("{\"schema\": \"isthmus-report-2\"}").find("isthmus-report-2"), std::string::npos);
    EXPECT_NE(refused("{\"schema\": \"isthmus-report-1\", \"record\": 7}").find("record"), std::string::npos);
    EXPECT_EQ(refused("{\"schema\": \"isthmus-report-1\"}"), "") << "every part may be absent";
    EXPECT_FALSE(summary_of(Json{{"schema", schema},
                                 {"record", {{"devices", 7}}},
                                 {"litmus", Json::object()},
                                 {"tests", {{"failures", {1, "x"}}}},
                                 {"profile", {{"devices", {3}}}},
                                 {"doctor", {{"findings", {Json::array()}}}},
                                 {"left_out", {4}}})
                     .empty())
        << "whatever else is in it";
    try {
        (void)record_in(Json{{"schema", schema}, {"left_out", {"record: the driver hung"}}}, "x", "sent.json");
        ADD_FAILURE() << "no record";
    } catch (const Failure& failure) {
        EXPECT_NE(std::string(failure.what()).find("the driver hung"), std::string::npos) << failure.what();
    }
}

// As recorded_machine() writes it on a real machine.
Parts observed_parts() {
    const auto orin = machines::read_record(machines::known_record("orin"));
    machines::MachineRecord record = machines::record_of("reported", orin->facts, {orin->devices[0].facts});
    record.devices[0].facts.uuid.bytes[15] = 1;
    Parts parts;
    parts.written_on = "2026-11-24";
    parts.record = Json::parse(machines::write_record(record));
    parts.doctor = {{"module_version", "540.4.0"}};
    return parts;
}

TEST(ReportDocument, ItsRecordHasObservedValuesThatNameTheReport) {
    const machines::MachineRecord record = record_in(document_of(observed_parts()), "my-orin", "sent.json");
    EXPECT_EQ(record.name, "my-orin");
    ASSERT_EQ(record.devices.size(), 1u);
    EXPECT_EQ(record.devices[0].row, Model::integrated) << "classified";
    EXPECT_FALSE(record.devices[0].facts.uuid) << "a stand-in is no UUID";
    const machines::Source* const source = machines::source_of(record.devices[0].evidence, "INTEGRATED");
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->is, machines::Evidence::observed);
    for (const char* const part : {"isthmus report", "2026-11-24", "12.6", "540.4.0", "cuDeviceGetAttribute"}) {
        EXPECT_NE(source->from.find(part), std::string::npos) << source->from;
    }
    EXPECT_EQ(source->from.find("this machine"), std::string::npos) << "which is another one now: " << source->from;
    EXPECT_EQ(machines::source_of(record.devices[0].evidence, "prefetch_code")->is, machines::Evidence::assumed)
        << "nobody asked";
    const std::string text = machines::write_record(record);
    EXPECT_EQ(machines::write_record(*machines::read_record(text)), text) << "as the files of platform/machines";
}

TEST(ReportDocument, ASimulatedMachineObservesNothing) {
    Parts parts = observed_parts();
    parts.simulated = true;
    const machines::MachineRecord record = record_in(document_of(parts), "my-orin", "sent.json");
    for (const auto& evidence : {record.evidence, record.devices[0].evidence}) {
        for (const machines::Source& source : evidence) EXPECT_EQ(source.is, machines::Evidence::assumed);
    }
    EXPECT_NE(record.evidence[0].from.find("simulated"), std::string::npos);
}

TEST(RunProgram, KeepsTheOutputAndTheStatus) {
    const ProgramOutcome outcome = run_program(
        {"/bin/sh", "-c", "echo out; echo err >&2; read x || echo no input; exit 3"}, std::chrono::seconds(60));
    EXPECT_EQ(outcome.end, ProbeEnd::finished);
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(outcome.text, "out\nerr\nno input\n");
}

TEST(RunProgram, EndsAllThatTheProgramStartedAtTheDeadline) {
    const ProgramOutcome outcome =
        run_program({"/bin/sh", "-c", "echo before; sleep 1000 & sleep 1000; echo after"}, std::chrono::seconds(5));
    EXPECT_EQ(outcome.end, ProbeEnd::hung);
    EXPECT_EQ(outcome.text, "before\n");
    // The second sleep holds the pipe: had it lived on, a program without a deadline would not be over.
    EXPECT_EQ(run_program({"/bin/sh", "-c", "sleep 1000 & kill -9 $$"}, std::chrono::seconds(60)).end,
              ProbeEnd::crashed);
}

TEST(RunProgram, SaysWhyAProgramCannotBeRun) {
    const ProgramOutcome outcome = run_program({"/no/such/program"}, std::chrono::seconds(60));
    EXPECT_EQ(outcome.end, ProbeEnd::failed);
    EXPECT_NE(outcome.text.find("/no/such/program"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace isthmus::tools::report
