// The book of mapped ranges.
#include "mapped_ranges.hpp"

#include <algorithm>

namespace isthmus::inline v0::detail {

RangeAccess MappedRanges::Range::access(std::size_t device) const noexcept {
    if (device >= most_devices) return RangeAccess::none;
    if (((writers >> device) & 1u) != 0) return RangeAccess::read_write;
    return ((readers >> device) & 1u) != 0 ? RangeAccess::read : RangeAccess::none;
}

void MappedRanges::add(std::uint64_t base, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    ranges_[base] = Range{bytes, 0, 0};
}

void MappedRanges::remove(std::uint64_t base) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(base);
}

void MappedRanges::set(std::uint64_t base, std::size_t device, RangeAccess access) {
    if (device >= most_devices) return;
    const std::uint64_t bit = std::uint64_t{1} << device;
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(base);
    if (found == ranges_.end()) return;
    Range& range = found->second;
    range.readers = access == RangeAccess::none ? range.readers & ~bit : range.readers | bit;
    range.writers = access == RangeAccess::read_write ? range.writers | bit : range.writers & ~bit;
}

RangeAccess MappedRanges::access(std::uint64_t base, std::size_t device) const {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(base);
    return found == ranges_.end() ? RangeAccess::none : found->second.access(device);
}

rules::RangeFacts MappedRanges::over(std::uint64_t address, std::uint64_t bytes, std::size_t device) const {
    RangeAccess least = RangeAccess::read_write;
    const std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return {};
    --range;
    while (range != ranges_.end() && address >= range->first && address - range->first < range->second.bytes) {
        least = std::min(least, range->second.access(device));
        const std::uint64_t left = range->second.bytes - (address - range->first);
        if (bytes <= left) return {true, least};
        bytes -= left;
        address += left;
        ++range;
    }
    return {};
}

}  // namespace isthmus::inline v0::detail
