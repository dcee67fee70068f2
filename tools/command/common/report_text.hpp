// SPDX-License-Identifier: Apache-2.0
// Fits reports to the terminal's width; their lines begin with a label of eleven columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isthmus::tools {

// Breaks lines of more than `columns` bytes at blanks; further lines are aligned below the first line's text.
std::string fitted(std::string_view report, std::size_t columns);

// The report for stdout: fitted on a terminal, unchanged elsewhere, so that programs read whole lines.
std::string for_stdout(std::string_view report);

}  // namespace isthmus::tools
