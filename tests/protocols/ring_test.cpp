// SPDX-License-Identifier: Apache-2.0
// The ring, in every execution: no message is lost, doubled, torn, reordered or stale, and each weakening is detected.
#include "model_atomics.hpp"

#include <isthmus/concurrent/protocol/atomics.hpp>
#include <isthmus/concurrent/mailbox_view.hpp>
#include <isthmus/concurrent/protocol/ring.hpp>
#include <isthmus/concurrent/protocol/sharded_counter.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using namespace protocols;
using isthmus::protocol::RingConsumer;
using isthmus::protocol::RingPlace;
using isthmus::protocol::RingProducer;
using isthmus::protocol::RingStatus;
using Kind = Weakening::Kind;
using isthmus::protocol::Publishes;

constexpr std::uint32_t published = 0, consumed = 1, slots = 2, words = 2;

RingPlace<std::uint32_t> place_of(std::uint32_t capacity, std::uint32_t spread = 0) {
    return {published, consumed, slots, capacity, words, spread};
}

struct RingCase {
    std::uint32_t capacity = 1;
    std::uint32_t messages = 3;
    std::uint32_t spread = 0;
    Side producer = Side::host;
    Publishes publishes = Publishes::message_only;
    Publishes taken = Publishes::all_memory;
    Weakening weakening{};
    bool fences = false;
    bool batch = false;   // two are received at once, and sent at once where their number is even
    bool beside = false;  // before message n, n is stored into a cell outside the ring, which is read after the message
};
std::uint32_t beside_of(const RingCase& ring) {
    return slots + (ring.spread == 0 ? ring.capacity * words : ModelAtomics::kept_of_line << ring.spread);
}

// Both words of message n are n.
void produce(const RingCase& ring, Memory& memory) {
    const ModelAtomics atomics(memory, ring.weakening, ring.fences);
    RingProducer<ModelAtomics> producer(atomics, place_of(ring.capacity, ring.spread));
    for (std::uint32_t message = 1; message <= ring.messages; ++message) {
        if (ring.batch && ring.messages % 2 == 0) {
            if (producer.room(2) != RingStatus::done) memory.give_up();
            for (std::uint32_t ahead = 0; ahead < 2; ++ahead) {
                for (std::uint32_t word = 0; word < words; ++word) producer.write(ahead, word, message + ahead);
            }
            producer.publish(2);
            ++message;
            continue;
        }
        if (ring.beside) atomics.store_relaxed(beside_of(ring), message);
        const std::uint32_t both[words] = {message, message};
        if (producer.try_send(both, ring.publishes) != RingStatus::done) memory.give_up();
    }
}
void consume(const RingCase& ring, Memory& memory) {
    const ModelAtomics atomics(memory, ring.weakening, ring.fences);
    RingConsumer<ModelAtomics> consumer(atomics, place_of(ring.capacity, ring.spread));
    for (std::uint32_t taken = 0; taken < ring.messages;) {
        std::uint32_t got[2][words] = {};
        std::uint32_t received = 1;
        const RingStatus status = ring.batch ? consumer.try_receive_some(got, received, ring.publishes)
                                             : consumer.try_receive(got[0], ring.taken);
        if (status == RingStatus::wait) memory.give_up();
        if (status == RingStatus::broken) return memory.note(99);
        for (std::uint32_t at = 0; at < received; ++at) {
            for (const std::uint32_t word : got[at]) memory.note(word);
        }
        taken += received;
        if (ring.beside) memory.note(atomics.load_relaxed(beside_of(ring)) >= taken ? 0 : 77);
    }
}

Exploration explore_ring(const RingCase& ring) {
    const Side other = ring.producer == Side::host ? Side::device : Side::host;
    return explore(beside_of(ring) + 1, {{ring.producer, [&](Memory& memory) { produce(ring, memory); }},
                                         {other, [&](Memory& memory) { consume(ring, memory); }}});
}
bool right(const RingCase& ring) {
    std::vector<std::uint64_t> all;
    for (std::uint32_t message = 1; message <= ring.messages; ++message) {
        all.insert(all.end(), words, message);
        if (ring.beside) all.push_back(0);
    }
    return only(explore_ring(ring), {{{}, all}});
}

