// SPDX-License-Identifier: Apache-2.0
// The frame ring without a device: two threads at full speed, and no allocation after construction.
#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/runtime.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace {
std::atomic<long> allocations{0};
}

// Counts all allocations of this program. Not inlined: compilers would see memory of new in free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* made = std::malloc(bytes); made != nullptr) return made;
    std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;

// What the producer wrote into a slot, in plain memory: only the ring's order makes it visible.
struct Slot {
    std::uint64_t frame = 0;
    std::array<std::uint64_t, 8> words{};
};

void play(WhenFull when_full, std::size_t slots, std::uint64_t frames) {
    RingCore ring(slots, when_full, 30s);
    std::vector<Slot> memory(slots);
    std::thread producer([&] {
        for (std::uint64_t made = 0; made < frames; ++made) {
            const Result<RingCore::Taken> taken = ring.begin({});
            if (!taken) {
                ASSERT_EQ(when_full, WhenFull::drop_newest);
                ASSERT_EQ(taken.code(), Code::not_ready);
                std::this_thread::yield();
                continue;
            }
            Slot& slot = memory[taken->slot];
            slot.frame = taken->frame;
            slot.words.fill(taken->frame * 3);
            if (made % 7 == 6) {
                ring.abandon(taken->slot);
            } else {
                ring.publish(*taken);
            }
        }
        ring.close();
    });
    std::uint64_t next = 0, seen = 0;
    std::optional<RingCore::Taken> held;  // the consumer holds one frame a little longer
    for (;;) {
        const Result<RingCore::Taken> taken = ring.take({});
        if (!taken) {
            EXPECT_EQ(taken.code(), Code::ended);
            break;
        }
        const Slot& slot = memory[taken->slot];
        ASSERT_GE(taken->frame, next);
        next = taken->frame + 1;
        ASSERT_EQ(slot.frame, taken->frame);
        for (const std::uint64_t word : slot.words) ASSERT_EQ(word, taken->frame * 3);
        if (held) ring.give_back(*held);
        held = *taken;
        ++seen;
    }
    if (held) ring.give_back(*held);
    producer.join();
    const RingCounts counts = ring.counts();
    EXPECT_EQ(counts.consumed, seen);
    EXPECT_TRUE(ring.ended());
    if (when_full == WhenFull::drop_newest) {
        EXPECT_EQ(seen, counts.produced);
    } else {
        EXPECT_EQ(seen + counts.dropped, counts.produced);
    }
}

TEST(FrameRing, TwoThreadsPassEveryFrameInOrderAndWhole) {
    for (const WhenFull when_full : {WhenFull::wait, WhenFull::drop_oldest, WhenFull::drop_newest}) {
        for (const std::size_t slots : {2u, 3u, 8u}) play(when_full, slots, 20'000);
    }
}

TEST(FrameRing, AWaiterIsWokenByTheOtherSideAndByTheEnd) {
    RingCore ring(2, WhenFull::wait, 30s);
    std::thread consumer([&] {
        for (int frame = 0; frame < 3; ++frame) ring.give_back(ring.take({}).value());
        EXPECT_EQ(ring.take({}).code(), Code::ended);
    });
    for (int frame = 0; frame < 3; ++frame) ring.publish(ring.begin({}).value());
    ring.close();
    consumer.join();
    EXPECT_EQ(ring.begin({}).code(), Code::ended);
}

TEST(FrameRing, WhatIsAbandonedWasNoFrame) {
    RingCore ring(3, WhenFull::wait, 30s);
    ring.abandon(ring.begin({}).value().slot);
    const RingCore::Taken first = ring.begin({}).value(), second = ring.begin({}).value();
    ring.publish(second);
    ring.publish(first);
    for (std::uint64_t number = 0; number < 2; ++number) {
        const RingCore::Taken taken = ring.take({}).value();
        EXPECT_EQ(taken.frame, number) << "numbered in the order in which they come out";
        EXPECT_EQ(taken.slot, number == 0 ? second.slot : first.slot);
        ring.give_back(taken);
    }
}

TEST(FrameRing, EveryHeldFrameTellsTheNumberThatItWouldGetNow) {
    RuntimeOptions options;
    options.use_cuda = false;
    Runtime runtime = Runtime::open(options).value();
    auto ring =
        isthmus::FrameRing<std::uint32_t>::create(runtime.cpu(), 16, {.frames = 3, .when_full = WhenFull::drop_newest})
            .value();
    auto first = ring.begin_frame().value(), second = ring.begin_frame().value(), third = ring.begin_frame().value();
    EXPECT_EQ(first.number(), 0u);
    EXPECT_EQ(second.number(), 0u);
    EXPECT_EQ(third.number(), 0u);
    second.publish();
    EXPECT_EQ(first.number(), 1u) << "another frame came before it";
    EXPECT_EQ(ring.begin_frame(Wait::never()).code(), Code::not_ready);  // a dropped frame has a number, too
    EXPECT_EQ(third.number(), 2u);
    third.publish();
    EXPECT_EQ(third.number(), 0u) << "an empty frame has none";
    const std::uint64_t told = first.number();
    first.publish();
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{2}, told}) {
        EXPECT_EQ(ring.next_frame().value().number(), number);
    }
}

