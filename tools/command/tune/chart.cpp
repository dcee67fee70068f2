// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include "text/printable.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace isthmus::tools::tune {

namespace {

constexpr double width = 560, height = 320;
constexpr double left = 64, right = 24, top = 30, bottom = 42;

// Told apart by colour and dashes, also where colours are not seen alike.
struct Look {
    std::string_view light;
    std::string_view dark;
    std::string_view dashes;
};
constexpr std::array<Look, 8> looks = {{{"#0072b2", "#56b4e9", "none"},
                                        {"#d55e00", "#ff8a3d", "none"},
                                        {"#009e73", "#2fd0a0", "none"},
                                        {"#b8860b", "#f0c419", "6 3"},
                                        {"#a03a80", "#e08ac4", "6 3"},
                                        {"#555555", "#bbbbbb", "2 2"},
                                        {"#7a4a1e", "#c79a6b", "8 3 2 3"},
                                        {"#3b3bb3", "#9a9aff", "2 2"}}};

class Axis {
public:
    Axis(double least, double most, double at_least, double at_most)
        : low_(std::log2(least)), high_(std::max(std::log2(most), low_ + 1)), from_(at_least), to_(at_most) {}
    double at(double value) const {
        return from_ + (to_ - from_) * (std::clamp(std::log2(value), low_, high_) - low_) / (high_ - low_);
    }
    double least() const { return std::exp2(low_); }
    double most() const { return std::exp2(high_); }

private:
    double low_;
    double high_;
    double from_;
    double to_;
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, std::string_view kind = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor,
                       kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), escaped(text));
}
std::string rule(double x1, double y1, double x2, double y2, std::string_view kind) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       kind);
}

std::string rate_words(double rate) {
    const bool is_small = rate < 1e9;
    const double value = is_small ? rate / 1e6 : rate / 1e9;
    return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, is_small ? "MB/s" : "GB/s");
}
std::string value_words(Unit unit, double value) {
    return unit == Unit::seconds ? time_words(value) : rate_words(value);
}

std::string begin_svg(std::string_view title, double tall) {
    return fmt::format(
               "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
               "xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n",
               width, tall, escaped(title)) +
           text_at(left, 18, "start", title, "chart-title");
}

// Powers of 16 of bytes.
std::string size_axis(const Axis& x, double y_top, double y_bottom) {
    std::string svg;
    for (double size = 64; size <= 1e13; size *= 16) {
        if (size < x.least() * 0.99 || size > x.most() * 1.01) continue;
        svg += rule(x.at(size), y_top, x.at(size), y_bottom, "grid");
        svg += text_at(x.at(size), y_bottom + 16, "middle", size_words(size));
    }
    return svg + text_at((left + width - right) / 2, y_bottom + 34, "middle", "size of the buffer");
}

std::string value_axis(const Axis& y, Unit unit) {
    std::string svg;
    const double decades = std::log10(y.most() / y.least());
    for (double power = -12; power <= 15; ++power) {
        for (const int digit : {1, 2, 5}) {
            if (digit != 1 && decades > 2.5) continue;
            const double value = digit * std::pow(10, power);
            if (value < y.least() * 0.999 || value > y.most() * 1.001) continue;
            svg += rule(left, y.at(value), width - right, y.at(value), "grid");
            svg += text_at(left - 6, y.at(value) + 4, "end", value_words(unit, value));
        }
    }
    return svg;
}

std::string line_of(const Line& line, const Axis& x, const Axis& y, Unit unit) {
    std::string path, dots;
    for (const Dot& dot : line.dots) {
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x.at(dot.x), y.at(dot.y));
        if (dot.high > 0 && dot.low > 0) {
            dots += rule(x.at(dot.x), y.at(dot.low), x.at(dot.x), y.at(dot.high),
                         fmt::format("way{} bar", line.colour % 8));
        }
        dots +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" class=\"fill{}\"><title>{}</title></circle>\n",
                        x.at(dot.x), y.at(dot.y), line.colour % 8,
                        escaped(fmt::format("{}, {}: {}", line.label, size_words(dot.x), value_words(unit, dot.y))));
    }
    return fmt::format("<path d=\"{}\" class=\"way{} line\"/>\n{}", path, line.colour % 8, dots);
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            case '\'': result += "&#39;"; break;
            default: result += c;
        }
    }
    return result;
}

