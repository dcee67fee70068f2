// SPDX-License-Identifier: Apache-2.0
// Writes to standard output and standard error, and asks about the terminal.
#include "console.hpp"

#include "camera/stop_signal.hpp"
#include "exit_codes.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

namespace isthmus::tools {

void bad_input(const std::string& line) {
    throw Failure(exit_bad_usage, line);
}
void cannot(const std::string& line) {
    throw Failure(exit_cannot, line);
}

bool stdout_has_colour() {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    if (no_colour && *no_colour) return false;
    if (!terminal || std::strcmp(terminal, "dumb") == 0) return false;
    return ::isatty(STDOUT_FILENO) == 1;
}

bool stdout_has_symbols() {
    return stdout_has_colour() && is_utf8_locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG"));
}

std::size_t stdout_columns() {
    winsize size{};
    if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
        return size.ws_col;
    }
    return 100;
}

namespace {

// Waits until a non-blocking descriptor accepts bytes again.
void wait_for_room(int descriptor) {
    pollfd waiting{descriptor, POLLOUT, 0};
    ::poll(&waiting, 1, 100);
}

// POLLOUT on a pipe guarantees room for PIPE_BUF bytes, and a write of at most that many is atomic.
constexpr std::size_t max_line_bytes = PIPE_BUF;

bool takes_a_line(int descriptor, int wait_ms) noexcept {
    pollfd waiting{descriptor, POLLOUT, 0};
    return ::poll(&waiting, 1, wait_ms) == 1 && (waiting.revents & (POLLOUT | POLLERR | POLLNVAL)) != 0;
}

// A line in a fixed buffer: it may report that the heap is exhausted, so it does not use the heap.
class Line {
public:
    Line& add(std::string_view text) noexcept {
        const std::size_t room = sizeof text_ - 1 - size_;  // 1 byte is kept for the newline
        const std::size_t taken = std::min(room, text.size());
        std::memcpy(text_ + size_, text.data(), taken);
        size_ += taken;
        return *this;
    }
    // Adds the text on one line, with control characters escaped; without memory for escaping, it drops them.
    Line& add_escaped(std::string_view text) noexcept {
        try {
            std::string escaped = printable(text);
            std::replace(escaped.begin(), escaped.end(), '\n', ' ');
            return add(escaped);
        } catch (const std::exception&) {
            for (const char& character : text) {
                if (static_cast<unsigned char>(character) >= ' ' && character != 0x7f) add({&character, 1});
            }
            return *this;
        }
    }
    // Writes the whole line or nothing, and does not wait, even where another process has filled the pipe since poll().
    bool write() noexcept {
        text_[size_++] = '\n';
        struct stat facts {};
        if (::fstat(STDERR_FILENO, &facts) == 0 && S_ISSOCK(facts.st_mode)) {
            return ::send(STDERR_FILENO, text_, size_, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
        }
        // Reopening gives a descriptor with flags of its own; standard error shares its flags with other processes. A
        // regular file is not reopened: a new descriptor would have a file offset of its own, and a write to a file
        // waits for no reader.
        const bool waits = S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode);
        const int own = waits ? ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
        const bool written = ::write(own >= 0 ? own : STDERR_FILENO, text_, size_) >= 0 || errno != EAGAIN;
        if (own >= 0) ::close(own);
        return written;
    }

private:
    char text_[max_line_bytes];
    std::size_t size_ = 0;
};

std::mutex complaining;
std::uint64_t dropped_lines = 0;  // lines dropped since the last one that was written

}  // namespace

void print(std::string_view report) {
    const std::string escaped = printable(report, stdout_has_colour() ? Colours::kept : Colours::escaped);
    std::string_view text = escaped;
    while (!text.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EINTR && camera::StopSignal::received() != 0) {
            throw Failure(128 + camera::StopSignal::received(), "the report was not written: a signal came");
        } else if (errno == EAGAIN) {
            wait_for_room(STDOUT_FILENO);
        } else if (errno != EINTR) {
            bad_input(fmt::format("writing to standard output: {}", std::strerror(errno)));
        }
    }
}

void complain(std::string_view line) noexcept {
    const std::lock_guard lock(complaining);
    // Waits once for a slow reader; after a dropped line it does not wait until a line is accepted again.
    constexpr int patience_ms = 200;
    if (!takes_a_line(STDERR_FILENO, dropped_lines == 0 ? patience_ms : 0)) {
        ++dropped_lines;
        return;
    }
    Line text;
    text.add("isthmus: ");
    if (dropped_lines > 0) {
        char number[24];
        const auto end = std::to_chars(number, number + sizeof number, dropped_lines).ptr;
        text.add("(lines dropped before this one, because nobody read them: ");
        text.add({number, static_cast<std::size_t>(end - number)}).add(") ");
    }
    dropped_lines = text.add_escaped(line).write() ? 0 : dropped_lines + 1;
}

std::string size_text(unsigned long long bytes) {
    constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double amount = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; amount >= 1024 && unit < 6; ++unit) amount /= 1024;
    return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.4g} {}", amount, units[unit]);
}

}  // namespace isthmus::tools
