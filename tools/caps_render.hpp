// Prints what machines can do: one machine, or several side by side, as text, JSON or Markdown. Pure: facts in, text
// out; the same code prints `isthmus caps` and writes docs/machines.md.
#pragma once

#include <isthmus/capability.hpp>
#include <isthmus/facts.hpp>
#include <machines/record.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

enum class CapsFormat : std::uint8_t { text, json, markdown };

struct DeviceView {
    DeviceFacts facts;
    Capabilities capabilities;
    std::vector<platform::machines::Source> evidence;  // empty: not from a record
};
struct MachineView {
    std::string name;   // "orin"; "this machine"
    std::string title;  // one line
    MachineFacts machine;
    std::vector<DeviceView> devices;  // the CPU device last
    std::string cuda_absence;         // why there is no CUDA device; empty where there is one
};

// A recorded machine as the library would see it, the CPU device added.
MachineView view_of(const platform::machines::MachineRecord& record);
std::vector<MachineView> known_machine_views();

// Every device of one machine: row, axes, features with reasons, who may touch what.
std::string render_machine(const MachineView& view, CapsFormat format);
// Rows, axes and features side by side; one column per device (equal devices of one machine share one).
std::string render_machines(const std::vector<MachineView>& views, CapsFormat format);
// docs/machines.md, from the known machines, the capability table and the rules.
std::string machines_page();
// docs/access.md: who may touch which memory, and what a launch does with it, for each way a machine behaves.
std::string access_page();
// docs/memory.md with its generated parts renewed, those between `<!-- generated: NAME -->` and `<!-- end -->`.
std::string memory_page(std::string_view page);

// … and docs/sharing.md, likewise.
std::string sharing_page(std::string_view page);

}  // namespace isthmus::tools
