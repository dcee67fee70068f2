// SPDX-License-Identifier: Apache-2.0
// A block for each thread: what is recorded, what is dropped, and the end while threads record.
// keeps O2
#include "event_blocks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace {

using isthmus::trace::EventBlocks;
using isthmus::trace::RecordedEvent;

void record(EventBlocks& blocks, std::uint64_t number) {
    blocks.record([&](RecordedEvent& event) { event.position = number; });
}

void on_threads(int count, const auto& body) {
    std::vector<std::thread> threads;
    for (int at = 0; at < count; ++at) threads.emplace_back(body);
    for (std::thread& thread : threads) thread.join();
}

TEST(EventBlocks, KeepEachThreadsEventsInItsOrder) {
    constexpr std::uint64_t each = 1000;
    EventBlocks blocks;
    ASSERT_TRUE(blocks.make(8, each));
    on_threads(8, [&] {
        for (std::uint64_t at = 0; at < each; ++at) record(blocks, at);
    });
    ASSERT_TRUE(blocks.close());
    EXPECT_EQ(blocks.recorded(), 8 * each);
    EXPECT_EQ(blocks.dropped(), 0u);
    ASSERT_EQ(blocks.size(), 8u);
    for (std::size_t block = 0; block < blocks.size(); ++block) {
        EXPECT_NE(blocks[block].owner.load(), 0u);
        ASSERT_EQ(blocks[block].count.load(), each);
        for (std::uint64_t at = 0; at < each; ++at) ASSERT_EQ(blocks[block].events[at].position, at);
    }
}

TEST(EventBlocks, CountWhatDoesNotFit) {
    EventBlocks blocks;
    ASSERT_TRUE(blocks.make(1, 3));
    for (std::uint64_t at = 0; at < 5; ++at) record(blocks, at);
    EXPECT_EQ(blocks.recorded(), 3u);
    EXPECT_EQ(blocks.dropped(), 2u);
    on_threads(1, [&] { record(blocks, 9); });  // there is no block for a second thread
    EXPECT_EQ(blocks.recorded(), 3u);
    EXPECT_EQ(blocks.dropped(), 3u);
}

// A thread that records in two traces by turns finds its block again.
TEST(EventBlocks, OfSeveralTracesAreApart) {
    EventBlocks one, other;
    ASSERT_TRUE(one.make(2, 10));
    ASSERT_TRUE(other.make(2, 10));
    for (std::uint64_t at = 0; at < 4; ++at) record(at % 2 == 0 ? one : other, at);
    EXPECT_EQ(one.size(), 1u);
    EXPECT_EQ(one.recorded(), 2u);
    EXPECT_EQ(other.recorded(), 2u);
    EXPECT_EQ(other[0].events[1].position, 3u);
}

// A thread's last block is not taken for one of other blocks at the same address.
TEST(EventBlocks, MayLieWhereOthersLay) {
    alignas(EventBlocks) std::byte place[sizeof(EventBlocks)];
    for (int round = 0; round < 3; ++round) {
        EventBlocks* const blocks = std::construct_at(reinterpret_cast<EventBlocks*>(place));
        ASSERT_TRUE(blocks->make(1, 4));
        record(*blocks, 1);
        EXPECT_EQ(blocks->recorded(), 1u);
        std::destroy_at(blocks);
    }
}

TEST(EventBlocks, RecordNothingOnceTheyAreClosed) {
    EventBlocks blocks;
    ASSERT_TRUE(blocks.make(1, 10));
    record(blocks, 1);
    EXPECT_TRUE(blocks.close());
    EXPECT_FALSE(blocks.close());
    record(blocks, 2);
    EXPECT_EQ(blocks.recorded(), 1u);
    EXPECT_EQ(blocks.dropped(), 0u);
    blocks.give_back();
    record(blocks, 3);  // touches no events
    EXPECT_EQ(blocks.recorded(), 1u);
}

// Events that threads record while the trace ends are whole or not there, and their memory can go at once.
TEST(EventBlocks, EndWhileThreadsRecord) {
    for (int round = 0; round < 20; ++round) {
        EventBlocks blocks;
        ASSERT_TRUE(blocks.make(4, 1 << 12));
        std::atomic<int> running{0};
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (int at = 0; at < 4; ++at) {
            threads.emplace_back([&] {
                running.fetch_add(1);
                for (std::uint64_t number = 0; !stop.load(); ++number) record(blocks, number);
            });
        }
        while (running.load() < 4) std::this_thread::yield();
        EXPECT_TRUE(blocks.close());
        const std::uint64_t recorded = blocks.recorded();
        for (std::size_t block = 0; block < blocks.size(); ++block) {
            const std::size_t count = blocks[block].count.load();
            for (std::size_t at = 0; at < count; ++at) ASSERT_EQ(blocks[block].events[at].position, at);
        }
        blocks.give_back();
        stop.store(true);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(blocks.recorded(), recorded);
    }
}

}  // namespace
