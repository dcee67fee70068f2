// SPDX-License-Identifier: Apache-2.0
// Renders one machine on one screen, several as one matrix, and the topology of devices.
#include "caps_screen.hpp"

#include "caps_sections.hpp"
#include "text/version_text.hpp"

#include <access_rules.hpp>
#include <allocation_policy.hpp>
#include <launch_path.hpp>

#include <platform/capability_table.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

namespace isthmus::tools {

namespace {

// Words and symbols of the screen; characters beyond ASCII only where the terminal shows them.
struct Signs {
    explicit Signs(const CapsStyle& style)
        : yes(style.has_symbols ? "●" : "yes"),
          no(style.has_symbols ? "○" : "no"),
          dot(style.has_symbols ? " · " : ", "),
          arrow(style.has_symbols ? "← " : "<- ") {}
    std::string yes, no, dot, arrow;
};

std::string text(std::string_view view) {
    return std::string(view);
}

std::string words(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), '_', ' ');
    return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (const std::string& part : parts) out.append(out.empty() ? "" : separator).append(part);
    return out;
}

Colour colour_of(std::string_view cell, const Signs& signs) {
    if (cell == signs.yes || cell == "both" || cell == "all") return Colour::green;
    if (cell == signs.no || cell == "CPU" || cell == "none") return Colour::red;
    if (cell == "by turns" || cell == "some" || cell == "?") return Colour::yellow;
    return Colour::plain;
}

std::string printed(const std::vector<std::string>& lines, const CapsStyle& style, std::size_t indent, Colour colour) {
    std::string out;
    for (const std::string& line : lines) {
        out.append(indent, ' ').append(coloured(line, colour, style.has_colour)).append("\n");
    }
    return out;
}

std::string paragraph(std::string_view content, const CapsStyle& style, std::size_t indent, Colour colour) {
    return printed(lines_of(content, style.width - std::min(style.width, indent)), style, indent, colour);
}

// "  cannot  …", with further lines aligned below the first; empty without items.
std::string labelled(std::string_view label, const std::vector<std::string>& items, const CapsStyle& style,
                     const Signs& signs, Colour colour) {
    constexpr std::size_t indent = 10;
    if (items.empty()) return "";
    const std::string front =
        "  " + coloured(label, colour, style.has_colour) + std::string(indent - 2 - display_columns(label), ' ');
    const std::size_t width = style.width > 2 * indent ? style.width - indent : indent;
    return front + printed(lines_of_items(items, signs.dot, width), style, indent, Colour::plain).substr(indent);
}

// "Jetson AGX Orin, JetPack 6 (simulated: orin)", followed by the driver, the system, CPUs and memory.
std::string head(const MachineView& view, const CapsStyle& style, const Signs& signs) {
    const MachineFacts& machine = view.machine;
    std::string title = machine.cpu_name.empty() ? "unknown CPU" : machine.cpu_name;
    std::vector<std::string> facts;
    if (!view.record_title.empty()) {
        title = view.record_title;
        facts.push_back(machine.cpu_name);
    }
    if (machine.simulated) title += signs.dot + "simulated: " + view.name;
    if (machine.driver_version != 0) facts.push_back("CUDA " + version_text(machine.driver_version));
    if (!machine.kernel_release.empty()) facts.push_back("Linux " + machine.kernel_release);
    int cpus = 0;
    std::uint64_t bytes = 0;
    for (const NumaNode& node : machine.numa_nodes) {
        cpus += node.cpu_count;
        if (node.cpu_count > 0) bytes += node.memory_bytes;
    }
    if (cpus > 0) facts.push_back(std::to_string(cpus) + (cpus == 1 ? " CPU" : " CPUs"));
    if (bytes > 0) facts.push_back(std::to_string(bytes >> 30) + " GiB");
    return paragraph(title, style, 0, Colour::bold) +
           printed(lines_of_items(facts, signs.dot, style.width), style, 0, Colour::dim);
}

