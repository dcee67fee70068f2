// SPDX-License-Identifier: Apache-2.0
// Tests of the explorer: the classic litmus tests show their weak outcome where nothing forbids it, and never where an
// order does.
#include "explorer.hpp"

#include <gtest/gtest.h>

namespace {

using namespace protocols;
constexpr std::uint32_t x = 0, y = 1;

bool shows(const Exploration& exploration, const Outcome& outcome) {
    EXPECT_TRUE(exploration.whole);
    EXPECT_FALSE(exploration.outcomes.empty());
    return exploration.outcomes.count(outcome) != 0;
}

Exploration message_passing(Order store, Order load, Scope scope = Scope::system) {
    return explore(2, {{Side::device,
                        [=](Memory& memory) {
                            memory.store(x, 1, Order::relaxed);
                            memory.store(y, 1, store, scope);
                        }},
                       {Side::host, [=](Memory& memory) {
                            memory.note(memory.load(y, load));
                            memory.note(memory.load(x, Order::relaxed));
                        }}});
}
const Outcome stale{{}, {1, 0}};

// keeps G10
TEST(Litmus, MessagePassingIsWeakUnlessBothSidesAreOrdered) {
    EXPECT_TRUE(shows(message_passing(Order::relaxed, Order::relaxed), stale));
    EXPECT_TRUE(shows(message_passing(Order::ordered, Order::relaxed), stale));
    EXPECT_TRUE(shows(message_passing(Order::relaxed, Order::ordered), stale));
    const Exploration ordered = message_passing(Order::ordered, Order::ordered);
    EXPECT_FALSE(shows(ordered, stale));
    EXPECT_TRUE(shows(ordered, {{}, {1, 1}}));
    EXPECT_TRUE(shows(ordered, {{}, {0, 1}}));
    EXPECT_TRUE(shows(ordered, {{}, {0, 0}}));
}

// keeps G10
TEST(Litmus, ReleaseOfDeviceScopeOrdersNothingForTheHost) {
    EXPECT_TRUE(shows(message_passing(Order::ordered, Order::ordered, Scope::device), stale));
}

// keeps G10
TEST(Litmus, MessagePassingByFencesNeedsBothOfThem) {
    const auto fenced = [](bool release, bool acquire) {
        return explore(2, {{Side::device,
                            [=](Memory& memory) {
                                memory.store(x, 1, Order::relaxed);
                                if (release) memory.fence(Fence::release);
                                memory.store(y, 1, Order::relaxed);
                            }},
                           {Side::host, [=](Memory& memory) {
                                memory.note(memory.load(y, Order::relaxed));
                                if (acquire) memory.fence(Fence::acquire);
                                memory.note(memory.load(x, Order::relaxed));
                            }}});
    };
    EXPECT_TRUE(shows(fenced(false, true), stale));
    EXPECT_TRUE(shows(fenced(true, false), stale));
    EXPECT_FALSE(shows(fenced(true, true), stale));
}

// keeps G10
TEST(Litmus, StoreBufferingIsWeakUnlessSequentialFencesStandBetween) {
    const auto buffering = [](Order order, bool fences) {
        const auto side = [=](std::uint32_t mine, std::uint32_t other) {
            return [=](Memory& memory) {
                memory.store(mine, 1, order);
                if (fences) memory.fence(Fence::sequential);
                memory.note(memory.load(other, order));
            };
        };
        return explore(2, {{Side::device, side(x, y)}, {Side::host, side(y, x)}});
    };
    const Outcome weak{{0}, {0}};
    EXPECT_TRUE(shows(buffering(Order::relaxed, false), weak));
    EXPECT_TRUE(shows(buffering(Order::ordered, false), weak));
    EXPECT_FALSE(shows(buffering(Order::relaxed, true), weak));
}

// keeps G10
TEST(Litmus, LoadBufferingIsWeakUnlessOneSideIsOrdered) {
    const auto buffering = [](Order load, Order store) {
        const auto side = [=](std::uint32_t from, std::uint32_t to) {
            return [=](Memory& memory) {
                memory.note(memory.load(from, load));
                memory.store(to, 1, store);
            };
        };
        return explore(2, {{Side::device, side(x, y)}, {Side::host, side(y, x)}});
    };
    const Outcome weak{{1}, {1}};
    EXPECT_TRUE(shows(buffering(Order::relaxed, Order::relaxed), weak));
    EXPECT_FALSE(shows(buffering(Order::relaxed, Order::ordered), weak));
    EXPECT_FALSE(shows(buffering(Order::ordered, Order::relaxed), weak));
}

// keeps G10
TEST(Litmus, OneCellIsReadInOneOrderEvenRelaxed) {
    const Exploration reads = explore(1, {{Side::device,
                                           [](Memory& memory) {
                                               memory.store(x, 1, Order::relaxed);
                                               memory.store(x, 2, Order::relaxed);
                                           }},
                                          {Side::host, [](Memory& memory) {
                                               memory.note(memory.load(x, Order::relaxed));
                                               memory.note(memory.load(x, Order::relaxed));
                                           }}});
    for (const Outcome& outcome : reads.outcomes) EXPECT_LE(outcome[1][0], outcome[1][1]);
    EXPECT_TRUE(shows(reads, {{}, {1, 2}}));
    EXPECT_TRUE(shows(reads, {{}, {0, 0}}));
}

// keeps G10
TEST(Litmus, IndependentReadersMayDisagreeEvenWithAcquire) {
    const auto reader = [](std::uint32_t first, std::uint32_t second) {
        return [=](Memory& memory) {
            memory.note(memory.load(first, Order::ordered));
            memory.note(memory.load(second, Order::ordered));
        };
    };
    const auto writer = [](std::uint32_t cell) {
        return [=](Memory& memory) { memory.store(cell, 1, Order::ordered); };
    };
    const Exploration readers = explore(
        2,
        {{Side::host, writer(x)}, {Side::device, writer(y)}, {Side::host, reader(x, y)}, {Side::device, reader(y, x)}});
    EXPECT_TRUE(shows(readers, {{}, {}, {1, 0}, {1, 0}}));
}

// keeps M4
TEST(Litmus, AReadModifyWriteLosesNothing) {
    const auto adds = [](Memory& memory) { memory.note(memory.add(x, 1, Ordered::neither)); };
    const Exploration sums = explore(1, {{Side::host, adds}, {Side::host, adds}, {Side::host, adds}});
    EXPECT_TRUE(sums.whole);
    EXPECT_EQ(sums.outcomes.size(), 6u);
    for (const Outcome& outcome : sums.outcomes) {
        EXPECT_EQ(std::set<std::uint64_t>({outcome[0][0], outcome[1][0], outcome[2][0]}).size(), 3u);
    }
    const auto writes = [](Memory& memory) {
        const std::uint64_t seen = memory.load(x, Order::ordered);
        memory.store(x, seen + 1, Order::ordered);
        memory.note(seen);
    };
    EXPECT_TRUE(shows(explore(1, {{Side::host, writes}, {Side::host, writes}}), {{0}, {0}}));
}

// keeps M4
TEST(Litmus, AComparedExchangeStoresWhereItReadWhatItExpected) {
    const auto takes = [](Memory& memory) {
        memory.note(memory.compare_exchange(x, 0, 1, Ordered::acquire));
        memory.note(memory.load(x, Order::relaxed));
    };
    const Exploration both = explore(1, {{Side::host, takes}, {Side::host, takes}});
    EXPECT_EQ(both.outcomes, (std::set<Outcome>{{{0, 1}, {1, 1}}, {{1, 1}, {0, 1}}}));
    EXPECT_TRUE(explore(1, {{Side::host, [](Memory& memory) { (void)memory.exchange(1, 1, Ordered::both); }}}).wild);
}

// What a release store carries goes on through read-modify-writes of other threads, and ends at a plain store.
TEST(Litmus, AReleaseIsCarriedOnByReadModifyWrites) {  // keeps M4
    const auto after = [](bool modifies, Ordered ordered) {
        const auto between = [=](Memory& memory) {
            if (modifies) {
                if (memory.add(y, 1, Ordered::neither) != 1) memory.give_up();
            } else {
                if (memory.load(y, Order::relaxed) != 1) memory.give_up();
                memory.store(y, 2, Order::relaxed);
            }
        };
        const auto reads = [=](Memory& memory) {
            if (memory.bit_or(y, 0, ordered) != 2) memory.give_up();
            memory.note(memory.load(x, Order::relaxed));
        };
        const auto writes = [](Memory& memory) {
            memory.store(x, 1, Order::relaxed);
            memory.store(y, 1, Order::ordered);
        };
        return explore(2, {{Side::host, writes}, {Side::host, between}, {Side::host, reads}});
    };
    EXPECT_EQ(after(true, Ordered::acquire).outcomes, (std::set<Outcome>{{{}, {}, {1}}}));
    EXPECT_TRUE(shows(after(true, Ordered::neither), {{}, {}, {0}}));
    EXPECT_TRUE(shows(after(false, Ordered::acquire), {{}, {}, {0}}));
}

// Two threads' stores to two cells may stand in opposite orders; each thread sees its own store behind what it saw.
TEST(Litmus, StoresOfTwoThreadsStandInEitherOrder) {  // keeps G10
    const auto writer = [](std::uint32_t first, std::uint32_t second) {
        return [=](Memory& memory) {
            memory.store(first, 1, Order::relaxed);
            memory.store(second, 2, Order::relaxed);
            memory.note(memory.load(second, Order::relaxed));
        };
    };
    const Exploration stores = explore(2, {{Side::host, writer(x, y)}, {Side::host, writer(y, x)}});
    EXPECT_TRUE(stores.whole);
    EXPECT_TRUE(shows(stores, {{1}, {1}})) << "both cells end as 1";
    EXPECT_TRUE(shows(stores, {{2}, {2}}));
    const auto own = [](std::uint64_t value) {
        return [=](Memory& memory) {
            memory.store(x, value, Order::relaxed);
            memory.note(memory.load(x, Order::relaxed));
        };
    };
    const Exploration one = explore(1, {{Side::host, own(1)}, {Side::host, own(2)}});
    EXPECT_FALSE(shows(one, {{2}, {1}})) << "each would be the later one";
    EXPECT_TRUE(shows(one, {{1}, {1}}) && shows(one, {{2}, {2}}) && shows(one, {{1}, {2}}));
}

// keeps G10
TEST(Litmus, ReachingBeyondTheCellsAndRunningOutOfRoomAreSaid) {
    EXPECT_TRUE(explore(1, {{Side::host, [](Memory& memory) { memory.store(1, 1, Order::relaxed); }}}).wild);
    const auto writer = [](Memory& memory) {
        for (std::uint32_t value = 1; value < 6; ++value) memory.store(x, value, Order::relaxed);
    };
    EXPECT_FALSE(explore(1,
                         {{Side::host, writer},
                          {Side::device,
                           [](Memory& memory) {
                               for (int i = 0; i < 6; ++i) memory.note(memory.load(x, Order::relaxed));
                           }}},
                         20)
                     .whole);
}

}  // namespace
