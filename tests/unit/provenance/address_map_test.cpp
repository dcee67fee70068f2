// SPDX-License-Identifier: Apache-2.0
// The answers of the address map, compared with a plain ordered table.
#include "held_place.hpp"
#include "same_record.hpp"

#include <address_map.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using provenance::AddressMap;
using provenance::Record;

constexpr std::uint64_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib, tib = 1024 * gib;
constexpr std::uint64_t end_of_space = std::uint64_t{1} << AddressMap::address_bits;

Record range(std::uint64_t base, std::uint64_t bytes, std::uint64_t id) {
    return {base, bytes, id, static_cast<std::uint32_t>(id % 5), MemoryKind::device, static_cast<std::uint8_t>(id)};
}

// The simplest table that does the same.
struct Reference {
    std::map<std::uint64_t, Record> records;

    Record find(std::uint64_t address) const {
        auto next = records.upper_bound(address);
        if (next == records.begin()) return {};
        --next;
        return address - next->first < next->second.bytes ? next->second : Record{};
    }
    bool overlaps(const Record& record) const {
        const auto next = records.lower_bound(record.base);
        return find(record.base) || (next != records.end() && next->first - record.base < record.bytes);
    }
};

// Compares the edges of every allocation, and what for_each visits.
void expect_equal(const AddressMap& map, const Reference& reference) {
    EXPECT_EQ(map.size(), reference.records.size());
    for (const auto& [base, record] : reference.records) {
        const std::uint64_t last = base + (record.bytes - 1);
        for (const std::uint64_t address : {base - 1, base, base + record.bytes / 2, last, last + 1}) {
            ASSERT_TRUE(same(map.find(address), reference.find(address))) << std::hex << address;
        }
    }
    std::map<std::uint64_t, Record> visited;
    map.for_each([&](const Record& record) { EXPECT_TRUE(visited.emplace(record.base, record).second); });
    ASSERT_EQ(visited.size(), reference.records.size());
    for (const auto& [base, record] : reference.records) EXPECT_TRUE(same(visited[base], record));
}

TEST(AddressMap, AnEmptyMapKnowsNothing) {  // keeps K8
    const AddressMap map;
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}, 4 * kib, end_of_space - 1, end_of_space,
                                        std::numeric_limits<std::uint64_t>::max()}) {
        EXPECT_FALSE(map.find(address)) << address;
        EXPECT_FALSE(map.covers(address, 1));
        EXPECT_FALSE(map.covers(address, 0));
    }
    EXPECT_EQ(map.size(), 0u);
}

TEST(AddressMap, NeighboursThatTouchAreToldApart) {  // keeps K8
    AddressMap map;
    ASSERT_TRUE(map.insert(range(0x1000, 0x800, 1)));
    ASSERT_TRUE(map.insert(range(0x1800, 0x800, 2)));
    EXPECT_EQ(map.find(0x0fff).id, 0u);
    EXPECT_EQ(map.find(0x1000).id, 1u);
    EXPECT_EQ(map.find(0x17ff).id, 1u);
    EXPECT_EQ(map.find(0x1800).id, 2u);
    EXPECT_EQ(map.find(0x1fff).id, 2u);
    EXPECT_EQ(map.find(0x2000).id, 0u);
}

TEST(AddressMap, ARangeIsCoveredOnlyInsideOneAllocation) {
    AddressMap map;
    ASSERT_TRUE(map.insert(range(0x1000, 0x800, 1)));
    ASSERT_TRUE(map.insert(range(0x1800, 0x800, 2)));
    EXPECT_TRUE(map.covers(0x1000, 0x800));
    EXPECT_TRUE(map.covers(0x1001, 0x7ff));
    EXPECT_FALSE(map.covers(0x1001, 0x800)) << "the last byte is the neighbour's";
    EXPECT_FALSE(map.covers(0x0fff, 2));
    EXPECT_FALSE(map.covers(0x1fff, 2));
    EXPECT_FALSE(map.covers(0x1001, std::numeric_limits<std::uint64_t>::max())) << "wraps round";
    EXPECT_TRUE(map.covers(0x1fff, 0));
    EXPECT_FALSE(map.covers(0x2000, 0));
}

