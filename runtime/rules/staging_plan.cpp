// SPDX-License-Identifier: Apache-2.0
// Lays out the temporary of a staged launch: overlapping ranges stay together, and each byte is copied at most once in
// each direction.
#include "staging_plan.hpp"

#include "sharing_rules.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus::rules {
namespace {

// Adds a piece to the copies. Pieces come by ascending address; overlapping or adjacent pieces become one copy.
void add_copy(std::vector<StagedCopy>& copies, const StagedRange& range, std::uint64_t offset) {
    if (!copies.empty()) {
        StagedCopy& last = copies.back();
        const bool same = last.ordinal == range.ordinal && range.address >= last.address &&
                          offset - last.offset == range.address - last.address;
        if (same && range.address - last.address <= last.bytes) {
            last.bytes = std::max(last.bytes, range.address - last.address + range.bytes);
            return;
        }
    }
    copies.push_back({range.address, offset, range.bytes, range.ordinal});
}

}  // namespace

StagingPlan plan_staging(const std::vector<StagedRange>& ranges) {
    std::vector<std::size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (ranges[a].ordinal != ranges[b].ordinal) return ranges[a].ordinal < ranges[b].ordinal;
        return ranges[a].address != ranges[b].address ? ranges[a].address < ranges[b].address : a < b;
    });
    StagingPlan plan;
    plan.offsets.resize(ranges.size());
    // The current run of overlapping ranges: its addresses, and its offset in the temporary.
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t first_offset = 0;
    int ordinal = -1;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const StagedRange& range = ranges[order[i]];
        if (i == 0 || range.ordinal != ordinal || range.address >= end) {
            const std::uint64_t up = (plan.bytes + StagingPlan::alignment - 1) / StagingPlan::alignment;
            first = range.address;
            first_offset = up * StagingPlan::alignment + first % StagingPlan::alignment;
            end = range.address;
            ordinal = range.ordinal;
        }
        end = std::max(end, range.address + range.bytes);
        const std::uint64_t offset = first_offset + (range.address - first);
        plan.bytes = std::max(plan.bytes, offset + range.bytes);
        plan.offsets[order[i]] = offset;
        if (reads(range.use)) add_copy(plan.in, range, offset);
        if (writes(range.use)) add_copy(plan.out, range, offset);
    }
    return plan;
}

}  // namespace isthmus::rules
