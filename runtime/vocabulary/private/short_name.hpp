// SPDX-License-Identifier: Apache-2.0
// Names in texts that may take nothing from the heap: a program may give a kernel a name of any length.
#pragma once

#include "composed.hpp"

#include <cstddef>
#include <string_view>

namespace isthmus {
inline namespace v0 {

inline constexpr std::size_t most_name_bytes = 96;
using ShortName = TextOf<most_name_bytes + 3>;

// The name, or its first bytes, at most most_name_bytes, and "...". Cuts between two characters of UTF-8.
[[gnu::cold]] inline ShortName short_name(std::string_view name) {
    ShortName text;
    if (name.size() <= most_name_bytes) return text.append(name);
    std::size_t end = most_name_bytes;
    for (std::size_t back = 0; back < 3 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80; ++back) --end;
    return text.append(name.substr(0, end)).append("...");
}

// What a launch that is refused says of itself.
[[gnu::cold]] inline Words launching(std::string_view kernel) {
    return worded("launching kernel '{}'", short_name(kernel));
}

}  // namespace v0
}  // namespace isthmus
