// SPDX-License-Identifier: Apache-2.0
// Finds faults that the JSON reader would not report with their place: syntax errors, and keys that occur twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace isthmus::platform::machines {

// The fault in the text, as one clause; nothing where the text is well-formed.
std::optional<std::string> syntax_fault(std::string_view text);

}  // namespace isthmus::platform::machines
