// SPDX-License-Identifier: Apache-2.0
// SegmentMap: best fit where memory is mapped, then where it is not.
#include "segment_map.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::uint64_t down(std::uint64_t offset, std::uint64_t unit) noexcept {
    return offset - offset % unit;
}
std::uint64_t up(std::uint64_t offset, std::uint64_t unit) noexcept {
    return down(offset + unit - 1, unit);
}

}  // namespace

SegmentMap::SegmentMap(std::uint64_t limit_bytes, std::uint64_t granule_bytes)
    : limit_(limit_bytes), granule_(granule_bytes) {
    free_.insert({0, limit_});
}

OffsetRange SegmentMap::granules_of(const OffsetRange& range) const noexcept {
    const std::uint64_t first = down(range.first, granule_);
    return {first, up(range.end(), granule_) - first};
}

OffsetRange SegmentMap::granules_in(const OffsetRange& range) const noexcept {
    const std::uint64_t first = up(range.first, granule_);
    const std::uint64_t end = down(range.end(), granule_);
    return {first, end > first ? end - first : 0};
}

std::vector<OffsetRange> SegmentMap::missing(const OffsetRange& range) const {
    const OffsetRange all = granules_of(range);
    std::vector<OffsetRange> runs;
    std::uint64_t at = all.first;
    for (const OffsetRange& there : mapped_.within(all)) {
        if (there.first > at) runs.push_back({at, there.first - at});
        at = there.end();
    }
    if (at < all.end()) runs.push_back({at, all.end() - at});
    return runs;
}

std::uint64_t SegmentMap::missing_bytes(const OffsetRange& range) const {
    std::uint64_t bytes = 0;
    for (const OffsetRange& run : missing(range)) bytes += run.bytes;
    return bytes;
}

// At its first or its last bytes: what is left stays one range.
std::uint64_t SegmentMap::place_in(const OffsetRange& free_range, std::uint64_t bytes) const {
    const std::uint64_t last = free_range.end() - bytes;
    if (free_range.end() == limit_) return free_range.first;
    return missing_bytes({last, bytes}) < missing_bytes({free_range.first, bytes}) ? last : free_range.first;
}

std::optional<OffsetRange> SegmentMap::place(std::uint64_t bytes) const {
    if (bytes == 0 || bytes > limit_) return std::nullopt;
    OffsetRange block{0, up(bytes, block_unit)};
    if (const std::optional<OffsetRange> ready = ready_.best_fit(block.bytes)) {
        block.first = ready->first;
    } else if (const std::optional<OffsetRange> free_range = free_.best_fit(block.bytes)) {
        block.first = place_in(*free_range, block.bytes);
    } else {
        return std::nullopt;
    }
    return block;
}

std::optional<std::uint64_t> SegmentMap::growth(std::uint64_t bytes) const {
    const std::optional<OffsetRange> block = place(bytes);
    if (!block) return std::nullopt;
    return missing_bytes(*block);
}

std::optional<OffsetRange> SegmentMap::take(std::uint64_t bytes) {
    const std::optional<OffsetRange> block = place(bytes);
    if (!block) return std::nullopt;
    free_.erase(*block);
    ready_.erase(*block);
    blocks_.emplace(block->first, block->bytes);
    return block;
}

std::optional<OffsetRange> SegmentMap::give_back(std::uint64_t first) {
    const auto found = blocks_.find(first);
    if (found == blocks_.end()) return std::nullopt;
    const OffsetRange block{first, found->second};
    blocks_.erase(found);
    free_.insert(block);
    for (const OffsetRange& lost : abandoned_.within(block)) free_.erase(lost);
    for (const OffsetRange& part : free_.within(block)) {
        for (const OffsetRange& there : mapped_.within(part)) ready_.insert(there);
    }
    return block;
}

OffsetRange SegmentMap::idle(const OffsetRange& free_range) const {
    const std::optional<OffsetRange> around = ready_.at(free_range.first);
    return around ? granules_in(*around) : OffsetRange{};
}

std::vector<OffsetRange> SegmentMap::all_idle() const {
    std::vector<OffsetRange> runs;
    for (const OffsetRange& range : ready_.all()) {
        const OffsetRange run = granules_in(range);
        if (run.bytes != 0) runs.push_back(run);
    }
    return runs;
}

void SegmentMap::now_mapped(const OffsetRange& run) {
    mapped_.insert(run);
    for (const OffsetRange& part : free_.within(run)) ready_.insert(part);
}

void SegmentMap::now_unmapped(const OffsetRange& run) {
    mapped_.erase(run);
    ready_.erase(run);
}

void SegmentMap::abandon(const OffsetRange& run) {
    abandoned_.insert(run);
    mapped_.insert(run);
    free_.erase(run);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
