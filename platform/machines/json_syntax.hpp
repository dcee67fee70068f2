// SPDX-License-Identifier: Apache-2.0
// Finds what the JSON reader would pass over silently: the place of a syntax error, and a key given twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace isthmus::platform::machines {

// What is wrong with the text, as one clause; nothing where it is well-formed.
std::optional<std::string> syntax_fault(std::string_view text);

}  // namespace isthmus::platform::machines
