// SPDX-License-Identifier: Apache-2.0
// Renders capabilities: one machine, or several side by side, as text, JSON or Markdown. Pure: facts in, text out. The
// same code prints `isthmus caps` and writes docs/machines.md.
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
// Detail of text and Markdown. JSON always holds everything.
enum class CapsDetail : std::uint8_t {
    screen,    // one screen per machine; several: one matrix. Markdown has no screen: it holds the tables of `why`.
    why,       // every answer, and the fact that decided it
    topology,  // PCI bus ids, links and NUMA nodes of the devices
};
struct CapsStyle {
    CapsFormat format = CapsFormat::text;
    CapsDetail detail = CapsDetail::screen;
    std::size_t width = 100;  // columns; no line of text is longer, for widths of 40 columns and more
    bool has_colour = false;
    bool has_symbols = false;  // the terminal shows characters beyond ASCII: circles mean yes and no
};

struct DeviceView {
    DeviceFacts facts;
    Capabilities capabilities;
    std::vector<platform::machines::Source> evidence;  // empty: the facts are not from a record
};
struct MachineView {
    std::string name;          // "orin"; "this machine"
    std::string title;         // one line of text
    std::string record_title;  // title of the record behind this view; empty: the machine itself was examined
    MachineFacts machine;
    std::vector<DeviceView> devices;  // the CPU device last
    std::string cuda_absence;         // why there is no CUDA device; empty where there is one
};

// The capabilities that the library would detect on a recorded machine; the CPU device is added.
MachineView view_of(const platform::machines::MachineRecord& record);
std::vector<MachineView> known_machine_views();

// Renders one machine: the behaviour of each memory kind on each device and the features of the devices, or the answers
// with their reasons.
std::string render_machine(const MachineView& view, const CapsStyle& style);
// Renders several machines: which agent may access which memory, a row per device; or capability rows, axes and
// features side by side. Equal devices of one machine share a row or column.
std::string render_machines(const std::vector<MachineView>& views, const CapsStyle& style);
// Text of docs/machines.md, from the known machines, the capability table and the rules.
std::string machines_page();
// Text of docs/access.md: which agent may access which memory, and what a launch does with the memory, for each
// capability row.
std::string access_page();
// docs/memory.md with its generated parts renewed, which stand between `<!-- generated: NAME -->` and `<!-- end -->`.
std::string memory_page(std::string_view page);

// The same for docs/sharing.md.
std::string sharing_page(std::string_view page);

}  // namespace isthmus::tools
