// SPDX-License-Identifier: Apache-2.0
#include "html.hpp"

#include "advice.hpp"
#include "chart.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace isthmus::tools::tune {

namespace {

constexpr int shown_passes[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};

constexpr std::string_view page_style =
    ":root { color-scheme: light dark; --text: #1b1b1b; --back: #ffffff; --soft: #f3f4f6; --grid: #dcdfe4; "
    "--warn: #8a3b00; }\n"
    "@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #15171a; --soft: #22262b; --grid: #3a4048; "
    "--warn: #ffb074; } }\n"
    "body { margin: 0 auto; max-width: 1220px; padding: 1.2rem; color: var(--text); background: var(--back); "
    "font: 15px/1.5 system-ui, sans-serif; }\n"
    "h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; }\n"
    ".charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem; }\n"
    ".charts > svg { width: 100%; height: auto; background: var(--soft); border-radius: 6px; }\n"
    "table { border-collapse: collapse; margin: 0.6rem 0; } .wide { overflow-x: auto; }\n"
    "th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid var(--grid); text-align: left; vertical-align: top; }\n"
    "td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    ".legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; }\n"
    ".legend svg { width: 34px; height: 14px; vertical-align: -2px; }\n"
    ".warning { color: var(--warn); font-weight: 600; }\n"
    "pre { background: var(--soft); padding: 0.8rem; overflow-x: auto; font-size: 12px; }\n";

std::string heading(std::string_view text) {
    return fmt::format("<h2>{}</h2>\n", escaped(text));
}
std::string paragraph(std::string_view text, std::string_view kind = "") {
    return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), escaped(text));
}
std::string charts(const std::string& content) {
    return "<div class=\"charts\">\n" + content + "</div>\n";
}
std::string upper_first(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

// A table of names and values; empty values are left out.
std::string facts_table(const std::vector<std::pair<std::string, std::string>>& facts) {
    std::string rows;
    for (const auto& [fact, value] : facts) {
        if (!value.empty())
            rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(fact), escaped(value));
    }
    return rows.empty() ? "" : "<div class=\"wide\"><table>\n<tbody>\n" + rows + "</tbody>\n</table></div>\n";
}

std::size_t number_of(const Measurements& measured, const Way& way) {
    return static_cast<std::size_t>(std::find(measured.ways.begin(), measured.ways.end(), way) - measured.ways.begin());
}

std::string legend_of(const Measurements& measured) {
    std::vector<LegendEntry> entries;
    for (std::size_t way = 0; way < measured.ways.size(); ++way)
        entries.push_back({way, way_words(measured.ways[way])});
    return legend(entries);
}

std::string machine_part(const Measurements& measured) {
    const DeviceProfile& profile = measured.profile;
    const Conditions& conditions = measured.conditions;
    const auto clock = [](double hz) { return hz > 0 ? fmt::format("{:.0f} MHz", hz / 1e6) : std::string(); };
    std::string html = heading("The machine");
    html +=
        facts_table({{"device", measured.device_name},
                     {"CPU", measured.cpu_name},
                     {"UUID", profile.device ? profile.device.text() : ""},
                     {"driver", profile.driver_version > 0 ? fmt::format("CUDA {}.{}", profile.driver_version / 1000,
                                                                         profile.driver_version % 1000 / 10)
                                                           : ""},
                     {"kernel", profile.kernel_release},
                     {"address translation", std::string(name(profile.translation))},
                     {"memory", std::string(name(profile.memory))},
                     {"measured on", profile.measured_on},
                     {"measured for", measured.seconds_taken > 0 ? time_words(measured.seconds_taken) : ""}});
    html += "<h3>Conditions</h3>\n";
    html += facts_table({{"power mode", conditions.power_mode},
                         {"GPU clock at the begin", clock(conditions.gpu_clock_hz_begin)},
                         {"GPU clock at the end", clock(conditions.gpu_clock_hz_end)},
                         {"highest GPU clock", clock(conditions.gpu_clock_hz_most)},
                         {"throttled", conditions.throttled ? "yes" : "no"}});
    for (const std::string& note : conditions.notes) html += paragraph(note);
    if (!measured.machine_record.empty()) {
        html += fmt::format(
            "<details><summary>Capabilities and attributes: the machine's record</summary><pre>{}</pre></details>\n",
            escaped(measured.machine_record));
    }
    return html;
}

