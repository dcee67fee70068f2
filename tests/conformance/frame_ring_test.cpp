// SPDX-License-Identifier: Apache-2.0
// Frames from one producer to one consumer: on every machine, by the host, by the device, and in a chain.
#include "scenario.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;

using Ring = FrameRing<std::int32_t>;

Ring ring_of(Device& device, std::size_t frames, WhenFull when_full) {
    return Ring::create(device, count, {.frames = frames, .when_full = when_full}).value();
}

// Element i of frame n is n + i.
void fill(Buffer<std::int32_t>& buffer, std::int32_t number) {
    auto view = buffer.write_on_host().value();
    for (std::size_t i = 0; i < count; ++i) view[i] = number + static_cast<std::int32_t>(i);
}
void produce(Ring& ring, std::int32_t number) {
    auto frame = ring.begin_frame().value();
    fill(frame.buffer(), number);
    frame.publish();
}

TEST(FrameRing, FramesComeOutInOrderAndTheirBuffersGoRound) {  // keeps G8
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, 3, WhenFull::wait);
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count).value();
        for (std::int32_t number = 0; number < 8; ++number) {
            produce(ring, number);
            auto frame = ring.next_frame().value();
            EXPECT_EQ(frame.number(), static_cast<std::uint64_t>(number));
            // The frame goes back while the kernel may still read it: the producer's view waits.
            (void)device.stream().launch(scale_into, count, out, frame.buffer(), 1).value();
            frame.release();
            EXPECT_TRUE(holds_frame(out, number));
        }
        const RingCounts counts = ring.counts();
        EXPECT_EQ(counts.produced, 8u);
        EXPECT_EQ(counts.consumed, 8u);
        EXPECT_EQ(counts.dropped, 0u);
    });
}

TEST(FrameRing, AFullRingWaitsDropsTheOldestOrTheNewest) {
    on_every_device([](Device& device) {
        const Wait soon = Wait::at_most(std::chrono::milliseconds(1));
        Ring waiting = ring_of(device, 2, WhenFull::wait);
        produce(waiting, 0);
        produce(waiting, 1);
        EXPECT_TRUE(refused_as(waiting.begin_frame(soon), Code::timed_out));
        EXPECT_TRUE(refused_as(waiting.begin_frame(Wait::never()), Code::not_ready));
        (void)waiting.next_frame().value();
        EXPECT_TRUE(worked(waiting.begin_frame(soon)));

        Ring oldest = ring_of(device, 2, WhenFull::drop_oldest);
        for (std::int32_t number = 0; number < 5; ++number) produce(oldest, number);
        EXPECT_EQ(oldest.counts().dropped, 3u);
        {
            auto third = oldest.next_frame().value();
            EXPECT_EQ(third.number(), 3u) << "0, 1 and 2 were dropped";
            EXPECT_TRUE(holds_frame(third.buffer(), 3));
            auto fourth = oldest.next_frame().value();
            EXPECT_TRUE(holds_frame(fourth.buffer(), 4));
            EXPECT_TRUE(refused_as(oldest.begin_frame(soon), Code::timed_out)) << "the consumer has them all";
        }

        Ring newest = ring_of(device, 2, WhenFull::drop_newest);
        for (std::int32_t number = 0; number < 2; ++number) produce(newest, number);
        EXPECT_TRUE(refused_as(newest.begin_frame(), Code::not_ready));
        EXPECT_TRUE(holds_frame(newest.next_frame().value().buffer(), 0));
        produce(newest, 3);
        EXPECT_EQ(newest.next_frame().value().number(), 1u);
        EXPECT_EQ(newest.next_frame().value().number(), 3u) << "what is missing was dropped";
        EXPECT_EQ(newest.counts().dropped, 1u);
    });
}

TEST(FrameRing, SlotsAreScopesThatGiveBack) {
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, 2, WhenFull::wait);
        for (int round = 0; round < 5; ++round) {
            auto first = ring.begin_frame(Wait::never()).value();
            auto second = ring.begin_frame(Wait::never()).value();
            EXPECT_TRUE(refused_as(ring.begin_frame(Wait::never()), Code::not_ready));
            first = std::move(second);  // returns the first frame
            EXPECT_TRUE(worked(ring.begin_frame(Wait::never())));
        }
        EXPECT_TRUE(refused_as(ring.next_frame(Wait::never()), Code::not_ready)) << "none was published";
        EXPECT_TRUE(refused_as(ring.next_frame(Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
        EXPECT_EQ(ring.counts().produced, 0u);
        std::optional<ReadyFrame<std::int32_t>> last;
        {
            Ring inner = ring_of(device, 2, WhenFull::wait);
            produce(inner, 4);
            last.emplace(inner.next_frame().value());
        }
        EXPECT_TRUE(holds_frame(last->buffer(), 4)) << "a slot holds what it stands in";
    });
}

TEST(FrameRing, AClosedRingGivesWhatItHasAndThenSaysSo) {
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, 3, WhenFull::wait);
        produce(ring, 0);
        produce(ring, 1);
        ring.close();
        EXPECT_FALSE(ring.ended());
        EXPECT_TRUE(refused_as(ring.begin_frame(), Code::ended));
        EXPECT_TRUE(holds_frame(ring.next_frame().value().buffer(), 0));
        EXPECT_TRUE(holds_frame(ring.next_frame().value().buffer(), 1));
        EXPECT_TRUE(refused_as(ring.next_frame(), Code::ended));
        EXPECT_TRUE(ring.ended());
    });
}

