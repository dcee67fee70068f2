// SPDX-License-Identifier: Apache-2.0
// How the memory of a ring is used, for people.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::tools::share {

// A line. Many reasons name the kind, which then is not said twice.
inline std::string memory_text(std::string_view kind, std::string_view reason) {
    const bool named = reason.find(kind) != std::string_view::npos;
    return "memory     " + (named ? std::string() : std::string(kind) + ": ") + std::string(reason) + "\n";
}

}  // namespace isthmus::tools::share