std::string map_of(const Measurements& measured, const std::vector<ProfileChoice>& choices, const UseCase& use,
                   double least, double most) {
    std::vector<MapRow> rows;
    for (const int passes : shown_passes) {
        const std::vector<Run> runs = runs_of(choices, use, passes);
        if (runs.empty()) continue;
        MapRow row{passes, {}};
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const double from = static_cast<double>(runs[i].from_bytes);
            const double to = i + 1 < runs.size() ? static_cast<double>(runs[i + 1].from_bytes) : most;
            const std::string range = i + 1 < runs.size() ? fmt::format("{} to {}", size_words(from), size_words(to))
                                                          : fmt::format("from {}", size_words(from));
            row.patches.push_back({from, to, number_of(measured, runs[i].way),
                                   fmt::format("{}, {}: {}", times_words(passes), range, way_words(runs[i].way))});
        }
        rows.push_back(std::move(row));
    }
    return choice_map(upper_first(use_words(use)), least, most, rows);
}

std::string choices_part(const Measurements& measured, const std::vector<ProfileChoice>& choices, double least,
                         double most) {
    std::string html = heading("The choice by size and passes");
    html += paragraph(
        "A pass: the GPU goes over the whole buffer once between two turns of the CPU. Each row is a number of "
        "passes.");
    html += legend_of(measured);
    std::string maps;
    for (const Prefer prefer : {Prefer::throughput, Prefer::latency}) {
        for (const Role device : all_roles)
            maps += map_of(measured, choices, measured_use(device, prefer), least, most);
    }
    for (const Role device : all_roles) {
        UseCase often = measured_use(device);
        often.host_often = true;
        maps += map_of(measured, choices, often, least, most);
    }
    return html + charts(maps);
}

std::string borders_table(const std::vector<ProfileChoice>& choices) {
    std::string rows;
    for (const Role device : all_roles) {
        for (const int passes : {1, 2, 4, 8, 16, 64, 256}) {
            const std::vector<Run> runs = runs_of(choices, measured_use(device), passes);
            std::string cells;
            for (std::size_t i = 0; i < runs.size(); ++i) {
                if (i > 0) cells += fmt::format("; from {} ", size_words(static_cast<double>(runs[i].from_bytes)));
                cells += way_words(runs[i].way);
            }
            if (runs.empty()) continue;
            rows += fmt::format("<tr><td>the device {}</td><td class=\"number\">{}</td><td>{}</td></tr>\n",
                                role_words(device), times_words(passes), escaped(cells));
        }
    }
    if (rows.empty()) return {};
    return "<h3>Borders</h3>\n<div "
           "class=\"wide\"><table>\n<thead><tr><th>use</th><th>passes</th><th>memory</th></tr></thead>"
           "\n<tbody>\n" +
           rows + "</tbody>\n</table></div>\n";
}

bool is_known(const Sample& sample) {
    return sample.count > 0 && std::isfinite(sample.median) && sample.median > 0;
}

void sort_dots(Line& line) {
    std::sort(line.dots.begin(), line.dots.end(), [](const Dot& a, const Dot& b) { return a.x < b.x; });
}

