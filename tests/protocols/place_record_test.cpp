// SPDX-License-Identifier: Apache-2.0
// A place of divided memory in the address map, whose record is its owner's words alone: Slot::read_place() and
// PlaceOwner (runtime/provenance/address_map.hpp), Ledger::wake(), and an entry of the ledger that leaves a place and
// has another one, in the model's words, in every execution.
#include "handed_out_again.hpp"

#include <gtest/gtest.h>

namespace {

using namespace protocols;

// The owner's words. The place is owned at the beginning: by identity 0, with facts 0, at address 0.
constexpr std::uint32_t word = 0, first = 1, facts = 2, told = 3, cells = 4;
constexpr std::uint64_t released = 9, elsewhere = 7;

struct Shape {
    bool looks_twice = true;       // at the word
    bool compares_first = true;    // the address
    Order fill = Order::ordered;   // of what is filled
    Order looks = Order::ordered;  // of the reader's loads
    Order publish = Order::ordered;
};

void release(Memory& memory) {
    (void)memory.exchange(word, released, Ordered::both);
}

// Notes the identity and the facts as one number.
void look(Memory& memory, const Shape& shape) {
    const std::uint64_t identity = memory.load(word, shape.looks);
    const std::uint64_t at = memory.load(first, shape.looks);
    const std::uint64_t found = memory.load(facts, shape.looks);
    const std::uint64_t still = shape.looks_twice ? memory.load(word, shape.looks) : identity;
    const bool here = !shape.compares_first || at == 0;
    memory.note(identity == released || still != identity || !here ? none : 10 * identity + found);
}

Exploration handed_out_again(const Shape& shape, bool reader_was_told) {
    return protocols::handed_out_again(
        cells, told, reader_was_told, release,
        [=](Memory& memory) {
            memory.store(facts, 1, shape.fill);
            memory.store(word, 1, shape.publish);
        },
        [=](Memory& memory) { look(memory, shape); });
}

TEST(PlaceRecords, AReaderFindsOneOwnersRecordOrNone) {  // keeps M4, K12
    const Exploration all = handed_out_again({}, false);
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes, first_second_or_none);
    EXPECT_EQ(handed_out_again({}, true).outcomes, second_or_none) << "nobody finds what was released before";
}

TEST(PlaceRecords, EachOrderAndTheSecondLookAreNeeded) {  // keeps M4, K12
    EXPECT_NE(handed_out_again({.looks_twice = false}, false).outcomes, first_second_or_none);
    EXPECT_NE(handed_out_again({.fill = Order::relaxed}, false).outcomes, first_second_or_none);
    EXPECT_NE(handed_out_again({.looks = Order::relaxed}, false).outcomes, first_second_or_none);
    EXPECT_NE(handed_out_again({.publish = Order::relaxed}, false).outcomes, first_second_or_none);
}

// The reader was led to the owner's words. Meanwhile the entry leaves the place, and gets memory elsewhere.
Exploration moved(const Shape& shape, bool comes_back) {
    const auto owner = [=](Memory& memory) {
        release(memory);
        memory.store(first, elsewhere, shape.fill);
        memory.store(facts, 1, shape.fill);
        memory.store(word, 1, shape.publish);
        if (!comes_back) return;
        release(memory);
        memory.store(first, 0, shape.fill);
        memory.store(facts, 2, shape.fill);
        memory.store(word, 2, shape.publish);
    };
    const auto reader = [=](Memory& memory) { look(memory, shape); };
    return explore(cells, {{Side::host, owner}, {Side::host, reader}}, 20'000'000);
}

TEST(PlaceRecords, AnEntryThatLeftIsNotFoundWhereItWas) {  // keeps K8, K12
    const Exploration all = moved({}, false);
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {0}}, {{}, {none}}}));
    EXPECT_EQ(moved({.compares_first = false}, false).outcomes.count({{}, {11}}), 1u);
    const Exploration back = moved({}, true);
    EXPECT_TRUE(back.whole);
    EXPECT_EQ(back.outcomes, (std::set<Outcome>{{{}, {0}}, {{}, {22}}, {{}, {none}}}));
}

}  // namespace
