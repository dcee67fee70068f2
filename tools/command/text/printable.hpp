// SPDX-License-Identifier: Apache-2.0
// Text that may hold anything (file names, headers, records) made fit for a terminal, a log and a JSON document.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::tools {

// Whether the colour sequences that coloured() makes pass. Text for anything but a terminal has none.
enum class Colours { escaped, kept };

// Newlines, tabs and printable UTF-8 stay. Control characters (C0, DEL, C1) and marks that reorder text become \u001b
// and the like, which is also how a JSON string writes them; bytes that are no UTF-8 become \x9b and the like.
std::string printable(std::string_view text, Colours colours = Colours::escaped);

}  // namespace isthmus::tools
