// SPDX-License-Identifier: Apache-2.0
// FreeRanges: disjoint ranges of offsets, found by place and by size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct OffsetRange {
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
    std::uint64_t end() const noexcept { return first + bytes; }
    friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

// Ranges that touch are one range. Every function takes O(log n) of the ranges, and erase() and within() as many steps
// more as they meet ranges. Not synchronised.
class FreeRanges {
public:
    // Adds a range, of which nothing may be in it; the range that it is part of from then on.
    OffsetRange insert(const OffsetRange& range);
    // Removes what lies in this range.
    void erase(const OffsetRange& range);
    // The smallest range of at least so many bytes, of equals the first.
    std::optional<OffsetRange> best_fit(std::uint64_t bytes) const;
    // The range that contains this offset.
    std::optional<OffsetRange> at(std::uint64_t offset) const;
    // The parts that lie in this range, in order.
    std::vector<OffsetRange> within(const OffsetRange& range) const;
    std::vector<OffsetRange> all() const;
    std::size_t count() const noexcept { return by_place_.size(); }
    std::uint64_t bytes() const noexcept { return bytes_; }

private:
    using ByPlace = std::map<std::uint64_t, std::uint64_t>;  // first → bytes
    ByPlace::const_iterator first_reaching(std::uint64_t offset) const;
    void add(const OffsetRange& range);
    void remove(ByPlace::const_iterator range);

    ByPlace by_place_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // bytes, first
    std::uint64_t bytes_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
