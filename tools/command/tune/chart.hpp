// SPDX-License-Identifier: Apache-2.0
// Plots as inline SVG: lines over logarithmic axes, and maps of choices. Colours and dashes are classes of the page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::tune {

// For element content and attribute values: &, <, > and quotes are escaped, and control characters by printable().
std::string escaped(std::string_view text);

struct Dot {
    double x = 0;
    double y = 0;
    double low = 0;  // the interval of y; both 0: none
    double high = 0;
};
struct Line {
    std::size_t colour = 0;  // the number of the way
    std::string label;
    std::vector<Dot> dots;  // ascending in x
};
// A vertical line.
struct Mark {
    double x = 0;
    std::string label;
};
enum class Unit { seconds, bytes_per_second };

// Both axes are logarithmic; x is a size in bytes. Without a dot: a sentence that says so.
std::string line_chart(std::string_view title, Unit unit, const std::vector<Line>& lines,
                       const std::vector<Mark>& marks = {});

struct Patch {
    double from_bytes = 0;
    double to_bytes = 0;
    std::size_t colour = 0;
    std::string label;
};
struct MapRow {
    int passes = 1;
    std::vector<Patch> patches;
};
// Sizes go to the right, passes up.
std::string choice_map(std::string_view title, double least_bytes, double most_bytes, const std::vector<MapRow>& rows);

struct LegendEntry {
    std::size_t colour = 0;
    std::string label;
};
std::string legend(const std::vector<LegendEntry>& entries);

// The rules of the classes above.
std::string chart_style();

}  // namespace isthmus::tools::tune
