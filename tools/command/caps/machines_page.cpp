// SPDX-License-Identifier: Apache-2.0
// Writes docs/machines.md and docs/access.md: the facts of each machine, and the answers of the capability table and
// the rules.
#include "caps_sections.hpp"
#include "text/version_text.hpp"

#include <allocation_policy.hpp>

#include <platform/capability_table.hpp>

#include <algorithm>

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
        case Evidence::documented: return " (doc)";
        case Evidence::assumed: break;
    }
    return "?";
}

Section attributes_section(const std::vector<Column>& columns) {
    Section section{
        "Attributes that decide",
        "Values without a mark were observed; (doc): vendor documents only; \"?\": assumed, neither. \"-\": the driver "
        "does not know the attribute.",
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
    Section section{"What a row adds to the attributes",
                    "Facts that no attribute states, each with its source.",
                    {"row", "field", "value", "source"}};
    const auto flag = [](bool value) { return std::string(value ? "yes" : "no"); };
    for (int i = 0; i < model_count; ++i) {
        const platform::Row& row = platform::row(static_cast<Model>(i));
        const auto add = [&](const char* field, std::string value, std::string_view source) {
            section.rows.push_back({text(name(row.model)), field, std::move(value), text(source)});
        };
        add("GPU caches pinned memory", text(name(row.pinned_caching.value)), row.pinned_caching.source);
        add("GPU caches registered memory", text(name(row.registered_caching.value)), row.registered_caching.source);
        add("best shared memory", text(name(row.shared_in_place.value)), row.shared_in_place.source);
        add("best for latency", text(name(row.shared_for_latency.value)), row.shared_for_latency.source);
        add("place host memory near the device", flag(row.near_device.value), row.near_device.source);
        add("a copy in the device's memory pays", flag(row.copy_pays.value), row.copy_pays.source);
        const auto from = [&](const char* field, const platform::Sourced<std::size_t>& bytes) {
            if (row.copy_pays.value) add(field, rules::size_text(bytes.value), bytes.source);
        };
        from("... where it reads once, from", row.reads_once_copied_from_bytes);
        from("... where it writes once, from", row.writes_once_copied_from_bytes);
        from("... where it reads often, from", row.reads_often_copied_from_bytes);
        from("... where it writes often, from", row.writes_often_copied_from_bytes);
        add("a prefetch of managed memory pays", flag(row.prefetch_pays.value), row.prefetch_pays.source);
        add("write-combined memory pays", flag(row.write_combined_pays.value), row.write_combined_pays.source);
        add("cuMemGetInfo counts", flag(row.memory_info_counts.value), row.memory_info_counts.source);
    }
    return section;
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
    for (const char* wanted : {"cpu", "h200", "rtx-wsl2", "rtx-hmm", "orin", "thor", "gh200-numa"}) {
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
    return "# Machines\n\n"
           "The recorded machines: their attributes with the evidence, and what the capability table and the rules "
           "derive from them.\n"
           "`ninja docs-machines` generates this page from platform/machines, platform/table and runtime/rules; a test "
           "fails where it is stale.\n\n"
           "What follows from these facts: [access.md](access.md) has who may touch which memory and what a launch "
           "does "
           "with it, [memory.md](memory.md#which-memory-a-declared-use-gets) which memory a shared buffer gets, "
           "[sharing.md](sharing.md#where-cpu-and-gpu-may-update-one-word) where both sides may update one word.\n\n" +
           as_markdown({machines_section(views), meaning_section(), attributes_section(columns), axes_section(columns),
                        additions_section(), features_section(columns), sources_section(columns)});
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
