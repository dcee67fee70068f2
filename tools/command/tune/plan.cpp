// SPDX-License-Identifier: Apache-2.0
// Sizes, passes and limits of what is measured.
#include "plan.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::tools::tune {
namespace {

constexpr std::size_t unit = 64;  // bytes; sizes are multiples of it

}  // namespace

Effort quick_effort() {
    Effort effort;
    effort.budget = 10;
    effort.growth = 4;
    effort.fine_to_bytes = std::size_t{4} << 20;
    effort.finest = 2.1;
    effort.least_repeats = 5;
    effort.most_repeats = 15;
    effort.least_visits = 2;
    effort.stable = 0.03;
    return effort;
}

Effort ordinary_effort() {
    return {};
}

Effort thorough_effort() {
    Effort effort;
    effort.budget = 300;
    effort.fine_to_bytes = std::size_t{128} << 20;
    effort.finest = 1.25;
    effort.least_repeats = 20;
    effort.most_repeats = 40;
    effort.least_visits = 6;
    effort.stable = 0.01;
    return effort;
}

Effort effort_for(double budget_seconds) {
    Effort effort = budget_seconds < 25 ? quick_effort() : budget_seconds < 150 ? ordinary_effort() : thorough_effort();
    effort.budget = budget_seconds;
    return effort;
}

std::vector<Way> candidate_ways(const Capabilities& device) {
    if (device.memory == MemoryModel::host) return {{MemoryKind::host, Locality::anywhere}};
    const bool placed = device.memory == MemoryModel::coherent_node;  // a GPU whose memory is a NUMA node
    const Locality near = placed ? Locality::near_device : Locality::anywhere;
    std::vector<Way> ways{{MemoryKind::pinned, Locality::anywhere},
                          {MemoryKind::registered, near},
                          {MemoryKind::managed, Locality::anywhere},
                          {MemoryKind::host, near}};
    if (placed) ways.push_back({MemoryKind::host, Locality::unbound});
    ways.push_back({MemoryKind::write_combined, Locality::anywhere});
    ways.push_back({MemoryKind::device, Locality::anywhere});
    return ways;
}

std::size_t largest_size(const FreeMemory& free, const std::vector<Way>& ways) {
    std::uint64_t on_host = 0;
    std::uint64_t on_device = 0;
    for (const Way& way : ways) {
        const bool copied = way.kind == MemoryKind::device || way.kind == MemoryKind::pool;
        ++on_host;  // a copied buffer has a host's side as well
        if (copied || way.kind == MemoryKind::managed) ++on_device;
    }
    if (free.shared) on_host += on_device;
    std::size_t bytes = most_bytes;
    const auto fits = [&](std::size_t each) {
        const bool host = each * on_host <= free.host_bytes / 4;
        const bool device = free.shared || on_device == 0 || each * on_device <= free.device_bytes / 4;
        return host && device;
    };
    while (bytes > least_bytes && !fits(bytes)) bytes /= 2;
    return bytes;
}

std::vector<std::size_t> planned_sizes(const Effort& effort, std::size_t largest) {
    std::vector<std::size_t> sizes;
    for (double bytes = static_cast<double>(least_bytes); bytes <= static_cast<double>(largest) * 1.001;) {
        const auto rounded = static_cast<std::size_t>(std::llround(bytes / unit)) * unit;
        if (sizes.empty() || rounded > sizes.back()) sizes.push_back(std::min(rounded, largest));
        bytes *= rounded < effort.fine_to_bytes ? effort.growth : 4;
    }
    if (sizes.empty() || sizes.back() < largest) sizes.push_back(largest);
    return sizes;
}

std::size_t size_between(std::size_t below, std::size_t above) noexcept {
    const double middle = std::sqrt(static_cast<double>(below) * static_cast<double>(above));
    const auto rounded = static_cast<std::size_t>(std::llround(middle / unit)) * unit;
    return rounded > below && rounded < above ? rounded : 0;
}

std::vector<int> passes_at(std::size_t bytes) {
    constexpr std::size_t MiB = std::size_t{1} << 20;
    if (bytes > 128 * MiB) return {1, 16};
    // Time is not linear in passes: from some number of launches on, a queue is full and the device's rate counts.
    // Where a pass takes long, further ones follow from the first sixteen.
    if (bytes > 16 * MiB) return {1, 4, 16};
    if (bytes > MiB) return {1, 4, 16, 64};
    return {1, 4, 16, 64, 256};
}

}  // namespace isthmus::tools::tune