TEST(AddressMap, AStaleIdErasesNothing) {  // keeps K12
    AddressMap map;
    ASSERT_TRUE(map.insert(range(0x1000, 0x800, 1)));
    EXPECT_FALSE(map.erase(0x1000, 2));
    EXPECT_FALSE(map.erase(0x1001, 1)) << "an interior address";
    EXPECT_FALSE(map.erase(0x2000, 1)) << "an unknown address";
    EXPECT_EQ(map.find(0x1000).id, 1u);
    EXPECT_TRUE(map.erase(0x1000, 1));
    EXPECT_FALSE(map.erase(0x1000, 1)) << "twice";
    ASSERT_TRUE(map.insert(range(0x1000, 0x400, 3)));
    EXPECT_FALSE(map.erase(0x1000, 1)) << "the address has a new owner";
    EXPECT_EQ(map.find(0x13ff).id, 3u);
    EXPECT_EQ(map.find(0x1400).id, 0u);
}

TEST(AddressMap, OneIdStandsAtTwoBases) {  // keeps K23
    AddressMap map;
    Record host = range(0x7f00'0000'1000, 0x3000, 9);
    host.kind = MemoryKind::registered;
    Record device = host;
    device.base = 0x0002'0000'0000;
    device.flags = provenance::record_flags::device_address;
    ASSERT_TRUE(map.insert(host));
    ASSERT_TRUE(map.insert(device));
    EXPECT_TRUE(same(map.find(host.base + 7), host));
    EXPECT_TRUE(same(map.find(device.base + 7), device));
    EXPECT_TRUE(map.erase(host.base, 9));
    EXPECT_FALSE(map.find(host.base));
    EXPECT_TRUE(same(map.find(device.base), device));
}

TEST(AddressMap, EveryByteOfAGranuleMayBeAnAllocation) {
    AddressMap map;
    Reference reference;
    for (std::uint64_t i = 0; i < 4096; ++i) {
        const Record one = range(0x1000 + (i * 1597) % 4096, 1, i + 1);  // in an order that leaves gaps
        ASSERT_TRUE(map.insert(one));
        reference.records.emplace(one.base, one);
    }
    expect_equal(map, reference);
    for (std::uint64_t i = 0; i < 4096; i += 2) {
        const std::uint64_t base = 0x1000 + (i * 1597) % 4096;
        ASSERT_TRUE(map.erase(base, i + 1));
        reference.records.erase(base);
    }
    expect_equal(map, reference);
}

TEST(AddressMap, HugeRangesTakeLittleMemory) {
    AddressMap map;
    const std::size_t before = map.memory_bytes();
    const std::uint64_t base = 31 * tib + 512;  // spans three words of the root
    ASSERT_TRUE(map.insert(range(base, 64 * tib, 1)));
    ASSERT_TRUE(map.insert(range(base - 512, 512, 2)));
    ASSERT_TRUE(map.insert(range(base + 64 * tib, 512 * gib + 1, 3)));
    EXPECT_EQ(map.find(base).id, 1u);
    EXPECT_EQ(map.find(base + 40 * tib).id, 1u);
    EXPECT_EQ(map.find(base + 64 * tib - 1).id, 1u);
    EXPECT_EQ(map.find(base - 1).id, 2u);
    EXPECT_EQ(map.find(base + 64 * tib).id, 3u);
    EXPECT_EQ(map.find(base + 64 * tib + 512 * gib).id, 3u);
    EXPECT_EQ(map.find(base + 64 * tib + 512 * gib + 1).id, 0u);
    EXPECT_LT(map.memory_bytes() - before, 256 * kib);
    EXPECT_TRUE(map.erase(base, 1));
    EXPECT_EQ(map.find(base + 40 * tib).id, 0u);
    EXPECT_EQ(map.find(base + 64 * tib).id, 3u);
}

