// SPDX-License-Identifier: Apache-2.0
// StoreLock (runtime/base/store_lock.hpp) in the model's words, in every execution: one holder at a time, who sees what
// the holder before did; and a thread that goes to sleep, which an unlock at this moment may miss, so that its sleep is
// bounded.
#include "explorer.hpp"

#include <gtest/gtest.h>

namespace {

using namespace protocols;

constexpr std::uint32_t word = 0, sleepers = 1, data = 2, cells = 3;

struct Shape {
    bool whole = true;  // one operation takes the lock; otherwise a load and a store
    Ordered taking = Ordered::acquire;
    Order giving = Order::ordered;
};

// Notes the value of `data`, which it counts up.
void count_up(Memory& memory, const Shape& shape) {
    if (shape.whole) {
        if (memory.exchange(word, 1, shape.taking) != 0) memory.give_up();  // another execution comes later
    } else {
        if (memory.load(word, Order::ordered) != 0) memory.give_up();
        memory.store(word, 1, Order::relaxed);
    }
    const std::uint64_t seen = memory.load(data, Order::relaxed);
    memory.store(data, seen + 1, Order::relaxed);
    memory.store(word, 0, shape.giving);
    memory.note(seen);
}

std::set<Outcome> counted(const Shape& shape) {
    const auto one = [=](Memory& memory) { count_up(memory, shape); };
    const Exploration all = explore(cells, {{Side::host, one}, {Side::host, one}});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    return all.outcomes;
}
const std::set<Outcome> one_after_the_other = {{{0}, {1}}, {{1}, {0}}};

TEST(StoreLocks, HaveOneHolderWhoSeesWhatTheOneBeforeDid) {  // keeps M7
    EXPECT_EQ(counted({}), one_after_the_other);
}

TEST(StoreLocks, NeedTheirOperationAndBothOrders) {  // keeps M7
    EXPECT_NE(counted({.whole = false}), one_after_the_other);
    EXPECT_NE(counted({.taking = Ordered::neither}), one_after_the_other);
    EXPECT_NE(counted({.giving = Order::relaxed}), one_after_the_other);
}

// How the holder gives the lock back, and notes whether it finds a sleeper to wake.
enum class Giving : std::uint8_t { looks_first, looks_last, looks_behind_a_fence };

void give_back(Memory& memory, std::uint64_t free, Giving how) {
    std::uint64_t found = 0;
    if (how == Giving::looks_first) found = memory.load(sleepers, Order::relaxed);
    memory.store(word, free, Order::ordered);
    if (how == Giving::looks_behind_a_fence) memory.fence(Fence::sequential);
    if (how != Giving::looks_first) found = memory.load(sleepers, Order::relaxed);
    memory.note(found);
}

// The other thread notes whether it would sleep: the kernel compares the word in its own order.
std::set<Outcome> gone_to_sleep(Giving how) {
    const auto held = [=](Memory& memory) {
        memory.store(word, 1, Order::relaxed);  // the lock is held: 1 comes before the holder's 0
        give_back(memory, 0, how);
    };
    const auto waiting = [](Memory& memory) {
        if (memory.load(word, Order::relaxed) != 1) memory.give_up();
        (void)memory.add(sleepers, 1, Ordered::both);
        memory.fence(Fence::sequential);
        memory.note(memory.load(word, Order::relaxed));
    };
    const Exploration all = explore(cells, {{Side::host, held}, {Side::host, waiting}});
    EXPECT_TRUE(all.whole);
    return all.outcomes;
}

TEST(StoreLocks, MayMissAThreadThatGoesToSleepWhoseSleepIsBounded) {  // keeps M7
    const Outcome missed = {{0}, {1}}, woken = {{1}, {1}};
    EXPECT_EQ(gone_to_sleep(Giving::looks_first).count(missed), 1u) << "without this, no bound were needed";
    EXPECT_EQ(gone_to_sleep(Giving::looks_first).count(woken), 1u);
    EXPECT_EQ(gone_to_sleep(Giving::looks_last).count(missed), 1u) << "nothing would be won";
    EXPECT_EQ(gone_to_sleep(Giving::looks_behind_a_fence).count(missed), 0u) << "what a fence would change";
}

// The next holder ends what the lock is part of: a device whose last buffer was just laid into a lane. Held: 0,
// free: 1.
std::set<Outcome> ended_by_the_next_holder(Giving how) {
    constexpr std::uint64_t gone = 9;
    const auto holder = [=](Memory& memory) { give_back(memory, 1, how); };
    const auto next = [](Memory& memory) {
        if (memory.exchange(word, 2, Ordered::acquire) != 1) memory.give_up();
        memory.store(sleepers, gone, Order::relaxed);
    };
    const Exploration all = explore(cells, {{Side::host, holder}, {Side::host, next}});
    EXPECT_TRUE(all.whole);
    return all.outcomes;
}

TEST(StoreLocks, AreNotReadAfterTheyAreGivenBack) {  // keeps M7
    const Outcome fine = {{0}, {}}, read_too_late = {{9}, {}};
    EXPECT_EQ(ended_by_the_next_holder(Giving::looks_first), std::set<Outcome>{fine});
    EXPECT_EQ(ended_by_the_next_holder(Giving::looks_last).count(read_too_late), 1u);
    EXPECT_EQ(ended_by_the_next_holder(Giving::looks_behind_a_fence).count(read_too_late), 1u);
}

}  // namespace
