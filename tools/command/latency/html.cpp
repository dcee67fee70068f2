// SPDX-License-Identifier: Apache-2.0
// The page of `isthmus latency --html`: histograms over logarithmic axes, and the tables of the text.
#include "report.hpp"

#include "tune/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace isthmus::tools::latency {
namespace {

using tune::escaped;

constexpr double width = 760, height = 340;
constexpr double left = 64, right = 20, top = 30, bottom = 44;
constexpr int bins_per_doubling = 8;

constexpr std::string_view page_style =
    ":root { color-scheme: light dark; --text: #1b1b1b; --back: #ffffff; --soft: #f3f4f6; --grid: #dcdfe4; "
    "--warn: #8a3b00; }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #15171a; --soft: #22262b; --grid: #3a4048; "
    "--warn: #ffb074; } }\n"
    "body { margin: 0 auto; max-width: 900px; padding: 1.2rem; color: var(--text); background: var(--back); "
    "font: 15px/1.5 system-ui, sans-serif; }\n"
    "h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }\n"
    ".chart { width: 100%; height: auto; background: var(--soft); border-radius: 6px; }\n"
    "table { border-collapse: collapse; margin: 0.6rem 0; } .wide { overflow-x: auto; }\n"
    "th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid var(--grid); text-align: left; vertical-align: top; }\n"
    "td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    ".legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; }\n"
    ".legend svg { width: 34px; height: 14px; vertical-align: -2px; }\n"
    ".warning { color: var(--warn); font-weight: 600; }\n";

struct Series {
    std::string label;
    const Histogram* times;
};

// Turns by bin: a bin is an eighth of a doubling of the time.
std::map<int, std::uint64_t> bins_of(const Histogram& times) {
    std::map<int, std::uint64_t> bins;
    for (const Histogram::Bucket& bucket : times.buckets()) {
        const double time = static_cast<double>(std::max<std::uint64_t>(1, bucket.from_ns));
        bins[static_cast<int>(std::floor(std::log2(time) * bins_per_doubling))] += bucket.count;
    }
    return bins;
}

// The place of a bin's begin, and of a number of turns; both axes are logarithmic.
class Axes {
public:
    Axes(int least_bin, int most_bin, std::uint64_t most_turns)
        : least_(least_bin),
          bins_(most_bin + 1 - least_bin),
          decades_(std::log10(2.0 * static_cast<double>(most_turns))) {}
    double x(double bin) const { return left + (width - left - right) * (bin - least_) / bins_; }
    double x_of(double time_ns) const { return x(std::log2(std::max(1.0, time_ns)) * bins_per_doubling); }
    // Half a turn is the bottom line.
    double y(double turns) const {
        const double share = std::max(0.0, std::log10(2 * turns)) / std::max(decades_, 0.3);
        return height - bottom - (height - top - bottom) * share;
    }

private:
    double least_;
    double bins_;
    double decades_;
};

std::string label_at(double x, double y, std::string_view anchor, std::string_view text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}
std::string rule(double x1, double y1, double x2, double y2, std::string_view kind) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       kind);
}

std::string grid(const Axes& axes, int least_bin, int most_bin, std::uint64_t most_turns) {
    std::string svg;
    for (double turns = 1; turns <= static_cast<double>(most_turns); turns *= 10) {
        svg += rule(left, axes.y(turns), width - right, axes.y(turns), "grid");
        svg += label_at(left - 6, axes.y(turns) + 4, "end", fmt::format("{:.0f}", turns));
    }
    for (std::uint64_t decade = 1; decade < 1'000'000'000'000; decade *= 10) {
        for (const std::uint64_t step : {1, 2, 5}) {
            const std::uint64_t time = decade * step;
            const double bin = std::log2(static_cast<double>(time)) * bins_per_doubling;
            if (bin < least_bin || bin > most_bin + 1) continue;
            svg += rule(axes.x(bin), top, axes.x(bin), height - bottom, "grid");
            svg += label_at(axes.x(bin), height - bottom + 16, "middle", nanoseconds_words(time));
        }
    }
    return svg + label_at((left + width - right) / 2, height - 8, "middle", "time") +
           label_at(left - 6, top - 10, "end", "turns");
}

std::string steps(const Axes& axes, const std::map<int, std::uint64_t>& bins, std::size_t colour,
                  std::string_view label) {
    const double ground = height - bottom;
    std::string path;
    int end = bins.begin()->first - 1;  // the bin behind the last one that was drawn
    for (const auto& [bin, turns] : bins) {
        if (bin != end) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "H", axes.x(bin), ground);
        // H takes one number: a gap goes along the ground.
        path += fmt::format("V{:.1f}H{:.1f}", axes.y(static_cast<double>(turns)), axes.x(bin + 1));
        end = bin + 1;
        if (!bins.contains(end)) path += fmt::format("V{:.1f}", ground);
    }
    return fmt::format("<g><title>{}</title><path d=\"{}\" class=\"way{} line\"/></g>\n", escaped(label), path,
                       colour % 8);
}

