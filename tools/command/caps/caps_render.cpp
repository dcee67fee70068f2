// SPDX-License-Identifier: Apache-2.0
// Renders one machine, or several side by side, as text, JSON or Markdown.
#include "caps_render.hpp"

#include "caps_screen.hpp"
#include "caps_sections.hpp"
#include "text/version_text.hpp"

#include <platform/capability_table.hpp>
#include <platform/detect.hpp>
#include <profile_rules.hpp>

#include <nlohmann/json.hpp>

#include <utility>

namespace isthmus::tools {

namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view view) {
    return std::string(view);
}

std::string driver_text(int version) {
    return version == 0 ? "no driver" : "CUDA " + version_text(version) + " driver";
}

std::string nodes_text(const std::vector<NumaNode>& nodes) {
    if (nodes.empty()) return "the system states no NUMA nodes";
    std::string out = nodes.size() == 1 ? "NUMA node" : "NUMA nodes";
    for (const NumaNode& node : nodes) {
        out += " " + std::to_string(node.id) + " (" + std::to_string(node.cpu_count) + " CPUs, " +
               std::to_string(node.memory_bytes >> 30) + " GiB)";
    }
    return out;
}

std::string device_title(const DeviceView& device) {
    if (device.facts.is_cpu()) return "CPU device";
    return "Device " + std::to_string(device.facts.ordinal) + ": " + device.facts.name;
}

Section machine_section(const MachineView& view) {
    const MachineFacts& m = view.machine;
    std::string line = driver_text(m.driver_version) + (m.simulated ? " (simulated)" : "");
    if (!m.kernel_release.empty()) line += "; Linux " + m.kernel_release;
    if (!m.cpu_name.empty()) line += "; " + m.cpu_name;
    line += "; pages of " + std::to_string(m.page_size_bytes >> 10) + " KiB; " + nodes_text(m.numa_nodes);
    if (!view.cuda_absence.empty()) line += "; no CUDA device: " + view.cuda_absence;
    return {view.name + (view.title.empty() ? "" : ": " + view.title), line};
}

Section device_section(const DeviceView& device) {
    const Capabilities& c = device.capabilities;
    const platform::Row& row = platform::row_of(c);
    Section section{device_title(device), "Row " + text(name(c.model)) + ": " + text(row.meaning) + " Translation " +
                                              text(name(c.translation)) + ", memory " + text(name(c.memory)) +
                                              ", managed " + text(name(c.managed)) + ", link atomics " +
                                              text(name(c.link_atomics)) + "."};
    if (device.facts.is_cpu()) return section;
    section.header = {"feature", "state", "origin", "reason"};
    for (int i = 0; i < feature_count; ++i) {
        const auto feature = static_cast<Feature>(i);
        const Capability& capability = c.feature(feature);
        section.rows.push_back(
            {text(name(feature)), text(name(capability.state)), text(name(capability.origin)), capability.reason});
    }
    return section;
}

// The CPU device has no column of its own: it has host memory only, and its section says so.
std::vector<Section> machine_sections(const MachineView& view) {
    std::vector<Section> sections = {machine_section(view)};
    std::vector<Column> columns;
    for (const DeviceView& device : view.devices) {
        sections.push_back(device_section(device));
        if (device.facts.is_cpu()) continue;
        const bool again = !columns.empty() && columns.back().device->facts.name == device.facts.name &&
                           behave_alike(columns.back().device->capabilities, device.capabilities);
        if (!again) columns.push_back({"GPU " + std::to_string(device.facts.ordinal), &view, &device});
    }
    if (columns.empty()) return sections;
    sections.push_back(who_section(columns));
    sections.push_back(atomics_section(columns));
    if (Section trials = trials_section(columns); !trials.rows.empty()) sections.push_back(std::move(trials));
    sections.push_back(paths_section(columns));
    sections.push_back(path_reasons_section(columns));
    sections.push_back(policy_section(columns));
    return sections;
}

