// SPDX-License-Identifier: Apache-2.0
// Whether the requests for which a thread asks the driver grow from one to the next. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace isthmus::rules {

struct Growth {
    std::uint64_t last_bytes = 0;
    unsigned times = 0;  // in a row, each larger than the last by no more than a quarter
};
constexpr unsigned times_that_grow = 3;
constexpr Growth grown(const Growth& before, std::uint64_t bytes) noexcept {
    const bool larger = bytes > before.last_bytes && bytes - before.last_bytes <= before.last_bytes / 4;
    return {bytes, larger ? std::min(before.times + 1, times_that_grow) : 0};
}
constexpr bool grows(const Growth& so_far) noexcept {
    return so_far.times == times_that_grow;
}

}  // namespace isthmus::rules
