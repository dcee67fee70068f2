// SPDX-License-Identifier: Apache-2.0
// Edit distance with swaps; it keeps three rows of the table.
#include "nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace isthmus::tools {

std::size_t edit_distance(std::string_view left, std::string_view right) {
    std::vector<std::size_t> before_last(right.size() + 1);
    std::vector<std::size_t> last(right.size() + 1);
    std::vector<std::size_t> row(right.size() + 1);
    for (std::size_t column = 0; column <= right.size(); ++column) row[column] = column;
    for (std::size_t line = 1; line <= left.size(); ++line) {
        before_last = std::exchange(last, row);
        row[0] = line;
        for (std::size_t column = 1; column <= right.size(); ++column) {
            const bool same = left[line - 1] == right[column - 1];
            row[column] = std::min({last[column] + 1, row[column - 1] + 1, last[column - 1] + (same ? 0 : 1)});
            const bool swapped =
                line > 1 && column > 1 && left[line - 1] == right[column - 2] && left[line - 2] == right[column - 1];
            if (swapped) row[column] = std::min(row[column], before_last[column - 2] + 1);
        }
    }
    return row.back();
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string found;
    std::size_t least = 0;
    for (const std::string& candidate : known) {
        const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
        // Skips words of very different lengths, so that a long input makes no large table.
        if (word.size() > candidate.size() + allowed) continue;
        const std::size_t distance = edit_distance(word, candidate);
        if (distance > allowed || (!found.empty() && distance >= least)) continue;
        found = candidate;
        least = distance;
    }
    return found;
}

}  // namespace isthmus::tools