std::string_view memory_phrase(MemoryModel memory) {
    switch (memory) {
        case MemoryModel::host: return "host memory";
        case MemoryModel::separate: return "memory of its own behind a link";
        case MemoryModel::shared_dram: return "one DRAM with the CPU";
        case MemoryModel::coherent_node: return "coherent memory of its own, a NUMA node";
        case MemoryModel::coherent_hidden: return "coherent memory of its own, hidden from the system";
    }
    return "";
}

std::string_view translation_phrase(Translation translation) {
    switch (translation) {
        case Translation::none: return "page tables of its own";
        case Translation::hmm: return "ordinary host memory migrates (HMM)";
        case Translation::host_page_tables: return "the CPU's page tables";
    }
    return "";
}

// Consecutive devices of one machine with the same name and the same behaviour.
struct Alike {
    const DeviceView* device = nullptr;
    int last = 0;  // ordinal of the last device
};

std::vector<Alike> gpus_of(const MachineView& view) {
    std::vector<Alike> found;
    for (const DeviceView& device : view.devices) {
        if (device.facts.is_cpu()) continue;
        const bool again = !found.empty() && found.back().device->facts.name == device.facts.name &&
                           found.back().last + 1 == device.facts.ordinal &&
                           behave_alike(found.back().device->capabilities, device.capabilities);
        if (again) {
            found.back().last = device.facts.ordinal;
        } else {
            found.push_back({&device, device.facts.ordinal});
        }
    }
    return found;
}

std::string device_head(const Alike& alike, const CapsStyle& style) {
    const DeviceFacts& facts = alike.device->facts;
    const Capabilities& c = alike.device->capabilities;
    std::string title = "GPU " + std::to_string(facts.ordinal);
    if (alike.last != facts.ordinal) title += " to " + std::to_string(alike.last);
    title += "  " + facts.name + ", sm_" + std::to_string(c.compute_major) + std::to_string(c.compute_minor) + ", " +
             std::to_string(facts.total_memory_bytes >> 30) + " GiB";
    const std::string is =
        words(name(c.model)) + ": " + text(memory_phrase(c.memory)) + ", " + text(translation_phrase(c.translation));
    return paragraph(title, style, 0, Colour::bold) + paragraph(is, style, 2, Colour::plain);
}

std::string mark(Verdict verdict, const Signs& signs) {
    if (verdict == Verdict::not_verified) return "?";
    return verdict == Verdict::yes ? signs.yes : signs.no;
}

std::string_view launch_phrase(LaunchPath path) {
    switch (path) {
        case LaunchPath::pass: return "in place";
        case LaunchPath::prefetch: return "prefetched";
        case LaunchPath::attach: return "attached to it";
        case LaunchPath::stage: return "copied around it";
        case LaunchPath::refuse: return "refused";
    }
    return "";
}

// When allocate_shared() selects this kind for an undeclared use.
std::string chosen(const Capabilities& c, MemoryKind kind, const Signs& signs) {
    const std::vector<ChoiceBySize> choices = choices_by_size(c, {});
    const auto is_of_kind = [kind](const ChoiceBySize& each) { return each.plan.kind == kind; };
    if (std::count_if(choices.begin(), choices.end(), is_of_kind) > 1) return signs.arrow + "at several sizes";
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (choices[i].plan.kind != kind) continue;
        const bool last = i + 1 == choices.size();
        const std::string end = last ? "" : rules::size_text(choices[i + 1].from_bytes);
        const std::string when = choices.size() == 1 ? "always"
                                 : i == 0            ? "below " + end
                                 : last              ? "above"
                                                     : rules::size_text(choices[i].from_bytes) + " to " + end;
        const bool copied = choices.size() > 1 && choices[i].plan.path == LaunchPath::stage && i > 0;
        return signs.arrow + when + (copied ? ", copied" : "");
    }
    return "";
}

