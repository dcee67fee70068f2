// SPDX-License-Identifier: Apache-2.0
// Which points are measured: pure, from the time that there is, the memory that is free, and the lawful ways.
#pragma once

#include "measurements.hpp"

#include <isthmus/capability.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus::tools::tune {

inline constexpr std::size_t least_bytes = 64;
inline constexpr std::size_t most_bytes = std::size_t{1} << 30;

// Free memory in bytes. On machines with one DRAM both numbers are about the same memory.
struct FreeMemory {
    std::uint64_t host_bytes = 0;
    std::uint64_t device_bytes = 0;
    bool shared = false;  // CPU and GPU share one DRAM
};

// How much is measured. Times are in seconds.
struct Effort {
    double budget = 60;
    double growth = 2;                                  // from one planned size to the next, up to `fine_to_bytes`
    std::size_t fine_to_bytes = std::size_t{16} << 20;  // beyond it sizes grow by 4
    double finest = 1.5;     // sizes between which the best way changes are refined until their ratio is below this
    int least_repeats = 12;  // of a point; where there is too little time, those of large sizes get 3
    int most_repeats = 16;   // of a point in one visit
    int least_visits = 4;    // of a size, while there is time: a machine's speed changes within seconds
    double stable = 0.02;    // half of a confidence interval that needs no more repeats, as a share of the median
    int repeats_of_one_allocation = 3;  // then the memory of a size up to renewed_to_bytes is allocated again
    std::size_t renewed_to_bytes = std::size_t{4} << 20;
    double for_figures = 0.2;  // share of the budget
};
Effort quick_effort();     // 10 s
Effort ordinary_effort();  // 60 s
Effort thorough_effort();  // 300 s
// The effort whose budget is nearest, with this budget.
Effort effort_for(double budget_seconds);

// The ways that this device may have; whether it has one, its allocation tells. Host memory that may migrate to the GPU
// is two ways: bound near the device, where it stays, and unbound.
std::vector<Way> candidate_ways(const Capabilities& device);

// The largest size of which every way's buffers together fit in a quarter of the free memory; a power of two from 64
// bytes to 1 GiB.
std::size_t largest_size(const FreeMemory& free, const std::vector<Way>& ways);

// The sizes that are measured first, ascending: multiples of 64 bytes from 64 bytes to `largest`.
std::vector<std::size_t> planned_sizes(const Effort& effort, std::size_t largest);
// The size between two others on a logarithmic scale, a multiple of 64 bytes; 0: there is none between them.
std::size_t size_between(std::size_t below, std::size_t above) noexcept;
// The numbers of passes that are measured at this size, ascending: 1 and 16 everywhere, and more where they are cheap.
std::vector<int> passes_at(std::size_t bytes);

}  // namespace isthmus::tools::tune
