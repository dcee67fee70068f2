// SPDX-License-Identifier: Apache-2.0
// Breaks lines that are too long, and changes nothing else.
#include "report_text.hpp"

#include "console.hpp"

#include <unistd.h>

#include <algorithm>

namespace isthmus::tools {

std::string fitted(std::string_view report, std::size_t columns) {
    constexpr std::size_t label_columns = 11;
    std::string out;
    while (!report.empty()) {
        const std::size_t end = std::min(report.find('\n'), report.size());
        const std::string_view line = report.substr(0, end);
        report.remove_prefix(std::min(end + 1, report.size()));
        if (line.size() <= columns || columns <= 2 * label_columns) {
            out.append(line);
        } else {
            out.append(line.substr(0, label_columns))
                .append(wrapped(line.substr(label_columns), columns, label_columns));
        }
        out += '\n';
    }
    return out;
}

std::string for_stdout(std::string_view report) {
    return ::isatty(STDOUT_FILENO) == 1 ? fitted(report, stdout_columns()) : std::string(report);
}

}  // namespace isthmus::tools
