// SPDX-License-Identifier: Apache-2.0
// Makes untrusted text (file names, headers, records) safe for a terminal, a log and a JSON document.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::tools {

// Whether the colour sequences of coloured() pass. Only text for a terminal has them.
enum class Colours { escaped, kept };

// Newlines, tabs and printable UTF-8 stay. Control characters (C0, DEL, C1) and marks that reorder text become \u001b
// and the like, as in a JSON string; bytes that are not UTF-8 become \x9b and the like.
std::string printable(std::string_view text, Colours colours = Colours::escaped);

}  // namespace isthmus::tools
