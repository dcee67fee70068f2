// SPDX-License-Identifier: Apache-2.0
// The page that `isthmus tune --html` writes: one file without scripts and without links to elsewhere. It is
// well-formed XML; every text from the machine is escaped. Pure.
#pragma once

#include "measurements.hpp"

#include <string>
#include <vector>

namespace isthmus::tools::tune {

// In its colours for light and for dark displays.
std::string html_page(const std::vector<Measurements>& devices);

}  // namespace isthmus::tools::tune
