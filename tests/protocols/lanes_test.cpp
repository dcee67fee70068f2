// SPDX-License-Identifier: Apache-2.0
// Memory that is released by block and handed out again without the ledger's lock, in every execution: LedgerEntry's
// word (runtime/provenance/ledger_entries.hpp), Ledger::park() and wake(), the lock of a lane (runtime/base/
// store_lock.hpp), and the directory of entries, in the model's words.
#include "explorer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace protocols;

constexpr std::uint64_t released = std::uint64_t{1} << 63;
constexpr std::uint64_t first_id = 1, second_id = 2;
constexpr std::uint64_t first_block = 10, second_block = 20;

// The cells of an entry and of a lane.
constexpr std::uint32_t word = 0, block = 1, lock = 2, lane = 3, given = 4, cells = 5;

struct Shape {
    bool claims = true;                 // by one operation; otherwise a load and a store
    Ordered claim = Ordered::both;      // of the identity
    Order publish = Order::ordered;     // of the next one
    Ordered takes = Ordered::acquire;   // the lane's lock
    bool takes_whole = true;            // by one operation; otherwise a load and a store
    Order gives_back = Order::ordered;  // the lane's lock
};

bool claim(Memory& memory, std::uint64_t id, const Shape& shape) {
    if (memory.load(word, Order::ordered) != id) return false;
    if (shape.claims) return memory.compare_exchange(word, id, id | released, shape.claim) == id;
    memory.store(word, id | released, Order::ordered);
    return true;
}

bool try_lock(Memory& memory, const Shape& shape) {
    if (memory.load(lock, Order::relaxed) != 0) return false;
    if (shape.takes_whole) return memory.exchange(lock, 1, shape.takes) == 0;
    memory.store(lock, 1, Order::relaxed);
    return true;
}
void unlock(Memory& memory, const Shape& shape) {
    memory.store(lock, 0, shape.gives_back);
}

// The first owner's block is released by two threads at once. Notes 1 where it succeeded.
void begin(Memory& memory) {
    memory.store(block, first_block, Order::relaxed);
    memory.store(word, first_id, Order::ordered);
}
Exploration released_twice(const Shape& shape) {
    const auto release = [=](Memory& memory) {
        if (memory.load(word, Order::ordered) != first_id) memory.give_up();  // not handed out yet
        memory.note(claim(memory, first_id, shape) ? 1 : 0);
    };
    return explore(cells, {{Side::host, begin}, {Side::host, release}, {Side::host, release}});
}

TEST(BlocksOfLanes, OfTwoReleasesOneSucceeds) {  // keeps K8, M4
    const Exploration all = released_twice({});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {1}, {0}}, {{}, {0}, {1}}}));
    EXPECT_EQ(released_twice({.claims = false}).outcomes.count({{}, {1}, {1}}), 1u) << "a load and a store";
}

// The owner releases the block while another thread releases it wrongly: as of another device. Notes 1 where a release
// succeeded. Both look once more, under the ledger's lock, where the word is not what they expect.
Exploration released_wrongly_beside(bool compares_first) {
    constexpr std::uint64_t this_device = 7;
    const auto right = [](Memory& memory) {
        memory.store(block, this_device, Order::relaxed);
        memory.store(word, first_id, Order::ordered);
        const bool at_once = claim(memory, first_id, {});
        memory.note(at_once || claim(memory, first_id, {}) ? 1 : 0);
    };
    const auto wrong = [=](Memory& memory) {
        if (memory.load(word, Order::ordered) != first_id) memory.give_up();
        if (compares_first) return memory.note(memory.load(block, Order::relaxed) == this_device ? 0 : 1);
        if (!claim(memory, first_id, {})) memory.give_up();
        const bool mine = memory.load(block, Order::relaxed) != this_device;
        if (!mine) memory.store(word, first_id, Order::ordered);
        memory.note(mine ? 1 : 0);
    };
    return explore(cells, {{Side::host, right}, {Side::host, wrong}});
}

TEST(BlocksOfLanes, AWrongReleaseLeavesTheRightOneAlone) {  // keeps K8
    const Exploration all = released_wrongly_beside(true);
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{1}, {0}}}));
    EXPECT_EQ(released_wrongly_beside(false).outcomes.count({{0}, {0}}), 1u) << "the identity is ended to compare";
}

