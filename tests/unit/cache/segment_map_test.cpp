// SPDX-License-Identifier: Apache-2.0
// FreeRanges and SegmentMap against models that look at every unit.
#include <free_ranges.hpp>
#include <gtest/gtest.h>
#include <segment_map.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace {

using isthmus::detail::FreeRanges;
using isthmus::detail::OffsetRange;
using isthmus::detail::SegmentMap;

class Draw {
public:
    explicit Draw(std::uint64_t seed) : state_(seed) {}
    std::uint64_t below(std::uint64_t bound) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return (state_ >> 33) % bound;
    }

private:
    std::uint64_t state_;
};

TEST(FreeRanges, RangesThatTouchAreOne) {
    FreeRanges ranges;
    EXPECT_EQ(ranges.insert({10, 5}), (OffsetRange{10, 5}));
    EXPECT_EQ(ranges.insert({20, 5}), (OffsetRange{20, 5}));
    EXPECT_EQ(ranges.count(), 2u);
    EXPECT_EQ(ranges.insert({15, 5}), (OffsetRange{10, 15}));
    EXPECT_EQ(ranges.count(), 1u);
    EXPECT_EQ(ranges.at(24), (OffsetRange{10, 15}));
    EXPECT_EQ(ranges.at(25), std::nullopt);
    EXPECT_EQ(ranges.at(9), std::nullopt);
}

TEST(FreeRanges, TheSmallestThatFitsIsFoundAndTheFirstOfEquals) {
    FreeRanges ranges;
    ranges.insert({0, 8});
    ranges.insert({100, 4});
    ranges.insert({50, 4});
    EXPECT_EQ(ranges.best_fit(3), (OffsetRange{50, 4}));
    EXPECT_EQ(ranges.best_fit(5), (OffsetRange{0, 8}));
    EXPECT_EQ(ranges.best_fit(9), std::nullopt);
}

TEST(FreeRanges, BehaveAsASetOfUnits) {
    constexpr std::size_t units = 64;
    Draw draw(7);
    for (int made = 0; made < 30; ++made) {
        FreeRanges ranges;
        std::array<bool, units> model{};
        for (int step = 0; step < 300; ++step) {
            const std::uint64_t first = draw.below(units);
            const OffsetRange range{first, draw.below(units - first) + 1};
            const auto begin = model.begin() + static_cast<std::ptrdiff_t>(range.first);
            const auto end = begin + static_cast<std::ptrdiff_t>(range.bytes);
            if (draw.below(2) == 0) {
                if (std::count(begin, end, true) != 0) continue;
                ranges.insert(range);
                std::fill(begin, end, true);
            } else {
                ranges.erase(range);
                std::fill(begin, end, false);
            }
            std::vector<OffsetRange> expected;
            for (std::uint64_t at = 0; at < units; ++at) {
                if (!model[at]) continue;
                if (!expected.empty() && expected.back().end() == at) {
                    ++expected.back().bytes;
                } else {
                    expected.push_back({at, 1});
                }
            }
            ASSERT_EQ(ranges.all(), expected);
            ASSERT_EQ(ranges.bytes(), static_cast<std::uint64_t>(std::count(model.begin(), model.end(), true)));
            std::uint64_t inside = 0;
            for (const OffsetRange& part : ranges.within(range)) inside += part.bytes;
            ASSERT_EQ(inside, static_cast<std::uint64_t>(std::count(begin, end, true)));
            for (std::uint64_t bytes = 1; bytes < units; bytes += 5) {
                std::optional<OffsetRange> best;
                for (const OffsetRange& one : expected) {
                    if (one.bytes >= bytes && (!best || one.bytes < best->bytes)) best = one;
                }
                ASSERT_EQ(ranges.best_fit(bytes), best);
            }
        }
    }
}

constexpr std::uint64_t unit = SegmentMap::block_unit;
constexpr std::uint64_t granule = 8 * unit;
constexpr std::uint64_t limit = 32 * granule;

