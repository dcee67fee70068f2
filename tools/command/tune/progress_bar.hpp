// SPDX-License-Identifier: Apache-2.0
// ProgressBar: a line on the terminal with how much of the time is over and what is done now. Prints nothing where
// standard error is no terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isthmus::tools::tune {

// "[#####     ] 21 %, sizes: 16 MiB", shorter than `columns`.
std::string bar_line(double share, std::string_view what, std::size_t columns);

class ProgressBar {
public:
    ProgressBar();
    ~ProgressBar();  // clears the line
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;
    void show(double share, std::string_view what);

private:
    bool terminal_;
    bool shown_ = false;
};

}  // namespace isthmus::tools::tune
