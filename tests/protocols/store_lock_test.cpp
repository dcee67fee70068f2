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

// The holder notes whether it finds a sleeper to wake; the other thread, whether it would sleep: the kernel compares
// the word in its own order.
std::set<Outcome> gone_to_sleep(bool fenced) {
    const auto holder = [=](Memory& memory) {
        memory.store(word, 0, Order::ordered);
        if (fenced) memory.fence(Fence::sequential);
        memory.note(memory.load(sleepers, Order::relaxed));
    };
    const auto waiter = [](Memory& memory) {
        (void)memory.add(sleepers, 1, Ordered::both);
        memory.fence(Fence::sequential);
        memory.note(memory.load(word, Order::relaxed));
    };
    const auto began = [](Memory& memory) {  // the lock is held: 1 comes before the holder's 0
        memory.store(word, 1, Order::relaxed);
    };
    const auto held = [=](Memory& memory) { began(memory), holder(memory); };
    const auto waiting = [=](Memory& memory) {
        if (memory.load(word, Order::relaxed) != 1) memory.give_up();
        waiter(memory);
    };
    const Exploration all = explore(cells, {{Side::host, held}, {Side::host, waiting}});
    EXPECT_TRUE(all.whole);
    return all.outcomes;
}

TEST(StoreLocks, MayMissAThreadThatGoesToSleepWhoseSleepIsBounded) {  // keeps M7
    const Outcome missed = {{0}, {1}};
    EXPECT_EQ(gone_to_sleep(false).count(missed), 1u) << "without this, longest_sleep_ns were not needed";
    EXPECT_EQ(gone_to_sleep(true).count(missed), 0u) << "what a fence in each unlock would change";
    const Outcome woken = {{1}, {1}};
    EXPECT_EQ(gone_to_sleep(false).count(woken), 1u);
}

}  // namespace
