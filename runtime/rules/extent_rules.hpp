// SPDX-License-Identifier: Apache-2.0
// rank × extent → whether a launch may have it. Pure, and the same for every device: the CPU device refuses what a
// GPU's grid cannot express.
#pragma once

#include <isthmus/kernel_info.hpp>

#include <array>
#include <cstdint>

namespace isthmus::rules {

enum class ExtentVerdict : std::uint8_t { runs, empty, negative, too_large };

struct ExtentAnswer {
    ExtentVerdict verdict = ExtentVerdict::runs;
    std::uint8_t dimension = 0;  // of a refused number: 0 to 2
    std::uint64_t number = 0;    // the refused number
    std::uint64_t most = 0;      // what the dimension allows

    constexpr bool refused() const noexcept {
        return verdict == ExtentVerdict::negative || verdict == ExtentVerdict::too_large;
    }
};

// A signed number that became unsigned: no launch is so large.
constexpr bool is_negative(std::uint64_t number) noexcept {
    return (number >> 63) != 0;
}

// The first number that is refused, otherwise whether there is anything to run. A zero beside a refused number excuses
// nothing.
constexpr ExtentAnswer judge_extent(std::uint8_t rank, const Extent& extent) noexcept {
    const Extent limit = largest_extent(rank);
    const std::array<std::uint64_t, 3> numbers{extent.x, extent.y, extent.z};
    const std::array<std::uint64_t, 3> most{limit.x, limit.y, limit.z};
    bool empty = false;
    for (std::uint8_t d = 0; d < 3; ++d) {
        if (is_negative(numbers[d])) return {ExtentVerdict::negative, d, numbers[d], most[d]};
        if (numbers[d] > most[d]) return {ExtentVerdict::too_large, d, numbers[d], most[d]};
        empty = empty || numbers[d] == 0;
    }
    return {empty ? ExtentVerdict::empty : ExtentVerdict::runs};
}

// "items", "items of its width": what a number of the extent counts.
constexpr const char* extent_words(std::uint8_t rank, std::uint8_t dimension) noexcept {
    constexpr std::array<const char*, 3> items{"items of width", "items of height", "items of depth"};
    constexpr std::array<const char*, 3> blocks{"blocks in x", "blocks in y", "blocks in z"};
    if (rank == 1) return "items";
    return rank == 0 ? blocks[dimension] : items[dimension];
}

}  // namespace isthmus::rules
