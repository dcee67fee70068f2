// SPDX-License-Identifier: Apache-2.0
// Readers beside a writer: whole records, never one that was erased before, never a miss of one that stays.
#include "held_place.hpp"

#include <address_map.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace isthmus;
using provenance::AddressMap;
using provenance::Record;

constexpr std::uint64_t place = 0x7000'0000'0000;
constexpr int readers = 3;

// All fields follow from the id, so that a mixture of two records shows.
Record of_id(std::uint64_t base, std::uint64_t id) {
    return {base,
            1 + id % 255,
            id,
            static_cast<std::uint32_t>(id * 7),
            static_cast<MemoryKind>(id % memory_kind_count),
            static_cast<std::uint8_t>(id * 3)};
}

void expect_whole(const Record& found) {
    const Record whole = of_id(found.base, found.id);
    ASSERT_EQ(found.bytes, whole.bytes);
    ASSERT_EQ(found.device, whole.device);
    ASSERT_EQ(found.kind, whole.kind);
    ASSERT_EQ(found.flags, whole.flags);
}

// Readers look up until the writer is done; the writer continues until every reader has looked up often.
void race(const std::function<void(std::uint64_t round)>& write, const std::function<void(int reader)>& look,
          int least = 5000) {
    std::atomic<bool> done{false};
    std::vector<std::atomic<int>> looks(readers);
    std::vector<std::thread> threads;
    for (int r = 0; r < readers; ++r) {
        threads.emplace_back([&, r] {
            while (!done.load(std::memory_order_relaxed)) {
                look(r);
                looks[r].fetch_add(1, std::memory_order_relaxed);
            }
        });
    }
    const auto all_looked = [&] {
        for (const std::atomic<int>& count : looks) {
            if (count.load(std::memory_order_relaxed) < least) return false;
        }
        return true;
    };
    for (std::uint64_t round = 1; round <= 2000 || !all_looked(); ++round) write(round);
    done.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
}

TEST(AddressMapRace, AReusedAddressShowsTheOldTheNewOrNothing) {  // keeps K12
    AddressMap map;
    std::atomic<std::uint64_t> inserted{0}, erased{0};
    race(
        [&](std::uint64_t id) {
            ASSERT_TRUE(map.insert(of_id(place, id)));
            inserted.store(id, std::memory_order_release);
            ASSERT_TRUE(map.erase(place, id));
            erased.store(id, std::memory_order_release);
        },
        [&](int) {
            const std::uint64_t gone = erased.load(std::memory_order_acquire);
            const std::uint64_t there = inserted.load(std::memory_order_acquire);
            const Record found = map.find(place);
            if (found) {
                expect_whole(found);
                ASSERT_EQ(found.base, place);
                ASSERT_GT(found.id, gone) << "erased before it was looked for";
                ASSERT_GE(found.id, there);
            }
        });
}

