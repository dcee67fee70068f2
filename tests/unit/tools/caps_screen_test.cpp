// SPDX-License-Identifier: Apache-2.0
// The output of `isthmus caps`: one screen for each known machine, all of them as one matrix, reasons and topology;
// within the terminal's width.
#include "lines.hpp"

#include <gtest/gtest.h>

#include <caps/caps_render.hpp>
#include <caps/caps_sections.hpp>
#include <text/terminal_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace {

using namespace isthmus;
using namespace isthmus::tools;

MachineView view(const char* machine) {
    return view_of(platform::machines::find_record(machine).value());
}

// The line that begins with these words, with runs of blanks replaced by one; empty: there is none.
std::string line_of(const std::string& text, std::string_view begin) {
    for (const std::string& line : lines(text)) {
        std::istringstream stream(line);
        std::string flat;
        for (std::string word; stream >> word;) flat += (flat.empty() ? "" : " ") + word;
        if (flat.rfind(begin, 0) == 0) return flat;
    }
    return "";
}

CapsStyle style(CapsDetail detail, std::size_t width, bool terminal = false) {
    return {CapsFormat::text, detail, width, terminal, terminal};
}

std::string screen(const MachineView& machine, std::size_t width = 100, bool terminal = false) {
    return render_machine(machine, style(CapsDetail::screen, width, terminal));
}

TEST(Caps, NoLineIsLongerThanTheTerminalForAnyKnownMachine) {
    const std::vector<MachineView> views = known_machine_views();
    for (const std::size_t width : {std::size_t{60}, std::size_t{80}, std::size_t{100}, std::size_t{120}}) {
        for (const bool terminal : {false, true}) {
            std::vector<std::string> texts;
            for (const MachineView& each : views) {
                for (const CapsDetail detail : {CapsDetail::screen, CapsDetail::why, CapsDetail::topology}) {
                    texts.push_back(render_machine(each, style(detail, width, terminal)));
                }
            }
            for (const CapsDetail detail : {CapsDetail::screen, CapsDetail::why}) {
                texts.push_back(render_machines(views, style(detail, width, terminal)));
            }
            for (const std::string& text : texts) {
                EXPECT_FALSE(text.empty());
                for (const std::string& line : lines(text)) {
                    EXPECT_LE(display_columns(line), width) << line;
                    EXPECT_TRUE(line.empty() || line.back() != ' ') << '"' << line << '"';
                }
            }
        }
    }
}

TEST(Caps, OneDeviceFitsOnOneScreen) {
    for (const char* machine : {"h200", "orin", "thor", "gh200-numa", "rtx-hmm", "no-gpu", "gb200"}) {
        EXPECT_LE(lines(screen(view(machine), 80)).size(), 30u) << machine;
    }
}

TEST(Caps, TheScreenSaysWhatTheRulesAndThePolicySay) {  // keeps D12, G11
    const std::string orin = screen(view("orin"));
    EXPECT_EQ(line_of(orin, "pinned"), "pinned yes yes yes no in place <- below 256 KiB");
    EXPECT_EQ(line_of(orin, "managed"), "managed yes yes by turns no attached to it");
    EXPECT_EQ(line_of(orin, "host"), "host yes no no no copied around it");
    EXPECT_EQ(line_of(orin, "device, pool"), "device, pool no yes no no in place <- above, copied");
    EXPECT_NE(line_of(orin, "integrated: one DRAM with the CPU"), "");
    EXPECT_NE(line_of(orin, "cannot").find("pageable access (88)"), std::string::npos) << orin;
    EXPECT_NE(orin.find("the driver (CUDA 12.6) does not know: host pools"), std::string::npos);

    const std::string h200 = screen(view("h200"));
    EXPECT_EQ(line_of(h200, "pinned"), "pinned yes yes yes no in place <- below 256 KiB");
    EXPECT_EQ(line_of(h200, "managed"), "managed yes yes yes yes prefetched");
    EXPECT_EQ(line_of(h200, "device, pool"), "device, pool no yes no no in place <- above, copied");

    const std::string grace = screen(view("gh200-numa"));
    EXPECT_EQ(line_of(grace, "host").rfind("host yes yes yes yes in place", 0), 0u) << grace;
}

