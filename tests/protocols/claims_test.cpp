// SPDX-License-Identifier: Apache-2.0
// A launch that claims a buffer by a store alone, beside a host view that opens at the same time, in every execution:
// the launch sees the view, or the view sees the launch. claim_in_place() (runtime/launch/in_place_claim.hpp) and
// BufferState::enter_first_use() in the model's words. And beside a buffer that forgets the stream of such claims,
// which other code hands to the runtime again: BufferState::forget_ended_uses().
#include "explorer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

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

// A buffer's first stream, `known`, has no work and no holder but buffers. Another stream, `next`, uses the buffer for
// the first time, so that the buffer forgets the one and claims by a store become the other's. Meanwhile a thread wraps
// `known` again, and claims for it.
namespace forgetting {

constexpr std::uint32_t position = 0, word = 1, first = 2, lock_of_known = 3, over = 4, over_too = 5, cells = 6;
constexpr std::uint64_t known = 0, nobody = 1, next = 2;
constexpr std::uint64_t of_known = 1, first_of_next = 10, second_of_next = 11;

struct Shape {
    bool needs_lock = true;    // of the stream, to forget it
    bool looks_again = false;  // behind the fence: whether the buffer still names the stream
};

// Notes 1 where the launch is given to the driver, 0 where it takes the buffer's lock, by which the buffer knows it.
void wrapped_again(Memory& memory, const Shape& shape) {
    if (memory.exchange(lock_of_known, 1, Ordered::acquire) != 0) memory.give_up();
    const auto claims = [&] {
        if (memory.load(first, Order::relaxed) != known || memory.load(word, Order::ordered) != at_rest) return false;
        memory.store(position, of_known, Order::relaxed);
        memory.fence(Fence::sequential);
        if (memory.load(word, Order::ordered) != at_rest) return false;
        return !shape.looks_again || memory.load(first, Order::relaxed) == known;
    };
    memory.note(claims() ? 1 : 0);
    memory.store(lock_of_known, 0, Order::ordered);
    memory.store(over, 1, Order::ordered);
}

// Notes the position that it enters for `known`, and whether its second launch was given to the driver by a store.
void used_by_next(Memory& memory, const Shape& shape) {
    (void)memory.exchange(word, locked, Ordered::acquire);
    memory.fence(Fence::sequential);
    const std::uint64_t entered = memory.load(position, Order::relaxed);
    memory.note(entered);
    const auto forgets = [&] {
        if (entered != 0) return false;  // work that has not ended
        return !shape.needs_lock || memory.compare_exchange(lock_of_known, 0, 1, Ordered::acquire) == 0;
    };
    const bool forgotten = forgets();
    if (forgotten) {
        memory.store(first, nobody, Order::ordered);
        if (shape.needs_lock) memory.store(lock_of_known, 0, Order::ordered);
        memory.store(position, first_of_next, Order::relaxed);
        memory.store(first, next, Order::ordered);
    }
    memory.store(word, at_rest, Order::ordered);
    if (forgotten) {
        memory.store(position, second_of_next, Order::relaxed);
        memory.fence(Fence::sequential);
    }
    memory.note(forgotten && memory.load(word, Order::ordered) == at_rest ? 1 : 0);
    memory.store(over_too, 1, Order::ordered);
}

// Notes whose position it waits for, and which.
void view_of_all(Memory& memory) {
    if (memory.load(over, Order::ordered) != 1 || memory.load(over_too, Order::ordered) != 1) memory.give_up();
    memory.note(memory.load(first, Order::relaxed));
    memory.note(memory.load(position, Order::relaxed));
}

Exploration explored(const Shape& shape) {
    return explore(cells, {{Side::host, [=](Memory& memory) { wrapped_again(memory, shape); }},
                           {Side::host, [=](Memory& memory) { used_by_next(memory, shape); }},
                           {Side::host, view_of_all}});
}

bool loses_a_launch(const Outcome& outcome) {
    const bool given_by_known = outcome[0][0] == 1, given_by_next = outcome[1][1] == 1;
    const bool entered = outcome[1][0] == of_known;
    const auto waits_for = [&](std::uint64_t stream, std::uint64_t launch) {
        return outcome[2][0] == stream && outcome[2][1] == launch;
    };
    return (given_by_known && !entered && !waits_for(known, of_known)) ||
           (given_by_next && !waits_for(next, second_of_next));
}
bool any_loses(const Exploration& all) {
    return std::any_of(all.outcomes.begin(), all.outcomes.end(), loses_a_launch);
}

}  // namespace forgetting

TEST(StoredClaims, NoExecutionLosesALaunchOfAStreamThatIsWrappedWhileABufferForgetsIt) {  // keeps G8
    const Exploration all = forgetting::explored({});
    EXPECT_TRUE(all.whole);
    EXPECT_FALSE(all.wild);
    EXPECT_FALSE(forgetting::any_loses(all));
    const auto ends_as = [&](const Outcome& outcome) { return all.outcomes.count(outcome); };
    using namespace forgetting;
    EXPECT_EQ(ends_as({{1}, {of_known, 0}, {known, of_known}}), 1u) << "the launch was first, and is entered";
    EXPECT_EQ(ends_as({{0}, {0, 1}, {next, second_of_next}}), 1u) << "the buffer had forgotten the stream";
    EXPECT_EQ(ends_as({{1}, {0, 0}, {known, of_known}}), 1u) << "the stream stayed, because a thread had its lock";
}

TEST(StoredClaims, ToForgetAStreamWithoutItsLockLosesLaunches) {  // keeps G8
    EXPECT_TRUE(forgetting::any_loses(forgetting::explored({.needs_lock = false})));
    // A late store hits the position of the stream that came after.
    EXPECT_TRUE(forgetting::any_loses(forgetting::explored({.needs_lock = false, .looks_again = true})));
}

}  // namespace