// The memory kinds of each row of the screen; kinds that are rarely distinguished share a row.
constexpr std::array<std::array<MemoryKind, 2>, 5> screen_rows = {{{MemoryKind::pinned, MemoryKind::pinned},
                                                                   {MemoryKind::registered, MemoryKind::registered},
                                                                   {MemoryKind::managed, MemoryKind::managed},
                                                                   {MemoryKind::host, MemoryKind::host},
                                                                   {MemoryKind::device, MemoryKind::pool}}};

std::vector<std::string> memory_row(const Capabilities& c, MemoryKind kind, const Signs& signs) {
    const LaunchPath launch = rules::launch_path(c, kind).path;
    const bool by_turns = launch == LaunchPath::attach;
    const AccessAnswer host = rules::host_access(c, kind);
    const AccessAnswer device = rules::device_access(c, kind);
    const std::string shared = atomics(c, kind);
    return {text(name(kind)),
            by_turns ? signs.yes : mark(host.verdict, signs),
            by_turns ? signs.yes : mark(device.verdict, signs),
            by_turns ? "by turns" : mark(host && device ? Verdict::yes : Verdict::no, signs),
            shared == "yes"  ? signs.yes
            : shared == "no" ? signs.no
                             : shared,
            text(launch_phrase(launch)),
            chosen(c, kind, signs)};
}

Section memory_section(const Capabilities& c, const Signs& signs) {
    Section section{"", "", {"memory", "CPU", "GPU", "together", "atomics", "in a launch", "allocate_shared"},
                    {}, 1,  {}};
    for (const auto& [kind, other] : screen_rows) {
        std::vector<std::string> row = memory_row(c, kind, signs);
        std::vector<std::string> second = memory_row(c, other, signs);
        const bool equal = std::equal(row.begin() + 1, row.end() - 1, second.begin() + 1);
        if (kind != other && equal) {
            row.front() += ", " + second.front();
            if (row.back().empty()) row.back() = second.back();
        }
        section.rows.push_back(std::move(row));
        if (!equal) section.rows.push_back(std::move(second));
    }
    section.paint = [rows = section.rows, signs](std::size_t row, std::size_t column) {
        if (column == 6) return Colour::bold;
        return column == 0 ? Colour::plain : colour_of(rows[row][column], signs);
    };
    return section;
}

// Features that the rest of the screen does not show.
constexpr std::array<Feature, 14> screen_features = {
    Feature::pageable_access, Feature::concurrent_managed, Feature::direct_managed, Feature::native_atomics,
    Feature::pools,           Feature::host_pools,         Feature::virtual_memory, Feature::export_posix_fd,
    Feature::export_fabric,   Feature::ipc_events,         Feature::gpudirect_rdma, Feature::dma_buf,
    Feature::multicast,       Feature::cooperative_launch};

std::string features(const MachineView& view, const Capabilities& c, const CapsStyle& style, const Signs& signs) {
    std::vector<std::string> can, cannot, absent, refused;
    for (const Feature feature : screen_features) {
        const Capability& capability = c.feature(feature);
        const std::string label = words(name(feature));
        std::string numbered = label;
        numbered.append(" (").append(std::to_string(platform::feature_row(feature).attribute)).append(")");
        switch (capability.origin) {
            case Origin::absent: absent.push_back(label); break;
            case Origin::refused: refused.push_back(numbered); break;
            case Origin::probe: (capability ? can : cannot).push_back(label + " (tried)"); break;
            case Origin::attribute:
                if (capability) can.push_back(label);
                if (!capability) cannot.push_back(numbered);
        }
    }
    if (!absent.empty()) {
        absent.front().insert(0, "the driver (CUDA " + version_text(view.machine.driver_version) + ") does not know: ");
    }
    if (!refused.empty()) refused.front().insert(0, "the driver refused to answer: ");
    std::vector<std::string> lost;
    for (const MemoryKind kind : listed_kinds) {
        for (const Narrowing& each : narrowings(c, kind)) lost.push_back(text(name(kind)) + ": " + each.refused);
    }
    if (!lost.empty()) lost.front().insert(0, "took away (--why says what they saw): ");
    return labelled("can", can, style, signs, Colour::green) + labelled("cannot", cannot, style, signs, Colour::red) +
           labelled("?", absent, style, signs, Colour::yellow) + labelled("?", refused, style, signs, Colour::yellow) +
           labelled("trials", lost, style, signs, Colour::red);
}

