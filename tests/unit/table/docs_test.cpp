// SPDX-License-Identifier: Apache-2.0
// The renderers, and that the generated pages and the tables of docs/memory.md equal their output.
#include <gtest/gtest.h>

#include <caps/caps_render.hpp>
#include <text/table_text.hpp>

#include <isthmus/memory_kind.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

namespace {

using namespace isthmus;
using namespace isthmus::tools;

MachineView view(const char* machine) {
    return view_of(platform::machines::find_record(machine).value());
}

CapsStyle why(CapsFormat format) {
    return {.format = format, .detail = CapsDetail::why, .width = 400};  // one line for each reason
}

std::string content_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
}

// Whether a row of `agent` has `word` in its list of memory: "| agent | may | memory, memory | because | … |".
bool lists(const std::string& section, std::string_view agent, std::string_view word) {
    std::istringstream lines(section);
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("| " + std::string(agent) + " | ", 0) != 0) continue;
        const std::size_t may = line.find(" | ") + 3;
        const std::size_t memory = line.find(" | ", may) + 3;
        const std::string cell = ", " + line.substr(memory, line.find(" | ", memory) - memory) + ", ";
        if (cell.find(", " + std::string(word) + ", ") != std::string::npos) return true;
    }
    return false;
}

TEST(Docs, TheGeneratedPagesAreNotStale) {  // keeps D12
    EXPECT_TRUE(content_of(ISTHMUS_MACHINES_PAGE) == machines_page())
        << "run `ninja docs-machines`, commit machines.md";
    EXPECT_TRUE(content_of(ISTHMUS_ACCESS_PAGE) == access_page()) << "run `ninja docs-machines` and commit access.md";
}

TEST(Docs, TheAccessPageTellsEveryKindOnEveryRowWithItsReason) {  // keeps A1, A6, L5
    const std::string page = access_page();
    for (const char* row :
         {"## cpu", "## discrete (h200)", "## discrete (rtx-wsl2)", "## hmm (rtx-hmm)", "## integrated (orin)",
          "## ats (thor)", "## c2c (gh200-numa)", "## c2c (gh200-cdmm)", "## Memory of another GPU"}) {
        const std::size_t begin = page.find(row);
        ASSERT_NE(begin, std::string::npos) << row;
        const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
        for (int kind = 0; kind < memory_kind_count; ++kind) {
            const std::string_view word = name(static_cast<MemoryKind>(kind));
            if (std::string_view(row) == "## Memory of another GPU") {
                EXPECT_NE(section.find("| " + std::string(word) + " |"), std::string::npos) << row << " " << word;
                continue;
            }
            EXPECT_TRUE(lists(section, "launch", word)) << row << " launch " << word;
            EXPECT_TRUE(lists(section, "GPU", word) || lists(section, "CPU device", word)) << row << " device " << word;
            EXPECT_TRUE(std::string_view(row) == "## cpu" || lists(section, "CPU", word)) << row << " CPU " << word;
        }
    }
}

TEST(Docs, TheTablesOfTheMemoryPageAreNotStale) {  // keeps G11
    const std::string page = content_of(ISTHMUS_MEMORY_PAGE);
    EXPECT_TRUE(page == memory_page(page)) << "run `ninja docs-memory` and commit docs/memory.md";
}

TEST(Docs, TheTablesOfTheSharingPageAreNotStale) {  // keeps G2, G3
    const std::string page = content_of(ISTHMUS_SHARING_PAGE);
    EXPECT_TRUE(page == sharing_page(page)) << "run `ninja docs-sharing` and commit docs/sharing.md";
    EXPECT_NE(page.find("46 %"), std::string::npos) << "what was seen stands beside the rule";
}

TEST(Docs, RenewingThePageOfMemoryKeepsWhatWasWrittenByHandAndReplacesTheRest) {
    const std::string page = "above\n<!-- generated: kinds -->\nold\n<!-- end -->\nbelow\n";
    const std::string renewed = memory_page(page);
    EXPECT_EQ(renewed.rfind("above\n<!-- generated: kinds -->\n## Who may touch", 0), 0u);
    EXPECT_EQ(renewed.find("old\n"), std::string::npos);
    EXPECT_NE(renewed.find("<!-- end -->\nbelow\n"), std::string::npos);
    EXPECT_NE(renewed.find("<!-- generated: uses -->"), std::string::npos) << "parts that are missing are added";
    EXPECT_EQ(memory_page(renewed), renewed);
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        const std::string row =
            "\n| " + std::string(name(static_cast<MemoryKind>(kind))) + " (" + std::to_string(kind) + ") | ";
        EXPECT_NE(renewed.find(row), std::string::npos) << row;
    }
    for (int model = 0; model < model_count; ++model) {
        EXPECT_NE(renewed.find("\n| " + std::string(name(static_cast<Model>(model)))), std::string::npos) << model;
    }
}