TEST(Caps, EveryRowOfTheScreenFollowsTheCapabilities) {  // keeps D12
    MachineView shown = view("thor");
    Capabilities& gpu = shown.devices.front().capabilities;
    EXPECT_EQ(line_of(screen(shown), "host").rfind("host yes yes yes", 0), 0u);
    gpu.translation = Translation::none;
    gpu.features[static_cast<std::size_t>(Feature::pageable_access)].state = State::no;
    EXPECT_EQ(line_of(screen(shown), "host").rfind("host yes no no", 0), 0u) << "no name decides";
    gpu.lossy_kinds = 1u << static_cast<unsigned>(MemoryKind::pinned);
    EXPECT_NE(line_of(screen(shown), "trials").find("pinned: atomics"), std::string::npos);
    Capability& fabric = gpu.features[static_cast<std::size_t>(Feature::export_fabric)];
    fabric = {State::probed, Origin::probe, "tried"};
    EXPECT_NE(screen(shown).find("export fabric (tried)"), std::string::npos);
    Capability& rdma = gpu.features[static_cast<std::size_t>(Feature::gpudirect_rdma)];
    rdma = {State::no, Origin::refused, "refused"};
    EXPECT_EQ(line_of(screen(shown), "? the driver"), "? the driver refused to answer: gpudirect rdma (116)");
}

TEST(Caps, ColourAndCirclesAreForTerminalsThatShowThem) {
    const std::string plain = screen(view("orin"));
    EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }))
        << "ASCII alone where nothing is known of the terminal";
    const std::string terminal = screen(view("orin"), 80, true);
    EXPECT_NE(terminal.find("\033[32m●\033[0m"), std::string::npos);
    EXPECT_NE(terminal.find("\033[1;31m○\033[0m"), std::string::npos);
    const std::string words = render_machine(view("orin"), {CapsFormat::text, CapsDetail::screen, 80, true, false});
    EXPECT_NE(words.find("\033[32myes\033[0m"), std::string::npos) << "a terminal whose locale is not UTF-8";
    EXPECT_EQ(words.find("●"), std::string::npos);
}

TEST(Caps, AMachineWithoutAGpuSaysWhatItsCpuDoesAndHowToPlayAnother) {  // keeps D9
    const std::string text = screen(view("no-gpu"));
    EXPECT_NE(text.find("No GPU here: cuInit answers 100"), std::string::npos) << text;
    EXPECT_NE(text.find("Kernels run on the host's own threads"), std::string::npos);
    EXPECT_NE(text.find("allocate_shared gives host memory"), std::string::npos);
    EXPECT_NE(text.find("isthmus caps --machine orin"), std::string::npos);
    EXPECT_NE(text.find("isthmus doctor"), std::string::npos);
    EXPECT_TRUE(platform::machines::find_record("orin")) << "what the screen names can be played";
    for (const CapsDetail detail : {CapsDetail::screen, CapsDetail::why}) {
        const std::string shown = render_machine(view("no-gpu"), style(detail, 100));
        EXPECT_EQ(line_of(shown, "pinned"), "") << "no table in which every kind is for both";
    }
}

TEST(Caps, TheCpuDeviceOfAMachineWithAGpuIsShownAloneWhereItIsAskedFor) {
    MachineView shown = view("h200");
    shown.devices.erase(shown.devices.begin());
    const std::string text = screen(shown);
    EXPECT_NE(text.find("Kernels run on the host's own threads"), std::string::npos);
    EXPECT_EQ(text.find("No GPU"), std::string::npos) << text;
    EXPECT_EQ(text.find("isthmus doctor"), std::string::npos);
}

TEST(Caps, EqualGpusOfOneMachineShareALine) {
    const std::string text = screen(view("gb200"));
    EXPECT_NE(line_of(text, "GPU 0 to 3 NVIDIA GB200"), "");
    EXPECT_EQ(text.find("GPU 1 "), std::string::npos);
    const std::string station = screen(view("station"));
    EXPECT_NE(line_of(station, "GPU 0 NVIDIA GB300"), "");
    EXPECT_NE(line_of(station, "GPU 1 NVIDIA RTX PRO 6000"), "");
}

TEST(Caps, AllMachinesAreOneMatrixWithinNinetyColumns) {  // keeps D12
    const std::vector<MachineView> views = known_machine_views();
    const std::string text = render_machines(views, style(CapsDetail::screen, 100));
    for (const std::string& line : lines(text)) {
        const bool is_row = line.rfind("  ", 0) == 0 && line.find("  ", 3) != std::string::npos;
        EXPECT_TRUE(!is_row || display_columns(line) <= 90) << line;
    }
    EXPECT_EQ(line_of(text, "machine"), "machine host pinned registered managed atomics allocate_shared");
    EXPECT_EQ(line_of(text, "orin"), "orin CPU both both by turns none pinned; copy from 256 KiB");
    EXPECT_EQ(line_of(text, "h200"), "h200 CPU both both both managed pinned; copy from 256 KiB");
    EXPECT_EQ(line_of(text, "station 1").rfind("station 1 CPU both both both", 0), 0u) << text;
    for (const MachineView& each : views) EXPECT_NE(text.find(each.name), std::string::npos) << each.name;
    EXPECT_NE(render_machines(views, style(CapsDetail::why, 100)).find("gpudirect_rdma"), std::string::npos)
        << "features are compared by --all --why";
}

