// SPDX-License-Identifier: Apache-2.0
// Which trials are made on which machine, and how the output of a child process becomes a report.
#include <litmus/plan.hpp>
#include <litmus/report.hpp>
#include <litmus/trials.hpp>

#include <machines/record.hpp>
#include <platform/detect.hpp>

#include <common/exit_codes.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

namespace {

using namespace isthmus;
using namespace isthmus::tools;
using namespace isthmus::tools::litmus;
using K = MemoryKind;
using S = LitmusShape;

Capabilities of_machine(const std::string& name) {
    const auto record = platform::machines::find_record(name).value();
    return platform::detect(record.facts, record.devices.at(0).facts);
}

std::vector<Row> rows_on(const std::string& machine, const Request& request = {}) {
    std::vector<std::string> left_out;
    return plan_rows(of_machine(machine), request, left_out);
}

std::set<K> kinds_of(const std::vector<Row>& rows) {
    std::set<K> kinds;
    for (const Row& row : rows) kinds.insert(row.kind);
    return kinds;
}

Role role_of_updates(const std::vector<Row>& rows, K kind) {
    for (const Row& row : rows) {
        if (row.kind == kind && row.shape == S::lost_updates) return row.role;
    }
    ADD_FAILURE() << name(kind);
    return Role::mutant;
}

TEST(LitmusPlan, TriesTheKindsThatBothSidesMayUseAtTheSameTime) {  // keeps G13
    EXPECT_EQ(kinds_of(rows_on("orin")), (std::set<K>{K::pinned, K::registered}));
    EXPECT_EQ(kinds_of(rows_on("h200")), (std::set<K>{K::pinned, K::registered, K::managed}));
    EXPECT_EQ(kinds_of(rows_on("thor")), (std::set<K>{K::pinned, K::registered, K::host, K::managed}));
    for (const Row& row : rows_on("thor")) EXPECT_EQ(row.ending, Ending::not_run);
}

TEST(LitmusPlan, SaysWhyAKindIsLeftOut) {  // keeps G13
    std::vector<std::string> left_out;
    Request request;
    request.kinds = {K::managed};
    EXPECT_TRUE(plan_rows(of_machine("orin"), request, left_out).empty());
    ASSERT_EQ(left_out.size(), 1u);
    EXPECT_EQ(left_out[0].find("managed: "), 0u) << left_out[0];
}

TEST(LitmusPlan, WideWordsAreTriedOnlyWhereTheCpuHasThem) {  // keeps G13
    std::vector<std::string> left_out;
    Request request;
    const auto wide = [](const Row& row) { return words_of(row.shape) == 4; };
    const std::vector<Row> with = plan_rows(of_machine("thor"), request, left_out);
    EXPECT_TRUE(std::any_of(with.begin(), with.end(), wide));
    const std::size_t before = left_out.size();
    request.host_has_16 = false;
    const std::vector<Row> without = plan_rows(of_machine("thor"), request, left_out);
    EXPECT_FALSE(std::any_of(without.begin(), without.end(), wide));
    EXPECT_GT(left_out.size(), before + before) << "it says so";
}

TEST(LitmusPlan, UpdatesThatTheRulesRefuseAreExpectedToBeLost) {  // keeps G13
    EXPECT_EQ(role_of_updates(rows_on("h200"), K::pinned), Role::refused);
    EXPECT_EQ(role_of_updates(rows_on("h200"), K::managed), Role::test);
    EXPECT_EQ(role_of_updates(rows_on("thor"), K::pinned), Role::test);
}

TEST(LitmusPlan, WhatWasFoundBeforeIsTriedAgain) {  // keeps G13
    Capabilities thor = of_machine("thor");
    thor.disordered_kinds = thor.torn_kinds = thor.lossy_kinds = ~0u;
    std::vector<std::string> left_out;
    const std::vector<Row> rows = plan_rows(thor, {}, left_out);
    EXPECT_EQ(rows.size(), rows_on("thor").size());
    EXPECT_EQ(role_of_updates(rows, K::pinned), Role::test);
}

TEST(LitmusPlan, MutantsAreNoTests) {  // keeps G13
    Request request;
    request.mutant = "relaxed";
    for (const Row& row : rows_on("h200", request)) EXPECT_EQ(row.role, Role::mutant);
}

TEST(LitmusPlan, SimulatedMachinesPlayLittle) {  // keeps G13
    MachineFacts machine;
    machine.simulated = true;
    const Setting little = setting_for({}, machine, {}, 64);
    EXPECT_LE(little.size.instances(), 4096u);
    EXPECT_EQ(little.threads, 1u);
    machine.simulated = false;
    const Setting large = setting_for({}, machine, {}, 64);
    EXPECT_GT(large.size.instances(), little.size.instances());
    EXPECT_EQ(large.threads, 8u);
    EXPECT_EQ(setting_for({}, machine, {}, 1).threads, 1u);
    Request request;
    request.threads = 3;
    EXPECT_EQ(setting_for({}, machine, request, 64).threads, 3u);
}

Report some_report() {
    Report report;
    report.device = "a device";
    report.uuid = "GPU-1";
    report.ordinal = 0;
    report.driver_version = 13000;
    report.threads = 2;
    report.left_out = {"managed: no"};
    report.record = "{}";
    return report;
}

Row some_row(S shape, Ending ending) {
    Row row;
    row.kind = K::pinned;
    row.shape = shape;
    row.ending = ending;
    row.seen[outcome(0, 0)] = 5;
    row.control[outcome(1, 0)] = 3;
    row.seconds = 0.5;
    return row;
}

TEST(LitmusReport, TheChildsLinesComeBackAsWhatItSaid) {  // keeps G13
    const Report report =
        report_of_lines(header_line(some_report()) + row_line(0, some_row(S::message_to_host, Ending::not_run)) +
                        row_line(1, some_row(S::coherence_to_host, Ending::not_run)) +
                        row_line(0, some_row(S::message_to_host, Ending::finished)));
    EXPECT_EQ(report.device, "a device");
    EXPECT_EQ(report.left_out, some_report().left_out);
    ASSERT_EQ(report.rows.size(), 2u);
    EXPECT_EQ(report.rows[0].ending, Ending::finished) << "the later line counts";
    EXPECT_EQ(report.rows[0].seen, some_row(S::message_to_host, Ending::finished).seen);
    EXPECT_EQ(report.rows[1].shape, S::coherence_to_host);
    EXPECT_EQ(report.rows[1].ending, Ending::not_run);
}

TEST(LitmusReport, ALineThatWasCutOffCountsForNothing) {  // keeps G13
    const std::string header = header_line(some_report());
    const std::string row = row_line(0, some_row(S::message_to_host, Ending::finished));
    for (std::size_t length = 0; length < row.size(); ++length) {
        EXPECT_TRUE(report_of_lines(header + row.substr(0, length)).rows.empty()) << length;
    }
    EXPECT_TRUE(report_of_lines("").rows.empty());
    EXPECT_EQ(report_of_lines("a driver's words\n" + header + "more words\n" + row).rows.size(), 1u);
}

TEST(LitmusReport, ExitCodesFollowTheWeightiestRow) {  // keeps G13
    Report report = some_report();
    EXPECT_EQ(exit_code(report), exit_cannot) << "nothing could be tried";
    report.rows = {some_row(S::message_to_host, Ending::finished)};
    EXPECT_EQ(summary(report), "passes");
    EXPECT_EQ(exit_code(report), exit_ok);
    report.rows[0].control = {};
    EXPECT_EQ(summary(report), "no power");
    EXPECT_EQ(exit_code(report), exit_ok);
    report.rows.push_back(some_row(S::coherence_to_host, Ending::stalled));
    EXPECT_EQ(summary(report), "incomplete");
    EXPECT_EQ(exit_code(report), exit_failed);
    report.rows[0].seen[outcome(1, 0)] = 1;
    EXPECT_EQ(summary(report), "forbidden seen");
    EXPECT_EQ(exit_code(report), exit_failed);
    report.rows.pop_back();
    report.simulated = true;
    EXPECT_EQ(summary(report), "simulated") << "which proves nothing, neither way";
    EXPECT_EQ(exit_code(report), exit_ok);
    report.end = "crashed by signal 11";
    EXPECT_EQ(exit_code(report), exit_failed);
    report.applicable = false;
    EXPECT_EQ(summary(report), "not applicable");
    EXPECT_EQ(exit_code(report), exit_cannot);
}

TEST(LitmusReport, TheTextNamesWhatWasSeenAndWhatItMeans) {  // keeps G13
    Report report = some_report();
    report.rows = {some_row(S::message_to_host, Ending::finished)};
    report.rows[0].seen[outcome(1, 0)] = 2;
    const std::string text = litmus::as_text(report, {200});
    for (const std::string_view part :
         {std::string_view("pinned"), std::string_view("message_to_host"), std::string_view("forbidden seen"),
          weak_means(S::message_to_host), std::string_view("left out: managed: no"), std::string_view("a device")}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
}

TEST(LitmusReport, EveryLineOfATableTooWideNamesMemoryAndShapeWithinTheWidth) {
    Report report = some_report();
    for (const S shape : {S::message_to_host, S::coherence_to_host}) {
        report.rows.push_back(some_row(shape, Ending::finished));
        report.rows.back().seconds = 1.5;
    }
    for (const std::size_t width : {std::size_t{60}, std::size_t{80}, std::size_t{100}}) {
        const std::string text = litmus::as_text(report, {width, true});
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LE(display_columns(line), width) << line;
            if (line.find("pinned") == std::string::npos) continue;
            EXPECT_TRUE(line.find("message") != std::string::npos || line.find("coherence") != std::string::npos)
                << width << ": " << line;
        }
    }
}

TEST(LitmusReport, ACpuDeviceHasNoDriverVersionThatNobodyMade) {
    Report report = some_report();
    report.device = "CPU";
    report.driver_version = 0;
    report.applicable = false;
    const std::string text = litmus::as_text(report, {80});
    EXPECT_EQ(text.find("CUDA 0.0"), std::string::npos) << text;
    EXPECT_NE(text.find("driver   none\n"), std::string::npos);
    EXPECT_NE(text.find("--machine orin"), std::string::npos) << "where the trials can be seen";
    report.driver_version = 13000;
    EXPECT_NE(litmus::as_text(report, {80}).find("CUDA 13.0"), std::string::npos);
    report.device.clear();
    EXPECT_NE(litmus::as_text(report, {80}).find("driver   not known\n"), std::string::npos) << "it crashed before";
}

}  // namespace
