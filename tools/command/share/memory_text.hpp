// SPDX-License-Identifier: Apache-2.0
// Describes the memory of a ring in one line.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::tools::share {

// One line. Many reasons name the kind already; then it is not repeated.
inline std::string memory_text(std::string_view kind, std::string_view reason) {
    const bool named = reason.find(kind) != std::string_view::npos;
    return "memory     " + (named ? std::string() : std::string(kind) + ": ") + std::string(reason) + "\n";
}

}  // namespace isthmus::tools::share
