// Terminal manners of the command.
#include "console.hpp"

#include "exit_codes.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

std::string coloured(std::string_view text, Colour colour, bool has_colour) {
    if (!has_colour || colour == Colour::plain) return std::string(text);
    const char* begin = "";
    switch (colour) {
        case Colour::bold: begin = "\033[1m"; break;
        case Colour::red: begin = "\033[1;31m"; break;
        case Colour::yellow: begin = "\033[33m"; break;
        case Colour::green: begin = "\033[32m"; break;
        case Colour::dim: begin = "\033[2m"; break;
        case Colour::plain: break;
    }
    return fmt::format("{}{}\033[0m", begin, text);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    std::string out;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        if (column > indent && column + 1 + word.size() > width) {
            out.append("\n").append(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out.append(word);
        column += word.size();
    }
    return out;
}

std::size_t stdout_columns() {
    winsize size{};
    if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
        return size.ws_col;
    }
    return 100;
}

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
        bad_input(fmt::format("writing to standard output: {}", std::strerror(errno)));
    }
}

std::string size_text(unsigned long long bytes) {
    constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double amount = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; amount >= 1024 && unit < 6; ++unit) amount /= 1024;
    return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.4g} {}", amount, units[unit]);
}

}  // namespace isthmus::tools
