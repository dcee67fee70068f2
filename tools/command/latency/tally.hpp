// SPDX-License-Identifier: Apache-2.0
// What is kept of the turns of a loop: a histogram of each part and of the whole, the missed deadlines, the worst turn.
// Pure; adding a turn takes no memory.
#pragma once

#include "histogram.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus::tools::latency {

// The parts of a turn, in their order.
enum class Part : std::uint8_t {
    wake_up,  // from the planned time to the thread's first instruction
    submit,   // the CPU writes the buffer and gives the work to the device
    device,   // until the answer may be viewed
    view,     // the CPU reads the answer and checks it
};
inline constexpr std::size_t part_count = 4;
inline constexpr std::array<Part, part_count> all_parts = {Part::wake_up, Part::submit, Part::device, Part::view};
// "wake_up"; "device" is the GPU, or the CPU device.
std::string_view name(Part part) noexcept;

using TurnTimes = std::array<std::uint64_t, part_count>;  // nanoseconds, by Part
std::uint64_t total_ns(const TurnTimes& times) noexcept;

class Tally {
public:
    explicit Tally(std::uint64_t deadline_ns) noexcept : deadline_ns_(deadline_ns) {}

    void add(std::uint64_t turn, const TurnTimes& times) noexcept;

    std::uint64_t turns() const noexcept { return total_.count(); }
    const Histogram& total() const noexcept { return total_; }
    const Histogram& part(Part part) const noexcept { return parts_[static_cast<std::size_t>(part)]; }
    // Turns whose total exceeds the deadline, and how many of them had this part as their longest.
    std::uint64_t late() const noexcept { return late_; }
    std::uint64_t late_by(Part part) const noexcept { return late_by_[static_cast<std::size_t>(part)]; }
    // The share of all time that this part took; 0 without turns.
    double share(Part part) const noexcept;
    std::uint64_t worst_turn() const noexcept { return worst_turn_; }
    const TurnTimes& worst() const noexcept { return worst_; }

private:
    std::uint64_t deadline_ns_;
    Histogram total_;
    std::array<Histogram, part_count> parts_;
    std::uint64_t late_ = 0;
    std::array<std::uint64_t, part_count> late_by_{};
    std::uint64_t worst_turn_ = 0;
    TurnTimes worst_{};
};

}  // namespace isthmus::tools::latency