std::vector<Section> comparison_sections(const std::vector<MachineView>& views) {
    const std::vector<Column> columns = columns_of(views);
    std::vector<Section> sections = {axes_section(columns), features_section(columns), who_section(columns),
                                     atomics_section(columns)};
    if (Section trials = trials_section(columns); !trials.rows.empty()) sections.push_back(std::move(trials));
    sections.push_back(paths_section(columns));
    sections.push_back(policy_section(columns));
    return sections;
}

// Formats sections as text or as Markdown.
std::string printed(const std::vector<Section>& sections, const CapsStyle& style) {
    if (style.format == CapsFormat::markdown) return as_markdown(sections);
    return as_text(sections, {style.width, style.has_colour});
}

Json kinds_json(const Capabilities& c) {
    Json out = Json::object();
    for (const MemoryKind kind : listed_kinds) {
        out[text(name(kind))] = {{"who", who(c, kind)},
                                 {"atomics", atomics(c, kind)},
                                 {"launch", path(c, kind)},
                                 {"launch_reason", path_reason(c, kind)}};
        for (const Narrowing& each : narrowings(c, kind)) {
            out[text(name(kind))]["trials"].push_back(
                {{"refused", each.refused}, {"reason", each.reason}, {"remedy", each.remedy}});
        }
    }
    return out;
}

// What allocate_shared() chooses for each typical use: of one byte, and of a size that is large enough for a copy.
Json choices_json(const Capabilities& c) {
    Json out = Json::array();
    for (const DeclaredUse& each : declared_uses()) {
        const auto small = rules::plan_allocation(c, each.use, 1);
        const auto large = rules::plan_allocation(c, each.use);
        if (!small || !large) continue;
        Json choice = {{"use", text(each.what)},          {"host", name(each.use.host)},
                       {"device", name(each.use.device)}, {"passes", passes_of_device(each.use)},
                       {"small", choice_text(*small)},    {"small_reason", text(small->reason)},
                       {"large", choice_text(*large)},    {"large_reason", text(large->reason)}};
        const bool measured = rules::measured_choice(c, each.use, rules::any_size) != nullptr;
        if (measured) {
            choice["measured_on"] = c.profile->measured_on;
            for (const ChoiceBySize& one : choices_by_size(c, each.use)) {
                choice["by_size"].push_back({{"from_bytes", one.from_bytes}, {"choice", choice_text(one.plan)}});
            }
        }
        if (const platform::CopyBorder* border = rules::copy_border(c, each.use);
            !measured && border && small->path != large->path) {
            choice["copied_from"] = {{"bytes", border->from_bytes},
                                     {"passes", border->passes},
                                     {"origin", name(border->origin)},
                                     {"source", text(border->source)}};
        }
        out.push_back(std::move(choice));
    }
    return out;
}

Json device_json(const DeviceView& device) {
    const Capabilities& c = device.capabilities;
    Json features = Json::object();
    for (int i = 0; i < feature_count; ++i) {
        const Capability& capability = c.features[static_cast<std::size_t>(i)];
        features[text(name(static_cast<Feature>(i)))] = {
            {"state", name(capability.state)}, {"origin", name(capability.origin)}, {"reason", capability.reason}};
    }
    Json attributes = Json::object();
    for (const AttributeFact& fact : device.facts.attributes) {
        std::string key = text(attribute_name(fact.id));
        if (key.empty()) key = "ATTRIBUTE_" + std::to_string(fact.id);
        attributes[key] = fact.refused_code == 0 ? Json(fact.value) : Json{{"refused", fact.refused_code}};
    }
    Json out = {{"ordinal", device.facts.ordinal},
                {"name", device.facts.name},
                {"total_memory_bytes", device.facts.total_memory_bytes},
                {"row", name(c.model)},
                {"axes",
                 {{"translation", name(c.translation)},
                  {"memory", name(c.memory)},
                  {"managed", name(c.managed)},
                  {"link_atomics", name(c.link_atomics)}}},
                {"compute_capability", {c.compute_major, c.compute_minor}},
                {"host_numa_node", c.host_numa_node},
                {"gpu_numa_node", c.gpu_numa_node},
                {"host_atomics", c.host_atomics},
                {"features", std::move(features)},
                {"memory_kinds", kinds_json(c)},
                {"shared_memory", choices_json(c)},
                {"attributes", std::move(attributes)}};
    if (device.facts.pci) {
        const PciPlace& pci = *device.facts.pci;
        out["pci"] = {{"speed_mt_per_s", pci.speed_mt_per_s},
                      {"lanes", pci.lanes},
                      {"max_speed_mt_per_s", pci.max_speed_mt_per_s},
                      {"max_lanes", pci.max_lanes},
                      {"numa_node", pci.numa_node},
                      {"near_cpus", pci.near_cpus}};
    }
    return out;
}

