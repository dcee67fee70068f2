// SPDX-License-Identifier: Apache-2.0
// Reports of lines that begin with a label of eleven columns, for terminals of any width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isthmus::tools {

// Lines of more than `columns` bytes are broken at blanks; what follows stands below the first line's text.
std::string fitted(std::string_view report, std::size_t columns);

// The report as stdout is to have it: fitted on a terminal, as it is elsewhere, so that programs find whole lines.
std::string for_stdout(std::string_view report);

}  // namespace isthmus::tools