void map_missing(SegmentMap& map, const OffsetRange& block) {
    for (const OffsetRange& run : map.missing(block)) map.now_mapped(run);
}

TEST(SegmentMap, MapsWhatABlockNeedsAndNoMore) {  // keeps M5
    SegmentMap map(limit, granule);
    const OffsetRange block = map.take(granule + 1).value();
    EXPECT_EQ(block, (OffsetRange{0, granule + unit}));
    EXPECT_EQ(map.missing(block), (std::vector<OffsetRange>{{0, 2 * granule}}));
    map_missing(map, block);
    EXPECT_EQ(map.mapped_bytes(), 2 * granule);
    EXPECT_TRUE(map.missing(block).empty());
    const OffsetRange beside = map.take(7 * unit).value();
    EXPECT_EQ(beside.first, block.end()) << "what is mapped serves first";
    EXPECT_TRUE(map.missing(beside).empty());
    EXPECT_EQ(map.blocks(), 2u);
    EXPECT_EQ(map.block_bytes(), block.bytes + beside.bytes);
}

TEST(SegmentMap, GranulesWithoutABlockAreIdle) {  // keeps M5
    SegmentMap map(limit, granule);
    const OffsetRange first = map.take(3 * granule - unit).value();
    map_missing(map, first);
    const OffsetRange second = map.take(unit).value();
    EXPECT_EQ(map.mapped_bytes(), 3 * granule);
    EXPECT_EQ(map.idle(map.give_back(first.first).value()), (OffsetRange{0, 2 * granule})) << "the third has a block";
    map.now_unmapped({0, 2 * granule});
    EXPECT_EQ(map.mapped_bytes(), granule);
    EXPECT_EQ(map.idle(map.give_back(second.first).value()), (OffsetRange{2 * granule, granule}));
    EXPECT_EQ(map.all_idle(), (std::vector<OffsetRange>{{2 * granule, granule}})) << "it could not be unmapped so far";
    const OffsetRange again = map.take(granule).value();
    EXPECT_EQ(again.first, 2 * granule) << "a block uses it";
    EXPECT_TRUE(map.all_idle().empty());
}

TEST(SegmentMap, ABlockWhoseMemoryCouldNotBeMappedLeavesNothing) {  // keeps M5
    SegmentMap map(limit, granule);
    const OffsetRange block = map.take(4 * granule).value();
    map.now_mapped({0, granule});
    const OffsetRange free_range = map.give_back(block.first).value();
    EXPECT_EQ(map.idle(free_range), (OffsetRange{0, granule}));
    map.now_unmapped({0, granule});
    EXPECT_EQ(map.mapped_bytes(), 0u);
    EXPECT_EQ(map.block_bytes(), 0u);
    EXPECT_EQ(map.take(limit).value(), (OffsetRange{0, limit}));
}

TEST(SegmentMap, NoBlockLiesInGranulesThatAreAbandoned) {  // keeps M5
    SegmentMap map(limit, granule);
    const OffsetRange block = map.take(4 * granule).value();
    map.abandon({0, granule});
    ASSERT_TRUE(map.give_back(block.first));
    EXPECT_TRUE(map.all_idle().empty());
    EXPECT_EQ(map.take(unit).value().first, granule);
    EXPECT_EQ(map.take(limit - granule), std::nullopt);
    EXPECT_EQ(map.all_mapped(), (std::vector<OffsetRange>{{0, granule}}));
}

TEST(SegmentMap, TellsHowMuchABlockWouldMap) {
    SegmentMap map(limit, granule);
    EXPECT_EQ(map.growth(granule + 1), 2 * granule);
    const OffsetRange block = map.take(granule + 1).value();
    map_missing(map, block);
    EXPECT_EQ(map.growth(granule - unit), 0u);
    EXPECT_EQ(map.growth(granule), granule);
    EXPECT_EQ(map.growth(limit), std::nullopt);
}