Json machine_json(const MachineView& view) {
    const MachineFacts& m = view.machine;
    Json nodes = Json::array();
    for (const NumaNode& node : m.numa_nodes) {
        nodes.push_back(
            {{"id", node.id}, {"cpus", node.cpu_count}, {"memory_bytes", node.memory_bytes}, {"cpu_list", node.cpus}});
    }
    Json devices = Json::array();
    for (const DeviceView& device : view.devices) devices.push_back(device_json(device));
    Json out = {{"name", view.name},
                {"title", view.title},
                {"driver_version", m.driver_version},
                {"simulated", m.simulated},
                {"kernel_release", m.kernel_release},
                {"cpu_name", m.cpu_name},
                {"page_size_bytes", m.page_size_bytes},
                {"numa_nodes", std::move(nodes)},
                {"addressing_mode", m.addressing_mode},
                {"devices", std::move(devices)}};
    if (!view.cuda_absence.empty()) out["cuda_absence"] = view.cuda_absence;
    return out;
}

std::string dumped(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string absence_of(const platform::machines::MachineRecord& record) {
    if (record.init_code == -1) return "there is no libcuda.so.1";
    if (record.init_code != 0) return "cuInit answers " + std::to_string(record.init_code);
    return record.devices.empty() ? "the driver shows no device" : "";
}

}  // namespace

MachineView view_of(const platform::machines::MachineRecord& record) {
    MachineView view{record.name, record.title, record.title, record.facts, {}, absence_of(record)};
    for (const platform::machines::DeviceRecord& device : record.devices) {
        view.devices.push_back({device.facts, platform::detect(record.facts, device.facts), device.evidence});
    }
    view.devices.push_back({DeviceFacts{}, platform::detect(record.facts, DeviceFacts{}), {}});
    return view;
}

std::vector<MachineView> known_machine_views() {
    std::vector<MachineView> views;
    for (const std::string_view name : platform::machines::known_machines()) {
        // A built-in record has passed its tests; one that cannot be read is left out and is no error.
        if (const auto record = platform::machines::read_record(platform::machines::known_record(name))) {
            views.push_back(view_of(*record));
        }
    }
    return views;
}

std::string render_machine(const MachineView& view, const CapsStyle& style) {
    if (style.format == CapsFormat::json) return dumped(machine_json(view));
    if (style.detail == CapsDetail::topology) return printed(topology_sections(view), style);
    const bool screen = style.detail == CapsDetail::screen && style.format == CapsFormat::text;
    return screen ? machine_screen(view, style) : printed(machine_sections(view), style);
}

std::string render_machines(const std::vector<MachineView>& views, const CapsStyle& style) {
    if (style.format == CapsFormat::json) {
        Json machines = Json::array();
        for (const MachineView& view : views) machines.push_back(machine_json(view));
        return dumped(Json{{"machines", std::move(machines)}});
    }
    const bool matrix = style.detail == CapsDetail::screen && style.format == CapsFormat::text;
    return matrix ? machines_matrix(views, style) : printed(comparison_sections(views), style);
}

}  // namespace isthmus::tools
