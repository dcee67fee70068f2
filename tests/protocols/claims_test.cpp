// SPDX-License-Identifier: Apache-2.0
// A launch that claims a buffer by a store alone, beside a host view that opens at the same time, in every execution:
// the launch sees the view, or the view sees the launch. claim_in_place() (runtime/launch/in_place_claim.hpp) and
// BufferState::enter_first_use() in the model's words.
#include "explorer.hpp"

#include <gtest/gtest.h>

namespace {

using namespace protocols;

constexpr std::uint32_t position = 0, word = 1;
constexpr std::uint64_t at_rest = 0, locked = 1, open = 2;

struct Fences {
    bool of_launch = true;
    bool of_view = true;
};

// Notes 1 where the launch is given to the driver, 0 where it takes the lock after all.
void launch(Memory& memory, const Fences& fences) {
    memory.store(position, 1, Order::relaxed);
    if (fences.of_launch) memory.fence(Fence::sequential);
    memory.note(memory.load(word, Order::ordered) == at_rest ? 1 : 0);
}

// Notes the position that it waits for.
void view(Memory& memory, const Fences& fences) {
    memory.store(word, locked, Order::relaxed);
    if (fences.of_view) memory.fence(Fence::sequential);
    memory.note(memory.load(position, Order::relaxed));
    memory.store(word, open, Order::ordered);
}

Exploration explored(const Fences& fences) {
    return explore(2, {{Side::host, [=](Memory& memory) { launch(memory, fences); }},
                       {Side::host, [=](Memory& memory) { view(memory, fences); }}});
}
const Outcome unseen{{1}, {0}};  // a kernel runs beside the view

TEST(StoredClaims, NoExecutionHasALaunchAndAViewThatDoNotSeeEachOther) {  // keeps G8, G9
    const Exploration all = explored({});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_EQ(all.outcomes.count(unseen), 0u);
    EXPECT_EQ(all.outcomes.count({{1}, {1}}), 1u) << "the launch was first";
    EXPECT_EQ(all.outcomes.count({{0}, {0}}), 1u) << "the view was first";
}

TEST(StoredClaims, EitherFenceTakenAwayIsAKernelBesideAView) {  // keeps G8, G9
    EXPECT_EQ(explored({.of_launch = false}).outcomes.count(unseen), 1u);
    EXPECT_EQ(explored({.of_view = false}).outcomes.count(unseen), 1u);
}

}  // namespace
