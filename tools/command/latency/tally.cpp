// SPDX-License-Identifier: Apache-2.0
#include "tally.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus::tools::latency {

std::string_view name(Part part) noexcept {
    switch (part) {
        case Part::wake_up: return "wake_up";
        case Part::submit: return "submit";
        case Part::device: return "device";
        case Part::view: return "view";
    }
    return "unknown";
}

std::uint64_t total_ns(const TurnTimes& times) noexcept {
    return std::accumulate(times.begin(), times.end(), std::uint64_t{0});
}

void Tally::add(std::uint64_t turn, const TurnTimes& times) noexcept {
    const std::uint64_t total = total_ns(times);
    if (turns() == 0 || total > total_.maximum_ns()) {
        worst_turn_ = turn;
        worst_ = times;
    }
    total_.add(total);
    for (std::size_t part = 0; part < part_count; ++part) parts_[part].add(times[part]);
    if (total <= deadline_ns_) return;
    ++late_;
    ++late_by_[static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin())];
}

double Tally::share(Part of) const noexcept {
    if (total_.sum_ns() == 0) return 0;
    return static_cast<double>(part(of).sum_ns()) / static_cast<double>(total_.sum_ns());
}

}  // namespace isthmus::tools::latency
