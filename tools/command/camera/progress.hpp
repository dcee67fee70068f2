// SPDX-License-Identifier: Apache-2.0
// Progress: a line on the terminal with the frames done, the rate and the time left. Prints nothing where standard
// error is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace isthmus::tools::camera {

// Formats the line, shorter than `columns`. `expected` of 0: unknown. The rate and the time left appear from half a
// second on.
std::string progress_line(std::uint64_t done, std::uint64_t expected, std::chrono::nanoseconds taken,
                          std::size_t columns);

class Progress {
public:
    explicit Progress(std::uint64_t expected);  // frames; 0: unknown
    ~Progress();                                // clears the line
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void show(std::uint64_t done);

private:
    bool terminal_;
    bool shown_ = false;
    std::uint64_t expected_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point next_{};
};

}  // namespace isthmus::tools::camera