// keeps G10
TEST(Ring, EveryExecutionDeliversEachMessageOnceWholeAndInOrder) {
    for (const Publishes publishes : {Publishes::message_only, Publishes::all_memory}) {
        EXPECT_TRUE(right({.capacity = 1, .messages = 3, .publishes = publishes}));
        EXPECT_TRUE(right({.capacity = 2, .messages = 3, .publishes = publishes}));
        EXPECT_TRUE(right({.capacity = 1, .messages = 3, .publishes = publishes, .fences = true}));
    }
    for (const Side producer : {Side::host, Side::device}) {
        EXPECT_TRUE(right({.capacity = 2, .messages = 2, .producer = producer, .batch = true}));
    }
    EXPECT_TRUE(right({.capacity = 2, .messages = 3, .batch = true}));
    // Messages in a row on different lines; of four, the first and the third share one.
    EXPECT_TRUE(right({.capacity = 2, .messages = 3, .spread = 1}));
    EXPECT_TRUE(right({.capacity = 2, .messages = 2, .spread = 1, .batch = true}));
    EXPECT_TRUE(right({.capacity = 4, .messages = 3, .spread = 1, .batch = true}));
    // Two words of one access become visible in either order.
    const Weakening backwards{Kind::pairs_backwards};
    EXPECT_TRUE(right({.capacity = 1, .messages = 3, .weakening = backwards}));
    EXPECT_TRUE(right({.capacity = 2, .messages = 2, .weakening = backwards, .batch = true}));
    EXPECT_TRUE(right(
        {.capacity = 1, .messages = 2, .publishes = Publishes::all_memory, .weakening = backwards, .beside = true}));
}

// keeps G10
TEST(Ring, OneWordPublishesAllMemoryToo) {
    const auto finds = [](const Weakening& weakening) {
        constexpr std::uint32_t beside = slots + 1;
        const RingPlace<std::uint32_t> place{published, consumed, slots, 1, 1};
        const auto send = [&](Memory& memory) {
            const ModelAtomics atomics(memory, {});
            atomics.store_relaxed(beside, 1);
            RingProducer<ModelAtomics> producer(atomics, place);
            const std::uint32_t message = 7;
            if (producer.try_send(&message) != RingStatus::done) memory.give_up();
        };
        const auto take = [&](Memory& memory) {
            const ModelAtomics atomics(memory, weakening);
            RingConsumer<ModelAtomics> consumer(atomics, place);
            std::uint32_t message = 0;
            if (consumer.try_receive(&message) != RingStatus::done) memory.give_up();
            memory.note(message);
            memory.note(atomics.load_relaxed(beside));
        };
        return only(explore(beside + 1, {{Side::host, send}, {Side::device, take}}), {{{}, {7, 1}}});
    };
    EXPECT_TRUE(finds({}));
    EXPECT_FALSE(finds({Kind::relaxed_load, slots}));
}

// keeps G10
TEST(Ring, PairsOfWordsLieOnBoundariesOfSixteenBytes) {
    using isthmus::protocol::slot_stride;
    EXPECT_EQ(slot_stride(1), 1u);  // is not paired
    for (std::uint32_t count = 2; count < 70; ++count) {
        EXPECT_EQ(slot_stride(count) % 2, 0u);
        EXPECT_TRUE(slot_stride(count) == count || slot_stride(count) == count + 1);
    }
    EXPECT_EQ((isthmus::detail::MailboxShape{3, 5, 4}.words()), (6u + 4) * 32 + 4 * 6 * 2);
    EXPECT_EQ((isthmus::detail::MailboxShape{2, 2, 4096}.words()), 6u * 32 + 2 * 4096 * 2 * 2) << "no gap";
}

