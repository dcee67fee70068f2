// SPDX-License-Identifier: Apache-2.0
// What people read of a measurement: sentences, the page, and the comparison of two profiles.
#include "synthetic.hpp"
#include "tune/advice.hpp"
#include "tune/chart.hpp"
#include "tune/choices.hpp"
#include "tune/compare.hpp"
#include "tune/html.hpp"
#include "tune/words.hpp"
#include "well_formed.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace isthmus::tools::tune {
namespace {

// As the command hands it over.
Measurements finished(const SyntheticMachine& machine, const Noise& noise = {}) {
    Measurements result = measured(machine, noise);
    result.profile.choices = choices_of(result);
    result.profile.measured_on = "2026-11-24";
    result.profile.driver_version = 13000;
    result.profile.device = *Uuid::parse("GPU-01234567-89ab-cdef-0123-456789abcdef");
    result.conditions.gpu_clock_hz_end = 1.3e9;
    result.figures = {{"hand-over", "launch of an empty kernel", "", 0, {4e-6, 3.9e-6, 4.2e-6, 20}, "s"},
                      {"copies", "cuMemcpyAsync, pinned to device", "pinned", 1 << 26, {55, 54, 56, 9}, "GB/s"},
                      {"copies", "cuMemcpyAsync, pageable", "host", 1 << 26, {0, 0, 0, 0}, "GB/s"}};
    return result;
}

bool has(const std::vector<std::string>& lines, const std::string& begin) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(begin); });
}

TEST(Words, NameSizesTimesAndWays) {
    EXPECT_EQ(size_words(64), "64 B");
    EXPECT_EQ(size_words(1023), "1023 B");
    EXPECT_EQ(size_words(1536), "1.5 KiB");
    EXPECT_EQ(size_words(16 << 20), "16 MiB");
    EXPECT_EQ(size_words(5e12), "4657 GiB");
    EXPECT_EQ(about(761856), "740 KiB");
    EXPECT_EQ(about(8431), "8.2 KiB");
    EXPECT_EQ(about(1), "1 B");
    EXPECT_EQ(time_words(3.2e-6), "3.2 us");
    EXPECT_EQ(time_words(0.00105), "1.05 ms");
    EXPECT_EQ(time_words(12), "12 s");
    EXPECT_EQ(way_words({MemoryKind::device, Locality::anywhere}), "a copy at each hand-over");
    EXPECT_EQ(way_words({MemoryKind::host, Locality::unbound}), "ordinary memory that may migrate");
    EXPECT_EQ(way_label({MemoryKind::host, Locality::near_device}), "host, near");
}

TEST(Advice, SaysWhereOrinsManagedMemoryPays) {
    const std::vector<std::string> lines = advice(finished(orin_with_slow_pinned_reads()));
    EXPECT_EQ(
        lines.front(),
        "Buffers that the GPU reads once: pinned memory below 730 KiB, from there managed memory (up to 1.4 times "
        "as fast as pinned memory).");
    EXPECT_TRUE(has(lines, "Buffers that the GPU reads 4 times: pinned memory below 180 KiB, from there managed"))
        << lines[1];
}

TEST(Advice, SaysOnceWhatHoldsForEverySizeAndNumberOfPasses) {
    const std::vector<std::string> expected{
        "Buffers that the GPU reads, however often: ordinary memory bound near the device.",
        "Buffers that the GPU writes, however often: ordinary memory bound near the device.",
        "Buffers that the GPU reads and writes, however often: ordinary memory bound near the device."};
    EXPECT_EQ(advice(finished(all_equal())), expected);
}

TEST(Advice, WarnsFirst) {
    Measurements measurements = finished(discrete_gpu());
    EXPECT_TRUE(warnings(measurements).empty());
    measurements.profile.simulated = true;
    measurements.conditions.throttled = true;
    const std::vector<std::string> lines = advice(measurements);
    EXPECT_EQ(lines[0].substr(0, 32), "Measured on a simulated machine:");
    EXPECT_EQ(lines[1].substr(0, 21), "The GPU was throttled");
    EXPECT_EQ(warnings(measurements).size(), 2U);
    EXPECT_EQ(advice({}).size(), 1U);  // nothing was measured
}

