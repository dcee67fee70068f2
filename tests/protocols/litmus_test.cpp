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
