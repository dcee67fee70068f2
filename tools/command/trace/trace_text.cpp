// SPDX-License-Identifier: Apache-2.0
// The summary as text and as JSON.
#include "trace_summary.hpp"

#include "text/table_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace isthmus::tools::trace {
namespace {

using Ordered = nlohmann::ordered_json;

std::string milliseconds(double us) {
    return fmt::format("{:.3f}", us / 1000);
}

}  // namespace

std::string as_text(const Summary& summary, std::size_t width, bool has_colour) {
    std::vector<Section> sections;
    Section first;
    first.title = "trace";
    first.text = fmt::format("{} events in {} ms, {} launches; {} bytes copied, {} ms waited", summary.events,
                             milliseconds(summary.duration_us), summary.launches, summary.copied_bytes(),
                             milliseconds(summary.waited_us()));
    sections.push_back(first);

    Section copies{.title = "copies between the two sides of buffers", .text = {}};
    if (summary.copies.empty()) copies.text = "none";
    if (!summary.copies.empty()) copies.header = {"for", "way", "copies", "bytes", "memory", "why"};
    for (const Copies& one : summary.copies) {
        copies.rows.push_back({one.name, one.up ? "up" : "down", std::to_string(one.count), std::to_string(one.bytes),
                               one.memory, one.reason});
    }
    sections.push_back(copies);

    Section waits{.title = "waits of the host", .text = {}};
    if (summary.waits.empty()) waits.text = "none";
    if (!summary.waits.empty()) waits.header = {"in", "for", "waits", "ms", "longest, ms"};
    for (const Waits& one : summary.waits) {
        waits.rows.push_back({one.inside.empty() ? "a wait that was asked for" : one.inside, one.waits_for,
                              std::to_string(one.count), milliseconds(one.total_us), milliseconds(one.longest_us)});
    }
    sections.push_back(waits);

    Section made{.title = fmt::format("allocations after {} ms", milliseconds(summary.warm_after_us)), .text = {}};
    if (summary.allocations.empty()) made.text = "none";
    if (!summary.allocations.empty()) made.header = {"memory", "allocations", "new", "bytes"};
    for (const Allocations& one : summary.allocations) {
        made.rows.push_back(
            {one.memory, std::to_string(one.count), std::to_string(one.made_new), std::to_string(one.bytes)});
    }
    sections.push_back(made);

    Section refused{.title = "refused", .text = {}};
    if (summary.refusals.empty()) refused.text = "nothing";
    if (!summary.refusals.empty()) refused.header = {"call", "times", "code", "error"};
    for (const Refusals& one : summary.refusals) {
        refused.rows.push_back({one.name, std::to_string(one.count), one.code, one.error});
    }
    sections.push_back(refused);

    Section changes{.title = "what to change", .text = {}};
    if (summary.changes.empty()) changes.text = "nothing";
    if (!summary.changes.empty()) changes.header = {"", "change"};
    for (const std::string& one : summary.changes) {
        changes.rows.push_back({std::to_string(changes.rows.size() + 1), one});
    }
    sections.push_back(changes);
    return tools::as_text(sections, {width, has_colour});
}

std::string as_json(const Summary& summary) {
    Ordered json;
    json["duration_us"] = summary.duration_us;
    json["warm_after_us"] = summary.warm_after_us;
    json["events"] = summary.events;
    json["dropped"] = summary.dropped;
    json["launches"] = summary.launches;
    json["copied_bytes"] = summary.copied_bytes();
    json["waited_us"] = summary.waited_us();
    json["copies"] = Ordered::array();
    for (const Copies& one : summary.copies) {
        json["copies"].push_back({{"for", one.name},
                                  {"way", one.up ? "up" : "down"},
                                  {"count", one.count},
                                  {"bytes", one.bytes},
                                  {"memory", one.memory},
                                  {"reason", one.reason}});
    }
    json["waits"] = Ordered::array();
    for (const Waits& one : summary.waits) {
        json["waits"].push_back({{"inside", one.inside},
                                 {"waits_for", one.waits_for},
                                 {"count", one.count},
                                 {"total_us", one.total_us},
                                 {"longest_us", one.longest_us}});
    }
    json["allocations"] = Ordered::array();
    for (const Allocations& one : summary.allocations) {
        json["allocations"].push_back(
            {{"memory", one.memory}, {"count", one.count}, {"new", one.made_new}, {"bytes", one.bytes}});
    }
    json["refusals"] = Ordered::array();
    for (const Refusals& one : summary.refusals) {
        json["refusals"].push_back(
            {{"name", one.name}, {"code", one.code}, {"error", one.error}, {"count", one.count}});
    }
    json["changes"] = summary.changes;
    return json.dump(2) + "\n";
}

}  // namespace isthmus::tools::trace