TEST(Advice, NamesOtherConditionsOnlyWhereTheyChangeTheAnswer) {
    const auto names_latency = [](const SyntheticMachine& machine) {
        const std::vector<std::string> lines = advice(finished(machine));
        return std::any_of(lines.begin(), lines.end(),
                           [](const std::string& line) { return line.find("latency") != std::string::npos; });
    };
    EXPECT_TRUE(names_latency(discrete_gpu()));  // copies are the best otherwise
    EXPECT_FALSE(names_latency(orin_with_slow_pinned_reads()));
}

TEST(Page, IsWellFormedWithoutScriptsAndLinks) {
    for (const SyntheticMachine& machine : {discrete_gpu(), grace_that_pays_after_four()}) {
        const std::string page = html_page({finished(machine, {0.05, 0.05, 9, 2})});
        EXPECT_EQ(WellFormed::fault(page), "");
        for (const char* const word : {"<script", "href=", "src=", "url(", "@import", "nan", "inf\""}) {
            EXPECT_EQ(page.find(word), std::string::npos) << word;
        }
        EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
        EXPECT_NE(page.find("<h2>What to use when</h2>"), std::string::npos);
        EXPECT_NE(page.find("55 GB/s"), std::string::npos);
        EXPECT_NE(page.find("not measured"), std::string::npos);
        EXPECT_NE(page.find("2026-11-24"), std::string::npos);
        EXPECT_NE(page.find("GPU-01234567-89ab-cdef-0123-456789abcdef"), std::string::npos);
    }
}

TEST(Page, FindsFaults) {  // of the check that the other tests lean on
    for (const char* const page : {"<a><b></a></b>", "<a>", "<a/><a/>", "<a>&</a>", "<a b=\"<\"/>", "<a b=c/>",
                                   "<a b=\"1\" b=\"2\"/>", "x<a/>", "<a>\x01</a>"}) {
        EXPECT_NE(WellFormed::fault(page), "") << page;
    }
    EXPECT_EQ(WellFormed::fault("<!DOCTYPE html>\n<a b=\"1\"><c/>&lt;</a>\n"), "");
}

TEST(Page, EscapesEveryTextOfTheMachine) {  // keeps P3
    const std::string bad = "<script>alert(\"x\")</script>&'\x01\x7f\xff\xc2\x9b";
    Measurements measurements = finished(discrete_gpu());
    measurements.device_name = measurements.cpu_name = measurements.machine_record = bad;
    measurements.profile.kernel_release = measurements.profile.measured_on = bad;
    measurements.conditions.power_mode = bad;
    measurements.conditions.notes = {bad, bad};
    measurements.figures = {{bad, bad, bad, 5, {1, 1, 1, 3}, bad}};
    const std::string page = html_page({measurements});
    EXPECT_EQ(WellFormed::fault(page), "");
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_NE(page.find("&lt;script&gt;alert(&quot;x&quot;)"), std::string::npos);
}

TEST(Page, DrawsTheChoiceOfEverySizeAndNumberOfPasses) {
    const Measurements measurements = finished(orin_with_slow_pinned_reads());
    const std::string page = html_page({measurements});
    const auto runs = runs_of(measurements.profile.choices, measured_use(Role::reads), 8);
    ASSERT_EQ(runs.size(), 2U);
    const std::string border = size_words(static_cast<double>(runs[1].from_bytes));
    EXPECT_NE(page.find("<title>8 times, 0 B to " + border + ": pinned memory</title>"), std::string::npos);
    EXPECT_NE(page.find("<title>8 times, from " + border + ": managed memory</title>"), std::string::npos);
    // The border as a line of the plot of times.
    const auto once = runs_of(measurements.profile.choices, measured_use(Role::reads), 1);
    EXPECT_NE(
        page.find("<title>from " + size_words(static_cast<double>(once[1].from_bytes)) + ": managed memory</title>"),
        std::string::npos);
}

TEST(Page, StandsWhateverIsMissing) {
    EXPECT_EQ(WellFormed::fault(html_page({})), "");
    EXPECT_EQ(WellFormed::fault(html_page({Measurements{}})), "");
    EXPECT_EQ(WellFormed::fault(html_page({finished(discrete_gpu()), Measurements{}})), "");
    Measurements measurements = finished(discrete_gpu());
    measurements.hosts.clear();
    measurements.figures.clear();
    std::erase_if(measurements.turns, [](const TurnSample& turn) { return turn.passes != 1 || turn.bytes != 64; });
    for (TurnSample& turn : measurements.turns) turn.seconds.high = std::numeric_limits<double>::infinity();
    measurements.turns.push_back({measurements.ways[0], Role::reads, 64, 3, {-1, 0, 0, 3}});
    EXPECT_EQ(WellFormed::fault(html_page({measurements})), "");
}

