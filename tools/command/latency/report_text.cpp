// SPDX-License-Identifier: Apache-2.0
// The report as text: a table of times, then what happened in each run.
#include "report.hpp"

#include "tune/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isthmus::tools::latency {
namespace {

std::vector<std::string> times_row(const RunReport& run, std::string_view what, const Histogram& times,
                                   const std::string& share) {
    std::vector<std::string> row = {run.plan.label, std::string(what)};
    for (const std::uint32_t quantile : {p50, p99, p99_9, p99_99}) {
        row.push_back(nanoseconds_words(times.quantile_ns(quantile)));
    }
    row.push_back(nanoseconds_words(times.maximum_ns()));
    row.push_back(share);
    return row;
}

Section table_of(const Report& report) {
    Section table;
    table.keys = 2;
    table.header = {"run", "part", "p50", "p99", "p99.9", "p99.99", "maximum", "of all time"};
    for (const RunReport& run : report.runs) {
        if (run.tally->turns() == 0) continue;
        for (const Part part : all_parts) {
            table.rows.push_back(times_row(run, name(part), run.tally->part(part),
                                           fmt::format("{:.1f} %", 100 * run.tally->share(part))));
        }
        table.rows.push_back(times_row(run, "total", run.tally->total(), ""));
    }
    if (table.rows.empty()) table.header.clear();
    return table;
}

std::string list(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", number);
    return text;
}

// A line with a label of eleven columns.
std::string line(std::string_view label, std::string_view words, std::size_t width) {
    return fmt::format("{:<10} {}\n", label, wrapped(words, width, 11));
}

std::string run_lines(const RunReport& run, std::size_t width) {
    std::string text = "\n" + line("run", run.plan.label, width);
    text += line("buffer", fmt::format("{} memory, {}: {}", run.kind, run.path, run.reason), width);
    if (const std::string prepared = prepared_words(run); !prepared.empty()) text += line("thread", prepared, width);
    for (const std::string& refused : run.prepared.refused) text += line("refused", refused, width);
    text += line("turns", events_words(run), width);
    if (run.tally->turns() > 0) {
        std::string worst;
        for (const Part part : all_parts) {
            worst += fmt::format("{}{} {}", worst.empty() ? "" : ", ", name(part),
                                 nanoseconds_words(run.tally->worst()[static_cast<std::size_t>(part)]));
        }
        text += line("longest", fmt::format("turn {}: {}", run.tally->worst_turn(), worst), width);
    }
    if (run.counts) {
        text += line("thread met",
                     fmt::format("{} page faults ({} of a disk), {} voluntary switches beyond its own {} sleeps, {} "
                                 "involuntary switches",
                                 run.counts->minor_faults + run.counts->major_faults, run.counts->major_faults,
                                 run.other_switches(), run.slept, run.counts->involuntary_switches),
                     width);
    }
    if (run.sealed) {
        text += line("sealed", fmt::format("{} refusals", run.sealed->count), width);
        for (const SealedPlaceLine& place : run.sealed->places) {
            text += line("", fmt::format("{}: {}, {} times", place.call, place.act, place.times), width);
        }
    }
    for (const LoadReport& load : run.loads) text += line("load", load_words(load), width);
    if (run.trouble) text += line("ended", run.trouble->text, width);
    return text;
}

}  // namespace

std::string nanoseconds_words(std::uint64_t time_ns) {
    return tune::time_words(static_cast<double>(time_ns) / 1e9);
}

std::string loop_words(const Request& request) {
    return fmt::format("{} every {}, deadline {}, {} bytes", name(request.work), nanoseconds_words(period_ns(request)),
                       nanoseconds_words(deadline_ns(request)), request.bytes);
}

std::string prepared_words(const RunReport& run) {
    const Prepared& prepared = run.prepared;
    std::vector<std::string> words;
    if (prepared.priority > 0) words.push_back(fmt::format("SCHED_FIFO {}", prepared.priority));
    if (!prepared.cpus.empty()) words.push_back("CPUs " + list(prepared.cpus));
    if (prepared.locked) words.emplace_back("memory locked");
    if (prepared.sealed) words.emplace_back("sealed");
    std::string text;
    for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

std::string events_words(const RunReport& run) {
    std::string text = fmt::format("{} of {} planned, after {} that do not count; {} deadlines missed",
                                   run.tally->turns(), run.planned, run.warm_up, run.missed());
    if (run.missed() == 0) return text;
    text += fmt::format(": {} turns late", run.tally->late());
    std::string parts;
    for (const Part part : all_parts) {
        if (run.tally->late_by(part) == 0) continue;
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name(part), run.tally->late_by(part));
    }
    if (!parts.empty()) text += " (longest part: " + parts + ")";
    return text + fmt::format(", {} skipped", run.skipped);
}

std::string load_words(const LoadReport& load) {
    std::string text = fmt::format("{}: {} threads, {} rounds", name(load.kind), load.threads, load.rounds);
    return load.trouble.empty() ? text : text + ", ended: " + load.trouble;
}

std::int64_t RunReport::other_switches() const noexcept {
    if (!counts) return 0;
    return std::max<std::int64_t>(0, counts->voluntary_switches - static_cast<std::int64_t>(slept));
}

std::string as_text(const Report& report, const TextStyle& style) {
    std::string text = camera::as_text(report.where);
    text += line("loop", loop_words(report.request), style.width);
    const Section table = table_of(report);
    if (!table.header.empty()) text += "\n" + tools::as_text({table}, style);
    for (const RunReport& run : report.runs) text += run_lines(run, style.width);
    for (const std::string& left_out : report.left_out) text += line("left out", left_out, style.width);
    if (report.signal != 0) text += line("ended", fmt::format("by signal {}", report.signal), style.width);
    return text;
}

}  // namespace isthmus::tools::latency
