// SPDX-License-Identifier: Apache-2.0
// Timing: makes the two sides of a trial meet. The speeds and delays that bring them to the same words at the same time
// differ between machines, so they are tried at random, and successful ones are repeated more often. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::tools::litmus {

// The pace of one launch: the GPU's speed relative to the CPU's, and the delay of one side.
struct Pace {
    std::uint32_t percent = 100;     // time of the GPU's warps for a piece, in percent of the CPU's
    std::uint32_t host_late_ns = 0;  // delay of the CPU after the beginning of a round
    std::uint32_t device_late_ns = 0;
};

// Splitmix64: returns the next number of the sequence, below `below`.
std::uint32_t draw(std::uint64_t& random, std::uint32_t below) noexcept;

class Timing {
public:
    static constexpr std::size_t choices = 48;
    static Pace pace(std::size_t choice) noexcept;

    // Returns the best timing so far in half of the calls, otherwise a random one: the best may change, and unusual
    // timings find unusual outcomes.
    std::size_t choose(std::uint64_t& random) const noexcept;
    // `met` of `tried` instances had an outcome that needs both sides at the same time.
    void learn(std::size_t choice, std::uint64_t met, std::uint64_t tried) noexcept;

private:
    std::array<double, choices> rates_{};  // running means; 0: no meeting, or not tried
};

}  // namespace isthmus::tools::litmus
