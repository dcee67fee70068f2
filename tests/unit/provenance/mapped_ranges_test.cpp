// SPDX-License-Identifier: Apache-2.0
// The record of mapped ranges, compared with one that lists every granule.
#include "mapped_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>

namespace {

using isthmus::RangeAccess;
using isthmus::detail::MappedRanges;
using isthmus::rules::RangeFacts;

constexpr std::uint64_t base = 0x100000;
constexpr std::uint64_t granule = 16;
constexpr std::uint64_t granules = 24;
constexpr std::size_t devices = 3;
constexpr std::array every_access = {RangeAccess::none, RangeAccess::read, RangeAccess::read_write};

struct Granule {
    bool mapped = false;
    int lies = 0;
    std::array<RangeAccess, devices> access{};
};
using Granules = std::array<Granule, granules>;

RangeFacts expected(const Granules& all, std::uint64_t first, std::uint64_t count, std::size_t device) {
    RangeFacts facts{true, RangeAccess::read_write, all[first].lies};
    for (std::uint64_t at = first; at < first + count; ++at) {
        if (!all[at].mapped) return {};
        facts.access = std::min(facts.access, all[at].access[device]);
        if (all[at].lies != facts.lies) facts.lies = RangeFacts::in_several;
    }
    return facts;
}

void expect_alike(const MappedRanges& book, const Granules& all) {
    for (std::size_t device = 0; device < devices; ++device) {
        for (std::uint64_t first = 0; first < granules; ++first) {
            for (std::uint64_t count = 1; count <= granules - first; ++count) {
                const RangeFacts wanted = expected(all, first, count, device);
                // From inside the first granule to inside the last one.
                const RangeFacts seen = book.over(base + first * granule + 3, count * granule - 5, device);
                ASSERT_EQ(seen.mapped, wanted.mapped) << first << "+" << count;
                ASSERT_EQ(seen.access, wanted.access) << first << "+" << count;
                ASSERT_EQ(seen.lies, wanted.lies) << first << "+" << count;
            }
        }
    }
}

// keeps V9
TEST(MappedRangesBook, KnowsWhatEachDeviceMayDoHoweverRangesWereAddedLetInAndRemoved) {
    std::mt19937 random(7);  // NOLINT: the same every time
    const auto below = [&](std::uint64_t end) { return random() % end; };
    for (int round = 0; round < 4; ++round) {
        MappedRanges book;
        Granules all{};
        std::map<std::uint64_t, std::uint64_t> ranges;  // granules by first granule
        for (int step = 0; step < 150; ++step) {
            const std::uint64_t first = below(granules);
            const auto known = ranges.upper_bound(first);
            const bool inside = known != ranges.begin() && first < std::prev(known)->first + std::prev(known)->second;
            if (!inside) {
                const std::uint64_t end = known == ranges.end() ? granules : known->first;
                const std::uint64_t count = 1 + below(std::min<std::uint64_t>(end - first, 3));
                const int lies = static_cast<int>(below(2)) - 1;
                book.add(base + first * granule, count * granule, lies);
                ranges[first] = count;
                for (std::uint64_t at = first; at < first + count; ++at) all[at] = {true, lies, {}};
            } else {
                const auto [begin, count] = *std::prev(known);
                const bool remove = below(5) == 0;
                const std::size_t device = below(devices);
                const RangeAccess access = every_access[below(every_access.size())];
                if (remove) {
                    book.remove(base + begin * granule);
                    ranges.erase(std::prev(known));
                } else {
                    book.set(base + begin * granule, device, access);
                    ASSERT_EQ(book.access(base + begin * granule, device), access);
                }
                for (std::uint64_t at = begin; at < begin + count; ++at) {
                    if (remove) {
                        all[at] = {};
                    } else {
                        all[at].access[device] = access;
                    }
                }
            }
            expect_alike(book, all);
        }
    }
}

// keeps V9
TEST(MappedRangesBook, WhatIsNotThereIsLetIntoByNobody) {
    MappedRanges book;
    book.set(base, 0, RangeAccess::read_write);
    book.remove(base);
    EXPECT_EQ(book.access(base, 0), RangeAccess::none);
    EXPECT_FALSE(book.over(base, 1, 0).mapped);
    book.add(base, granule, 0);
    book.set(base, MappedRanges::max_devices, RangeAccess::read_write);
    EXPECT_EQ(book.over(base, granule, MappedRanges::max_devices).access, RangeAccess::none);
    EXPECT_FALSE(book.over(base, granule + 1, 0).mapped);
    EXPECT_FALSE(book.over(base - 1, 2, 0).mapped);
}

}  // namespace
