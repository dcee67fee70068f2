// SPDX-License-Identifier: Apache-2.0
// Chooses the speeds and delays that make the two sides of a trial meet.
#include "timing.hpp"

#include <algorithm>
#include <iterator>

namespace isthmus::tools::litmus {
namespace {

constexpr std::uint32_t percents[] = {0, 25, 50, 75, 90, 100, 115, 140};
constexpr int delays_ns[] = {-2000, 0, 500, 1000, 2000, 4000};  // delays of the CPU; below 0: of the GPU
static_assert(std::size(percents) * std::size(delays_ns) == Timing::choices);

}  // namespace

std::uint32_t draw(std::uint64_t& random, std::uint32_t below) noexcept {
    random += 0x9e3779b97f4a7c15u;
    std::uint64_t x = random;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::uint32_t>((x ^ (x >> 31)) % below);
}

Pace Timing::pace(std::size_t choice) noexcept {
    const int delay = delays_ns[choice / std::size(percents) % std::size(delays_ns)];
    Pace pace;
    pace.percent = percents[choice % std::size(percents)];
    (delay < 0 ? pace.device_late_ns : pace.host_late_ns) = static_cast<std::uint32_t>(delay < 0 ? -delay : delay);
    return pace;
}

std::size_t Timing::choose(std::uint64_t& random) const noexcept {
    const auto best = std::max_element(rates_.begin(), rates_.end());
    if (*best == 0 || draw(random, 2) == 0) return draw(random, static_cast<std::uint32_t>(choices));
    return static_cast<std::size_t>(best - rates_.begin());
}

void Timing::learn(std::size_t choice, std::uint64_t met, std::uint64_t tried) noexcept {
    if (choice >= choices || tried == 0) return;
    const double rate = static_cast<double>(met) / static_cast<double>(tried);
    rates_[choice] = rates_[choice] == 0 ? rate : 0.75 * rates_[choice] + 0.25 * rate;
}

}  // namespace isthmus::tools::litmus
