// Reads a small text file of /proc, /sys or a cgroup as a whole.
#pragma once

#include <string>

namespace isthmus::platform::os {

// The content, or empty where the file cannot be read: to a parser an absent file and an empty one say the same.
std::string read_text(const std::string& path);

}  // namespace isthmus::platform::os
