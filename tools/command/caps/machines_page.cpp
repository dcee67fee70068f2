// SPDX-License-Identifier: Apache-2.0
// Writes docs/machines.md and docs/access.md: the facts of each machine, and the answers of the capability table and
// the rules.
#include "caps_sections.hpp"
#include "text/version_text.hpp"

#include <allocation_policy.hpp>

#include <platform/capability_table.hpp>

#include <algorithm>
#include <array>

namespace isthmus::tools {

namespace {

using platform::machines::Evidence;
using platform::machines::Source;

std::string text(std::string_view view) {
    return std::string(view);
}

Section machines_section(const std::vector<MachineView>& views) {
    Section section{"Machines",
                    "Each machine is a record in platform/machines; `--machine NAME` plays it. "
                    "To play another one: `isthmus caps --record FILE` there, `--machine FILE` here. "
                    "To replace assumed values of yours by observed ones: [reporting.md](reporting.md). "
                    "To add one: [CONTRIBUTING.md](../CONTRIBUTING.md#a-machine).",
                    {"machine", "what it is", "driver", "page", "row of each device"}};
    for (const MachineView& view : views) {
        std::string rows;
        for (const DeviceView& device : view.devices) {
            if (!device.facts.is_cpu()) rows += (rows.empty() ? "" : ", ") + text(name(device.capabilities.model));
        }
        section.rows.push_back({view.name, view.title, version_text(view.machine.driver_version),
                                std::to_string(view.machine.page_size_bytes >> 10) + " KiB",
                                rows.empty() ? view.cuda_absence : rows});
    }
    return section;
}

std::string evidence_mark(const std::vector<Source>& evidence, std::string_view attribute) {
    const Source* source = platform::machines::source_of(evidence, attribute);
    if (source == nullptr) return "";
    switch (source->is) {
        case Evidence::observed: return "";
        case Evidence::reported: return " (report)";
        case Evidence::documented: return " (doc)";
        case Evidence::assumed: break;
    }
    return "?";
}

Section attributes_section(const std::vector<Column>& columns) {
    Section section{"Attributes that decide",
                    "Values without a mark were observed; (report): others saw them on theirs; (doc): vendor documents "
                    "only; \"?\": "
                    "assumed, none of these. \"-\": the driver does not know the attribute.",
                    {"attribute"}};
    std::vector<const Column*> gpus;
    for (const Column& column : columns) {
        if (column.device->facts.is_cpu()) continue;
        gpus.push_back(&column);
        section.header.push_back(column.title);
    }
    for (const int id : {18, 41, 83, 86, 88, 89, 91, 99, 100, 101, 102, 103, 115, 125, 128, 130, 131, 134, 147}) {
        std::vector<std::string> row = {std::to_string(id) + " " + text(attribute_name(id))};
        for (const Column* column : gpus) {
            const auto value = column->device->facts.attribute(id);
            row.push_back(value ? std::to_string(*value) + evidence_mark(column->device->evidence, attribute_name(id))
                                : "-");
        }
        section.rows.push_back(std::move(row));
    }
    return section;
}

Section meaning_section() {
    Section section{"What the rows are", "", {"row", "meaning", "found by", "examples"}};
    for (int i = 0; i < model_count; ++i) {
        const platform::Row& row = platform::row(static_cast<Model>(i));
        section.rows.push_back({text(name(row.model)), text(row.meaning), text(row.found_by), text(row.examples)});
    }
    return section;
}

Section additions_section() {
    Section section{"What the axes add to the attributes",
                    "Facts that no attribute states, each with its origin and its source. They are found by the axes "
                    "of a device, never by the name of its row. The machine on which a value was "
                    "measured has these axes, and the source names it.",
                    {"axes", "field", "value", "origin", "source"}};
    const auto flag = [](bool value) { return std::string(value ? "yes" : "no"); };
    for (std::size_t i = 0; i < platform::traits_count; ++i) {
        const platform::Traits& traits = platform::traits_at(i);
        const auto add = [&](const std::string& field, std::string value, const auto& sourced) {
            section.rows.push_back(
                {text(traits.axes), field, std::move(value), text(name(sourced.origin)), text(sourced.source)});
        };
        add("GPU caches pinned memory", text(name(traits.pinned_caching.value)), traits.pinned_caching);
        add("GPU caches registered memory", text(name(traits.registered_caching.value)), traits.registered_caching);
        add("best shared memory", text(name(traits.shared_in_place.value)), traits.shared_in_place);
        add("best for latency", text(name(traits.shared_for_latency.value)), traits.shared_for_latency);
        add("place host memory near the device", flag(traits.near_device.value), traits.near_device);
        const int migrates = traits.migrates_from_passes.value;
        add("... but not for a device that makes many passes",
            migrates == 0 ? "does not apply" : std::to_string(migrates) + " or more", traits.migrates_from_passes);
        const auto borders = [&](const std::string& what, const platform::CopyBorders& list) {
            for (const platform::CopyBorder& each : list) {
                if (each.passes == 0) continue;
                const std::string passes = each.passes == 1 ? "once" : std::to_string(each.passes) + " times or more";
                std::string border = "a copy pays where the device ";
                border.append(what).append(" ").append(passes).append(", from");
                add(border, rules::size_text(each.from_bytes), each);
            }
        };
        borders("reads", traits.reads_copied);
        borders("writes", traits.writes_copied);
        add("managed memory is prefetched", text(name(traits.prefetching.value)), traits.prefetching);
        add("write-combined memory pays", flag(traits.write_combined_pays.value), traits.write_combined_pays);
        add("cuMemGetInfo counts", flag(traits.memory_info_counts.value), traits.memory_info_counts);
    }
    return section;
}

constexpr std::array<std::size_t, 3> shown_sizes = {std::size_t{4} << 10, std::size_t{1} << 20, std::size_t{64} << 20};

// The choices, and the reasons that their numbers refer to.
std::array<Section, 2> choices_sections(const std::vector<Column>& rows) {
    Section choices{"What a shared buffer gets",
                    "What `allocate_shared` chooses for six typical uses, by size. The number is that of the reason "
                    "below. The uses:\n",
                    {"use", "size"}};
    Section reasons{"Why it gets that", "What `Buffer::explain()` says.", {"reason", "because", "machines"}};
    for (const Column& row : rows) choices.header.push_back(row.title);
    for (std::size_t at = 0; at < typical_uses; ++at) {
        const DeclaredUse& each = declared_uses()[at];
        choices.text += "\n* " + text(each.what) + ": " + text(each.declared);
        for (const std::size_t bytes : shown_sizes) {
            std::vector<std::string> cells = {text(each.what), rules::size_text(bytes)};
            for (const Column& row : rows) {
                const auto plan = rules::plan_allocation(row.device->capabilities, each.use, bytes);
                if (!plan) {
                    cells.emplace_back("refused");
                    continue;
                }
                auto known = std::find_if(reasons.rows.begin(), reasons.rows.end(),
                                          [&](const auto& line) { return line[1] == plan->reason; });
                if (known == reasons.rows.end()) {
                    const std::string number = std::to_string(reasons.rows.size() + 1);
                    known = reasons.rows.insert(known, {number, text(plan->reason), row.title});
                } else if ((", " + (*known)[2] + ",").find(", " + row.title + ",") == std::string::npos) {
                    (*known)[2] += ", " + row.title;
                }
                cells.push_back(choice_text(*plan) + " [" + (*known)[0] + "]");
            }
            choices.rows.push_back(std::move(cells));
        }
    }
    return {std::move(choices), std::move(reasons)};
}

Section sources_section(const std::vector<Column>& columns) {
    Section section{"Where the values come from",
                    "\"the rest\": every attribute that no other line of the machine lists.",
                    {"machine", "evidence", "from", "values"}};
    for (const Column& column : columns) {
        for (const Source& source : column.device->evidence) {
            std::string of;
            for (const std::string& each : source.of) of += (of.empty() ? "" : ", ") + each;
            section.rows.push_back(
                {column.title, text(platform::machines::name(source.is)), source.from, of.empty() ? "the rest" : of});
        }
    }
    return section;
}

// Joins rows that differ in their memory alone into one that lists the kinds. The CPU's rows come first, then the
// device's, then the launch's.
Section by_answer(const Section& section) {
    Section out{section.title, section.text, {"agent", "may", "memory", "because", "what works instead"}};
    for (const auto& row : section.rows) {  // memory, agent, may, because, what works instead
        const auto alike = std::find_if(out.rows.begin(), out.rows.end(), [&](const auto& known) {
            return known[0] == row[1] && known[1] == row[2] && known[3] == row[3] && known[4] == row[4];
        });
        if (alike != out.rows.end()) {
            (*alike)[2] += ", " + row[0];
        } else {
            out.rows.push_back({row[1], row[2], row[0], row[3], row[4]});
        }
    }
    const auto rank = [](const std::string& agent) { return agent == "launch" ? 2 : agent == "CPU" ? 0 : 1; };
    std::stable_sort(out.rows.begin(), out.rows.end(),
                     [&](const auto& a, const auto& b) { return rank(a[0]) < rank(b[0]); });
    return out;
}

}  // namespace

std::vector<Column> representatives(const std::vector<Column>& columns) {
    std::vector<Column> out;
    for (const char* wanted : {"cpu", "h200", "rtx-wsl2", "rtx-hmm", "orin", "thor", "gh200-numa", "gh200-cdmm"}) {
        const auto found =
            std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.title == wanted; });
        if (found == columns.end()) continue;
        out.push_back(*found);
        const std::string row = text(name(found->device->capabilities.model));
        out.back().title = row == wanted ? row : row + " (" + wanted + ")";
    }
    return out;
}

