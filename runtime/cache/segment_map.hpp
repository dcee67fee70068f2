// SPDX-License-Identifier: Apache-2.0
// SegmentMap: which parts of a range of addresses are blocks, which are free, and where memory is mapped. Pure.
#pragma once

#include "free_ranges.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Offsets from the first address. Memory is mapped by granules, and only where a block is or was. A block begins at a
// multiple of block_unit and may cross granules. Not synchronised. Every function takes O(log n) of the free ranges,
// and as many steps more as a block has granules.
//
// take() → map what missing() yields → now_mapped() for each run; or, if that fails, give_back(). give_back() → idle()
// yields granules without a block → unmap them → now_unmapped(). Where unmapping fails, the granules stay free and
// mapped: the next block that fits there uses them, and idle() yields them again.
class SegmentMap {
public:
    static constexpr std::uint64_t block_unit = 512;

    // Both are multiples of block_unit; the limit is a multiple of the granule.
    SegmentMap(std::uint64_t limit_bytes, std::uint64_t granule_bytes);

    // A new block, rounded up to block_unit. nullopt: no free range is large enough. First the smallest mapped range
    // that holds it; without one, the smallest free range. There it lies at the end that needs fewer granules.
    std::optional<OffsetRange> take(std::uint64_t bytes);
    // How many bytes would be mapped for such a block. nullopt: as for take().
    std::optional<std::uint64_t> growth(std::uint64_t bytes) const;
    // The block that begins here becomes free. nullopt: none does.
    std::optional<OffsetRange> give_back(std::uint64_t first);
    // Runs of whole granules under this range that are not mapped.
    std::vector<OffsetRange> missing(const OffsetRange& range) const;
    // The run of whole granules around a free range that are mapped and hold no block; bytes 0: none.
    OffsetRange idle(const OffsetRange& free_range) const;
    std::vector<OffsetRange> all_idle() const;
    // Whole granules.
    void now_mapped(const OffsetRange& run);
    void now_unmapped(const OffsetRange& run);
    // No later block lies here: these whole granules are mapped, and could neither be opened nor unmapped. They must
    // not be known as mapped; all_mapped() yields them.
    void abandon(const OffsetRange& run);
    std::vector<OffsetRange> all_mapped() const { return mapped_.all(); }

    std::size_t blocks() const noexcept { return blocks_.size(); }
    std::uint64_t block_bytes() const noexcept { return limit_ - free_.bytes(); }
    std::uint64_t mapped_bytes() const noexcept { return mapped_.bytes(); }
    std::uint64_t granule_bytes() const noexcept { return granule_; }

private:
    OffsetRange granules_of(const OffsetRange& range) const noexcept;  // that it touches
    OffsetRange granules_in(const OffsetRange& range) const noexcept;  // that lie in it
    std::uint64_t missing_bytes(const OffsetRange& range) const;
    std::optional<OffsetRange> place(std::uint64_t bytes) const;
    std::uint64_t place_in(const OffsetRange& free_range, std::uint64_t bytes) const;

    const std::uint64_t limit_;
    const std::uint64_t granule_;
    FreeRanges free_;                                // all of it that is no block
    FreeRanges ready_;                               // of that, what is mapped
    FreeRanges mapped_;                              // whole granules
    FreeRanges abandoned_;                           // whole granules, in mapped_ as well
    std::map<std::uint64_t, std::uint64_t> blocks_;  // first → bytes
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