TEST(Compare, FindsNoDifferenceBetweenEqualProfiles) {
    const std::vector<Measurements> profile{finished(discrete_gpu())};
    const std::string text = compare_text(profile, profile);
    EXPECT_NE(text.find("Machine and conditions are the same."), std::string::npos) << text;
    EXPECT_NE(text.find("Both choose the same"), std::string::npos);
    const auto json = nlohmann::json::parse(compare_json(profile, profile));
    const auto& device = json.at("devices").at(0);
    EXPECT_TRUE(device.at("changed").empty());
    EXPECT_TRUE(device.at("choices").empty());
    for (const auto& times : device.at("times")) EXPECT_EQ(times.at("different"), 0);
    EXPECT_TRUE(json.at("only_a").empty());
}

TEST(Compare, TakesNoiseForNoDifference) {
    const std::vector<Measurements> a{finished(discrete_gpu(), {0.02, 0.02, 25, 1})};
    const std::vector<Measurements> b{finished(discrete_gpu(), {0.02, 0.02, 25, 2})};
    const auto json = nlohmann::json::parse(compare_json(a, b));
    const auto& device = json.at("devices").at(0);
    EXPECT_TRUE(device.at("choices").empty()) << device.at("choices").dump(1);
    for (const auto& times : device.at("times")) EXPECT_EQ(times.at("different"), 0) << times.dump();
}

TEST(Compare, FindsSlowerMemoryAndTheChoicesThatFollow) {
    SyntheticMachine slower = discrete_gpu();
    slower.ways[0].device_reads.rate /= 2;
    std::vector<Measurements> a{finished(discrete_gpu())}, b{finished(slower)};
    b[0].conditions.throttled = true;
    b[0].conditions.gpu_clock_hz_end = 0.9e9;
    b[0].profile.driver_version = 12040;
    const std::string text = compare_text(a, b);
    for (const char* const words : {"throttled", "13.0", "12.4", "1300 MHz", "900 MHz", "device reads"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
    const auto json = nlohmann::json::parse(compare_json(a, b));
    const auto& device = json.at("devices").at(0);
    int slower_ways = 0;
    for (const auto& times : device.at("times")) {
        if (times.at("different") == 0) continue;
        ++slower_ways;
        EXPECT_EQ(times.at("way").at("kind"), "pinned");
        EXPECT_EQ(times.at("what"), "the device reads");
        EXPECT_NEAR(times.at("most_ratio").get<double>(), 2, 0.05);
    }
    EXPECT_EQ(slower_ways, 1);
    ASSERT_FALSE(device.at("choices").empty());
    for (const auto& choice : device.at("choices")) {
        EXPECT_EQ(choice.at("device"), "reads");
        EXPECT_EQ(choice.at("a").at("kind"), "pinned");
        EXPECT_NE(choice.at("b").at("kind"), "pinned");
        EXPECT_GT(choice.at("other_in_b").get<double>(), 1.02);
    }
}

TEST(Compare, MatchesDevicesByUuid) {
    Measurements one = finished(discrete_gpu()), other = finished(all_equal());
    other.profile.device.bytes[0] ^= 1;
    const auto json = nlohmann::json::parse(compare_json({one, other}, {other}));
    ASSERT_EQ(json.at("devices").size(), 1U);
    EXPECT_EQ(json.at("devices").at(0).at("device"), "equal");
    EXPECT_EQ(json.at("only_a").size(), 1U);
    EXPECT_TRUE(json.at("only_b").empty());
    // Two boards, each alone in its profile.
    const auto boards = nlohmann::json::parse(compare_json({one}, {other}));
    ASSERT_EQ(boards.at("devices").size(), 1U);
    EXPECT_EQ(boards.at("devices").at(0).at("changed").at(0).at("what"), "UUID");
    EXPECT_NE(compare_text({one, other}, {other}).find("Devices in one profile only"), std::string::npos);
}

TEST(Compare, StandsTextThatIsNotUtf8AndEmptyProfiles) {
    Measurements bad = finished(discrete_gpu());
    bad.profile.kernel_release = "\xff\xfe";
    EXPECT_NO_THROW(compare_json({bad}, {finished(discrete_gpu())}));
    EXPECT_NO_THROW(compare_text({bad}, {Measurements{}}));
    EXPECT_NO_THROW(compare_text({}, {}));
}

}  // namespace
}  // namespace isthmus::tools::tune