// One thread releases the first owner's block into the lane. The other takes it from there, hands it out as the second
// owner's, and passes that identity on by a word of its own. The first thread releases that one as well, and notes the
// block that it finds in the entry: what it compares and parks.
Exploration handed_over(const Shape& shape) {
    const auto first = [=](Memory& memory) {
        begin(memory);
        if (!claim(memory, first_id, shape)) memory.give_up();
        if (!try_lock(memory, shape)) memory.give_up();
        memory.store(lane, 1, Order::relaxed);
        unlock(memory, shape);
        if (memory.load(given, Order::relaxed) != second_id) memory.give_up();
        const bool stale = memory.compare_exchange(word, first_id, first_id | released, shape.claim) == first_id;
        memory.note(stale ? 1 : 0);
        if (!claim(memory, second_id, shape)) memory.give_up();
        memory.note(memory.load(block, Order::relaxed));
    };
    const auto second = [=](Memory& memory) {
        if (!try_lock(memory, shape)) memory.give_up();
        const bool there = memory.load(lane, Order::relaxed) == 1;
        if (there) memory.store(lane, 0, Order::relaxed);
        unlock(memory, shape);
        if (!there) memory.give_up();
        memory.note(memory.load(word, Order::relaxed));  // the identity before, from which the next one is made
        memory.note(memory.load(block, Order::relaxed));
        memory.store(block, second_block, Order::relaxed);
        memory.store(word, second_id, shape.publish);
        memory.store(given, second_id, Order::relaxed);
    };
    return explore(cells, {{Side::host, first}, {Side::host, second}});
}
const Outcome whole_hand_over{{0, second_block}, {first_id | released, first_block}};

TEST(BlocksOfLanes, ABlockIsHandedOverWhole) {  // keeps K8, M2, M4
    const Exploration all = handed_over({});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes, std::set<Outcome>{whole_hand_over});
}

TEST(BlocksOfLanes, EachOrderOfTheHandOverIsNeeded) {  // keeps M4
    const auto broken = [](const Shape& shape) {
        const Exploration all = handed_over(shape);
        return std::any_of(all.outcomes.begin(), all.outcomes.end(),
                           [](const Outcome& outcome) { return outcome != whole_hand_over; });
    };
    EXPECT_TRUE(broken({.publish = Order::relaxed}));
    EXPECT_TRUE(broken({.takes = Ordered::neither}));
    EXPECT_TRUE(broken({.gives_back = Order::relaxed}));
    EXPECT_FALSE(broken({.claim = Ordered::acquire})) << "the lane's lock carries on what the owner did";
}

// Two threads change what a lane holds. Notes what each found there, where it got the lock.
Exploration counted(const Shape& shape) {
    const auto change = [=](Memory& memory) {
        if (!try_lock(memory, shape)) return memory.note(99);
        const std::uint64_t found = memory.load(lane, Order::relaxed);
        memory.note(found);
        memory.store(lane, found + 1, Order::relaxed);
        unlock(memory, shape);
    };
    return explore(cells, {{Side::host, change}, {Side::host, change}});
}

TEST(BlocksOfLanes, ALaneIsOneThreadsAtATime) {  // keeps M7
    const Exploration all = counted({});
    EXPECT_TRUE(all.whole);
    EXPECT_EQ(all.outcomes.count({{0}, {0}}), 0u);
    EXPECT_EQ(all.outcomes.count({{0}, {1}}), 1u);
    EXPECT_EQ(all.outcomes.count({{0}, {99}}), 1u) << "it was taken";
    EXPECT_EQ(counted({.takes = Ordered::neither}).outcomes.count({{0}, {0}}), 1u);
    EXPECT_EQ(counted({.takes_whole = false}).outcomes.count({{0}, {0}}), 1u);
    EXPECT_EQ(counted({.gives_back = Order::relaxed}).outcomes.count({{0}, {0}}), 1u);
}

// The directory grows while another thread looks for an entry whose identity it was given. The old one has place for
// one chunk, the new one for two.
constexpr std::uint32_t directory = 0, old_first = 1, new_first = 2, new_second = 3, entry = 4, passed = 5;
constexpr std::uint64_t old_one = 1, new_one = 2;

