// SPDX-License-Identifier: Apache-2.0
#include "progress_bar.hpp"

#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace isthmus::tools::tune {

std::string bar_line(double share, std::string_view what, std::size_t columns) {
    constexpr std::size_t width = 24;
    share = std::clamp(share, 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(share * width);
    std::string line = fmt::format("[{}{}] {:.0f} %, {}", std::string(filled, '#'), std::string(width - filled, ' '),
                                   share * 100, what);
    // The line must not wrap: a carriage return cannot clear a wrapped line.
    if (line.size() >= columns) line.resize(columns > 0 ? columns - 1 : 0);
    return line;
}

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double share, std::string_view what) {
    if (!terminal_) return;
    shown_ = true;
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    std::fputs(("\r\033[K" + printable(bar_line(share, what, known ? size.ws_col : 80))).c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace isthmus::tools::tune
