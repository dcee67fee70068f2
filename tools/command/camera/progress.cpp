// SPDX-License-Identifier: Apache-2.0
// Prints the progress line, at most ten times a second.
#include "progress.hpp"

#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace isthmus::tools::camera {
namespace {

std::size_t stderr_columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string time_text(double seconds) {
    char text[48];
    if (seconds < 60) {
        std::snprintf(text, sizeof text, "%.0f s", seconds);
    } else if (seconds < 3600) {
        std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds) / 60,
                      static_cast<int>(seconds) % 60);
    } else {
        std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
    }
    return text;
}

std::string bar(std::uint64_t done, std::uint64_t expected) {
    constexpr std::uint64_t width = 24;
    const auto filled = static_cast<std::size_t>(static_cast<double>(done) / static_cast<double>(expected) * width);
    return "[" + std::string(filled, '#') + std::string(width - filled, ' ') + "] ";
}

}  // namespace

std::string progress_line(std::uint64_t done, std::uint64_t expected, std::chrono::nanoseconds taken,
                          std::size_t columns) {
    const bool known = expected != 0 && done <= expected;
    std::string text = "frame " + std::to_string(done);
    if (known) text += " of " + std::to_string(expected);
    const double seconds = std::chrono::duration<double>(taken).count();
    if (seconds >= 0.5 && done > 0) {
        const double rate = static_cast<double>(done) / seconds;
        char part[32];
        std::snprintf(part, sizeof part, ", %.1f frames/s", rate);
        text += part;
        if (known) text += ", " + time_text(static_cast<double>(expected - done) / rate) + " left";
    }
    // The line must not wrap: a carriage return cannot clear a wrapped line.
    const std::string drawn = known ? bar(done, expected) : std::string();
    if (drawn.size() + text.size() < columns) return drawn + text;
    return text.substr(0, columns > 0 ? columns - 1 : 0);
}

Progress::Progress(std::uint64_t expected) : terminal_(::isatty(STDERR_FILENO) == 1), expected_(expected) {}

Progress::~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    // Clears the line first: a shorter text would leave the end of the longer one.
    std::fputs(("\r\033[K" + progress_line(done, expected_, now - begin_, stderr_columns())).c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace isthmus::tools::camera
