// SPDX-License-Identifier: Apache-2.0
// The directory in which producers and viewers meet.
#pragma once

#include <isthmus/result.hpp>

#include <cstdlib>
#include <string>

namespace isthmus::gst {

inline constexpr char at_help[] =
    "Directory of the socket where producer and viewers meet (empty: isthmus below $XDG_RUNTIME_DIR)";

// As `isthmus share --at` has it. Errors: invalid_argument ($XDG_RUNTIME_DIR is not set).
inline Result<std::string> meeting_place(const std::string& asked) {
    if (!asked.empty()) return asked;
    const char* const folder = std::getenv("XDG_RUNTIME_DIR");
    if (folder == nullptr || *folder != '/') {
        return Error(Code::invalid_argument, "XDG_RUNTIME_DIR is not set", "say where to meet with at=DIRECTORY");
    }
    return std::string(folder) + "/isthmus";
}

}  // namespace isthmus::gst