// keeps G10
TEST(Ring, NoTwoOfManyRequestsInARowShareALineAndNoTwoSlotsAWord) {
    using namespace isthmus::protocol;
    for (std::uint32_t words_each = 1; words_each < 70; ++words_each) {
        for (std::uint32_t capacity = 1; capacity <= 1024; capacity *= 2) {
            const isthmus::detail::MailboxShape shape{words_each, words_each, capacity};
            const auto place = shape.place(std::uint64_t{0}).requests;
            const std::uint64_t all = stamped_words(capacity, words_each, place.spread);
            EXPECT_EQ((isthmus::detail::MailboxShape::of(words_each, words_each, shape.words()).capacity), capacity);
            std::vector<bool> taken(all);
            for (std::uint32_t number = 0; number < capacity; ++number) {
                for (std::uint32_t word = 0; word < words_each; ++word) {
                    const std::uint64_t at = place.stamped_word(number, word);
                    ASSERT_LT(at, all);
                    ASSERT_FALSE(taken[at]);
                    taken[at] = true;
                    if (word % 2 == 1) {
                        ASSERT_EQ(at, place.stamped_word(number, word - 1) + 1);
                    }
                    if (word % 2 == 0 && words_each > 1) {
                        ASSERT_EQ(at % 2, 0u);
                    }
                }
                const std::uint64_t line = place.stamped_word(number, 0) / line_stamped;
                for (std::uint32_t ahead = 1; ahead < 32 && ahead < capacity; ++ahead) {
                    ASSERT_NE(place.stamped_word(number + ahead, 0) / line_stamped, line)
                        << words_each << " words, capacity " << capacity;
                }
            }
        }
    }
    EXPECT_EQ(spread_for(4096, 2), 9u) << "as few lines as hold them";
    EXPECT_EQ(spread_for(4, 2), 2u);
    EXPECT_EQ(spread_for(1, 2), 0u);
    EXPECT_EQ(spread_for(4096, 16), 0u) << "a message that fills its line";
}

// The counters and all stores of a message's words are relaxed: the acquire load of the last word orders, and a
// message's own content does not need even that.
// keeps G10
TEST(Ring, ContentNeedsNoOrder) {
    for (const std::uint32_t last_word : {slots + 1, slots + 3}) {
        EXPECT_TRUE(right({.capacity = 2, .messages = 3, .weakening = {Kind::relaxed_load, last_word}}));
    }
    EXPECT_TRUE(right({.capacity = 1, .messages = 3, .weakening = {Kind::relaxed_load, slots + 1}}));
    EXPECT_TRUE(right({.capacity = 1, .messages = 3, .taken = Publishes::message_only}));
    EXPECT_TRUE(right({.capacity = 2, .messages = 3, .taken = Publishes::message_only}));
}

// keeps G10
TEST(Ring, WhatWasWrittenBeforeAMessageThatPublishesAllMemoryIsSeenBehindIt) {
    for (const Side producer : {Side::host, Side::device}) {
        for (const bool fences : {false, true}) {
            RingCase ring{.capacity = 1, .messages = 2, .producer = producer, .publishes = Publishes::all_memory};
            ring.fences = fences;
            ring.beside = true;
            EXPECT_TRUE(right(ring));
            ring.publishes = Publishes::message_only;
            EXPECT_FALSE(right(ring));
            ring.publishes = Publishes::all_memory;
            ring.taken = Publishes::message_only;
            EXPECT_FALSE(right(ring));
        }
    }
}

// keeps G10
TEST(Ring, EveryWeakenedOrderAndEveryDroppedFenceIsCaughtByOtherMemory) {
    for (const Side producer : {Side::host, Side::device}) {
        RingCase ring{.capacity = 1, .messages = 2, .producer = producer, .publishes = Publishes::all_memory};
        ring.beside = true;
        for (const Kind kind :
             {Kind::relaxed_store, Kind::device_scope_store, Kind::relaxed_load, Kind::device_scope_load}) {
            ring.weakening = {kind, slots + 1};
            EXPECT_FALSE(right(ring)) << static_cast<int>(kind);
        }
        ring.fences = true;
        for (const Kind kind : {Kind::no_store_fence, Kind::no_load_fence}) {
            ring.weakening = {kind, slots + 1};
            EXPECT_FALSE(right(ring)) << static_cast<int>(kind);
        }
    }
}

// A batch is polled with relaxed loads; the words that came with its last message are loaded once more.
// keeps G10
TEST(Ring, ABatchShowsWhatWasWrittenBeforeItsLastMessage) {
    const auto shows = [](Publishes taken) {
        const auto send = [](Memory& memory) {
            const ModelAtomics atomics(memory);
            RingProducer<ModelAtomics> producer(atomics, place_of(2));
            for (const std::uint32_t message : {1u, 2u}) {
                const std::uint32_t both[words] = {message, message};
                atomics.store_relaxed(slots + 2 * words, message);
                if (producer.try_send(both) != RingStatus::done) memory.give_up();
            }
        };
        const auto take = [=](Memory& memory) {
            const ModelAtomics atomics(memory);
            RingConsumer<ModelAtomics> consumer(atomics, place_of(2));
            std::uint32_t got[2][words] = {};
            std::uint32_t received = 0;
            if (consumer.try_receive_some(got, received, taken) != RingStatus::done) memory.give_up();
            memory.note(atomics.load_relaxed(slots + 2 * words) >= received ? 1 : 0);
        };
        return only(explore(slots + 2 * words + 1, {{Side::host, send}, {Side::device, take}}), {{{}, {1}}});
    };
    EXPECT_TRUE(shows(Publishes::all_memory));
    EXPECT_FALSE(shows(Publishes::message_only));
}

