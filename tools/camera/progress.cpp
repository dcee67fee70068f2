// The line of progress, at most ten times a second.
#include "progress.hpp"

#include <cstdio>
#include <string>
#include <unistd.h>

namespace isthmus::tools::camera {

Progress::Progress(std::uint64_t expected) : terminal_(::isatty(STDERR_FILENO) == 1), expected_(expected) {}

Progress::~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    if (expected_ == 0 || done > expected_) {
        std::fprintf(stderr, "\rframe %llu", static_cast<unsigned long long>(done));
        return;
    }
    constexpr std::uint64_t width = 40;
    const auto filled = static_cast<std::size_t>(done * width / expected_);
    std::fprintf(stderr, "\r[%s%s] frame %llu of %llu", std::string(filled, '#').c_str(),
                 std::string(width - filled, ' ').c_str(), static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(expected_));
}

}  // namespace isthmus::tools::camera
