// SPDX-License-Identifier: Apache-2.0
// Prints the results of trials: a table with a line per row, and the conclusion.
#include "report.hpp"

#include "text/version_text.hpp"

#include <fmt/format.h>

namespace isthmus::tools::litmus {
namespace {

std::string count_text(std::uint64_t count) {
    if (count < 1'000'000) return fmt::format("{}", count);
    return fmt::format("{:.3g} M", static_cast<double>(count) / 1e6);
}

std::string rate_text(std::uint64_t seen, std::uint64_t tried) {
    return tried == 0 ? "-" : fmt::format("{:.2g}", static_cast<double>(seen) / static_cast<double>(tried));
}

std::string speed_text(const Row& row) {
    return row.seconds <= 0 ? "-" : fmt::format("{:.3g} M/s", static_cast<double>(total(row.seen)) / row.seconds / 1e6);
}

std::string answer_text(const Row& row) {
    const Answer answer = answer_of(row);
    std::string text(name(answer));
    const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
    if (answer == Answer::lost_as_expected) {
        text += fmt::format(": {:.2g} %", 100.0 * static_cast<double>(weak) / static_cast<double>(total(row.seen)));
    }
    if (row.ending != Ending::finished) text += fmt::format(" ({})", name(row.ending));
    return text;
}

Colour colour_of(Answer answer) {
    if (is_problem(answer)) return Colour::red;
    return answer == Answer::no_power ? Colour::yellow : answer == Answer::passes ? Colour::green : Colour::plain;
}

// Times of a simulated machine mean nothing, so it has no column of speeds.
Section table_of(const std::vector<Row>& rows, bool has_speed) {
    Section table;
    table.title = "Trials";
    table.keys = 2;
    table.paint = [&rows](std::size_t row, std::size_t column) {
        return column == 2 ? colour_of(answer_of(rows[row])) : Colour::plain;
    };
    table.header = {"memory", "shape", "answer", "instances", "weak", "rate below", "interleaved", "control"};
    if (has_speed) table.header.emplace_back("speed");
    for (const Row& row : rows) {
        const std::uint64_t tried = total(row.seen);
        const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
        table.rows.push_back({std::string(name(row.kind)), std::string(name(row.shape)), answer_text(row),
                              count_text(tried), count_text(weak), fmt::format("{:.2g}", upper_bound(weak, tried)),
                              rate_text(count(row.shape, row.seen, Outcome::interleaved), tried),
                              rate_text(count(row.shape, row.control, Outcome::weak), total(row.control))});
        if (has_speed) table.rows.back().push_back(speed_text(row));
    }
    return table;
}

void add_remarks(const Report& report, std::size_t width, std::string& text) {
    const auto add = [&](std::string_view line) { text += wrapped(line, width, 0) + "\n"; };
    for (const Row& row : report.rows) {
        if (answer_of(row) == Answer::forbidden_seen) {
            add(fmt::format("{}, {}: {}; the guards of this machine grant too much", name(row.kind), name(row.shape),
                            weak_means(row.shape)));
        }
        if (!row.trouble.empty()) add(fmt::format("{}, {}: {}", name(row.kind), name(row.shape), row.trouble));
    }
    for (const std::string& kind : report.left_out) add("left out: " + kind);
    if (!report.end.empty()) add("the trials " + report.end + "; rows that were not played are incomplete");
}

// "CUDA 13.0 (simulated)"; without a driver there is no version.
std::string driver_text(const Report& report) {
    if (report.device.empty()) return "not known";  // the child ended before it reported the machine
    if (report.driver_version == 0) return "none";
    return "CUDA " + version_text(report.driver_version) + (report.simulated ? " (simulated)" : "");
}

}  // namespace

std::string as_text(const Report& report, const TextStyle& style) {
    const auto line = [&](std::string_view words) { return wrapped(words, style.width, 0) + "\n"; };
    std::string text = fmt::format("device   {}\ndriver   {}\n", report.device, driver_text(report));
    if (!report.applicable) {
        text += "\n" + line(
                           "not applicable: on a CPU device both sides are threads of the CPU, and launches are over "
                           "when they return");
        if (!report.simulated) text += line("isthmus litmus --machine orin plays the trials on a simulated machine");
        return text;
    }
    if (!report.mutant.empty()) text += fmt::format("mutant   {}\n", report.mutant);
    text += fmt::format("threads  {} of the CPU\nseed     {}\n\n", report.threads, report.seed);
    text += tools::as_text({table_of(report.rows, !report.simulated)}, style);
    text += fmt::format("\n{}\n", summary(report));
    if (report.simulated) {
        text += line("a simulated machine proves nothing about order: both sides are threads of this CPU");
    }
    add_remarks(report, style.width, text);
    return text;
}

}  // namespace isthmus::tools::litmus
