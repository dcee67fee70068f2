// Progress: a line on the terminal that says how far a run is. Silent where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace isthmus::tools::camera {

class Progress {
public:
    explicit Progress(std::uint64_t expected);  // frames; 0: unknown
    ~Progress();                                // wipes the line
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void show(std::uint64_t done);

private:
    bool terminal_;
    bool shown_ = false;
    std::uint64_t expected_;
    std::chrono::steady_clock::time_point next_{};
};

}  // namespace isthmus::tools::camera