std::string turns_chart(const Measurements& measured, const std::vector<ProfileChoice>& choices, Role device,
                        int passes) {
    std::vector<Line> lines;
    for (std::size_t way = 0; way < measured.ways.size(); ++way) {
        Line line{way, way_label(measured.ways[way]), {}};
        for (const TurnSample& turn : measured.turns) {
            if (turn.way != measured.ways[way] || turn.device != device || turn.passes != passes) continue;
            if (!is_known(turn.seconds)) continue;
            line.dots.push_back(
                {static_cast<double>(turn.bytes), turn.seconds.median, turn.seconds.low, turn.seconds.high});
        }
        sort_dots(line);
        lines.push_back(std::move(line));
    }
    std::vector<Mark> marks;
    const std::vector<Run> runs = runs_of(choices, measured_use(device), passes);
    for (std::size_t i = 1; i < runs.size(); ++i) {
        const double border = static_cast<double>(runs[i].from_bytes);
        marks.push_back({border, fmt::format("from {}: {}", size_words(border), way_words(runs[i].way))});
    }
    return line_chart(fmt::format("A turn: the device {} {}", role_words(device), times_words(passes)), Unit::seconds,
                      lines, marks);
}

// The numbers of passes that were measured at most sizes, and the highest: at most three.
std::vector<int> charted_passes(const Measurements& measured) {
    std::map<int, int> points;
    for (const TurnSample& turn : measured.turns) {
        if (is_known(turn.seconds)) ++points[turn.passes];
    }
    int most = 0;
    for (const auto& [passes, count] : points) most = std::max(most, count);
    std::vector<int> common;
    for (const auto& [passes, count] : points) {
        if (2 * count > most) common.push_back(passes);
    }
    if (common.size() > 3) common = {common.front(), common[common.size() / 2], common.back()};
    return common;
}

std::string turns_part(const Measurements& measured, const std::vector<ProfileChoice>& choices) {
    std::string html = heading("Time of a turn");
    html += paragraph(
        "The CPU writes or reads all bytes once, hands over, the GPU makes its passes, and the CPU waits for it. Bars "
        "are "
        "95 % confidence intervals of the median; dashed lines are the borders of the choice.");
    html += legend_of(measured);
    std::string all;
    for (const Role device : all_roles) {
        for (const int passes : charted_passes(measured)) all += turns_chart(measured, choices, device, passes);
    }
    return html + charts(all);
}

// One further pass: the difference between fewest and most passes that were measured at the size.
std::string passes_chart(const Measurements& measured, Role device) {
    std::vector<Line> lines;
    for (std::size_t way = 0; way < measured.ways.size(); ++way) {
        std::map<std::size_t, std::map<int, double>> by_size;
        for (const TurnSample& turn : measured.turns) {
            if (turn.way == measured.ways[way] && turn.device == device && is_known(turn.seconds)) {
                by_size[turn.bytes][turn.passes] = turn.seconds.median;
            }
        }
        Line line{way, way_label(measured.ways[way]), {}};
        for (const auto& [bytes, times] : by_size) {
            const auto first = *times.begin(), last = *times.rbegin();
            if (last.first == first.first || last.second <= first.second) continue;
            const double pass = (last.second - first.second) / (last.first - first.first);
            line.dots.push_back({static_cast<double>(bytes), static_cast<double>(bytes) / pass, 0, 0});
        }
        lines.push_back(std::move(line));
    }
    return line_chart(fmt::format("A further pass of the device that {}", role_words(device)), Unit::bytes_per_second,
                      lines);
}

std::string host_chart(const Measurements& measured, Role host) {
    std::vector<Line> lines;
    for (std::size_t way = 0; way < measured.ways.size(); ++way) {
        Line line{way, way_label(measured.ways[way]), {}};
        for (const HostSample& sample : measured.hosts) {
            if (sample.way != measured.ways[way] || sample.host != host || !is_known(sample.seconds)) continue;
            const double bytes = static_cast<double>(sample.bytes);
            line.dots.push_back({bytes, bytes / sample.seconds.median, 0, 0});
        }
        sort_dots(line);
        lines.push_back(std::move(line));
    }
    return line_chart(fmt::format("A pass of the host that {}", role_words(host)), Unit::bytes_per_second, lines);
}