// Rings with one likely mistake each.
enum class Mistake {
    none,
    slot_unmasked,
    full_off_by_one,
    freed_first,
    full_unasked,
    word_unlooked_at,
    stamp_of_the_slot
};

template <Mistake mistake>
std::uint64_t stamp_of(std::uint32_t number, std::uint32_t capacity) {
    return mistake == Mistake::stamp_of_the_slot ? (number & (capacity - 1)) + 1 : number + 1;
}
template <Mistake mistake>
void send_wrongly(Memory& memory, std::uint32_t capacity, std::uint32_t messages) {
    const ModelAtomics atomics(memory);
    for (std::uint32_t next = 0; next < messages; ++next) {
        const std::uint32_t limit = mistake == Mistake::full_off_by_one ? capacity + 1 : capacity;
        if (mistake != Mistake::full_unasked && next - atomics.load_relaxed(consumed) >= limit) memory.give_up();
        const std::uint32_t slot = mistake == Mistake::slot_unmasked ? next : next & (capacity - 1);
        for (std::uint32_t word = 0; word < words; ++word) {
            atomics.store_stamped_relaxed(slots + slot * words + word,
                                          (stamp_of<mistake>(next, capacity) << 32) | (next + 1));
        }
    }
}
template <Mistake mistake>
void receive_wrongly(Memory& memory, std::uint32_t capacity, std::uint32_t messages) {
    const ModelAtomics atomics(memory);
    for (std::uint32_t next = 0; next < messages; ++next) {
        const std::uint32_t slot = mistake == Mistake::slot_unmasked ? next : next & (capacity - 1);
        std::uint64_t got[words] = {};
        if (mistake == Mistake::freed_first) atomics.store_relaxed(consumed, next + 1);
        for (std::uint32_t word = 0; word < words; ++word) {
            got[word] = atomics.load_stamped_relaxed(slots + slot * words + word);
            const bool looked_at = mistake != Mistake::word_unlooked_at || word != 0;
            const std::uint64_t stamp = got[word] >> 32;
            if (looked_at && stamp > stamp_of<mistake>(next, capacity)) return memory.note(99);
            if (looked_at && stamp != stamp_of<mistake>(next, capacity)) memory.give_up();
        }
        if (mistake != Mistake::freed_first) atomics.store_relaxed(consumed, next + 1);
        for (const std::uint64_t word : got) memory.note(word & 0xffffffffu);
    }
}
template <Mistake mistake>
bool right_with() {
    constexpr std::uint32_t capacity = 2, messages = 3;
    const Exploration found =
        explore(slots + capacity * words,
                {{Side::host, [](Memory& memory) { send_wrongly<mistake>(memory, capacity, messages); }},
                 {Side::device, [](Memory& memory) { receive_wrongly<mistake>(memory, capacity, messages); }}});
    return only(found, {{{}, {1, 1, 2, 2, 3, 3}}});
}

// keeps G10
TEST(Ring, EveryUsualMistakeIsCaught) {
    EXPECT_TRUE(right_with<Mistake::none>());
    EXPECT_FALSE(right_with<Mistake::slot_unmasked>());
    EXPECT_FALSE(right_with<Mistake::full_off_by_one>());
    EXPECT_FALSE(right_with<Mistake::freed_first>());
    EXPECT_FALSE(right_with<Mistake::full_unasked>());
    EXPECT_FALSE(right_with<Mistake::word_unlooked_at>());
    EXPECT_FALSE(right_with<Mistake::stamp_of_the_slot>());
}

using isthmus::protocol::SystemAtomics;

// One cache line for each counter, then four slots of one word.
struct Lines {
    alignas(128) std::array<std::uint32_t, 128> words{};
    RingPlace<std::uint32_t*> place{words.data(), words.data() + 32, words.data() + 64, 4, 1};
    void stamp(std::uint32_t slot, std::uint32_t stamp) { words[64 + 2 * slot + 1] = stamp; }
};

