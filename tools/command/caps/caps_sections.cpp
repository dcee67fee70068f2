// SPDX-License-Identifier: Apache-2.0
// Builds the tables of `isthmus caps` and docs/machines.md: rows, axes, features and the rules' answers.
#include "caps_sections.hpp"

#include <access_rules.hpp>
#include <allocation_policy.hpp>
#include <atomic_rules.hpp>
#include <launch_path.hpp>
#include <litmus_rules.hpp>
#include <profile_rules.hpp>

#include <algorithm>
#include <cstddef>

namespace isthmus::tools {

namespace {

std::string text(std::string_view view) {
    return std::string(view);
}

std::vector<std::string> header(std::string_view first, const std::vector<Column>& columns) {
    std::vector<std::string> out = {text(first)};
    for (const Column& column : columns) out.push_back(column.title);
    return out;
}

template <class Cell>
void add_row(Section& section, std::string_view first, const std::vector<Column>& columns, Cell cell) {
    std::vector<std::string> row = {text(first)};
    for (const Column& column : columns) row.push_back(cell(column.device->capabilities));
    section.rows.push_back(std::move(row));
}

template <class Cell>
Section by_kind(std::string title, std::string intro, const std::vector<Column>& columns, Cell cell) {
    Section section{std::move(title), std::move(intro), header("memory", columns)};
    for (const MemoryKind kind : listed_kinds) {
        add_row(section, name(kind), columns, [&](const Capabilities& c) { return cell(c, kind); });
    }
    return section;
}

std::string feature_text(const Capability& capability) {
    if (capability.origin == Origin::absent || capability.origin == Origin::refused) return "?";
    return text(name(capability.state));
}

std::string verdict_text(Verdict verdict) {
    return verdict == Verdict::not_verified ? "not verified" : text(name(verdict));
}

std::string measured_here(const Capabilities& c) {
    return "measured here on " + c.profile->measured_on;
}

std::string plan_text(const Capabilities& c, const SharedUse& use) {
    const std::vector<ChoiceBySize> choices = choices_by_size(c, use);
    if (choices.empty()) return "refused";
    std::string out;
    for (const ChoiceBySize& each : choices) {
        if (!out.empty()) out += "; ";
        out += text(name(each.plan.kind)) + (each.plan.path == LaunchPath::stage ? ", staged" : "");
        if (each.from_bytes > 0) out += " from " + rules::size_text(each.from_bytes);
    }
    if (rules::measured_choice(c, use, rules::any_size) != nullptr) return out + " (" + measured_here(c) + ")";
    const platform::CopyBorder* const border = rules::copy_border(c, use);
    if (choices.size() < 2 || border == nullptr) return out;
    return out + " (" + rules::origin_text(border->origin, border->source) + ")";
}

}  // namespace

bool behave_alike(const Capabilities& a, const Capabilities& b) {
    if (a.model != b.model || a.compute_major != b.compute_major || a.compute_minor != b.compute_minor) return false;
    for (std::size_t i = 0; i < a.features.size(); ++i) {
        if (a.features[i].state != b.features[i].state || a.features[i].origin != b.features[i].origin) return false;
    }
    return a.translation == b.translation && a.memory == b.memory && a.managed == b.managed &&
           a.link_atomics == b.link_atomics && a.disordered_kinds == b.disordered_kinds &&
           a.torn_kinds == b.torn_kinds && a.lossy_kinds == b.lossy_kinds && a.profile == b.profile;
}

std::vector<Column> columns_of(const std::vector<MachineView>& views) {
    std::vector<Column> columns;
    for (const MachineView& view : views) {
        const DeviceView* last = nullptr;
        std::vector<Column> mine;
        for (const DeviceView& device : view.devices) {
            if (device.facts.is_cpu()) {
                if (columns.empty() || !columns.front().device->facts.is_cpu()) {
                    columns.insert(columns.begin(), {"cpu", &view, &device});
                }
            } else if (last == nullptr || !behave_alike(last->capabilities, device.capabilities)) {
                mine.push_back({view.name + " " + std::to_string(device.facts.ordinal), &view, &device});
                last = &device;
            }
        }
        if (mine.size() == 1) mine.front().title = view.name;
        columns.insert(columns.end(), mine.begin(), mine.end());
    }
    return columns;
}

std::string who(const Capabilities& capabilities, MemoryKind kind) {
    const AccessAnswer host = rules::host_access(capabilities, kind);
    const AccessAnswer device = rules::device_access(capabilities, kind);
    if (host.verdict == Verdict::not_verified || device.verdict == Verdict::not_verified) return "ask the range";
    if (host && device) return "both";
    if (rules::launch_path(capabilities, kind).path == LaunchPath::attach) return "by turns";
    return host ? "CPU" : device ? "device" : "none";
}

std::string atomics(const Capabilities& capabilities, MemoryKind kind) {
    int granted = 0;
    Verdict verdict = Verdict::no;
    for (int operation = 0; operation < atomic_operation_count; ++operation) {
        const AccessAnswer answer =
            rules::shared_atomic(capabilities, {.kind = kind, .operation = static_cast<AtomicOperation>(operation)});
        verdict = answer.verdict;
        if (answer) ++granted;
    }
    if (verdict == Verdict::not_verified) return "?";
    return granted == atomic_operation_count ? "yes" : granted > 0 ? "some" : "no";
}

std::string path(const Capabilities& capabilities, MemoryKind kind) {
    return text(name(rules::launch_path(capabilities, kind).path));
}

std::string path_reason(const Capabilities& capabilities, MemoryKind kind) {
    return text(rules::launch_path(capabilities, kind).reason);
}

std::vector<Narrowing> narrowings(const Capabilities& capabilities, MemoryKind kind) {
    std::vector<Narrowing> found;
    const auto add = [&](std::string_view refused, const AccessAnswer& trials) {
        if (!trials) found.push_back({text(refused), text(trials.reason), text(trials.remedy)});
    };
    const AccessAnswer words = rules::load_store_trials(capabilities, kind, 8);
    add("concurrent loads and stores, and atomics", words);
    if (!words) return found;
    add("loads and stores of 16 bytes", rules::load_store_trials(capabilities, kind, 16));
    add("atomics", rules::update_trials(capabilities, kind));
    return found;
}

Section trials_section(const std::vector<Column>& columns) {
    Section section{
        "What trials took away",
        "Findings of `isthmus litmus` on these very devices. What the other tables grant is what they left.",
        {"memory", "device", "refused", "because", "what works instead"}};
    section.keys = 2;
    for (const MemoryKind kind : listed_kinds) {
        for (const Column& column : columns) {
            for (const Narrowing& each : narrowings(column.device->capabilities, kind)) {
                section.rows.push_back({text(name(kind)), column.title, each.refused, each.reason, each.remedy});
            }
        }
    }
    return section;
}

Section axes_section(const std::vector<Column>& columns) {
    Section section{"Rows and axes", "", header("axis", columns)};
    add_row(section, "row", columns, [](const Capabilities& c) { return text(name(c.model)); });
    add_row(section, "translation", columns, [](const Capabilities& c) { return text(name(c.translation)); });
    add_row(section, "memory", columns, [](const Capabilities& c) { return text(name(c.memory)); });
    add_row(section, "managed", columns, [](const Capabilities& c) { return text(name(c.managed)); });
    add_row(section, "link atomics", columns, [](const Capabilities& c) { return text(name(c.link_atomics)); });
    add_row(section, "compute capability", columns, [](const Capabilities& c) {
        return c.compute_major == 0 ? "-" : std::to_string(c.compute_major) + "." + std::to_string(c.compute_minor);
    });
    const auto node = [](int id) { return id < 0 ? std::string("-") : std::to_string(id); };
    add_row(section, "host node", columns, [&](const Capabilities& c) { return node(c.host_numa_node); });
    add_row(section, "GPU node", columns, [&](const Capabilities& c) { return node(c.gpu_numa_node); });
    return section;
}

Section features_section(const std::vector<Column>& columns) {
    Section section{"Features", "\"?\": the driver does not know the question or refused it; it counts as no.",
                    header("feature", columns)};
    for (int i = 0; i < feature_count; ++i) {
        const auto feature = static_cast<Feature>(i);
        add_row(section, name(feature), columns,
                [&](const Capabilities& c) { return feature_text(c.feature(feature)); });
    }
    return section;
}

Section who_section(const std::vector<Column>& columns) {
    return by_kind(
        "Who may touch what",
        "\"by turns\": CPU and GPU never at the same time; host views take care of it. \"ask the range\": access "
        "is granted per mapping.",
        columns, who);
}

Section atomics_section(const std::vector<Column>& columns) {
    return by_kind("Where CPU and GPU may update one object atomically",
                   "Read-modify-write of 4 or 8 bytes at system scope. \"some\": what the driver reports, per "
                   "operation, width and sign.",
                   columns, atomics);
}

Section paths_section(const std::vector<Column>& columns) {
    return by_kind(
        "What a launch does with an argument",
        "pass: used in place; prefetch: in place, after one prefetch where the host touched it; attach: to the stream "
        "and back; stage: copied around the use; refuse: cannot exist.",
        columns, path);
}

Section path_reasons_section(const std::vector<Column>& columns) {
    Section section{"Why a launch does so", "", {"device", "path", "memory", "reason"}};
    section.keys = 2;
    for (const Column& column : columns) {
        const Capabilities& c = column.device->capabilities;
        const std::size_t first = section.rows.size();  // the first row of this device
        for (const MemoryKind kind : listed_kinds) {
            const auto alike = std::find_if(
                section.rows.begin() + static_cast<std::ptrdiff_t>(first), section.rows.end(),
                [&](const auto& row) { return row[1] == path(c, kind) && row[3] == path_reason(c, kind); });
            if (alike != section.rows.end()) {
                (*alike)[2] += ", " + text(name(kind));
            } else {
                section.rows.push_back({column.title, path(c, kind), text(name(kind)), path_reason(c, kind)});
            }
        }
    }
    return section;
}

Section access_section(const Column& column) {
    const Capabilities& c = column.device->capabilities;
    Section section{column.title, "", {"memory", "agent", "may", "because", "what works instead"}};
    for (int each = 0; each < memory_kind_count; ++each) {
        const auto kind = static_cast<MemoryKind>(each);
        const auto add = [&](std::string_view agent, const AccessAnswer& answer) {
            section.rows.push_back({text(name(kind)), text(agent), verdict_text(answer.verdict), text(answer.reason),
                                    text(answer.remedy)});
        };
        const bool cpu = c.memory == MemoryModel::host;
        if (!cpu) add("CPU", rules::host_access(c, kind));
        add(cpu ? "CPU device" : "GPU", rules::device_access(c, kind));
        const rules::PathAnswer launch = rules::launch_path(c, kind);
        section.rows.push_back({text(name(kind)), "launch", text(name(launch.path)), text(launch.reason), ""});
    }
    return section;
}

Section peers_section(const Column& column) {
    const Capabilities& c = column.device->capabilities;
    Section section{"Memory of another GPU",
                    "Two GPUs of the row " + text(name(c.model)) +
                        "; each direction is switched by itself. \"foreign\": another part of the process obtained it.",
                    {"memory", "nothing switched", "peer access", "pool access", "both", "foreign, nothing switched",
                     "foreign, peer access"}};
    for (int each = 0; each < memory_kind_count; ++each) {
        const auto kind = static_cast<MemoryKind>(each);
        std::vector<std::string> row = {text(name(kind))};
        for (const rules::PeerState state : {rules::PeerState{false, false}, rules::PeerState{true, false},
                                             rules::PeerState{false, true}, rules::PeerState{true, true}}) {
            row.push_back(verdict_text(rules::peer_access(c, c, kind, state).verdict));
        }
        for (const bool peer : {false, true}) {
            row.push_back(verdict_text(rules::foreign_access(c, c, kind, false, {peer, false}).verdict));
        }
        section.rows.push_back(std::move(row));
    }
    return section;
}

const std::array<DeclaredUse, typical_uses + 1>& declared_uses() {
    static const std::array<DeclaredUse, typical_uses + 1> uses = {{
        {"frames in",
         "`.host = writes_often, .device = reads_once`",
         {.host = Use::writes_often, .device = Use::reads_once}},
        {"results out",
         "`.host = reads_once, .device = writes_once`",
         {.host = Use::reads_once, .device = Use::writes_once}},
        {"results, rewritten",
         "`.host = reads_once, .device = writes_often`",
         {.host = Use::reads_once, .device = Use::writes_often}},
        {"a map, weights",
         "`.host = writes_once, .device = reads_often`",
         {.host = Use::writes_once, .device = Use::reads_often}},
        {"both work on it", "nothing declared", {}},
        {"both, real time", "`.prefer = latency`", {.prefer = Prefer::latency}},
        {"the device alone", "`.host = never`", {.host = Use::never}},
    }};
    return uses;
}

std::string choice_text(const rules::AllocationPlan& plan) {
    std::string cell = text(name(plan.kind));
    if (plan.path == LaunchPath::stage) cell += ", staged";
    if (plan.path == LaunchPath::attach) cell += ", by turns";
    if (plan.placement.locality == Locality::near_device) cell += ", near the device";
    if (plan.placement.locality == Locality::unbound) cell += ", unbound";
    return cell;
}

std::vector<ChoiceBySize> choices_by_size(const Capabilities& device, const SharedUse& use) {
    std::vector<std::size_t> sizes = rules::sizes_that_decide(device, use);
    sizes.insert(sizes.begin(), 0);
    std::vector<ChoiceBySize> choices;
    for (const std::size_t size : sizes) {
        const auto plan = rules::plan_allocation(device, use, std::max<std::size_t>(size, 1));
        if (!plan) return {};
        if (choices.empty() || choice_text(choices.back().plan) != choice_text(*plan)) choices.push_back({size, *plan});
    }
    return choices;
}

std::string border_text(const Capabilities& device, const SharedUse& use) {
    if (rules::measured_choice(device, use, rules::any_size) != nullptr) return measured_here(device);
    const platform::CopyBorder* border = rules::copy_border(device, use);
    if (border == nullptr) return "";
    return "from " + rules::size_text(border->from_bytes) + " on, for " + std::to_string(border->passes) +
           (border->passes == 1 ? " pass" : " passes") + " or more (" +
           rules::origin_text(border->origin, border->source) + ")";
}

// "writes often; reads once"
static std::string spoken(const SharedUse& use) {
    std::string out = text(name(use.host)) + "; " + text(name(use.device));
    std::replace(out.begin(), out.end(), '_', ' ');
    return use.prefer == Prefer::latency ? out + " (latency)" : out;
}

Section policy_section(const std::vector<Column>& columns) {
    Section section{"Which memory a shared buffer gets",
                    "By declared use, where nothing else is asked for. In parentheses where the size comes from.",
                    header("host; device", columns)};
    for (const DeclaredUse& each : declared_uses()) {
        const SharedUse& use = each.use;
        add_row(section, spoken(use), columns, [&](const Capabilities& c) { return plan_text(c, use); });
    }
    return section;
}

}  // namespace isthmus::tools