TEST(AddressMap, TheTopOfTheSpaceIsTheLastThatIsTaken) {
    AddressMap map;
    ASSERT_TRUE(map.insert(range(end_of_space - 4096, 4095, 1)));
    ASSERT_TRUE(map.insert(range(end_of_space - 1, 1, 2)));
    EXPECT_EQ(map.find(end_of_space - 2).id, 1u);
    EXPECT_EQ(map.find(end_of_space - 1).id, 2u);
    EXPECT_FALSE(map.find(end_of_space)) << "not taken for address 0";
    EXPECT_FALSE(map.find(end_of_space | (end_of_space - 1))) << "nor for one whose upper bits are cut off";
    AddressMap all;
    ASSERT_TRUE(all.insert(range(0, end_of_space, 1)));
    EXPECT_EQ(all.find(0).id, 1u);
    EXPECT_EQ(all.find(end_of_space - 1).id, 1u);
    EXPECT_FALSE(all.find(end_of_space));
}

TEST(AddressMap, RangesThatNoAllocationHasAreRefused) {  // keeps K12
    AddressMap map;
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const Record& wrong :
         {range(0x1000, 0, 1), range(0x1000, 16, 0), range(end_of_space, 1, 1), range(end_of_space - 16, 17, 1),
          range(most, 1, 1), range(most - 15, 32, 1), range(0x1000, most, 1), range(1, end_of_space, 1)}) {
        const Result<void> refused = map.insert(wrong);
        EXPECT_EQ(refused.code(), Code::invalid_argument) << wrong.base << " " << wrong.bytes;
        EXPECT_FALSE(refused.error().remedy().empty());
        EXPECT_FALSE(map.find(wrong.base));
    }
    EXPECT_EQ(map.size(), 0u);
}

TEST(AddressMap, AnOverlapIsRefusedAndChangesNothing) {  // keeps K12
    AddressMap map;
    Reference reference;
    for (const Record& there : {range(0x1000, 0x100, 1), range(0x1200, 0x100, 2), range(1 * gib, 3 * gib, 3)}) {
        ASSERT_TRUE(map.insert(there));
        reference.records.emplace(there.base, there);
    }
    const std::size_t before = map.memory_bytes();
    for (const Record& wrong : {range(0x1000, 0x100, 9), range(0x10ff, 1, 9), range(0x0f00, 0x101, 9),
                                range(0x1050, 0x10, 9), range(0x0, 1 * tib, 9), range(0x1100, 0x101, 9),
                                range(0x2000, 1 * gib, 9), range(4 * gib - 1, 2, 9), range(2 * gib, 4 * kib, 9)}) {
        const Result<void> refused = map.insert(wrong);
        EXPECT_EQ(refused.code(), Code::invalid_argument) << wrong.base;
        EXPECT_NE(refused.error().message().find("overlap"), std::string_view::npos);
    }
    expect_equal(map, reference);
    EXPECT_EQ(map.memory_bytes(), before);
    EXPECT_TRUE(map.insert(range(0x1100, 0x100, 4))) << "the gap between them is free";
}

// Sizes and places that interact: dense pages, large ranges over them, and the edges of the levels.
Record some_range(std::mt19937_64& random, std::uint64_t id) {
    static constexpr std::uint64_t places[] = {0x1000, 8 * mib, 16 * gib, 32 * tib, end_of_space - 64 * kib};
    static constexpr std::uint64_t spreads[] = {256, 32 * kib, 32 * mib, 64 * gib, 64 * tib};
    static constexpr std::uint64_t steps[] = {1, 16, 64, 512, 4 * kib, 64 * kib, 2 * mib};
    const std::uint64_t spread = spreads[random() % 5];
    const std::uint64_t offset = random() % (2 * spread);
    const std::uint64_t place = places[random() % 5];
    std::uint64_t base = place + offset > spread ? place + offset - spread : 0;
    base -= base % steps[random() % 7];
    return range(base, 1 + random() % (random() % 3 == 0 ? spread : 2048), id);
}

