// SPDX-License-Identifier: Apache-2.0
// One reader, and a writer that acts between the reader's loads: every interleaving in turn.
#include "held_place.hpp"
#include "same_record.hpp"

#include <address_map.hpp>
#include <address_tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

namespace {

using namespace isthmus;
using provenance::AddressMap;
using provenance::Record;

constexpr std::uint64_t place = 0x7000'0000'0000;

using Act = std::function<void(AddressMap&)>;

// All fields follow from base and id, so that a mixture of two records shows.
Record record_of(std::uint64_t base, std::uint64_t bytes, std::uint64_t id) {
    return {base,
            bytes,
            id,
            static_cast<std::uint32_t>(id * 7),
            static_cast<MemoryKind>(id % memory_kind_count),
            static_cast<std::uint8_t>(id * 3)};
}

Act insert(const Record& record) {
    return [=](AddressMap& map) { ASSERT_TRUE(map.insert(record)); };
}
Act erase(const Record& record) {
    return [=](AddressMap& map) { ASSERT_TRUE(map.erase(record.base, record.id)); };
}
Act all(std::vector<Act> acts) {
    return [acts = std::move(acts)](AddressMap& map) {
        for (const Act& act : acts) act(map);
    };
}

// Counts a reader's loads and plays act i after `behind[i]` of them.
struct Writer {
    AddressMap& map;
    const std::vector<Act>& acts;
    const std::vector<std::size_t>& behind;
    std::uint64_t address;
    std::size_t loads = 0;
    std::size_t played = 0;
    std::vector<Record> answers;  // answers that were right at some moment during the lookup