// The screen of a machine whose only device is the CPU device, with a hint how to see more.
std::string cpu_screen(const DeviceView& device, const CapsStyle& style) {
    const Capabilities& c = device.capabilities;
    const auto plan = rules::plan_allocation(c, {});
    std::string out = "\n" + paragraph("CPU device (--device cpu)", style, 0, Colour::bold);
    out += paragraph(platform::row_of(c).meaning, style, 2, Colour::plain);
    if (plan) {
        const std::string atomic = atomics(c, plan->kind);
        out += paragraph("allocate_shared gives " + text(name(plan->kind)) + " memory; a launch uses it " +
                             text(launch_phrase(plan->path)) + ", and atomic updates by both sides are " +
                             (atomic == "yes" ? "exact" : "refused") +
                             ". Programs, kernels and results are those of a machine with a GPU.",
                         style, 2, Colour::plain);
    }
    return out;
}

std::string hints(const MachineView& view, bool has_gpu, const CapsStyle& style) {
    std::vector<std::vector<std::string>> rows;
    if (has_gpu) {
        rows.push_back({"--why", "all " + std::to_string(feature_count) + " answers, and what decided each"});
        rows.push_back({"--topology", "buses, links, NUMA nodes and near CPUs"});
        rows.push_back({"--all", "every known machine; --machine NAME plays one"});
    } else {
        const std::string known = std::to_string(platform::machines::known_machines().size());
        rows.push_back({"isthmus caps --machine orin", "the same screen for a Jetson AGX Orin, simulated"});
        rows.push_back({"isthmus caps --all", "the " + known + " machines that --machine plays, for every command"});
        if (!view.cuda_absence.empty()) rows.push_back({"isthmus doctor", "what keeps a GPU of this machine from use"});
    }
    Section section{"", "", {"", ""}, std::move(rows), 1, {}};
    section.paint = [](std::size_t, std::size_t column) { return column == 0 ? Colour::bold : Colour::dim; };
    const std::string printed = as_text({section}, {style.width, style.has_colour});
    return printed.substr(printed.find('\n') + 1);  // without the empty header line
}

std::string kinds_with_atomics(const Capabilities& c) {
    std::vector<std::string> kinds;
    bool all = true;
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::registered, MemoryKind::managed}) {
        const std::string answer = atomics(c, kind);
        all = all && answer == "yes";
        if (answer == "yes") kinds.push_back(text(name(kind)));
        if (answer == "some") kinds.push_back(text(name(kind)) + " (some)");
    }
    return all ? "all" : kinds.empty() ? "none" : joined(kinds, ", ");
}

std::string choice(const Capabilities& c) {
    const std::vector<ChoiceBySize> choices = choices_by_size(c, {});
    if (choices.empty()) return "refused";
    std::string out = text(name(choices.front().plan.kind));
    for (std::size_t i = 1; i < choices.size(); ++i) {
        const bool copied = choices[i].plan.path == LaunchPath::stage;
        out += copied ? "; copy from " : "; " + text(name(choices[i].plan.kind)) + " from ";
        out += rules::size_text(choices[i].from_bytes);
    }
    return out;
}

std::string speed_text(int mt_per_s, int lanes) {
    if (mt_per_s == 0) return lanes == 0 ? "" : "x" + std::to_string(lanes);
    std::string speed = std::to_string(mt_per_s / 1000);
    if (mt_per_s % 1000 != 0) speed += "." + std::to_string(mt_per_s % 1000 / 100);
    return speed + " GT/s" + (lanes == 0 ? "" : " x" + std::to_string(lanes));
}

