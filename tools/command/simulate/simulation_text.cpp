// SPDX-License-Identifier: Apache-2.0
// The report as text: of one machine, or a matrix of several.
#include "simulation.hpp"

#include <driver_abi/results.def>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace isthmus::tools::simulate {
namespace {

std::string name_of(int code) {
    switch (code) {
#define ISTHMUS_SIMULATE_NAME(ours, name, value) \
    case value: return #name;
        ISTHMUS_CUDA_RESULTS(ISTHMUS_SIMULATE_NAME)
        ISTHMUS_CUDA_RESULTS_13(ISTHMUS_SIMULATE_NAME)
#undef ISTHMUS_SIMULATE_NAME
        default: return "";
    }
}

std::string number_and_name(int code) {
    const std::string name = name_of(code);
    return name.empty() ? std::to_string(code) : fmt::format("{} {}", code, name);
}

Section counted_section(std::string title, std::string column, const std::vector<Counted>& all) {
    Section section;
    section.title = std::move(title);
    section.header = {std::move(column), "times"};
    for (const Counted& one : all) section.rows.push_back({one.name, std::to_string(one.count)});
    if (section.rows.empty()) return {section.title, "none"};
    return section;
}

Section faults_of(const Counts& counts) {
    Section section;
    section.title = "devices lost";
    section.header = {"code", "times"};
    for (const Fault& one : counts.faults) {
        section.rows.push_back({number_and_name(one.code), std::to_string(one.count)});
    }
    if (section.rows.empty()) return {section.title, "none"};
    return section;
}

Section refusals_of(const Counts& counts) {
    Section section;
    section.title = "refused calls";
    section.header = {"call", "answer", "times"};
    section.keys = 2;
    for (const Answer& one : counts.refusals) {
        section.rows.push_back({one.call, number_and_name(one.code), std::to_string(one.count)});
    }
    if (section.rows.empty()) return {section.title, "none"};
    return section;
}

Section copies_of(const Counts& counts) {
    Section section;
    section.title = "copies, fills and kernels that ran";
    section.header = {"work", "times", "bytes"};
    for (const Copied& one : counts.copies) {
        section.rows.push_back({fmt::format("copy from {} to {} memory", one.from, one.to), std::to_string(one.count),
                                std::to_string(one.bytes)});
    }
    if (counts.fills > 0) {
        section.rows.push_back({"fill", std::to_string(counts.fills), std::to_string(counts.filled_bytes)});
    }
    if (counts.kernels > 0) section.rows.push_back({"kernel", std::to_string(counts.kernels), "-"});
    if (counts.kernels_from_ptx > 0) {
        section.rows.push_back({"of them from PTX", std::to_string(counts.kernels_from_ptx), "-"});
    }
    if (section.rows.empty()) return {section.title, "none"};
    return section;
}

std::string head_of(const Simulation& simulation) {
    const Counts& counts = simulation.counts;
    std::string text = fmt::format("{}; {} {} of {} functions", simulation.ending.text(), counts.all_calls(),
                                   counts.all_calls() == 1 ? "call" : "calls", counts.calls.size());
    if (counts.processes > 1) text += fmt::format(" in {} processes", counts.processes);
    return text;
}

Section notes_section(const std::vector<std::string>& notes) {
    std::string text;
    for (const std::string& note : notes) text.append(text.empty() ? "" : ". ").append(note);
    return {"notes", text};
}

std::string codes_of(const Counts& counts) {
    std::map<int, std::uint64_t> by_code;
    for (const Answer& one : counts.refusals) by_code[one.code] += one.count;
    std::string text;
    for (const auto& [code, count] : by_code) {
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", code, count == 1 ? "" : fmt::format(" ×{}", count));
    }
    return text.empty() ? "none" : text;
}

std::string faults_text(const Counts& counts) {
    std::string text;
    for (const Fault& one : counts.faults) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.code);
    return text.empty() ? "none" : text;
}

// Each message, and the machines where it was said.
Section where_caught(const std::vector<Simulation>& simulations, bool unsupported) {
    std::map<std::string, std::string> machines;
    for (const Simulation& one : simulations) {
        for (const Counted& message : unsupported ? one.counts.unsupported : one.counts.caught) {
            std::string& names = machines[without_addresses(message.name)];
            names.append(names.empty() ? "" : ", ").append(one.machine);
        }
    }
    Section section;
    section.title = unsupported ? "not modelled" : "caught";
    section.header = {"what", "on"};
    for (const auto& [text, names] : machines) section.rows.push_back({text, names});
    if (section.rows.empty()) return {section.title, "nothing"};
    return section;
}

}  // namespace

std::string as_text(const Simulation& simulation, const TextStyle& style) {
    const Counts& counts = simulation.counts;
    std::vector<Section> sections;
    sections.push_back({"simulated on " + simulation.machine, head_of(simulation)});
    sections.push_back(counted_section("caught", "what", counts.caught));
    sections.push_back(faults_of(counts));
    sections.push_back(refusals_of(counts));
    sections.push_back(counted_section("not modelled", "what", counts.unsupported));
    sections.push_back(copies_of(counts));
    sections.push_back(counted_section("calls", "function", counts.calls));
    if (const std::vector<std::string> notes = notes_of(counts); !notes.empty()) {
        sections.push_back(notes_section(notes));
    }
    return as_text(sections, style);
}

std::string as_matrix(const std::vector<Simulation>& simulations, const TextStyle& style) {
    Section matrix;
    matrix.title = "simulated on each machine";
    matrix.header = {"machine", "ended", "lost", "answers", "calls", "copied bytes"};
    Section last_lines{"last lines of runs that failed", ""};
    last_lines.header = {"machine", "line"};
    std::set<std::string> notes;
    for (const Simulation& one : simulations) {
        matrix.rows.push_back({one.machine, one.ending.text(), faults_text(one.counts), codes_of(one.counts),
                               std::to_string(one.counts.all_calls()), std::to_string(one.counts.copied_bytes())});
        const bool says_more = !one.last_line.empty() && !one.last_line.starts_with("isthmus simulator: ");
        if (one.ending.exit_code() != 0 && says_more) last_lines.rows.push_back({one.machine, one.last_line});
        for (const std::string& note : notes_of(one.counts)) notes.insert(note);
    }
    std::vector<Section> sections{matrix, where_caught(simulations, false), where_caught(simulations, true)};
    if (!last_lines.rows.empty()) sections.push_back(last_lines);
    if (!notes.empty()) sections.push_back(notes_section({notes.begin(), notes.end()}));
    return as_text(sections, style);
}

}  // namespace isthmus::tools::simulate