std::string line_chart(std::string_view title, Unit unit, const std::vector<Line>& lines,
                       const std::vector<Mark>& marks) {
    double least_x = std::numeric_limits<double>::infinity(), most_x = 0, least_y = least_x, most_y = 0;
    for (const Line& line : lines) {
        for (const Dot& dot : line.dots) {
            least_x = std::min(least_x, dot.x);
            most_x = std::max(most_x, dot.x);
            least_y = std::min(least_y, dot.low > 0 ? dot.low : dot.y);
            most_y = std::max({most_y, dot.y, dot.high});
        }
    }
    if (most_x <= 0 || most_y <= 0) return fmt::format("<p>{}: not measured.</p>\n", escaped(title));
    const Axis x(least_x, most_x, left, width - right), y(least_y / 1.1, most_y * 1.1, height - bottom, top);
    std::string svg = begin_svg(title, height) + size_axis(x, top, height - bottom) + value_axis(y, unit);
    for (const Mark& mark : marks) {
        if (mark.x < least_x || mark.x > most_x) continue;
        svg += fmt::format("<g><title>{}</title>{}</g>\n", escaped(mark.label),
                           rule(x.at(mark.x), top, x.at(mark.x), height - bottom, "border"));
    }
    for (const Line& line : lines) {
        if (!line.dots.empty()) svg += line_of(line, x, y, unit);
    }
    return svg + "</svg>\n";
}

std::string choice_map(std::string_view title, double least_bytes, double most_bytes, const std::vector<MapRow>& rows) {
    if (rows.empty()) return fmt::format("<p>{}: not measured.</p>\n", escaped(title));
    constexpr double row_height = 17;
    const double y_bottom = top + row_height * static_cast<double>(rows.size());
    const Axis x(least_bytes, most_bytes, left, width - right);
    std::string svg = begin_svg(title, y_bottom + bottom);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double y = y_bottom - row_height * static_cast<double>(i + 1);
        svg += text_at(left - 6, y + 12, "end", times_words(rows[i].passes));
        for (const Patch& patch : rows[i].patches) {
            const double from = x.at(std::max(patch.from_bytes, least_bytes)), to = x.at(patch.to_bytes);
            if (to <= from) continue;
            svg += fmt::format(
                "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                "class=\"fill{}\"><title>{}</title></rect>\n",
                from, y, to - from, row_height - 1, patch.colour % 8, escaped(patch.label));
        }
    }
    return svg + size_axis(x, top, y_bottom) + "</svg>\n";
}

std::string legend(const std::vector<LegendEntry>& entries) {
    std::string html = "<ul class=\"legend\">\n";
    for (const LegendEntry& entry : entries) {
        html += fmt::format(
            "<li><svg viewBox=\"0 0 34 14\" aria-hidden=\"true\" xmlns=\"http://www.w3.org/2000/svg\"><line x1=\"1\" "
            "y1=\"7\" "
            "x2=\"20\" y2=\"7\" class=\"way{0} line\"/><rect x=\"22\" y=\"1\" width=\"12\" height=\"12\" "
            "class=\"fill{0}\"/></svg> {1}</li>\n",
            entry.colour % 8, escaped(entry.label));
    }
    return html + "</ul>\n";
}

std::string chart_style() {
    std::string css =
        "svg text { font: 11px system-ui, sans-serif; fill: var(--text); }\n"
        "svg .chart-title { font-weight: 600; font-size: 13px; }\n"
        ".grid { stroke: var(--grid); stroke-width: 1; }\n"
        ".border { stroke: var(--text); stroke-width: 1; stroke-dasharray: 3 3; }\n"
        ".line { fill: none; stroke-width: 1.8; }\n"
        ".bar { stroke-width: 1; opacity: 0.6; }\n";
    std::string dark;
    for (std::size_t i = 0; i < looks.size(); ++i) {
        css += fmt::format(
            ".way{0} {{ stroke: {1}; }}\n.way{0}.line {{ stroke-dasharray: {2}; }}\n.fill{0} {{ fill: {1}; }}\n", i,
            looks[i].light, looks[i].dashes);
        dark += fmt::format(".way{0} {{ stroke: {1}; }}\n.fill{0} {{ fill: {1}; }}\n", i, looks[i].dark);
    }
    return css + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

}  // namespace isthmus::tools::tune