std::string link_text(const DeviceView& device) {
    if (device.capabilities.memory == MemoryModel::shared_dram) return "none: one DRAM with the CPU";
    const bool coherent = device.capabilities.memory != MemoryModel::separate;
    const std::string front = coherent ? "coherent" : "";
    if (!device.facts.pci) return coherent ? front : "not stated";
    const PciPlace& pci = *device.facts.pci;
    const std::string now = speed_text(pci.speed_mt_per_s, pci.lanes);
    const std::string most = speed_text(pci.max_speed_mt_per_s, pci.max_lanes);
    std::string out = most.empty() ? now : most;
    if (!most.empty() && !now.empty() && now != most) out += ", now " + now;
    if (out.empty()) return coherent ? front : "not stated";
    return front + (coherent ? "; PCIe " : "PCIe ") + out;
}

std::string bus_id(const DeviceFacts& facts) {
    constexpr int pci_bus_id = 33, pci_device_id = 34, pci_domain_id = 50;  // CU_DEVICE_ATTRIBUTE_PCI_…
    const auto bus = facts.attribute(pci_bus_id);
    const auto device = facts.attribute(pci_device_id);
    if (!bus || !device) return "not stated";
    char id[32];
    std::snprintf(id, sizeof id, "%04x:%02x:%02x.0", static_cast<unsigned>(facts.attribute(pci_domain_id).value_or(0)),
                  static_cast<unsigned>(*bus), static_cast<unsigned>(*device));
    return id;
}

const NumaNode* find_node(const MachineFacts& machine, int id) {
    const auto found = std::find_if(machine.numa_nodes.begin(), machine.numa_nodes.end(),
                                    [id](const NumaNode& node) { return node.id == id; });
    return found == machine.numa_nodes.end() ? nullptr : &*found;
}

// The closest NUMA node with CPUs: from the driver, else from the system, else the only node.
int near_node(const MachineFacts& machine, const DeviceView& device) {
    if (device.capabilities.host_numa_node >= 0) return device.capabilities.host_numa_node;
    if (device.facts.pci && device.facts.pci->numa_node >= 0) return device.facts.pci->numa_node;
    return machine.numa_nodes.size() == 1 ? machine.numa_nodes.front().id : -1;
}

std::string cpus_text(const NumaNode& node) {
    if (node.cpu_count == 0) return "none";
    const std::string count = std::to_string(node.cpu_count);
    return node.cpus.empty() ? count : node.cpus + " (" + count + ")";
}

std::string near_cpus(const MachineFacts& machine, const DeviceView& device) {
    if (device.facts.pci && !device.facts.pci->near_cpus.empty()) return device.facts.pci->near_cpus;
    const NumaNode* node = find_node(machine, near_node(machine, device));
    if (node == nullptr) return "not stated";
    return node->cpus.empty() ? "the " + std::to_string(node->cpu_count) + " of node " + std::to_string(node->id)
                              : node->cpus;
}

}  // namespace

std::string machine_screen(const MachineView& view, const CapsStyle& style) {
    const Signs signs(style);
    std::string out = head(view, style, signs);
    if (!view.cuda_absence.empty()) {
        out += "\n" + paragraph("No GPU here: " + view.cuda_absence, style, 0, Colour::yellow);
    }
    const std::vector<Alike> gpus = gpus_of(view);
    for (const Alike& alike : gpus) {
        const Capabilities& c = alike.device->capabilities;
        out += "\n" + device_head(alike, style) + "\n";
        out += as_text({memory_section(c, signs)}, {style.width, style.has_colour}) + "\n";
        if (const std::string border = border_text(c, {}); !border.empty()) {
            out += labelled(c.profile ? "choices" : "copies", {border}, style, signs, Colour::plain);
        }
        out += features(view, c, style, signs);
    }
    if (!gpus.empty()) {
        out += "\n" + paragraph(
                          "together: both at the same time. atomics: CPU and GPU may update one object. in a "
                          "launch: what happens to an argument. allocate_shared: the kind it takes.",
                          style, 2, Colour::dim);
    }
    for (const DeviceView& device : view.devices) {
        if (device.facts.is_cpu() && gpus.empty()) out += cpu_screen(device, style);
    }
    return out + "\n" + hints(view, !gpus.empty(), style);
}