std::string bandwidth_part(const Measurements& measured) {
    std::string html = heading("Bandwidth by size and kind");
    html += paragraph(
        "Bytes of the buffer divided by the time of a pass; where a pass reads and writes, each byte counts once.");
    html += legend_of(measured);
    std::string all;
    for (const Role device : all_roles) all += passes_chart(measured, device);
    for (const Role host : all_roles) all += host_chart(measured, host);
    return html + charts(all);
}

std::string figure_value(const Sample& value, const std::string& unit, double number) {
    if (value.count <= 0) return "not measured";
    if (unit == "s") return time_words(number);
    return fmt::format("{:.4g} {}", number, unit);
}

std::string figures_part(const Measurements& measured) {
    std::vector<std::string> subjects;
    for (const Figure& figure : measured.figures) {
        if (std::find(subjects.begin(), subjects.end(), figure.subject) == subjects.end()) {
            subjects.push_back(figure.subject);
        }
    }
    if (subjects.empty()) return {};
    std::string html = heading("Figures");
    for (const std::string& subject : subjects) {
        html += fmt::format(
            "<h3>{}</h3>\n<div class=\"wide\"><table>\n<thead><tr><th>what</th><th>memory</th><th>size</th>"
            "<th>median</th><th>95 % interval</th></tr></thead>\n<tbody>\n",
            escaped(upper_first(subject)));
        for (const Figure& figure : measured.figures) {
            if (figure.subject != subject) continue;
            const Sample& value = figure.value;
            const std::string interval = value.count < 2
                                             ? ""
                                             : fmt::format("{} to {}", figure_value(value, figure.unit, value.low),
                                                           figure_value(value, figure.unit, value.high));
            html += fmt::format(
                "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
                "<td class=\"number\">{}</td></tr>\n",
                escaped(figure.name), escaped(figure.kind),
                figure.bytes == 0 ? "" : size_words(static_cast<double>(figure.bytes)),
                escaped(figure_value(value, figure.unit, value.median)), escaped(interval));
        }
        html += "</tbody>\n</table></div>\n";
    }
    return html;
}

std::string device_part(const Measurements& measured) {
    const std::vector<ProfileChoice> choices = known_choices(measured);
    double least = 64, most = 1024;
    for (const TurnSample& turn : measured.turns) {
        least = std::min(least, static_cast<double>(turn.bytes));
        most = std::max(most, static_cast<double>(turn.bytes));
    }
    std::string html = fmt::format("<h1>{}</h1>\n", escaped("Memory between CPU and GPU: " + measured.device_name));
    html += paragraph(fmt::format("Measured by isthmus tune{}{}.", measured.profile.measured_on.empty() ? "" : " on ",
                                  measured.profile.measured_on));
    html += heading("What to use when");
    const std::vector<std::string> lines = advice(measured);
    const std::size_t warned = warnings(measured).size();
    for (std::size_t i = 0; i < warned; ++i) html += paragraph(lines[i], "warning");
    html += "<ul>\n";
    for (std::size_t i = warned; i < lines.size(); ++i) html += fmt::format("<li>{}</li>\n", escaped(lines[i]));
    html += "</ul>\n";
    html += choices_part(measured, choices, least, most) + borders_table(choices);
    html += turns_part(measured, choices) + bandwidth_part(measured) + figures_part(measured) + machine_part(measured);
    return "<section>\n" + html + "</section>\n";
}

}  // namespace

std::string html_page(const std::vector<Measurements>& devices) {
    std::string title = "isthmus tune";
    if (devices.size() == 1) title += ": " + devices.front().device_name;
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
        "charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"/>\n<title>{}</title>\n<style>\n{}{}</style>\n"
        "</head>\n<body>\n",
        escaped(title), page_style, chart_style());
    if (devices.empty()) html += paragraph("No device was measured.");
    for (const Measurements& measured : devices) html += device_part(measured);
    return html + "</body>\n</html>\n";
}

}  // namespace isthmus::tools::tune
