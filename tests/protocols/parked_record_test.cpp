// SPDX-License-Identifier: Apache-2.0
// A record of the address map that its owner parks by its word alone, fills and hands out again, while others look it
// up and the map takes it down: Slot::read(), fill_again() and the holder (runtime/provenance/address_nodes.hpp), and
// Ledger::wake(), in the model's words, in every execution.
#include "handed_out_again.hpp"

#include <gtest/gtest.h>

namespace {

using namespace protocols;

// The cells of a slot, and its owner's word. The record is alive at the beginning: identity 0, of 0 bytes.
constexpr std::uint32_t version = 0, bytes = 1, id = 2, holder = 3, word = 4, told = 5, cells = 6;
// In `holder`: the word, nobody, or the slot's own id.
constexpr std::uint64_t by_word = 0, nobody = 1, itself = 2;
constexpr std::uint64_t released = 9, others = 5;

struct Shape {
    bool looks_at_word = true;
    bool counts = true;            // the version, around what is filled
    Order fill = Order::ordered;   // of what is filled
    Order looks = Order::ordered;  // of the reader's loads
    bool stays_its_owners = true;  // what made way, until the owner gives it up
    bool renews = false;           // the next owner has as many bytes: AddressMap::renew()
};

void fill(Memory& memory, std::uint64_t next, const Shape& shape) {
    memory.store(bytes, next, shape.fill);
    memory.store(id, next, shape.fill);
}

void release(Memory& memory) {
    (void)memory.exchange(word, released, Ordered::both);
}

void wake(Memory& memory, const Shape& shape) {
    if (shape.renews) {
        memory.store(id, 1, shape.fill);
        memory.store(word, 1, Order::ordered);
        return;
    }
    if (shape.counts) memory.store(version, 1, Order::relaxed);
    fill(memory, 1, shape);
    if (shape.counts) memory.store(version, 2, Order::ordered);
    memory.store(word, 1, Order::ordered);
}

// Notes the identity and the bytes as one number.
void look(Memory& memory, const Shape& shape) {
    const std::uint64_t before = memory.load(version, shape.looks);
    const std::uint64_t found_bytes = memory.load(bytes, shape.looks);
    const std::uint64_t found_id = memory.load(id, shape.looks);
    bool held = true;
    if (shape.looks_at_word) {
        const std::uint64_t by = memory.load(holder, shape.looks);
        held = by == itself || (by == by_word && memory.load(word, shape.looks) == found_id);
    }
    const bool changed = memory.load(version, Order::relaxed) != before;
    memory.note(before % 2 != 0 || changed || !held ? none : 10 * found_id + found_bytes);
}

Exploration handed_out_again(const Shape& shape, bool reader_was_told) {
    return protocols::handed_out_again(
        cells, told, reader_was_told, release, [=](Memory& memory) { wake(memory, shape); },
        [=](Memory& memory) { look(memory, shape); });
}

TEST(ParkedRecords, AReaderFindsOneOwnersRecordOrNone) {  // keeps M4, K12
    const Exploration all = handed_out_again({}, false);
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes, first_second_or_none);
    EXPECT_EQ(handed_out_again({}, true).outcomes, second_or_none) << "nobody finds what was released before";
}

TEST(ParkedRecords, TheWordTheVersionAndTheirOrdersAreNeeded) {  // keeps M4, K12
    EXPECT_NE(handed_out_again({.looks_at_word = false}, true).outcomes, second_or_none);
    EXPECT_NE(handed_out_again({.counts = false}, false).outcomes, first_second_or_none);
    EXPECT_NE(handed_out_again({.fill = Order::relaxed}, false).outcomes, first_second_or_none);
    EXPECT_NE(handed_out_again({.looks = Order::relaxed}, false).outcomes, first_second_or_none);
}

// The next owner has the same bytes: its identity alone is stored, and the version stays.
TEST(ParkedRecords, ARecordOfTheSameBytesIsRenewedByItsIdentity) {  // keeps M4, K12
    const Shape renews{.renews = true};
    const Exploration all = handed_out_again(renews, false);
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {0}}, {{}, {10}}, {{}, {none}}}));
    EXPECT_EQ(handed_out_again(renews, true).outcomes, (std::set<Outcome>{{{}, {10}}, {{}, {none}}}));
    Shape loose = renews;
    loose.looks_at_word = false;
    EXPECT_NE(handed_out_again(loose, true).outcomes, (std::set<Outcome>{{{}, {10}}, {{}, {none}}}));
}

// The map takes the record down while the owner fills it. Then the owner, whom the map's lock tells, gives up the slot,
// which serves another allocation, without a word. A reader finds one of the three, or nothing.
Exploration taken_down(const Shape& shape) {
    const auto owner = [=](Memory& memory) {
        release(memory);
        wake(memory, shape);
        if (!shape.stays_its_owners) return;
        if (memory.load(told, Order::ordered) != 1) memory.give_up();
        memory.store(version, 3, Order::ordered);
        fill(memory, others, shape);
        memory.store(holder, itself, Order::ordered);
        memory.store(version, 4, Order::ordered);
    };
    const auto map = [=](Memory& memory) {
        memory.store(holder, nobody, Order::ordered);
        memory.store(told, 1, Order::ordered);
        if (shape.stays_its_owners) return;
        memory.store(version, 3, Order::ordered);
        fill(memory, others, shape);
        memory.store(holder, itself, Order::ordered);
        memory.store(version, 4, Order::ordered);
    };
    const auto reader = [=](Memory& memory) { look(memory, shape); };
    return explore(cells, {{Side::host, owner}, {Side::host, map}, {Side::host, reader}}, 40'000'000);
}

TEST(ParkedRecords, ASlotIsItsOwnersUntilThatGivesItUp) {  // keeps M4, K12
    const Exploration all = taken_down({});
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {}, {0}}, {{}, {}, {11}}, {{}, {}, {55}}, {{}, {}, {none}}}));
    const Exploration hasty = taken_down({.stays_its_owners = false});
    EXPECT_GT(hasty.outcomes.size(), all.outcomes.size()) << "the owner fills what is another's";
}

TEST(ParkedRecords, ARenewedRecordThatMadeWayIsFoundByNobody) {  // keeps M4, K12
    const Exploration all = taken_down({.renews = true});
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {}, {0}}, {{}, {}, {10}}, {{}, {}, {55}}, {{}, {}, {none}}}));
}

}  // namespace