TEST(FrameRing, WhatIsPublishedBehindTheCloseIsDropped) {
    RingCore ring(2, WhenFull::wait, 30s);
    ring.publish(ring.begin({}).value());
    const RingCore::Taken late = ring.begin({}).value();
    ring.close();
    ring.publish(late);
    EXPECT_EQ(ring.counts().produced, 2u);
    EXPECT_EQ(ring.counts().dropped, 1u);
    ring.give_back(ring.take({}).value());
    EXPECT_TRUE(ring.ended());
    EXPECT_EQ(ring.take({}).code(), Code::ended);
    EXPECT_EQ(ring.counts().consumed, 1u);
}

TEST(FrameRing, DeadlinesOfAnyLengthAreKept) {
    RingCore ring(2, WhenFull::wait, 1ms);
    EXPECT_EQ(ring.take({}).code(), Code::timed_out) << "the runtime's own, where none was named";
    EXPECT_EQ(ring.take(Wait::at_most(0ns)).code(), Code::timed_out);
    EXPECT_EQ(ring.take(Wait::at_most(-1s)).code(), Code::timed_out);
    EXPECT_EQ(ring.take(Wait::never()).code(), Code::not_ready);
    ring.publish(ring.begin({}).value());
    EXPECT_TRUE(ring.take(Wait::at_most(std::chrono::nanoseconds::max())).ok());
}

// Counts operator new only: locks, system calls and allocations by malloc are not counted, so this is not R9.
TEST(FrameRing, GoingRoundMakesNothingWithNew) {
    Runtime runtime = Runtime::open().value();
    auto ring = FrameRing<int>::create(runtime.cpu(), 64, {.frames = 3, .when_full = WhenFull::drop_oldest}).value();
    const long before = allocations.load();
    for (int round = 0; round < 1000; ++round) {
        ring.begin_frame().value().publish();
        if (round % 3 != 0) ring.next_frame().value().release();
    }
    EXPECT_EQ(allocations.load(), before);
}

// keeps I7: by operator new; R9 asks for more
TEST(SharedFrames, GoingRoundBetweenTwoEndsMakesNothingWithNew) {
    RuntimeOptions options;
    options.cuda_library = "/nonexistent/libcuda.so.1";
    Runtime runtime = Runtime::open(options).value();
    Device& device = runtime.default_device();
    for (const SlowReaderPolicy policy : {SlowReaderPolicy::overwrite, SlowReaderPolicy::wait}) {
        SharedRingOptions shared;
        shared.policy = policy;
        auto ring = SharedFrameRing<std::uint32_t>::create(device, 64, shared).value();
        auto reader = SharedFrameReader<std::uint32_t>::open(device, ring.admit().value()).value();
        const auto go_round = [&](std::uint32_t number) {
            auto frame = ring.begin_frame().value();
            (*frame.buffer().write_on_host())[63] = number;
            const bool published = frame.publish().ok();
            auto taken = reader.next_frame().value();
            const bool right = (*taken.buffer().read_on_host())[63] == number;
            return published && right && taken.finish().ok();
        };
        ASSERT_TRUE(go_round(0));
        bool right = true;
        const long before = allocations.load();
        for (std::uint32_t number = 1; number < 100; ++number) right = go_round(number) && right;
        EXPECT_EQ(allocations.load(), before);
        EXPECT_TRUE(right);
    }
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
