// SPDX-License-Identifier: Apache-2.0
// Prints what machines can do: one machine, or several side by side, as text, JSON or Markdown. Pure: facts in, text
// out; the same code prints `isthmus caps` and writes docs/machines.md.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <machines/record.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

enum class CapsFormat : std::uint8_t { text, json, markdown };
// What text and Markdown hold. JSON always holds everything.
enum class CapsDetail : std::uint8_t {
    screen,    // one screen per machine; several: one matrix. Markdown has no screen: it holds the tables of `why`.
    why,       // every answer, and what decided it
    topology,  // where devices are attached
};
struct CapsStyle {
    CapsFormat format = CapsFormat::text;
    CapsDetail detail = CapsDetail::screen;
    std::size_t width = 100;  // columns; no line of text is longer, from 40 columns on
    bool has_colour = false;
    bool has_symbols = false;  // characters beyond ASCII are shown: circles stand for yes and no
};

struct DeviceView {
    DeviceFacts facts;
    Capabilities capabilities;
    std::vector<platform::machines::Source> evidence;  // empty: not from a record
};
struct MachineView {
    std::string name;          // "orin"; "this machine"
    std::string title;         // one line
    std::string record_title;  // of the record that this comes from; empty: the machine itself
    MachineFacts machine;
    std::vector<DeviceView> devices;  // the CPU device last
    std::string cuda_absence;         // why there is no CUDA device; empty where there is one
};

// A recorded machine as the library would see it, the CPU device added.
MachineView view_of(const platform::machines::MachineRecord& record);
std::vector<MachineView> known_machine_views();

// One machine: what each memory does on each device, and what the devices can; or the answers with their reasons.
std::string render_machine(const MachineView& view, const CapsStyle& style);
// Several: who may touch which memory, a row per device; or rows, axes and features side by side. Equal devices of one
// machine share a row or column.
std::string render_machines(const std::vector<MachineView>& views, const CapsStyle& style);
// docs/machines.md, from the known machines, the capability table and the rules.
std::string machines_page();
// docs/access.md: who may touch which memory, and what a launch does with it, for each way a machine behaves.
std::string access_page();
// docs/memory.md with its generated parts renewed, those between `<!-- generated: NAME -->` and `<!-- end -->`.
std::string memory_page(std::string_view page);

// … and docs/sharing.md, likewise.
std::string sharing_page(std::string_view page);

}  // namespace isthmus::tools