std::string machines_matrix(const std::vector<MachineView>& views, const CapsStyle& style) {
    const Signs signs(style);
    Section section{
        "Who may touch which memory of which machine",
        "both: CPU and GPU, at the same time; by turns: never at the same time, and host views take care of "
        "it. atomics: kinds of which both may update one object. allocate_shared: the kind it takes.",
        {"machine", "host", "pinned", "registered", "managed", "atomics", "allocate_shared"},
        {},
        1,
        {}};
    for (const Column& column : columns_of(views)) {
        const Capabilities& c = column.device->capabilities;
        if (column.device->facts.is_cpu()) continue;
        section.rows.push_back({column.title, who(c, MemoryKind::host), who(c, MemoryKind::pinned),
                                who(c, MemoryKind::registered), who(c, MemoryKind::managed), kinds_with_atomics(c),
                                choice(c)});
    }
    section.paint = [rows = section.rows, signs](std::size_t row, std::size_t column) {
        return column == 0 ? Colour::bold : column == 6 ? Colour::plain : colour_of(rows[row][column], signs);
    };
    std::vector<std::string> without;
    for (const MachineView& view : views) {
        if (!view.cuda_absence.empty()) without.push_back(view.name + ": " + view.cuda_absence);
    }
    std::string out = as_text({section}, {style.width, style.has_colour}) + "\n";
    for (const std::string& each : without) out += paragraph(each, style, 2, Colour::dim);
    if (!without.empty()) out += "\n";
    return out + paragraph(
                     "isthmus caps --machine NAME shows one of them, every command plays it; --all --why compares "
                     "their features",
                     style, 0, Colour::dim);
}

std::vector<Section> topology_sections(const MachineView& view) {
    Section devices{"Where the GPUs of " + view.name + " are attached",
                    "The PCI bus id and the closest NUMA node are the driver's answers, links and CPU lists the "
                    "system's. A link shows the most it is capable of; idle GPUs run slower.",
                    {"GPU", "name", "PCI bus id", "link", "NUMA node", "near CPUs"},
                    {},
                    1,
                    {}};
    for (const DeviceView& device : view.devices) {
        if (device.facts.is_cpu()) continue;
        const int node = near_node(view.machine, device);
        devices.rows.push_back({std::to_string(device.facts.ordinal), device.facts.name, bus_id(device.facts),
                                link_text(device), node < 0 ? "not stated" : std::to_string(node),
                                near_cpus(view.machine, device)});
    }
    if (devices.rows.empty()) {
        devices.header.clear();
        devices.text = "There is no GPU" + (view.cuda_absence.empty() ? "." : ": " + view.cuda_absence + ".");
    }
    Section nodes{"NUMA nodes", "", {"node", "CPUs", "memory", "is"}, {}, 1, {}};
    for (const NumaNode& node : view.machine.numa_nodes) {
        std::vector<std::string> roles;
        for (const DeviceView& device : view.devices) {
            if (device.facts.is_cpu()) continue;
            const std::string gpu = "GPU " + std::to_string(device.facts.ordinal);
            if (device.capabilities.gpu_numa_node == node.id) roles.push_back("memory of " + gpu);
            if (near_node(view.machine, device) == node.id) roles.push_back("near " + gpu);
        }
        nodes.rows.push_back({std::to_string(node.id), cpus_text(node),
                              std::to_string(node.memory_bytes >> 30) + " GiB", joined(roles, ", ")});
    }
    if (nodes.rows.empty()) {
        nodes.header.clear();
        nodes.text = "The system states none.";
    }
    return {std::move(devices), std::move(nodes)};
}

}  // namespace isthmus::tools