TEST(Render, AMachinePrintsEveryFeatureWithItsReasonAsTextAndMarkdown) {  // keeps D7, D12
    const MachineView orin = view("orin");
    for (const CapsFormat format : {CapsFormat::text, CapsFormat::markdown}) {
        const std::string printed = render_machine(orin, why(format));
        for (int i = 0; i < feature_count; ++i) {
            const Capability& each = orin.devices[0].capabilities.features[static_cast<std::size_t>(i)];
            EXPECT_NE(printed.find(name(static_cast<Feature>(i))), std::string::npos);
            EXPECT_NE(printed.find(each.reason), std::string::npos) << each.reason;
        }
        EXPECT_NE(printed.find("integrated"), std::string::npos);
        EXPECT_NE(printed.find("by turns"), std::string::npos);
        EXPECT_NE(printed.find("attached to the stream, then back to the host"), std::string::npos)
            << "why it attaches";
        EXPECT_NE(printed.find("CPU device"), std::string::npos);
    }
}

TEST(Render, AMachinesJsonHoldsAxesFeaturesAndAttributes) {  // keeps D12
    const auto json = nlohmann::json::parse(render_machine(view("thor"), why(CapsFormat::json)));
    const auto& device = json.at("devices").at(0);
    EXPECT_EQ(device.at("row"), "ats");
    EXPECT_EQ(device.at("axes").at("translation"), "host_page_tables");
    EXPECT_EQ(device.at("features").at("direct_managed").at("state"), "no");
    EXPECT_EQ(device.at("features").at("direct_managed").at("origin"), "attribute");
    EXPECT_EQ(device.at("attributes").at("INTEGRATED"), 1);
    EXPECT_EQ(device.at("memory_kinds").at("host").at("who"), "both");
    EXPECT_EQ(device.at("memory_kinds").at("host").at("launch"), "pass");
    EXPECT_FALSE(device.at("memory_kinds").at("host").at("launch_reason").get<std::string>().empty());
    EXPECT_EQ(json.at("devices").back().at("row"), "cpu");
}

TEST(Render, AMachineWithoutADeviceSaysWhy) {  // keeps D9
    EXPECT_NE(render_machine(view("no-gpu"), why(CapsFormat::text)).find("cuInit answers 100"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(render_machine(view("no-gpu"), why(CapsFormat::json))).at("devices").size(), 1u);
}

TEST(Render, AllMachinesStandSideBySide) {  // keeps D8, D12
    const std::vector<MachineView> views = known_machine_views();
    const std::string text = render_machines(views, why(CapsFormat::text));
    const std::string markdown = render_machines(views, why(CapsFormat::markdown));
    for (const char* column : {"cpu", "h200", "station 0", "station 1", "gb200", "gh200-cdmm", "orin", "rtx-wsl2"}) {
        EXPECT_NE(text.find(column), std::string::npos) << column;
        EXPECT_NE(markdown.find(std::string("| ") + column + " |"), std::string::npos) << column;
    }
    EXPECT_EQ(markdown.find("gb200 1"), std::string::npos) << "equal devices share one column";
    EXPECT_EQ(nlohmann::json::parse(render_machines(views, why(CapsFormat::json))).at("machines").size(), views.size());
}

TEST(Render, NamesThatBreakAFormatAreKeptHarmless) {
    MachineView odd = view("thor");
    odd.devices[0].facts.name = "a|b\n\xff";
    EXPECT_TRUE(nlohmann::json::accept(render_machine(odd, why(CapsFormat::json))));
    EXPECT_EQ(as_markdown({{"t", "", {"h"}, {{"a|b\nc"}}}}), "## t\n\n| h |\n| --- |\n| a\\|b c |\n");
}

// keeps G13
TEST(Caps, ShowWhatTrialsTookAwayAndWhatTheySaw) {
    MachineView shown = view("gh200-numa");
    const std::string title = "What trials took away";
    for (const CapsFormat format : {CapsFormat::text, CapsFormat::markdown}) {
        EXPECT_EQ(render_machine(shown, why(format)).find(title), std::string::npos) << "nothing was taken away";
        EXPECT_EQ(render_machines({shown}, why(format)).find(title), std::string::npos);
    }
    const auto bit = [](MemoryKind kind) { return 1u << static_cast<unsigned>(kind); };
    Capabilities& gpu = shown.devices.front().capabilities;
    const auto mentions = [&](std::string_view words) {
        for (const CapsFormat format : {CapsFormat::text, CapsFormat::markdown}) {
            for (const std::string& page :
                 {render_machine(shown, why(format)), render_machines({shown}, why(format))}) {
                // A text table wraps its cells, so only the title is searched there.
                if (page.find(title) == std::string::npos) return false;
                if (format == CapsFormat::markdown && page.find(words) == std::string::npos) return false;
            }
        }
        return render_machine(shown, why(CapsFormat::json)).find(words) != std::string::npos;
    };
    gpu.lossy_kinds = bit(MemoryKind::managed);
    EXPECT_TRUE(mentions("trials on this device lost updates of CPU and GPU in memory of this kind"));
    gpu.lossy_kinds = 0;
    gpu.torn_kinds = bit(MemoryKind::pinned);
    EXPECT_TRUE(mentions("trials on this device saw halves of 16 bytes in memory of this kind"));
    gpu.torn_kinds = 0;
    gpu.disordered_kinds = bit(MemoryKind::host);
    EXPECT_TRUE(mentions("saw an order of loads and stores in this kind that the memory model rules out"));
}

}  // namespace
