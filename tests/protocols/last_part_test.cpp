// SPDX-License-Identifier: Apache-2.0
// The block of a buffer's state, whose two parts end on different threads: part_with() (runtime/core/new_buffer.cpp) in
// the model's words, in every execution. The second to end gives the block back, once, and what the other thread did
// with its part comes before that.
#include "explorer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace protocols;

constexpr std::uint32_t ended = 0, parts = 1;  // parts + which: 1 from the part's end on
constexpr std::uint64_t both = 3;

struct Shape {
    bool whole = true;  // one operation marks a part; otherwise a load and a store
    Ordered ordered = Ordered::both;
    Order looks = Order::ordered;
};

// Notes 1 where it gives the block back, and then whether it sees that the other part has ended; otherwise 0.
void part_with(Memory& memory, std::uint64_t which, const Shape& shape) {
    memory.store(parts + static_cast<std::uint32_t>(which) - 1, 1, Order::relaxed);
    const bool last = [&] {
        if ((memory.load(ended, shape.looks) | which) == both) return true;
        if (shape.whole) return (memory.bit_or(ended, which, shape.ordered) | which) == both;
        const std::uint64_t seen = memory.load(ended, Order::ordered);
        memory.store(ended, seen | which, Order::ordered);
        return (seen | which) == both;
    }();
    memory.note(last ? 1 : 0);
    if (last) memory.note(memory.load(parts + 2 - static_cast<std::uint32_t>(which), Order::relaxed));
}

Exploration explored(const Shape& shape) {
    return explore(3, {{Side::host, [=](Memory& memory) { part_with(memory, 1, shape); }},
                       {Side::host, [=](Memory& memory) { part_with(memory, 2, shape); }}});
}

struct Found {
    bool lost = false, twice = false, early = false;
};
Found faults(const Exploration& all) {
    Found found;
    for (const Outcome& outcome : all.outcomes) {
        const auto given_back =
            std::count_if(outcome.begin(), outcome.end(), [](const auto& notes) { return notes[0] == 1; });
        found.lost = found.lost || given_back == 0;
        found.twice = found.twice || given_back == 2;
        for (const auto& notes : outcome) found.early = found.early || (notes[0] == 1 && notes[1] == 0);
    }
    return found;
}

TEST(LastPart, TheBlockGoesBackOnceBehindBothParts) {  // keeps M4
    const Exploration all = explored({});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes.count({{1, 1}, {0}}), 1u);
    EXPECT_EQ(all.outcomes.count({{0}, {1, 1}}), 1u);
    const Found found = faults(all);
    EXPECT_FALSE(found.lost || found.twice || found.early);
}

TEST(LastPart, ALoadAndAStoreWouldLoseIt) {  // keeps M4
    EXPECT_TRUE(faults(explored({.whole = false})).lost);
}

TEST(LastPart, EachSideOfTheOrderIsNeeded) {  // keeps M4
    for (const Ordered ordered : {Ordered::neither, Ordered::acquire, Ordered::release}) {
        EXPECT_TRUE(faults(explored({.ordered = ordered})).early) << static_cast<int>(ordered);
    }
    EXPECT_TRUE(faults(explored({.looks = Order::relaxed})).early);
}

}  // namespace
