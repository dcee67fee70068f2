// SPDX-License-Identifier: Apache-2.0
// StageTimes: the duration of each stage in each frame, and its percentiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::tools::camera {

// The smallest value that at least `percent` % of the values do not exceed (nearest rank); 0 without values.
inline std::uint64_t percentile(std::vector<std::uint64_t> values, unsigned percent) {
    if (values.empty()) return 0;
    const std::size_t rank = (values.size() * percent + 99) / 100;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : rank - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

// One value per frame. The owner sets the name.
struct Samples {
    const char* name = "";
    const char* where = "";  // "CPU", "device"
    std::vector<std::uint64_t> values{};

    void add(std::uint64_t value) { values.push_back(value); }
    std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t value : values) sum += value;
        return sum;
    }
};

// Adds the nanoseconds of its own lifetime.
class StageTimer {
public:
    explicit StageTimer(Samples& samples) : samples_(samples), begin_(std::chrono::steady_clock::now()) {}
    ~StageTimer() {
        const auto taken = std::chrono::steady_clock::now() - begin_;
        samples_.add(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count()));
    }
    StageTimer(const StageTimer&) = delete;
    StageTimer& operator=(const StageTimer&) = delete;

private:
    Samples& samples_;
    std::chrono::steady_clock::time_point begin_;
};

}  // namespace isthmus::tools::camera
