// SPDX-License-Identifier: Apache-2.0
// The report as text, as JSON and as a page. keeps T4
#include "latency/report.hpp"

#include "common/exit_codes.hpp"
#include <well_formed.hpp>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cctype>
#include <cstdlib>
#include <string>

namespace isthmus::tools::latency {
namespace {

using Json = nlohmann::json;

RunReport some_run(const std::string& label, std::uint64_t turns = 1000) {
    RunReport run;
    run.plan.label = label;
    run.kind = "pinned";
    run.path = "pass";
    run.reason = "because";
    run.warm_up = 10;
    run.planned = turns + 2;
    run.skipped = 2;
    run.slept = turns;
    auto tally = std::make_shared<Tally>(1'000'000);
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
        tally->add(turn, {50'000, 10'000 + turn, turn == 77 ? std::uint64_t{3'000'000} : 20'000, 5'000});
    }
    run.tally = tally;
    run.counts = ThreadCounts{3, 1, static_cast<std::int64_t>(turns) + 4, 9};
    return run;
}

Report some_report() {
    Report report;
    report.where = {"0", "A <GPU>", "discrete", false, ""};
    report.driver_version = 13000;
    report.runs = {some_run("launch")};
    return report;
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST(LatencyReport, TheTextHasEveryQuantileAndWhatTheThreadMet) {
    const std::string text = as_text(some_report(), {200});
    for (const std::string_view part :
         {"p50", "p99", "p99.9", "p99.99", "maximum", "wake_up", "submit", "device", "view", "total",
          "1000 of 1002 planned, after 10 that do not count", "3 deadlines missed: 1 turns late",
          "longest part: device 1", "2 skipped", "turn 77", "4 page faults (1 of a disk)",
          "4 voluntary switches beyond its own 1000 sleeps", "9 involuntary switches",
          "pinned memory, pass: because"}) {
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
    }
    EXPECT_FALSE(has(text, "mean nothing"));
    EXPECT_FALSE(has(text, "refused"));
}

TEST(LatencyReport, LinesFitTheTerminal) {
    Report report = some_report();
    report.runs.push_back(some_run("another"));
    report.left_out = {
        "host: not here, for a reason that is longer than a line of a terminal of eighty columns has room for"};
    for (const std::size_t width : {60u, 80u, 120u}) {
        const std::string text = as_text(report, {width});
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            EXPECT_LE(end - begin, width) << text.substr(begin, end - begin);
            begin = end + 1;
        }
    }
}

TEST(LatencyReport, WhatASimulatedMachineMeasuresMeansNothingAndAllThreeSaySo) {
    Report report = some_report();
    report.where.simulated = true;
    report.where.machine = "orin";
    EXPECT_TRUE(has(as_text(report), "mean nothing"));
    EXPECT_TRUE(has(html_page(report), "mean nothing"));
    EXPECT_TRUE(Json::parse(as_json(report))["simulated"].get<bool>());
    report.where.simulated = false;
    EXPECT_FALSE(has(html_page(report), "mean nothing"));
}

TEST(LatencyReport, RefusalsTroublesLoadsAndTheSealAreShownEverywhere) {
    Report report = some_report();
    RunReport& run = report.runs[0];
    run.prepared.priority = 80;
    run.prepared.cpus = {2, 3};
    run.prepared.locked = run.prepared.sealed = true;
    run.prepared.refused = {"J009: no right"};
    run.loads = {{LoadKind::page_cache, 1, 42, ""}, {LoadKind::copies, 1, 7, "it broke"}};
    run.sealed = SealedCounts{5, {{"Device::allocate", "heap", 5}}};
    run.trouble = Trouble{"device_lost", "E009", "device_lost: gone"};
    report.left_out = {"host: no"};
    const std::string text = as_text(report, {200});
    const std::string page = html_page(report);
    for (const std::string_view part :
         {"SCHED_FIFO 80", "CPUs 2,3", "memory locked", "sealed", "J009: no right", "page-cache: 1 threads, 42 rounds",
          "copies: 1 threads, 7 rounds, ended: it broke", "device_lost: gone", "host: no"}) {
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
        EXPECT_TRUE(has(page, part)) << part;
    }
    EXPECT_TRUE(has(text, "Device::allocate: heap, 5 times"));
    const Json json = Json::parse(as_json(report));
    const Json& first = json["runs"][0];
    EXPECT_EQ(first["thread"]["priority"], 80);
    EXPECT_EQ(first["thread"]["cpus"], (std::vector<int>{2, 3}));
    EXPECT_EQ(first["thread"]["refused"][0], "J009: no right");
    EXPECT_EQ(first["seal"]["refusals"], 5);
    EXPECT_EQ(first["seal"]["places"][0]["call"], "Device::allocate");
    EXPECT_EQ(first["loads"][0]["load"], "page-cache");
    EXPECT_FALSE(first["loads"][0].contains("trouble"));
    EXPECT_EQ(first["loads"][1]["trouble"], "it broke");
    EXPECT_EQ(first["trouble"]["code"], "device_lost");
    EXPECT_EQ(first["trouble"]["id"], "E009");
    EXPECT_EQ(json["left_out"][0], "host: no");
    run.sealed.reset();
    run.counts.reset();
    run.trouble.reset();
    const Json without = Json::parse(as_json(report))["runs"][0];
    EXPECT_TRUE(without["seal"].is_null());
    EXPECT_TRUE(without["counts"].is_null());
    EXPECT_FALSE(without.contains("trouble"));
}

TEST(LatencyReport, TheJsonAddsUp) {
    const Json json = Json::parse(as_json(some_report()));
    EXPECT_EQ(json["schema"], 1);
    EXPECT_EQ(json["period_ns"], 1'000'000);
    const Json& run = json["runs"][0];
    EXPECT_EQ(run["planned"], 1002);
    EXPECT_EQ(run["turns"], 1000);
    EXPECT_EQ(run["late"], 1);
    EXPECT_EQ(run["missed"], 3);
    EXPECT_EQ(run["counts"]["beyond_sleeps"], 4);
    EXPECT_EQ(run["longest"]["turn"], 77);
    EXPECT_EQ(run["longest"]["device_ns"], 3'000'000);
    EXPECT_EQ(run["parts"]["device"]["late_by"], 1);
    std::uint64_t turns = 0, sum = 0;
    for (const Json& bucket : run["histogram"]) {
        EXPECT_LE(bucket[0], bucket[1]);
        turns += bucket[2].get<std::uint64_t>();
    }
    EXPECT_EQ(turns, 1000u);
    EXPECT_EQ(run["histogram"].back()[1], run["total"]["maximum_ns"]);
    for (const char* const part : {"wake_up", "submit", "device", "view"}) {
        sum += run["parts"][part]["sum_ns"].get<std::uint64_t>();
        EXPECT_LE(run["parts"][part]["p50_ns"], run["parts"][part]["p99_99_ns"]);
        EXPECT_LE(run["parts"][part]["p99_99_ns"], run["parts"][part]["maximum_ns"]);
    }
    EXPECT_EQ(sum, run["total"]["sum_ns"].get<std::uint64_t>());
}

// Every number of the paths and lines of the page's pictures.
void expect_inside(const std::string& page) {
    std::size_t paths = 0;
    for (std::size_t at = page.find(" d=\""); at != std::string::npos; at = page.find(" d=\"", at + 1)) {
        ++paths;
        const char* const end = page.data() + page.find('"', at + 4);
        for (const char* number = page.data() + at + 4; number < end;) {
            if (std::isdigit(static_cast<unsigned char>(*number)) == 0 && *number != '-') {
                ++number;
                continue;
            }
            char* behind = nullptr;
            const double value = std::strtod(number, &behind);
            EXPECT_GE(value, 0) << page.substr(at, 200);
            EXPECT_LE(value, 760) << page.substr(at, 200);
            number = behind;
        }
    }
    EXPECT_GT(paths, 0u);
}

TEST(LatencyReport, ThePageIsOneWellFormedFileWithoutLinksToElsewhere) {
    Report report = some_report();
    report.runs.push_back(some_run("sealed & <odd>"));
    const std::string page = html_page(report);
    EXPECT_EQ(tune::WellFormed::fault(page), "");
    expect_inside(page);
    EXPECT_FALSE(has(page, "A <GPU>"));
    EXPECT_TRUE(has(page, "sealed &amp; &lt;odd&gt;"));
    EXPECT_FALSE(has(page, "<script"));
    EXPECT_FALSE(has(page, "src="));
    EXPECT_FALSE(has(page, "href="));
    EXPECT_FALSE(has(page, "@import"));
    EXPECT_FALSE(has(page, "url("));
    EXPECT_TRUE(has(page, "Turns by their total time")) << "several runs are compared in one picture";
    report.runs.pop_back();
    EXPECT_FALSE(has(html_page(report), "Turns by their total time"));
}

TEST(LatencyReport, RunsWithoutATurnOrWithOneAreReportsToo) {
    Report report = some_report();
    report.runs = {some_run("none", 0), some_run("one", 1)};
    report.signal = 2;
    EXPECT_EQ(tune::WellFormed::fault(html_page(report)), "");
    EXPECT_TRUE(has(html_page(report), "no turn was measured"));
    expect_inside(html_page(report));
    EXPECT_TRUE(has(as_text(report), "0 of 2 planned"));
    EXPECT_TRUE(has(as_text(report), "by signal 2"));
    const Json json = Json::parse(as_json(report));
    EXPECT_EQ(json["runs"][0]["total"]["p99_99_ns"], 0);
    EXPECT_TRUE(json["runs"][0]["histogram"].empty());
    report.runs.pop_back();
    EXPECT_FALSE(has(as_text(report), "p99.99")) << "a table without rows";
}

TEST(LatencyReport, MissedDeadlinesAreResultsAndTroublesAreFailures) {
    Report report = some_report();
    EXPECT_EQ(exit_code(report), exit_ok);
    report.signal = 2;
    EXPECT_EQ(exit_code(report), 130);
    report.runs[0].trouble = Trouble{"timed_out", "Q012", "timed_out: no reply"};
    EXPECT_EQ(exit_code(report), exit_failed);
    report.signal = 0;
    EXPECT_EQ(exit_code(report), exit_failed);
}

TEST(LatencyReport, SwitchesBeyondTheSleepsAreNeverNegative) {
    RunReport run = some_run("launch");
    run.counts->voluntary_switches = 3;
    EXPECT_EQ(run.other_switches(), 0) << "a sleep that is over at once is no switch";
    run.counts.reset();
    EXPECT_EQ(run.other_switches(), 0);
}

}  // namespace
}  // namespace isthmus::tools::latency