TEST(SegmentMap, RefusesWhatDoesNotFitAndWhatIsNoBlock) {
    SegmentMap map(limit, granule);
    EXPECT_EQ(map.take(0), std::nullopt);
    EXPECT_EQ(map.take(limit + 1), std::nullopt);
    EXPECT_EQ(map.take(~std::uint64_t{0}), std::nullopt);
    const OffsetRange most = map.take(limit - unit).value();
    EXPECT_EQ(map.take(2 * unit), std::nullopt);
    EXPECT_EQ(map.take(1).value().first, limit - unit);
    EXPECT_EQ(map.take(1), std::nullopt);
    EXPECT_EQ(map.give_back(unit), std::nullopt) << "inside a block";
    EXPECT_EQ(map.give_back(most.first), most);
    EXPECT_EQ(map.give_back(most.first), std::nullopt) << "twice";
}

// Every unit of the range, looked at one by one.
class Model {
public:
    void fill(const OffsetRange& block, bool used) {
        for (std::uint64_t at = block.first / unit; at < block.end() / unit; ++at) {
            ASSERT_NE(used_[at], used) << "blocks overlap";
            used_[at] = used;
        }
    }
    bool holds_block(std::uint64_t granule_at) const {
        const auto begin = used_.begin() + static_cast<std::ptrdiff_t>(granule_at * (granule / unit));
        return std::count(begin, begin + static_cast<std::ptrdiff_t>(granule / unit), true) != 0;
    }
    std::uint64_t needed_bytes() const {
        std::uint64_t bytes = 0;
        for (std::uint64_t at = 0; at < limit / granule; ++at) bytes += holds_block(at) ? granule : 0;
        return bytes;
    }

private:
    std::array<bool, limit / unit> used_{};
};

// keeps M5: mapped is exactly what blocks lie in, whatever comes and goes, but for what could not be unmapped
TEST(SegmentMap, IsMappedWhereBlocksAre) {
    Draw draw(3);
    for (int made = 0; made < 40; ++made) {
        const bool unmaps = made % 2 == 0;
        SegmentMap map(limit, granule);
        Model model;
        std::vector<OffsetRange> living;
        for (int step = 0; step < 400; ++step) {
            if (draw.below(5) < 3 || living.empty()) {
                const std::uint64_t bytes = 1 + draw.below(draw.below(4) == 0 ? 3 * granule : granule);
                const std::optional<OffsetRange> block = map.take(bytes);
                if (!block) continue;
                ASSERT_GE(block->bytes, bytes);
                ASSERT_LT(block->bytes, bytes + unit);
                ASSERT_EQ(block->first % unit, 0u);
                ASSERT_LE(block->end(), limit);
                model.fill(*block, true);
                map_missing(map, *block);
                ASSERT_TRUE(map.missing(*block).empty());
                living.push_back(*block);
            } else {
                std::swap(living[draw.below(living.size())], living.back());
                const OffsetRange block = map.give_back(living.back().first).value();
                ASSERT_EQ(block, living.back());
                living.pop_back();
                model.fill(block, false);
                const OffsetRange idle = map.idle(block);
                for (std::uint64_t at = idle.first / granule; at < idle.end() / granule; ++at) {
                    ASSERT_FALSE(model.holds_block(at)) << "a block would lose its memory";
                }
                if (idle.bytes != 0 && (unmaps || draw.below(4) == 0)) map.now_unmapped(idle);
            }
            if (unmaps) {
                ASSERT_EQ(map.mapped_bytes(), model.needed_bytes());
            }
            std::uint64_t idle_bytes = 0;
            for (const OffsetRange& run : map.all_idle()) idle_bytes += run.bytes;
            ASSERT_EQ(map.mapped_bytes(), model.needed_bytes() + idle_bytes);
        }
        for (const OffsetRange& block : living) ASSERT_TRUE(map.give_back(block.first));
        for (const OffsetRange& run : map.all_idle()) map.now_unmapped(run);
        EXPECT_EQ(map.mapped_bytes(), 0u);
        EXPECT_EQ(map.take(limit), (OffsetRange{0, limit})) << "all of it is one range again";
    }
}

}  // namespace
