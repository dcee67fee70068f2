// SPDX-License-Identifier: Apache-2.0
// Whether a message contains a text.
#pragma once

#include <string_view>

namespace isthmus::platform::cuda {

inline bool says(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace isthmus::platform::cuda