// keeps P2: every output that names a size says where it comes from
TEST(Caps, EachSizeSaysWhereItComesFrom) {
    const auto copies = [](const char* machine) { return line_of(screen(view(machine), 120), "copies"); };
    EXPECT_EQ(copies("h200"),
              "copies from 256 KiB on, for 4 passes or more (measured on a machine of this class: H200)");
    EXPECT_EQ(copies("orin"), "copies from 256 KiB on, for 16 passes or more (assumed)");
    EXPECT_EQ(copies("gh200-cdmm"), "copies from 256 KiB on, for 16 passes or more (assumed)");
    EXPECT_EQ(copies("thor"), "") << "no size decides there";
    const auto json = nlohmann::json::parse(render_machine(view("orin"), {.format = CapsFormat::json}));
    int sizes = 0;
    for (const auto& choice : json.at("devices").at(0).at("shared_memory")) {
        EXPECT_FALSE(choice.at("small_reason").get<std::string>().empty());
        EXPECT_FALSE(choice.at("large_reason").get<std::string>().empty());
        if (!choice.contains("copied_from")) continue;
        ++sizes;
        EXPECT_EQ(choice.at("copied_from").at("bytes"), 256 << 10);
        EXPECT_EQ(choice.at("copied_from").at("origin"), "assumed");
        EXPECT_NE(choice.at("copied_from").at("source").get<std::string>().find("CUDA for Tegra"), std::string::npos);
    }
    EXPECT_EQ(sizes, 3) << "results rewritten, a map, and both; no copy serves the device alone";
    const std::string why = render_machine(view("h200"), style(CapsDetail::why, 400));
    EXPECT_NE(why.find("device, staged from 16 KiB (measured on a machine of this class: H200)"), std::string::npos);
}

TEST(Caps, ReasonsOfALaunchStandOncePerReason) {
    const std::string text = render_machine(view("orin"), style(CapsDetail::why, 160));
    EXPECT_EQ(line_of(text, "GPU 0 stage"),
              "GPU 0 stage host the device cannot reach this host memory: it is copied around the launch");
    EXPECT_EQ(line_of(text, "GPU 0 pass"),
              "GPU 0 pass pinned, registered, write_combined, device, pool the device uses this memory in place");
}

TEST(Caps, TopologyShowsWhatDriverAndSystemSay) {
    MachineView shown = view("h200-x2");
    shown.devices[0].facts.pci = PciPlace{2500, 8, 32000, 16, 0, "0-15"};
    shown.machine.numa_nodes.front().cpus = "0-31";
    const CapsStyle topology = style(CapsDetail::topology, 120);
    const std::string text = render_machine(shown, topology);
    EXPECT_EQ(line_of(text, "0 NVIDIA"), "0 NVIDIA H200 0000:00:06.0 PCIe 32 GT/s x16, now 2.5 GT/s x8 0 0-15");
    EXPECT_EQ(line_of(text, "1 NVIDIA"), "1 NVIDIA H200 0000:00:07.0 not stated 0 0-31") << "its node's CPUs";
    EXPECT_EQ(line_of(text, "0 0-31"), "0 0-31 (32) 256 GiB near GPU 0, near GPU 1");

    EXPECT_NE(render_machine(view("orin"), topology).find("none: one DRAM with the CPU"), std::string::npos);
    EXPECT_EQ(line_of(render_machine(view("gb200"), topology), "18 none"), "18 none 185 GiB memory of GPU 2");
    EXPECT_NE(render_machine(view("no-gpu"), topology).find("There is no GPU: cuInit answers 100"), std::string::npos);
    const auto json = nlohmann::json::parse(render_machine(shown, {.format = CapsFormat::json}));
    EXPECT_EQ(json.at("devices").at(0).at("pci").at("lanes"), 8);
    EXPECT_EQ(json.at("numa_nodes").at(0).at("cpu_list"), "0-31");
}

TEST(Caps, NamesOfMachinesAndDevicesMayBeLongOrOdd) {
    MachineView odd = view("thor");
    odd.record_title = std::string(300, 'x');
    odd.devices[0].facts.name = "µµµ " + std::string(200, 'y') + "\xff";
    for (const CapsDetail detail : {CapsDetail::screen, CapsDetail::why, CapsDetail::topology}) {
        for (const std::string& line : lines(render_machine(odd, style(detail, 60)))) {
            EXPECT_LE(display_columns(line), 60u) << line;
        }
    }
}

}  // namespace