// keeps G10
TEST(Ring, CountersAndStampsGoRoundAtTwoToThe32) {
    Lines lines;
    lines.words[0] = lines.words[32] = 0xfffffffcu;
    for (std::uint32_t slot = 0; slot < 4; ++slot) lines.stamp(slot, 0xfffffff9u + slot);  // stamps of the previous lap
    RingProducer<SystemAtomics> producer(SystemAtomics{}, lines.place);
    RingConsumer<SystemAtomics> consumer(SystemAtomics{}, lines.place);
    for (std::uint32_t round = 0; round < 5; ++round) {
        for (std::uint32_t message = 0; message < 4; ++message) {
            const std::uint32_t sent = round * 10 + message;
            EXPECT_EQ(producer.try_send(&sent), RingStatus::done);
        }
        const std::uint32_t more = 77;
        EXPECT_EQ(producer.try_send(&more), RingStatus::wait);
        EXPECT_EQ(consumer.available(4), RingStatus::done);
        EXPECT_EQ(consumer.available(5), RingStatus::wait);
        EXPECT_EQ(consumer.ready(), 4u);
        EXPECT_EQ(consumer.read(3, 0), round * 10 + 3);
        for (std::uint32_t message = 0; message < 4; ++message) {
            std::uint32_t got = 0;
            EXPECT_EQ(consumer.try_receive(&got), RingStatus::done);
            EXPECT_EQ(got, round * 10 + message);
        }
        std::uint32_t none = 0;
        EXPECT_EQ(consumer.try_receive(&none), RingStatus::wait);
        EXPECT_EQ(consumer.ready(), 0u);
    }
}

// keeps G10
TEST(Ring, ABatchTakesWhatIsThereAndNoMoreThanTheRingHolds) {
    Lines lines;
    RingProducer<SystemAtomics> producer(SystemAtomics{}, lines.place);
    RingConsumer<SystemAtomics> consumer(SystemAtomics{}, lines.place);
    std::uint32_t next = 0;
    for (const std::uint32_t count : {3u, 4u, 0u, 2u, 4u}) {
        for (std::uint32_t message = 0; message < count; ++message) {
            const std::uint32_t sent = next + message;
            EXPECT_EQ(producer.try_send(&sent), RingStatus::done);
        }
        std::uint32_t got[8][1] = {};
        std::uint32_t received = 9;
        EXPECT_EQ(consumer.try_receive_some(got, received), count != 0 ? RingStatus::done : RingStatus::wait);
        EXPECT_EQ(received, count);
        for (std::uint32_t message = 0; message < count; ++message) EXPECT_EQ(got[message][0], next++);
    }
    // A false stamp in the next slot does not hide the message before it.
    EXPECT_EQ(producer.try_send(&next), RingStatus::done);
    lines.stamp((consumer.count() + 1) & 3, 0x12345678u);
    std::uint32_t got[8][1] = {};
    std::uint32_t received = 0;
    EXPECT_EQ(consumer.try_receive_some(got, received), RingStatus::done);
    EXPECT_EQ(received, 1u);
    EXPECT_EQ(consumer.try_receive_some(got, received), RingStatus::broken);
    EXPECT_EQ(received, 0u);
}

// A message with more words than one poll loads, the last of which arrives late.
// keeps G10
TEST(Ring, ALongMessageIsThereWhenItsLastWordIs) {
    constexpr std::uint32_t long_words = 37;
    alignas(128) std::array<std::uint32_t, 64 + 2 * 2 * isthmus::protocol::slot_stride(long_words)> cells{};
    const RingPlace<std::uint32_t*> place{cells.data(), cells.data() + 32, cells.data() + 64, 2, long_words};
    RingProducer<SystemAtomics> producer(SystemAtomics{}, place);
    RingConsumer<SystemAtomics> consumer(SystemAtomics{}, place);
    std::uint32_t got[long_words] = {};
    for (std::uint32_t late = 0; late < long_words; ++late) {
        EXPECT_EQ(producer.room(), RingStatus::done);
        for (std::uint32_t word = 0; word < long_words; ++word) {
            if (word != late) producer.write(0, word, late * 100 + word);
        }
        EXPECT_EQ(consumer.try_receive(got), RingStatus::wait);
        EXPECT_EQ(consumer.available(), RingStatus::wait);
        producer.write(0, late, late * 100 + late);
        producer.publish();
        EXPECT_EQ(consumer.try_receive(got), RingStatus::done);
        for (std::uint32_t word = 0; word < long_words; ++word) EXPECT_EQ(got[word], late * 100 + word);
    }
}

