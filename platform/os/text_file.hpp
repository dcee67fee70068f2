// Reads a small text file of /proc, /sys or a cgroup as a whole.
#pragma once

#include <string>
#include <string_view>

namespace isthmus::platform::os {

// The content, or empty where the file cannot be read: to a parser an absent file and an empty one say the same.
std::string read_text(const std::string& path);
// … only up to the first whole line that begins with this word, where there is one: /proc/cpuinfo repeats itself for
// each CPU, and the system works for every line that is read.
std::string read_text_up_to(const std::string& path, std::string_view word);

}  // namespace isthmus::platform::os