std::string histogram_chart(std::string_view title, const std::vector<Series>& all, std::uint64_t deadline_ns) {
    std::vector<std::map<int, std::uint64_t>> bins;
    int least = 0, most = 0;
    std::uint64_t most_turns = 0;
    for (const Series& series : all) {
        bins.push_back(bins_of(*series.times));
        if (bins.back().empty()) continue;
        const bool is_first = most_turns == 0;
        least = is_first ? bins.back().begin()->first : std::min(least, bins.back().begin()->first);
        most = is_first ? bins.back().rbegin()->first : std::max(most, bins.back().rbegin()->first);
        for (const auto& [bin, turns] : bins.back()) most_turns = std::max(most_turns, turns);
    }
    if (most_turns == 0) return fmt::format("<p>{}: no turn was measured.</p>\n", escaped(title));
    const Axes axes(least, most, most_turns);
    std::string svg = fmt::format(
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
        "xmlns=\"http://www.w3.org/2000/svg\">\n",
        width, height, escaped(title));
    svg += fmt::format("<text x=\"{}\" y=\"18\" text-anchor=\"middle\" class=\"chart-title\">{}</text>\n", width / 2,
                       escaped(title));
    svg += grid(axes, least, most, most_turns);
    const double deadline = axes.x_of(static_cast<double>(deadline_ns));
    if (deadline >= left && deadline <= width - right) {
        svg += "<g><title>deadline</title>" + rule(deadline, top, deadline, height - bottom, "border") + "</g>\n";
    }
    std::vector<tune::LegendEntry> entries;
    for (std::size_t at = 0; at < all.size(); ++at) {
        entries.push_back({at, all[at].label});
        if (!bins[at].empty()) svg += steps(axes, bins[at], at, all[at].label);
    }
    return svg + "</svg>\n" + tune::legend(entries);
}

std::string times_row(std::string_view run, std::string_view part, const Histogram& times, std::string_view share) {
    std::string cells = fmt::format("<th scope=\"row\">{}</th><td>{}</td>", escaped(run), escaped(part));
    for (const std::uint32_t quantile : {p50, p99, p99_9, p99_99}) {
        cells += fmt::format("<td class=\"number\">{}</td>", nanoseconds_words(times.quantile_ns(quantile)));
    }
    return fmt::format("<tr>{}<td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n", cells,
                       nanoseconds_words(times.maximum_ns()), share);
}

std::string times_table(const std::vector<RunReport>& runs) {
    std::string rows;
    for (const RunReport& run : runs) {
        for (const Part part : all_parts) {
            rows += times_row(run.plan.label, name(part), run.tally->part(part),
                              fmt::format("{:.1f} %", 100 * run.tally->share(part)));
        }
        rows += times_row(run.plan.label, "total", run.tally->total(), "");
    }
    return "<div class=\"wide\"><table>\n<thead><tr><th>run</th><th>part</th><th>p50</th><th>p99</th><th>p99.9</th>"
           "<th>p99.99</th><th>maximum</th><th>of all time</th></tr></thead>\n<tbody>\n" +
           rows + "</tbody>\n</table></div>\n";
}

std::string paragraph(std::string_view text, std::string_view kind = "") {
    return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), escaped(text));
}

std::string facts_table(const std::vector<std::pair<std::string, std::string>>& facts) {
    std::string rows;
    for (const auto& [fact, value] : facts) {
        if (value.empty()) continue;
        rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(fact), escaped(value));
    }
    return "<div class=\"wide\"><table>\n<tbody>\n" + rows + "</tbody>\n</table></div>\n";
}

std::string run_part(const RunReport& run, std::uint64_t deadline_ns) {
    std::string html = fmt::format("<h2>{}</h2>\n", escaped(run.plan.label));
    if (run.trouble) html += paragraph(run.trouble->text, "warning");
    std::vector<Series> parts;
    for (const Part part : all_parts) parts.push_back({std::string(name(part)), &run.tally->part(part)});
    parts.push_back({"total", &run.tally->total()});
    html += histogram_chart("Turns by the time of each part", parts, deadline_ns);
    std::vector<std::pair<std::string, std::string>> facts = {
        {"buffer", fmt::format("{} memory, {}: {}", run.kind, run.path, run.reason)},
        {"turns", events_words(run)},
        {"thread", prepared_words(run)}};
    for (const std::string& refused : run.prepared.refused) facts.emplace_back("refused", refused);
    if (run.counts) {
        facts.emplace_back("page faults", fmt::format("{}", run.counts->minor_faults + run.counts->major_faults));
        facts.emplace_back("voluntary switches", fmt::format("{} beyond {} sleeps", run.other_switches(), run.slept));
        facts.emplace_back("involuntary switches", fmt::format("{}", run.counts->involuntary_switches));
    }
    if (run.sealed) facts.emplace_back("refusals of the seal", fmt::format("{}", run.sealed->count));
    for (const LoadReport& load : run.loads) facts.emplace_back("load", load_words(load));
    return html + facts_table(facts);
}

}  // namespace

std::string html_page(const Report& report) {
    std::string html =
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
        "charset=\"utf-8\"/>\n<title>isthmus latency</title>\n<style>\n" +
        std::string(page_style) + tune::chart_style() + "</style>\n</head>\n<body>\n<h1>Latency of a loop</h1>\n";
    html += paragraph(fmt::format("{} ({}); {}", report.where.device, report.where.model, loop_words(report.request)));
    if (report.where.simulated) {
        html += paragraph(fmt::format("Simulated{}: times are a simulator's, and mean nothing.",
                                      report.where.machine.empty() ? "" : " machine " + report.where.machine),
                          "warning");
    }
    std::vector<Series> totals;
    for (const RunReport& run : report.runs) totals.push_back({run.plan.label, &run.tally->total()});
    if (totals.size() > 1) html += histogram_chart("Turns by their total time", totals, deadline_ns(report.request));
    html += times_table(report.runs);
    for (const RunReport& run : report.runs) html += run_part(run, deadline_ns(report.request));
    for (const std::string& left_out : report.left_out) html += paragraph("left out: " + left_out);
    if (report.signal != 0) html += paragraph(fmt::format("Ended by signal {}.", report.signal), "warning");
    return html + "</body>\n</html>\n";
}

}  // namespace isthmus::tools::latency