// keeps G10
TEST(Ring, CountersAndStampsThatTheOtherSideOverwroteAreAnErrorAndReachNowhere) {
    for (const std::uint32_t nonsense : {5u, 0x80000000u}) {
        Lines lines;
        RingProducer<SystemAtomics> producer(SystemAtomics{}, lines.place);
        RingConsumer<SystemAtomics> consumer(SystemAtomics{}, lines.place);
        std::uint32_t message = 1;
        lines.stamp(0, nonsense);
        EXPECT_EQ(consumer.try_receive(&message), RingStatus::broken);
        EXPECT_EQ(consumer.available(), RingStatus::broken);
        lines.words[32] = nonsense;
        EXPECT_EQ(producer.try_send(&message), RingStatus::broken);
        // A producer that starts from a false counter of its own stays within the slots.
        lines.words[0] = nonsense;
        RingProducer<SystemAtomics> resumed(SystemAtomics{}, lines.place);
        EXPECT_EQ(resumed.try_send(&message), RingStatus::done);
    }
}

// A slot that was never written is empty in the first lap, and an error in later laps.
// keeps G10
TEST(Ring, AStampOfNothingIsBelievedInTheFirstLapOnly) {
    Lines lines;
    std::uint32_t message = 0;
    EXPECT_EQ(RingConsumer<SystemAtomics>(SystemAtomics{}, lines.place).try_receive(&message), RingStatus::wait);
    lines.words[32] = 4;
    EXPECT_EQ(RingConsumer<SystemAtomics>(SystemAtomics{}, lines.place).try_receive(&message), RingStatus::broken);
}

// keeps G10
TEST(Ring, WhoComesNextGoesOnWhereTheLastOneStopped) {
    Lines lines;
    for (std::uint32_t message = 0; message < 11; ++message) {
        RingProducer<SystemAtomics> producer(SystemAtomics{}, lines.place);
        EXPECT_EQ(producer.try_send(&message), RingStatus::done);
        RingConsumer<SystemAtomics> consumer(SystemAtomics{}, lines.place);
        std::uint32_t got = 99;
        EXPECT_EQ(consumer.try_receive(&got), RingStatus::done);
        EXPECT_EQ(got, message);
    }
}

// keeps G5
TEST(ShardedCounter, SumsNeverRunAheadNeverGoBackAndAreExactBehindAMessage) {
    using isthmus::protocol::CounterLane;
    using isthmus::protocol::merged;
    constexpr std::uint32_t host_lane = 0, device_lane = 1, flag = 2, done_before = 3;
    const auto explored = [&](Weakening weakening) {
        return explore(4, {{Side::device,
                            [=](Memory& memory) {
                                const ModelAtomics atomics(memory, weakening);
                                CounterLane<ModelAtomics> lane(atomics, device_lane);
                                lane.add(1);
                                atomics.store_relaxed(done_before, 1);
                                lane.add(1);
                                atomics.store_release(flag, 1);
                            }},
                           {Side::host, [=](Memory& memory) {
                                const ModelAtomics atomics(memory, weakening);
                                CounterLane<ModelAtomics> lane(atomics, host_lane);
                                lane.add(4);
                                const std::uint32_t early = merged(atomics, host_lane, device_lane);
                                const std::uint32_t seen = atomics.load_relaxed(done_before);
                                memory.note(early);
                                memory.note(early == 6 && seen == 0 ? 1 : 0);
                                if (atomics.load_acquire(flag) == 0) memory.give_up();
                                memory.note(merged(atomics, host_lane, device_lane));
                            }}});
    };
    const std::set<Outcome> lawful{{{}, {4, 0, 6}}, {{}, {5, 0, 6}}, {{}, {6, 0, 6}}};
    EXPECT_TRUE(only(explored({}), lawful));
    EXPECT_FALSE(only(explored({Kind::relaxed_store, device_lane}), lawful));
    EXPECT_FALSE(only(explored({Kind::relaxed_load, device_lane}), lawful));
    EXPECT_FALSE(only(explored({Kind::device_scope_store, device_lane}), lawful));
    EXPECT_FALSE(only(explored({Kind::relaxed_store, flag}), lawful));
}

}  // namespace
