// SPDX-License-Identifier: Apache-2.0
// FreeRanges: one tree by place, one by size.
#include "free_ranges.hpp"

#include <algorithm>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The first range that ends behind `offset`.
FreeRanges::ByPlace::const_iterator FreeRanges::first_reaching(std::uint64_t offset) const {
    const auto after = by_place_.upper_bound(offset);
    if (after == by_place_.begin()) return after;
    const auto before = std::prev(after);
    return before->first + before->second > offset ? before : after;
}

void FreeRanges::add(const OffsetRange& range) {
    if (range.bytes == 0) return;
    by_place_.emplace(range.first, range.bytes);
    by_size_.emplace(range.bytes, range.first);
    bytes_ += range.bytes;
}

void FreeRanges::remove(ByPlace::const_iterator range) {
    by_size_.erase({range->second, range->first});
    bytes_ -= range->second;
    by_place_.erase(range);
}

OffsetRange FreeRanges::insert(const OffsetRange& range) {
    OffsetRange whole = range;
    if (range.bytes == 0) return whole;
    const auto after = by_place_.lower_bound(range.first);
    if (after != by_place_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == range.first) {
            whole = {before->first, before->second + whole.bytes};
            remove(before);
        }
    }
    if (after != by_place_.end() && after->first == range.end()) {
        whole.bytes += after->second;
        remove(after);
    }
    add(whole);
    return whole;
}

void FreeRanges::erase(const OffsetRange& range) {
    for (auto next = first_reaching(range.first); next != by_place_.end() && next->first < range.end();) {
        const OffsetRange met{next->first, next->second};
        remove(next);
        if (met.first < range.first) add({met.first, range.first - met.first});
        if (met.end() > range.end()) add({range.end(), met.end() - range.end()});
        next = first_reaching(range.first);
    }
}

std::optional<OffsetRange> FreeRanges::best_fit(std::uint64_t bytes) const {
    const auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) return std::nullopt;
    return OffsetRange{found->second, found->first};
}

std::optional<OffsetRange> FreeRanges::at(std::uint64_t offset) const {
    const auto found = first_reaching(offset);
    if (found == by_place_.end() || found->first > offset) return std::nullopt;
    return OffsetRange{found->first, found->second};
}

std::vector<OffsetRange> FreeRanges::within(const OffsetRange& range) const {
    std::vector<OffsetRange> parts;
    for (auto next = first_reaching(range.first); next != by_place_.end() && next->first < range.end(); ++next) {
        const std::uint64_t first = std::max(range.first, next->first);
        const std::uint64_t end = std::min(range.end(), next->first + next->second);
        parts.push_back({first, end - first});
    }
    return parts;
}

std::vector<OffsetRange> FreeRanges::all() const {
    std::vector<OffsetRange> ranges;
    for (const auto& [first, bytes] : by_place_) ranges.push_back({first, bytes});
    return ranges;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
