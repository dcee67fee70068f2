// SPDX-License-Identifier: Apache-2.0
// Output of the command: plain text for files and pipes, colours on a terminal.
#pragma once

#include "text/terminal_text.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

namespace isthmus::tools {

// May be thrown anywhere in a command; main() prints it as one line on stderr and exits with its code.
class Failure : public std::runtime_error {
public:
    Failure(int exit_code, const std::string& line) : std::runtime_error(line), exit_code_(exit_code) {}
    int exit_code() const noexcept { return exit_code_; }

private:
    int exit_code_;
};
[[noreturn]] void bad_input(const std::string& line);  // throws with exit code 2
[[noreturn]] void cannot(const std::string& line);     // throws with exit code 3

// Whether stdout is a terminal that may be coloured. NO_COLOR and TERM=dumb are respected.
bool stdout_has_colour();
// Whether stdout shows characters beyond ASCII: a terminal in a UTF-8 locale.
bool stdout_has_symbols();
std::size_t stdout_columns();  // 100 where stdout is no terminal

// Writes all of `text` to stdout and checks that it arrived. Control characters, which names and records may contain,
// are escaped (printable()). Throws Failure: exit code 2 for a full disk, a closed descriptor or a pipe without a
// reader; 128 + signal where a signal arrived while the write waited for the reader.
void print(std::string_view text);

// The only way to standard error: writes "isthmus: LINE", with control characters escaped. It reports no error and
// waits at most briefly: without a reader, lines are dropped, and the next line that is written gives their count. Any
// thread.
void complain(std::string_view line) noexcept;

// "1.5 GiB"
std::string size_text(unsigned long long bytes);

}  // namespace isthmus::tools