    void between() {
        ++loads;
        for (; played < acts.size() && behind[played] == loads; ++played) {
            acts[played](map);
            answers.push_back(map.find(address));
        }
    }
};

// The number of a reader's loads without interference, and the largest number.
struct Lengths {
    std::size_t undisturbed = 0;
    std::size_t most = 0;
};

// Looks up `address` once for each way to place `acts`, in order, after loads of the reader, in a fresh map filled by
// `begin`. Every answer must have been right at some moment.
Lengths interleave(std::uint64_t address, const Act& begin, const std::vector<Act>& acts) {
    Lengths lengths;
    std::vector<std::size_t> behind(acts.size(), 1);
    for (;;) {
        AddressMap map;
        begin(map);
        const std::vector<Act> none;
        Writer counted{map, none, behind, address, 0, 0, {}};
        (void)map.tree().find(address, [&] { counted.between(); });
        lengths.undisturbed = counted.loads;

        Writer writer{map, acts, behind, address, 0, 0, {map.find(address)}};
        const Record found = map.tree().find(address, [&] { writer.between(); });
        lengths.most = std::max(lengths.most, writer.loads);
        EXPECT_TRUE(std::any_of(writer.answers.begin(), writer.answers.end(),
                                [&](const Record& answer) { return same(answer, found); }))
            << "acts behind the loads " << testing::PrintToString(behind) << ": found id " << found.id << " with "
            << found.bytes << " bytes";
        if (testing::Test::HasFailure()) return lengths;

        // The next way: the last act that can be played later is, and those after it follow at once.
        std::size_t last = writer.played;
        if (last == 0) return lengths;  // even the first act came too late
        const std::size_t later = behind[last - 1] + 1;
        for (std::size_t i = last - 1; i < behind.size(); ++i) behind[i] = later;
    }
}

// Erased while it is read; the slot is used for the next allocation, in the same place or around it.
TEST(AddressMapSteps, ASlotThatChangesHandsWhileItIsReadGivesOneRecordOrTheOther) {  // keeps K12
    const Record old = record_of(place, 100, 1);
    for (const Record& next : {record_of(place, 50, 2), record_of(place - 64, 4096, 3), record_of(place + 10, 5, 4)}) {
        const Lengths lengths = interleave(place + 10, insert(old), {erase(old), insert(next)});
        EXPECT_GT(lengths.most, lengths.undisturbed);
    }
}

TEST(AddressMapSteps, ASlotThatServesElsewhereNowIsNotTakenForWhatItWas) {  // keeps K12
    const Record old = record_of(place, 100, 1), far = record_of(place + 0x1000'0000, 100, 2),
                 back = record_of(place, 60, 3);
    interleave(place + 10, insert(old), {erase(old), insert(far)});
    interleave(place + 10, insert(old), {erase(old), insert(far), erase(far), insert(back)});
}

TEST(AddressMapSteps, WhatIsInsertedWhileNothingIsFoundIsThereOrNotYet) {  // keeps K12
    const Record first = record_of(place, 100, 1), beside = record_of(place + 200, 100, 2);
    const Act nothing = [](AddressMap&) {};
    interleave(place + 10, nothing, {insert(first), insert(beside)});
    interleave(place + 210, insert(first), {insert(beside), erase(first), erase(beside)});
}

// The neighbour is erased, and with it the granule's node, which is used for another granule before the reader has read
// its word.
TEST(AddressMapSteps, ANodeThatServesElsewhereNowHidesNothing) {  // keeps K12
    const Record stays = record_of(place, 100, 1), beside = record_of(place + 300, 100, 2);
    const Record pair[] = {record_of(place + 0x1000, 100, 3), record_of(place + 0x1000 + 300, 100, 4)};
    const Lengths lengths = interleave(place + 10, all({insert(stays), insert(beside)}),
                                       {erase(beside), all({insert(pair[0]), insert(pair[1])})});
    EXPECT_GT(lengths.most, lengths.undisturbed);
}

// The same happens to the reader again during its second attempt.
TEST(AddressMapSteps, WhoWasLedAstrayTwiceLooksAThirdTime) {  // keeps K12
    const Record stays = record_of(place, 100, 1), beside = record_of(place + 300, 100, 2);
    const auto away = [&](std::uint64_t round) {
        const std::uint64_t base = place + 0x1000 * round;
        return all({erase(beside), insert(record_of(base, 100, 10 * round)),
                    insert(record_of(base + 300, 100, 10 * round + 1))});
    };
    const Lengths lengths =
        interleave(place + 10, all({insert(stays), insert(beside)}), {away(1), insert(beside), away(2)});
    EXPECT_GT(lengths.most, 2 * lengths.undisturbed);
}

// A finer neighbour: a coarse node is replaced and used elsewhere, at each level that has coarse nodes.
TEST(AddressMapSteps, ACoarseNodeThatIsReplacedHidesNothing) {  // keeps K12
    for (const std::uint64_t far : {std::uint64_t{0x200}, std::uint64_t{0x10'0000}, std::uint64_t{0x1000'0000}}) {
        const Record stays = record_of(place, 16, 1), beside = record_of(place + far, 16, 2);
        const Record close = record_of(place + far / 16, 16, 3);
        const std::uint64_t elsewhere = place + (std::uint64_t{1} << 40);
        const Record pair[] = {record_of(elsewhere, 16, 4), record_of(elsewhere + far, 16, 5)};
        const Lengths lengths = interleave(place, all({insert(stays), insert(beside)}),
                                           {insert(close), all({insert(pair[0]), insert(pair[1])}), erase(close)});
        EXPECT_GT(lengths.most, lengths.undisturbed) << std::hex << far;
    }
}

// A record that is parked and revived. Each map that the acts are played in has its own place, with a word that stays.
struct Parked {
    explicit Parked(const Record& first, std::uint64_t extent) : record(first), extent_bytes(extent) {}

    Act placed() const {
        return [this](AddressMap& map) {
            place = &places.emplace_back(map);
            place->begin(record, extent_bytes);
        };
    }
    Act parked() const {
        return [this](AddressMap&) { place->park(); };
    }
    Act revived(const Record& next) const {
        return [this, next](AddressMap&) { ASSERT_TRUE(place->revive(next)); };
    }
    Act discarded() const {
        return [this](AddressMap&) { place->discard(); };
    }
    const Record record;
    const std::uint64_t extent_bytes;
    mutable std::deque<provenance::HeldPlace> places;
    mutable provenance::HeldPlace* place = nullptr;
};

// With fewer bytes, with more, and twice: the slot stays where it is, and its record changes.
TEST(AddressMapSteps, AParkedSlotIsNobodysUntilItIsRevivedAsAnother) {  // keeps K12, M2
    const Parked memory(record_of(place, 100, 1), 200);
    for (const std::uint64_t bytes : {50, 100, 200}) {
        const Record second = record_of(place, bytes, 2);
        for (const std::uint64_t address : {place + 10, place + 60, place + 120}) {
            interleave(address, memory.placed(), {memory.parked(), memory.revived(second)});
            interleave(address, all({memory.placed(), memory.parked()}), {memory.revived(second), memory.parked()});
        }
    }
    const Record second = record_of(place, 50, 2), third = record_of(place, 150, 3);
    interleave(place + 60, memory.placed(),
               {memory.parked(), memory.revived(second), all({memory.parked(), memory.revived(third)})});
}

TEST(AddressMapSteps, AParkedSlotThatLeavesServesElsewhere) {  // keeps K12, M4
    const Parked memory(record_of(place, 100, 1), 200);
    const Record far = record_of(place + 0x1000'0000, 100, 2), back = record_of(place + 8, 60, 3);
    const Act way = [](AddressMap& map) { ASSERT_EQ(map.make_way(place + 150, 10), 1u); };
    // The slot serves others once its owner has given it up, too.
    for (const Act& leave : {memory.discarded(), way, all({way, memory.discarded()})}) {
        interleave(place + 10, memory.placed(), {memory.parked(), leave, insert(far)});
        interleave(place + 10, memory.placed(), {memory.parked(), leave, insert(back)});
        interleave(place + 10, all({memory.placed(), memory.parked()}), {leave, insert(far), erase(far), insert(back)});
    }
}

// Neighbours that come and go divide and give up the nodes that lead to a parked slot.
TEST(AddressMapSteps, NeighboursOfAParkedSlotDoNotMisleadToIt) {  // keeps K12
    const Parked memory(record_of(place, 100, 1), 200);
    const Record beside = record_of(place + 300, 100, 2), next = record_of(place, 180, 3);
    interleave(place + 10, memory.placed(),
               {memory.parked(), insert(beside), all({memory.revived(next), erase(beside)})});
    interleave(place + 310, all({memory.placed(), insert(beside)}),
               {all({memory.parked(), memory.discarded()}), erase(beside), insert(beside)});
}

// A place of divided memory. Each map that the acts are played in has memory of its own, with words that stay.
struct Owned {
    Act divided() const {
        return [this](AddressMap& map) { now = &all.emplace_back(map, place); };
    }
    Act owned(const Record& record) const {
        return [this, record](AddressMap&) { now->own(record); };
    }
    Act parked() const {
        return [this](AddressMap&) { now->park(); };
    }
    Act revived(const Record& record) const {
        return [this, record](AddressMap&) { now->revive(record); };
    }
    Act left() const {
        return [this](AddressMap&) { now->leave(); };
    }
    Act joined() const {
        return [this](AddressMap&) { now->join(); };
    }
    Act divided_again() const {
        return [this](AddressMap& map) {
            ASSERT_TRUE(map.divide(now->memory, place, place, now->place_bytes, now->places));
        };
    }
    mutable std::deque<provenance::OwnedPlace> all;
    mutable provenance::OwnedPlace* now = nullptr;
};
// Of the place that begins here.
Record of_place(std::uint64_t base, std::uint64_t bytes, std::uint64_t id) {
    Record record = record_of(base, bytes, id);
    record.flags = 0;
    return record;
}

TEST(AddressMapSteps, APlaceHasOneOwnerOrAnotherOrNone) {  // keeps K12, M2
    const Owned memory;
    const Record first = of_place(place + 512, 100, 1), second = of_place(place + 512, 200, 2),
                 third = of_place(place + 512, 50, 3);
    const Act begin = all({memory.divided(), memory.owned(first)});
    for (const std::uint64_t address : {place + 520, place + 650}) {
        interleave(address, memory.divided(), {memory.owned(first)});
        interleave(address, begin, {memory.parked(), memory.revived(second)});
        interleave(address, all({begin, memory.parked()}), {memory.revived(second), memory.parked()});
        interleave(address, begin,
                   {memory.parked(), memory.revived(second), all({memory.parked(), memory.revived(third)})});
    }
}

TEST(AddressMapSteps, AnOwnerThatHasAnotherPlaceIsNotFoundWhereItWas) {  // keeps K12, K8
    const Owned memory;
    const Record first = of_place(place + 512, 100, 1), second = of_place(place + 768, 200, 2),
                 back = of_place(place + 512, 60, 3);
    const Act begin = all({memory.divided(), memory.owned(first)});
    const Act away = all({memory.parked(), memory.left(), memory.owned(second)});
    interleave(place + 520, begin, {all({memory.parked(), memory.left()}), memory.owned(second)});
    interleave(place + 520, begin, {away, all({memory.parked(), memory.left(), memory.owned(back)})});
}

// What served as a table serves as a table, and the slot as any other.
TEST(AddressMapSteps, DividedMemoryThatLeavesMisleadsNobody) {  // keeps K12, M4
    const Owned memory;
    const Record first = of_place(place + 512, 100, 1), whole = record_of(place, 4096, 2),
                 far = record_of(place + 0x1000'0000, 64, 3);
    const Act begin = all({memory.divided(), memory.owned(first)});
    const Act way = [](AddressMap& map) { ASSERT_EQ(map.make_way(place, 1), 1u); };
    interleave(place + 520, begin, {all({memory.parked(), memory.joined()}), insert(whole)});
    interleave(place + 520, begin, {all({memory.parked(), memory.joined()}), insert(far), memory.divided()});
    interleave(place + 520, begin, {way, insert(whole)});
    interleave(place + 520, begin, {way, memory.divided_again()});
}

}  // namespace
