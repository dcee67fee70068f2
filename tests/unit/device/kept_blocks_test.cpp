// SPDX-License-Identifier: Apache-2.0
// KeptBlocks: blocks come back, and the last one ends what was closed before.
#include "kept_blocks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

struct Small {
    std::array<std::uint64_t, 9> words{};
};

TEST(KeptBlocks, HandOutWhatCameBack) {
    const OwnedBlocks blocks(new KeptBlocks);
    const auto made = [&] { return std::allocate_shared<Small>(KeptAllocator<Small>(*blocks)); };
    std::shared_ptr<Small> first = made();
    const Small* const at = first.get();
    const std::shared_ptr<Small> second = made();
    EXPECT_NE(second.get(), at);
    first.reset();
    EXPECT_EQ(made().get(), at);
    EXPECT_EQ(made().get(), at);
}

TEST(KeptBlocks, KeepsNoMoreIdleBlocksThanItSays) {
    const OwnedBlocks blocks(new KeptBlocks);
    std::vector<void*> lent;
    for (std::size_t at = 0; at < 2 * KeptBlocks::most; ++at) lent.push_back(blocks->take(64));
    EXPECT_EQ(std::set<void*>(lent.begin(), lent.end()).size(), lent.size());
    for (void* block : lent) blocks->give_back(block);  // AddressSanitizer: none twice, none lost
}

TEST(KeptBlocks, AreAlignedAndKeptAsTheOwnerSays) {
    const OwnedBlocks blocks(new KeptBlocks(1, 256));
    std::vector<void*> lent;
    for (int at = 0; at < 3; ++at) lent.push_back(blocks->take(256));
    for (void* block : lent) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0u);
        blocks->give_back(block);
    }
    EXPECT_EQ(blocks->take(256), lent.front()) << "the first to come back; it was the only one kept";
    blocks->give_back(lent.front());
}

// What comes back last is freed, although its owner is gone.
TEST(KeptBlocks, LiveUntilTheLastBlockComesBack) {
    struct Holder {
        OwnedBlocks blocks{new KeptBlocks};
    };
    struct Held {
        std::shared_ptr<Holder> holder;
    };
    auto holder = std::make_shared<Holder>();
    const std::weak_ptr<Holder> seen = holder;
    auto held = std::allocate_shared<Held>(KeptAllocator<Held>(*holder->blocks), Held{holder});
    holder.reset();
    EXPECT_FALSE(seen.expired());
    held.reset();
    EXPECT_TRUE(seen.expired());
}

// Each block of the other sort, also one that came later, has one of these without the heap.
TEST(KeptBlocks, AreKeptForEachOfAnotherSort) {  // keeps R9
    const OwnedBlocks others(new KeptBlocks);
    const OwnedBlocks blocks(new KeptBlocks(1));
    const auto lent_without_heap = [&] {
        std::vector<void*> lent;
        bool fresh = false;
        while (!fresh) lent.push_back(blocks->take(64, &fresh));
        for (void* block : lent) blocks->give_back(block);
        return lent.size() - 1;
    };
    bool fresh = false;
    std::vector<void*> other = {others->take(64, &fresh), others->take(64)};
    EXPECT_TRUE(fresh);
    EXPECT_FALSE(blocks->keeps_for_each());
    EXPECT_EQ(lent_without_heap(), 0u);
    blocks->keep_for_each_of(*others, 64);
    EXPECT_TRUE(blocks->keeps_for_each());
    EXPECT_EQ(lent_without_heap(), 2u);
    other.push_back(others->take(64));
    blocks->keep_for_each_of(*others, 64);
    EXPECT_EQ(lent_without_heap(), 3u);
    for (void* block : other) others->give_back(block);
    fresh = false;
    others->give_back(others->take(64, &fresh));
    EXPECT_FALSE(fresh);
}

// Another thread of the parent may have held the lock at the fork: the child takes none, and so no idle block.
TEST(KeptBlocks, GiveAForkedChildMemoryOfTheHeap) {
    OwnedBlocks blocks(new KeptBlocks);
    void* const idle = blocks->take(64);
    blocks->give_back(idle);
    process::forks.fetch_add(1);  // what the child of a fork() finds
    void* const made = blocks->take(64);
    EXPECT_NE(made, idle);
    blocks->give_back(made);
    process::forks.fetch_sub(1);
    EXPECT_EQ(blocks->take(64), idle);
    blocks->give_back(idle);
}

TEST(KeptBlocks, ServeSeveralThreads) {
    const OwnedBlocks blocks(new KeptBlocks);
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&blocks, thread] {
            for (int round = 0; round < 2000; ++round) {
                const auto mine = std::allocate_shared<Small>(KeptAllocator<Small>(*blocks));
                mine->words.fill(static_cast<std::uint64_t>(thread));
                for (const std::uint64_t word : mine->words) ASSERT_EQ(word, static_cast<std::uint64_t>(thread));
            }
        });
    }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