std::string machines_page() {
    const std::vector<MachineView> views = known_machine_views();
    const std::vector<Column> columns = columns_of(views);
    const auto [choices, reasons] = choices_sections(representatives(columns));
    return "# Machines\n\n"
           "The recorded machines: their attributes with the evidence, and what the capability table and the rules "
           "derive from them.\n"
           "`ninja docs-machines` generates this page from platform/machines, platform/table and runtime/rules; a test "
           "fails where it is stale.\n\n"
           "What follows from these facts: [access.md](access.md) has who may touch which memory and what a launch "
           "does "
           "with it, [memory.md](memory.md#which-memory-a-declared-use-gets) which memory a shared buffer gets, "
           "[sharing.md](sharing.md#where-cpu-and-gpu-may-update-one-word) where both sides may update one word. "
           "`isthmus tune` [measures](tuning.md) what is best on a machine at hand.\n\n" +
           as_markdown({machines_section(views), meaning_section(), attributes_section(columns), axes_section(columns),
                        additions_section(), choices, reasons, features_section(columns), sources_section(columns)});
}

std::string access_page() {
    const std::vector<MachineView> views = known_machine_views();
    const std::vector<Column> rows = representatives(columns_of(views));
    std::vector<Section> sections = {who_section(rows), paths_section(rows)};
    for (const Column& row : rows) sections.push_back(by_answer(access_section(row)));
    for (const Column& row : rows) {
        if (row.title == "discrete (h200)") sections.push_back(peers_section(row));
    }
    return "# Access\n\n"
           "Which side may touch which memory, and what a launch does with an argument of each kind. On your machine "
           "ask `isthmus caps --why`, for one buffer or address `Device::can_access`, for one launch `Stream::explain` "
           "([launches.md](launches.md)).\n"
           "`ninja docs-machines` generates this page from runtime/rules; a test fails where it is stale.\n\n" +
           as_markdown(sections);
}

}  // namespace isthmus::tools
