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

// Where frames of another machine are received, and how they come from there to the device. `path`: name(LaunchPath) of
// the ring's slots. One line, without its key.
inline std::string received_text(std::string_view from, std::string_view path, bool on_cpu) {
    std::string where = "from " + std::string(from) + " over UCX, into the ring in host memory";
    if (on_cpu) return where;
    return where + (path == "stage" ? "; device memory: copied from there" : ", which the device uses in place");
}

}  // namespace isthmus::tools::share
