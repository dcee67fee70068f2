// SPDX-License-Identifier: Apache-2.0
// Timing: how the two sides of a trial are made to meet. Which speeds and delays bring them to the same words at the
// same time differs from machine to machine, so it is tried, and what worked is tried more often. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::tools::litmus {

// Of one launch: the GPU's speed beside the CPU's, and who begins later.
struct Pace {
    std::uint32_t percent = 100;     // of the time that the CPU takes for a piece, for the GPU's warps
    std::uint32_t host_late_ns = 0;  // the CPU waits so long behind the beginning of a round
    std::uint32_t device_late_ns = 0;
};

// Splitmix64: the next of a sequence, below `below`.
std::uint32_t draw(std::uint64_t& random, std::uint32_t below) noexcept;

class Timing {
public:
    static constexpr std::size_t choices = 48;
    static Pace pace(std::size_t choice) noexcept;

    // Half of the time the best so far, else any: what is best may change, and odd timings find odd outcomes.
    std::size_t choose(std::uint64_t& random) const noexcept;
    // Of `tried` instances `met` had an outcome that needs both sides at once.
    void learn(std::size_t choice, std::uint64_t met, std::uint64_t tried) noexcept;

private:
    std::array<double, choices> rates_{};  // running means; 0: nothing met, or not tried
};

}  // namespace isthmus::tools::litmus