struct Growth {
    Order chunk = Order::ordered;
    Order publish = Order::ordered;
    Order looks = Order::ordered;
    Order passes = Order::ordered;
};
// Notes what it finds of the first and of the second entry: 1, or 0 for none.
Exploration grown(const Growth& growth, bool second_is_known) {
    const auto grow = [=](Memory& memory) {
        memory.store(old_first, 1, Order::ordered);
        memory.store(directory, old_one, growth.publish);
        memory.store(entry, 1, Order::relaxed);  // of the second chunk, before its word leads there
        memory.store(new_first, 1, Order::relaxed);
        memory.store(new_second, 1, growth.chunk);
        memory.store(directory, new_one, growth.publish);
        memory.store(passed, 1, growth.passes);
    };
    const auto look = [=](Memory& memory) {
        if (second_is_known && memory.load(passed, Order::ordered) != 1) memory.give_up();
        const std::uint64_t found = memory.load(directory, growth.looks);
        if (found == 0) memory.give_up();
        memory.note(memory.load(found == old_one ? old_first : new_first, Order::ordered));
        const bool second = found == new_one && memory.load(new_second, Order::ordered) == 1;
        memory.note(second ? memory.load(entry, Order::relaxed) : 0);
    };
    return explore(6, {{Side::host, grow}, {Side::host, look}});
}

TEST(Directory, WhoHasAnIdentityFindsItsEntry) {  // keeps K8, K12
    const Exploration known = grown({}, true);
    EXPECT_TRUE(known.whole);
    EXPECT_EQ(known.outcomes, (std::set<Outcome>{{{}, {1, 1}}}));
    EXPECT_EQ(grown({}, false).outcomes, (std::set<Outcome>{{{}, {1, 0}}, {{}, {1, 1}}})) << "the first, whoever looks";
    EXPECT_EQ(grown({.publish = Order::relaxed}, false).outcomes.count({{}, {0, 0}}), 1u);
    EXPECT_EQ(grown({.passes = Order::relaxed}, true).outcomes.count({{}, {1, 0}}), 1u)
        << "an identity that is passed on without an order is no promise";
}

// A place of the pool of events (runtime/device/event_pool.hpp): one thread puts an event there, two others look for
// one.
constexpr std::uint32_t place = 0, content = 1;

// Notes what the taker finds in the event; nothing where it finds none.
Exploration put_and_taken(Ordered puts, Ordered takes, bool by_one_operation) {
    const auto put = [=](Memory& memory) {
        memory.store(content, 5, Order::relaxed);
        if (memory.compare_exchange(place, 0, 1, puts) != 0) memory.note(99);
    };
    const auto take = [=](Memory& memory) {
        if (memory.load(place, Order::relaxed) == 0) return;
        std::uint64_t found = 1;
        if (by_one_operation) {
            found = memory.exchange(place, 0, takes);
        } else {
            memory.store(place, 0, Order::relaxed);
        }
        if (found != 0) memory.note(memory.load(content, Order::relaxed));
    };
    return explore(2, {{Side::host, put}, {Side::host, take}, {Side::host, take}});
}

TEST(EventPlaces, OneThreadTakesAnEventAndSeesItWhole) {  // keeps M7
    const Exploration all = put_and_taken(Ordered::release, Ordered::acquire, true);
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes, (std::set<Outcome>{{{}, {}, {}}, {{}, {5}, {}}, {{}, {}, {5}}}));
    EXPECT_EQ(put_and_taken(Ordered::release, Ordered::acquire, false).outcomes.count({{}, {5}, {5}}) +
                  put_and_taken(Ordered::release, Ordered::acquire, false).outcomes.count({{}, {0}, {5}}),
              2u)
        << "a load and a store";
    EXPECT_EQ(put_and_taken(Ordered::neither, Ordered::acquire, true).outcomes.count({{}, {0}, {}}), 1u);
    EXPECT_EQ(put_and_taken(Ordered::release, Ordered::neither, true).outcomes.count({{}, {0}, {}}), 1u);
}

}  // namespace