TEST(AddressMapRace, AnAllocationThatStaysIsAlwaysFoundAmongChangingNeighbours) {  // keeps K12
    AddressMap map;
    // Two on one granule, and one of several granules, that stay.
    const Record low = of_id(place + 64, 100), high = of_id(place + 3000, 101);
    Record wide = of_id(place + 0x10'0000 - 3, 1);
    wide.bytes = 0x8000;
    for (const Record& record : {low, high, wide}) ASSERT_TRUE(map.insert(record));
    race(
        [&](std::uint64_t round) {
            // Finer and coarser: a single byte beside them, a neighbour that touches, and elsewhere a pair that uses
            // the freed nodes.
            const std::uint64_t id = 1000 + 4 * round;
            Record byte = of_id(place + round % 64, id + 3);
            byte.bytes = 1;
            const Record guests[] = {byte, of_id(low.base + low.bytes, id), of_id(place + 0x2'0001, id + 1),
                                     of_id(place + 0x2'0300, id + 2)};
            for (const Record& guest : guests) ASSERT_TRUE(map.insert(guest));
            for (const Record& guest : guests) ASSERT_TRUE(map.erase(guest.base, guest.id));
        },
        [&](int reader) {
            ASSERT_EQ(map.find(low.base + reader).id, low.id);
            ASSERT_EQ(map.find(high.base).id, high.id);
            ASSERT_EQ(map.find(wide.base + 0x3000u * reader).id, wide.id);
            ASSERT_TRUE(map.covers(wide.base, wide.bytes));
        });
}

TEST(AddressMapRace, NodesThatMoveToOtherAddressesLeadNobodyAstray) {  // keeps K12
    AddressMap map;
    const Record stays = of_id(place, 50);
    ASSERT_TRUE(map.insert(stays));
    // One pair at a time, far from the previous one: all nodes of all levels are freed and used again.
    const auto pair_at = [](std::uint64_t round) {
        return round % 3 == 0   ? place + (1 + round % 7) * 0x1000
               : round % 3 == 1 ? place + (1 + round % 7) * 0x100'0000
                                : (round % 100) << 46 | 0x1'0000'0000;
    };
    race(
        [&](std::uint64_t round) {
            const Record a = of_id(pair_at(round), 1000 + 2 * round), b = of_id(pair_at(round) + 300, 1001 + 2 * round);
            ASSERT_TRUE(map.insert(a));
            ASSERT_TRUE(map.insert(b));
            ASSERT_TRUE(map.erase(a.base, a.id));
            ASSERT_TRUE(map.erase(b.base, b.id));
        },
        [&](int reader) {
            ASSERT_EQ(map.find(stays.base).id, stays.id);
            for (std::uint64_t round = 0; round < 21; ++round) {
                const std::uint64_t address = pair_at(round) + 300u * (reader % 2);
                if (const Record found = map.find(address)) {
                    ASSERT_LT(address - found.base, found.bytes);
                    expect_whole(found);
                }
            }
        },
        500);
}

TEST(AddressMapRace, TwoWritersAndForEachTakeTurns) {  // keeps K12
    AddressMap map;
    std::atomic<std::uint64_t> visits{0};
    race(
        [&](std::uint64_t round) {
            ASSERT_TRUE(map.insert(of_id(place, 2 * round)));
            ASSERT_TRUE(map.erase(place, 2 * round));
        },
        [&](int reader) {
            const std::uint64_t base = place + 300u * static_cast<std::uint64_t>(1 + reader);
            ASSERT_TRUE(map.insert(of_id(base, 1)));
            map.for_each([&](const Record& record) {
                expect_whole(record);
                visits.fetch_add(1, std::memory_order_relaxed);
            });
            ASSERT_TRUE(map.erase(base, 1));
        },
        500);
    EXPECT_GE(visits.load(), 500u * readers);
    EXPECT_EQ(map.size(), 0u);
}

TEST(AddressMapRace, AParkedPlaceShowsItsOldOrItsNewOwnerOrNobody) {  // keeps K12, M2
    AddressMap map;
    provenance::HeldPlace kept(map, of_id(place, 1), 300);
    std::atomic<std::uint64_t> alive{1}, parked{0};
    race(
        [&](std::uint64_t round) {
            const std::uint64_t id = round + 1;
            kept.park();
            parked.store(id - 1, std::memory_order_release);
            const Record beside = of_id(place + 300, 7);
            ASSERT_TRUE(map.insert(beside));  // changes the tree around it
            ASSERT_TRUE(kept.revive(of_id(place, id)));
            alive.store(id, std::memory_order_release);
            ASSERT_TRUE(map.erase(beside.base, beside.id));
        },
        [&](int reader) {
            const std::uint64_t gone = parked.load(std::memory_order_acquire);
            const std::uint64_t there = alive.load(std::memory_order_acquire);
            if (const Record found = map.find(place + static_cast<std::uint64_t>(reader))) {
                expect_whole(found);
                ASSERT_EQ(found.base, place);
                ASSERT_GT(found.id, gone) << "parked before it was looked for";
                ASSERT_GE(found.id, there);
            }
        });
    EXPECT_EQ(map.size(), 1u);
}

// One thread parks and revives, and others insert and erase.
TEST(AddressMapRace, ParkingBesideAnotherWriterChangesNothingForIt) {  // keeps K12
    AddressMap map;
    provenance::HeldPlace kept(map, of_id(place, 1), 300);
    race(
        [&](std::uint64_t round) {
            kept.park();
            ASSERT_TRUE(kept.revive(of_id(place, round)));
        },
        [&](int reader) {
            const std::uint64_t base = place + 300u * static_cast<std::uint64_t>(1 + reader);
            ASSERT_TRUE(map.insert(of_id(base, 1)));
            ASSERT_FALSE(map.insert(of_id(place + 299, 1))) << "the extent is taken, whatever is alive there";
            map.for_each([&](const Record& record) { expect_whole(record); });
            ASSERT_TRUE(map.erase(base, 1));
        },
        500);
    EXPECT_EQ(map.size(), 1u);
}

}  // namespace
