// SPDX-License-Identifier: Apache-2.0
// The lines of a text.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace isthmus::tools {

inline std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
}

}  // namespace isthmus::tools