TEST(FrameRing, RingsThatCannotGoRoundAreRefused) {
    on_every_device([](Device& device) {
        EXPECT_TRUE(refused_as(Ring::create(device, count, {.frames = 1}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Ring::create(device, 0, {.frames = 3}), Code::invalid_argument));
        std::vector<Buffer<std::int32_t>> unequal;
        unequal.push_back(device.allocate_shared<std::int32_t>(8).value());
        unequal.push_back(device.allocate_shared<std::int32_t>(9).value());
        EXPECT_TRUE(refused_as(Ring::create(device, std::move(unequal), WhenFull::wait), Code::invalid_argument));
    });
}

// A camera thread, a consumer with several frames in flight, and a second ring that the device fills from the first.
void run_chain(Device& device, WhenFull when_full) {
    const std::int32_t frames = rounds(200);
    Ring camera = ring_of(device, 4, when_full);
    Ring results = ring_of(device, 3, WhenFull::wait);
    Thread producer([&] {
        for (std::int32_t number = 0; number < frames; ++number) {
            Result<FrameToFill<std::int32_t>> frame = camera.begin_frame();
            if (!frame && frame.code() == Code::not_ready) continue;
            if (!frame) break;
            if (auto view = frame->buffer().write_on_host(); view.ok()) {
                for (std::size_t i = 0; i < count; ++i) {
                    (*view)[i] = static_cast<std::int32_t>(frame->number()) + static_cast<std::int32_t>(i);
                }
            } else {
                break;
            }
            frame->publish();
        }
        camera.close();
    });
    struct Close {
        Ring& ring;
        ~Close() { ring.close(); }
    };
    std::uint64_t seen = 0, next = 0;
    {
        const Close close{camera};  // on every exit: without it the producer would wait forever
        for (;;) {
            auto frame = camera.next_frame();
            if (!frame) {
                EXPECT_TRUE(refused_as(frame, Code::ended));
                break;
            }
            EXPECT_GE(frame->number(), next) << "in order";
            next = frame->number() + 1;
            auto result = results.begin_frame().value();
            (void)device.stream().launch(scale_into, count, result.buffer(), frame->buffer(), 1).value();
            const auto number = static_cast<std::int32_t>(frame->number());
            frame->release();
            result.publish();
            EXPECT_TRUE(holds_frame(results.next_frame().value().buffer(), number));
            ++seen;
        }
    }
    producer.join();
    const RingCounts counts = camera.counts();
    EXPECT_EQ(counts.consumed, seen);
    EXPECT_TRUE(unless_fault(counts.produced + (when_full == WhenFull::drop_newest ? counts.dropped : 0) ==
                             static_cast<std::uint64_t>(frames)));
    if (when_full == WhenFull::drop_oldest) {
        EXPECT_TRUE(unless_fault(seen + counts.dropped == counts.produced));
    }
    if (when_full == WhenFull::wait) {
        EXPECT_TRUE(unless_fault(seen == static_cast<std::uint64_t>(frames)));
    }
}

TEST(FrameRing, ACameraThreadAndADeviceShareItWhateverIsDropped) {  // keeps G8
    if (!work_runs_by_itself()) GTEST_SKIP() << "two threads in a seeded simulator are not repeatable";
    on_every_device([](Device& device) {
        for (const WhenFull when_full : {WhenFull::wait, WhenFull::drop_oldest, WhenFull::drop_newest}) {
            run_chain(device, when_full);
        }
    });
}

TEST(FrameRing, GoingRoundCallsNoDriver) {
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, 3, WhenFull::drop_oldest);
        const long before = driver_calls();
        for (int round = 0; round < 100; ++round) {
            ring.begin_frame().value().publish();
            if (round % 3 != 0) ring.next_frame().value().release();
        }
        EXPECT_TRUE(unless_fault(driver_calls() == before));
    });
}

TEST(HostViews, WithNothingInFlightCostNoDriverCallWhereMemoryIsUsedInPlace) {  // keeps G8
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer =
            device.allocate_shared<std::int32_t>(count, {.host = Use::writes_often, .device = Use::reads_once}).value();
        ASSERT_EQ(buffer.path(), LaunchPath::pass);
        fill(buffer, 0);
        (void)device.stream().launch(add_one, count, buffer).value();
        EXPECT_TRUE(holds_frame(buffer, 1));  // waits for the kernel: from here on nothing is in flight
        const long before = driver_calls();
        for (int round = 0; round < 10; ++round) {
            fill(buffer, round);
            EXPECT_TRUE(holds_frame(buffer, round));
            EXPECT_TRUE(worked(buffer.read_write_on_host()));
        }
        EXPECT_TRUE(unless_fault(driver_calls() == before));
    });
}

// The host writes through views between replays; each replay sees what was written before it.
TEST(HostViews, WhatTheHostWritesBetweenReplaysOfAGraphIsSeenByTheNext) {  // keeps G12
    on_every_device([](Device& device) {
        for (const MemoryKind kind :
             {MemoryKind::pinned, MemoryKind::registered, MemoryKind::host, MemoryKind::managed, MemoryKind::device}) {
            SCOPED_TRACE(isthmus::name(kind));
            Result<Buffer<std::int32_t>> in = device.allocate_shared<std::int32_t>(count, {.kind = kind});
            if (!in) {
                EXPECT_FALSE(in.error().remedy().empty());
                continue;
            }
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> out =
                device.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::pinned}).value();
            Capture capture = stream.begin_capture().value();
            ASSERT_TRUE(worked(stream.launch(scale_into, count, out, *in, 1)));
            const GraphInstance instance = capture.end().value().instantiate().value();
            for (std::int32_t round = 0; round < 3; ++round) {
                fill(*in, 100 * round);
                (void)stream.launch(instance).value();
                EXPECT_TRUE(holds_frame(out, 100 * round));
            }
        }
    });
}

}  // namespace
}  // namespace conformance