TEST(AddressMap, AnswersAsAnOrderedTableDoesOnRandomSequences) {  // keeps K8, K12
    const char* given = std::getenv("ISTHMUS_TEST_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
    SCOPED_TRACE("ISTHMUS_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    AddressMap map;
    Reference reference;
    for (std::uint64_t id = 1; id <= 40000; ++id) {
        const Record wanted = some_range(random, id);
        const Result<void> inserted = map.insert(wanted);
        ASSERT_EQ(inserted.ok(), wanted.base + wanted.bytes <= end_of_space && !reference.overlaps(wanted)) << id;
        if (inserted) reference.records.emplace(wanted.base, wanted);
        // Phases: for a while more is erased than inserted.
        for (int n = id / 5000 % 2 == 0 ? 0 : 2; n > 0 && !reference.records.empty(); --n) {
            auto victim = reference.records.lower_bound(some_range(random, 0).base);
            if (victim == reference.records.end()) victim = reference.records.begin();
            ASSERT_TRUE(map.erase(victim->first, victim->second.id)) << id;
            reference.records.erase(victim);
        }
        for (int n = 0; n < 4; ++n) {
            const std::uint64_t address = some_range(random, 0).base + random() % 2048;
            ASSERT_TRUE(same(map.find(address), reference.find(address))) << id << " " << address;
        }
        if (id % 2500 == 0) expect_equal(map, reference);
        if (HasFatalFailure()) return;
    }
}

TEST(AddressMap, AMillionAllocationsThatComeAndGoTakeNoMoreMemory) {
    AddressMap map;
    std::vector<Record> live(64);
    std::size_t settled = 0;
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
        Record& oldest = live[i % live.size()];
        if (oldest) {
            ASSERT_TRUE(map.erase(oldest.base, oldest.id));
        }
        // New addresses each time, several on a granule, now and then a large one.
        oldest = range(0x7000'0000'0000 + i * 1504, i % 16 == 15 ? 1504 : 1 + i % 1500, i + 1);
        ASSERT_TRUE(map.insert(oldest));
        if (i == 100'000) settled = map.memory_bytes();
    }
    EXPECT_EQ(map.memory_bytes(), settled);
    EXPECT_EQ(map.size(), live.size());
}

TEST(AddressMap, WithoutMemoryAnInsertIsRefusedAndChangesNothing) {  // keeps K12
    int refusals = 0;
    for (std::size_t limit = 0; limit < 200 * kib; limit += 2 * kib) {
        AddressMap map(limit);
        Reference reference;
        for (std::uint64_t id = 1; id <= 200; ++id) {
            // From far apart to side by side, so that every kind of node is used.
            const std::uint64_t place = id % 4 == 0 ? id * tib : id % 4 == 1 ? id * 16 * mib : id * 48;
            const Record wanted = range(place + 10 * (id % 3), id % 7 == 0 ? 20 : 1, id);
            const Result<void> inserted = map.insert(wanted);
            if (inserted) {
                reference.records.emplace(wanted.base, wanted);
                continue;
            }
            ASSERT_EQ(inserted.code(), Code::out_of_memory) << limit;
            ++refusals;
        }
        expect_equal(map, reference);
        while (!reference.records.empty()) {
            ASSERT_TRUE(map.erase(reference.records.begin()->first, reference.records.begin()->second.id));
            reference.records.erase(reference.records.begin());
        }
        expect_equal(map, reference);
    }
    EXPECT_GT(refusals, 0);
}

TEST(AddressMap, AParkedRecordIsNotFoundAndItsRangeIsTaken) {  // keeps M2, M4
    AddressMap map;
    provenance::HeldPlace place(map, range(0x10000, 0x800, 1), 0x1000);
    EXPECT_EQ(map.find(0x107ff).id, 1u);
    EXPECT_FALSE(map.find(0x10800)) << "behind its bytes";
    EXPECT_FALSE(map.covers(0x10000, 0x801));
    EXPECT_EQ(map.insert(range(0x10fff, 1, 2)).code(), Code::invalid_argument) << "within its extent";
    EXPECT_FALSE(map.is_parked(0x10000));
    place.park();
    EXPECT_FALSE(map.find(0x10000));
    EXPECT_FALSE(map.covers(0x10000, 1));
    EXPECT_FALSE(map.erase(0x10000, 1)) << "nobody's";
    EXPECT_TRUE(map.is_parked(0x10000) && map.is_parked(0x10fff));
    EXPECT_FALSE(map.is_parked(0xffff) || map.is_parked(0x11000) || map.is_parked(end_of_space));
    EXPECT_EQ(map.size(), 0u);
    map.for_each([](const Record& record) { ADD_FAILURE() << record.id; });
    EXPECT_EQ(map.insert(range(0x10000, 0x1000, 3)).code(), Code::invalid_argument);
    EXPECT_TRUE(map.insert(range(0x11000, 0x1000, 4))) << "beside it";
    ASSERT_TRUE(place.revive(range(0x10000, 0x1000, 5)));
    EXPECT_TRUE(same(map.find(0x10fff), range(0x10000, 0x1000, 5)));
    EXPECT_FALSE(map.is_parked(0x10000));
    EXPECT_EQ(map.size(), 2u);
    EXPECT_TRUE(map.erase(0x10000, 5));
    EXPECT_TRUE(map.insert(range(0x10000, 0x1000, 7)));
}

TEST(AddressMap, APlaceIsRevivedOnlyAsWhatFitsThere) {  // keeps M4
    AddressMap map;
    provenance::HeldPlace place(map, range(0x10000, 0x1000, 1), 0x1000);
    place.park();
    EXPECT_FALSE(place.revive(range(0x10100, 0x100, 2))) << "it begins elsewhere";
    EXPECT_FALSE(place.revive(range(0x10000, 0x1001, 2))) << "it is larger";
    EXPECT_FALSE(place.revive(range(0x10000, 0, 2))) << "it is nothing";
    EXPECT_TRUE(map.is_parked(0x10000)) << "unchanged";
    EXPECT_FALSE(map.revive(provenance::Place(), range(0x10000, 1, 2)));
    place.discard();
    EXPECT_FALSE(place.place);
    place.discard();
    EXPECT_FALSE(map.is_parked(0x10000));
    EXPECT_TRUE(map.insert(range(0x10800, 0x10, 3)));
    EXPECT_EQ(map.size(), 1u);
}

TEST(AddressMap, WhatMadeWayIsNotRevived) {  // keeps M4
    AddressMap map;
    provenance::HeldPlace parked(map, range(0x10000, 0x800, 1), 0x1000);
    provenance::HeldPlace alive(map, range(0x12000, 0x800, 2), 0x1000);
    parked.park();
    ASSERT_TRUE(map.insert(range(0x14000, 0x1000, 3)));
    EXPECT_EQ(map.make_way(end_of_space - 1, 2), 0u) << "no range";
    EXPECT_EQ(map.make_way(0x11000, 0x1000), 0u) << "between them";
    EXPECT_EQ(map.make_way(0x10fff, 0x1802), 2u) << "the ends of their extents";
    EXPECT_EQ(map.size(), 1u);
    EXPECT_FALSE(map.is_parked(0x10000));
    EXPECT_FALSE(map.find(0x12000)) << "though its word is its identity still";
    EXPECT_FALSE(parked.revive(range(0x10000, 0x800, 6)));
    ASSERT_TRUE(map.insert(range(0x10000, 0x800, 4)));
    ASSERT_TRUE(map.insert(range(0x12000, 0x800, 5)));
    EXPECT_FALSE(parked.revive(range(0x10000, 0x800, 6)));
    alive.discard();
    parked.discard();
    EXPECT_EQ(map.find(0x10000).id, 4u);
    EXPECT_EQ(map.find(0x12000).id, 5u);
    EXPECT_EQ(map.size(), 3u);
}

// The owner may have looked at the map just before its record made way.
TEST(AddressMap, WhatIsFilledWhereItMadeWayIsFoundByNobody) {  // keeps K12, M4
    AddressMap map;
    provenance::HeldPlace late(map, range(0x10000, 0x800, 1), 0x1000);
    ASSERT_TRUE(map.revive(late.place, range(0x10000, 0x800, 2)));
    EXPECT_EQ(map.make_way(0x10000, 1), 1u);
    late.word.store(2);
    EXPECT_FALSE(map.find(0x10000));
    EXPECT_EQ(map.size(), 0u);
    map.for_each([](const Record& record) { ADD_FAILURE() << record.id; });
    EXPECT_FALSE(map.is_in_use(0x10000, 0x800));
    late.discard();
}

TEST(AddressMap, MemoryIsFoundOnceItsWordHasItsIdentity) {  // keeps M2
    AddressMap map;
    provenance::HeldPlace place(map);
    place.place = map.place(range(0x10000, 0x800, 1), 0x1000, place.word).value();
    map.note_parked();
    EXPECT_FALSE(map.find(0x10000));
    EXPECT_TRUE(map.is_parked(0x10fff));
    ASSERT_TRUE(place.revive(range(0x10000, 0x400, 2)));
    EXPECT_EQ(map.find(0x103ff).id, 2u);
    EXPECT_FALSE(map.find(0x10400));
}

TEST(AddressMap, APlaceOfDividedMemoryIsFoundAsFarAsItsOwnerHasIt) {  // keeps K8, A16
    AddressMap map;
    provenance::OwnedPlace memory(map, 0x10000);
    ASSERT_TRUE(memory.divided);
    EXPECT_EQ(map.size(), 0u);
    EXPECT_FALSE(map.find(0x10200));
    EXPECT_TRUE(map.is_parked(0x10200)) << "nobody's";
    const Record record{0x10200, 100, 7, 3, MemoryKind::managed, 0};
    memory.own(record);
    for (const std::uint64_t address : {0x10200, 0x10232, 0x10263}) {
        EXPECT_TRUE(same(map.find(address), record)) << std::hex << address;
    }
    for (const std::uint64_t address : {0x0ffff, 0x10000, 0x101ff, 0x10264, 0x102ff, 0x10300, 0x10fff, 0x11000}) {
        EXPECT_FALSE(map.find(address)) << std::hex << address;
    }
    EXPECT_TRUE(map.covers(0x10200, 100));
    EXPECT_FALSE(map.covers(0x10200, 101));
    EXPECT_EQ(map.size(), 1u);
    std::vector<Record> visited;
    map.for_each([&](const Record& one) { visited.push_back(one); });
    ASSERT_EQ(visited.size(), 1u);
    EXPECT_TRUE(same(visited[0], record));
    EXPECT_FALSE(map.is_parked(0x102ff)) << "the owner's";
    EXPECT_TRUE(map.is_parked(0x10300));
    EXPECT_FALSE(map.is_parked(0x11000));
    EXPECT_TRUE(map.is_in_use(0x102ff, 1));
    EXPECT_FALSE(map.is_in_use(0x10300, 0x1000)) << "other places";
    EXPECT_FALSE(map.erase(0x10200, 7)) << "its owner's";
    memory.park();
    EXPECT_FALSE(map.find(0x10200));
    EXPECT_EQ(map.size(), 0u);
    EXPECT_TRUE(map.is_parked(0x10200));
    EXPECT_FALSE(map.is_in_use(0x10200, 0x100));
    memory.revive({0x10200, 256, 8, 3, MemoryKind::managed, 0});
    EXPECT_EQ(map.find(0x102ff).id, 8u);
    memory.join();
    EXPECT_FALSE(map.find(0x10200));
}

TEST(AddressMap, AllOfDividedMemoryIsTakenUntilItIsJoined) {  // keeps M4
    AddressMap map;
    provenance::OwnedPlace memory(map, 0x10000);
    EXPECT_EQ(map.insert(range(0x10fff, 1, 9)).code(), Code::invalid_argument);
    EXPECT_EQ(map.insert(range(0xf000, 0x1001, 9)).code(), Code::invalid_argument);
    EXPECT_TRUE(map.insert(range(0x11000, 1, 9)));
    EXPECT_EQ(map.make_way(0x10800, 1), 1u);
    EXPECT_FALSE(map.is_whole(memory.memory));
    EXPECT_TRUE(map.insert(range(0x10fff, 1, 10)));
    EXPECT_EQ(map.divide(memory.memory, 0x10000, 0x10000, 256, 16).code(), Code::invalid_argument);
    ASSERT_TRUE(map.erase(0x10fff, 10));
    memory.own({0x10200, 100, 7, 3, MemoryKind::managed, 0});
    EXPECT_FALSE(map.find(0x10200)) << "it made way";
    ASSERT_TRUE(map.divide(memory.memory, 0x10000, 0x10000, 256, 16));
    EXPECT_TRUE(map.is_whole(memory.memory));
    EXPECT_EQ(map.find(0x10200).id, 7u) << "in the same place";
    memory.join();
    EXPECT_TRUE(map.insert(range(0x10000, 0x1000, 11)));
    memory.join();  // nothing
    EXPECT_EQ(map.size(), 2u);
}

TEST(AddressMap, DividedMemoryHasASecondRange) {  // keeps K23
    AddressMap map;
    provenance::OwnedPlace memory(map, 0x10000);
    ASSERT_TRUE(map.divide(memory.memory, 0x7000000, 0x10000, 256, 16));
    memory.own({0x10200, 100, 7, 3, MemoryKind::pinned, 0});
    const Record there = map.find(0x7000263);
    EXPECT_TRUE(same(there, {0x7000200, 100, 7, 3, MemoryKind::pinned, provenance::record_flags::device_address}));
    EXPECT_EQ(map.size(), 2u);
    EXPECT_EQ(map.make_way(0x7000000, 0x1000), 1u);
    EXPECT_FALSE(map.is_whole(memory.memory));
    EXPECT_EQ(map.find(0x10200).id, 7u);
    memory.join();
    EXPECT_EQ(map.size(), 0u);
}

TEST(AddressMap, DividedMemoryThatHasNoRoomChangesNothing) {  // keeps K8
    for (std::size_t bytes = 0; bytes < 64 * kib; bytes += kib) {
        AddressMap map(bytes);
        provenance::OwnedPlace memory(map, 0x10000);
        if (!memory.divided) {
            EXPECT_EQ(memory.divided.code(), Code::out_of_memory);
            EXPECT_FALSE(map.is_parked(0x10000));
        }
        memory.join();
        EXPECT_FALSE(map.is_parked(0x10000));
    }
    AddressMap map;
    provenance::Divided none;
    EXPECT_EQ(map.divide(none, 0x10000, 0x10000, 256, 0).code(), Code::invalid_argument);
    EXPECT_EQ(map.divide(none, 0x10000, 0x10000, 256, 257).code(), Code::invalid_argument);
    EXPECT_FALSE(map.is_whole(none));
}

}  // namespace
