// SPDX-License-Identifier: Apache-2.0
// Reads a small text file of /proc, /sys or a cgroup as a whole.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::platform::os {

// The content, or empty if the file cannot be read: parsers treat an absent file like an empty one.
std::string read_text(const std::string& path);
// The same, only up to the first whole line that begins with `word`, if there is one: /proc/cpuinfo repeats itself for
// each CPU, and the system generates every line that is read.
std::string read_text_up_to(const std::string& path, std::string_view word);

}  // namespace isthmus::platform::os
