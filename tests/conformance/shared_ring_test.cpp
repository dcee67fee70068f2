// SPDX-License-Identifier: Apache-2.0
// Frames between processes, on every machine. Here both ends are in one process, each with its own mapping, buffers and
// words; tests/unit/tools/share_test.py runs them in two.
#include "ring_reader.hpp"
#include "scenario.hpp"

#include <isthmus/ipc/shared_frame_ring.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;

using Ring = SharedFrameRing<std::int32_t>;
using Reader = SharedFrameReader<std::int32_t>;

const Wait soon = Wait::at_most(std::chrono::milliseconds(1));

Ring ring_of(Device& device, SlowReaderPolicy policy, std::size_t slots = 3,
             ReaderRights rights = ReaderRights::read_only) {
    SharedRingOptions options;
    options.slots = slots;
    options.policy = policy;
    options.reader_deadline = std::chrono::seconds(20);  // only its end or its death ends a reader
    options.rights = rights;
    options.use = {.host = Use::writes_often, .device = Use::reads_and_writes};
    return Ring::create(device, count, options).value();
}

// Element i of frame n is n + i.
void produce(Ring& ring, std::int32_t number) {
    auto frame = ring.begin_frame().value();
    {
        auto view = frame.buffer().write_on_host().value();
        for (std::size_t i = 0; i < count; ++i) view[i] = number + static_cast<std::int32_t>(i);
    }
    EXPECT_TRUE(worked(frame.publish()));
}
TEST(SharedFrameRing, EveryReaderGetsEveryFrameWhereTheProducerWaits) {  // keeps I1
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::wait);
        std::vector<Reader> readers;
        for (int at = 0; at < 4; ++at) readers.push_back(reader_of(device, ring));
        for (std::int32_t number = 0; number < 8; ++number) {
            produce(ring, number);
            for (Reader& reader : readers) {
                auto frame = reader.next_frame(soon).value();
                EXPECT_EQ(frame.number(), static_cast<std::uint64_t>(number));
                EXPECT_EQ(frame.missed(), 0u);
                EXPECT_TRUE(holds_frame(frame.buffer(), number));
                EXPECT_TRUE(worked(frame.finish()));
            }
        }
        EXPECT_EQ(ring.published(), 8u);
    });
}

TEST(SharedFrameRing, DevicesOfBothEndsUseFrames) {  // keeps I1, G8
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::wait);
        Reader reader = reader_of(device, ring);
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count).value();
        Buffer<std::int32_t> in = device.allocate_shared<std::int32_t>(count).value();
        for (std::int32_t number = 0; number < 7; ++number) {
            {
                auto view = in.write_on_host().value();
                for (std::size_t i = 0; i < count; ++i) view[i] = number + static_cast<std::int32_t>(i);
            }
            auto filled = ring.begin_frame().value();
            (void)device.stream().launch(scale_into, count, filled.buffer(), in, 1).value();
            EXPECT_TRUE(worked(filled.publish())) << "waits for the kernel that fills it";
            auto frame = reader.next_frame(soon).value();
            (void)device.stream().launch(scale_into, count, out, frame.buffer(), 1).value();
            EXPECT_TRUE(worked(frame.finish())) << "waits for the kernel that reads it";
            EXPECT_TRUE(holds_frame(out, number));
        }
    });
}

TEST(SharedFrameRing, WhoIsTooSlowIsToldWhatHeMissedAndNeverHandedATornFrame) {  // keeps I1
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::overwrite);
        Reader reader = reader_of(device, ring);
        produce(ring, 0);
        std::optional<SharedFrame<std::int32_t>> held(reader.next_frame(soon).value());
        for (std::int32_t number = 1; number < 3; ++number) produce(ring, number);
        EXPECT_TRUE(holds_frame(held->buffer(), 0));
        produce(ring, 3);  // in the place of frame 0
        EXPECT_TRUE(refused_as(held->finish(), Code::overtaken));
        EXPECT_TRUE(refused_as(held->finish(), Code::invalid_handle));
        for (std::int32_t number = 4; number < 9; ++number) produce(ring, number);
        auto frame = reader.next_frame(soon).value();
        EXPECT_EQ(frame.number(), 7u) << "the producer may be writing where frame 6 stands";
        EXPECT_EQ(frame.missed(), 6u);
        EXPECT_TRUE(holds_frame(frame.buffer(), 7));
        EXPECT_TRUE(worked(frame.finish()));
        EXPECT_EQ(reader.next_frame(soon).value().missed(), 0u);
    });
}

// A frame that is being filled has no number yet, and the earlier frame in its place is gone.
TEST(SharedFrameRing, AFrameThatIsAbandonedWasNone) {  // keeps I1
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::overwrite);
        Reader reader = reader_of(device, ring);
        { auto never = ring.begin_frame().value(); }
        EXPECT_TRUE(refused_as(reader.next_frame(soon), Code::timed_out));
        EXPECT_TRUE(refused_as(reader.next_frame(Wait::never()), Code::not_ready));
        produce(ring, 0);
        EXPECT_EQ(reader.next_frame(soon).value().number(), 0u);
        auto filled = ring.begin_frame().value();
        std::vector<SharedFrameToFill<std::int32_t>> ahead;
        while (ahead.size() + 1 < ring.frames_ahead()) ahead.push_back(ring.begin_frame().value());
        EXPECT_TRUE(refused_as(ring.begin_frame(), Code::in_use)) << "as many as may be";
        EXPECT_TRUE(worked(filled.publish()));
        EXPECT_TRUE(refused_as(filled.publish(), Code::invalid_handle));
        EXPECT_EQ(reader.next_frame(soon).value().number(), 1u);
    });
}

TEST(SharedFrameRing, OpenViewsKeepAFrameFromGoingOn) {  // keeps G8
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::wait);
        Reader reader = reader_of(device, ring);
        auto filled = ring.begin_frame().value();
        {
            auto view = filled.buffer().write_on_host().value();
            EXPECT_TRUE(refused_as(filled.publish(), Code::in_use));
            for (std::int32_t& element : view) element = 5;
        }
        EXPECT_TRUE(worked(filled.publish()));
        auto frame = reader.next_frame(soon).value();
        {
            auto view = frame.buffer().read_on_host().value();
            EXPECT_EQ(view[0], 5);
            EXPECT_TRUE(refused_as(frame.finish(), Code::in_use));
        }
        EXPECT_TRUE(worked(frame.finish()));
    });
}

TEST(SharedFrameRing, AReaderThatStandsInTheWayIsGivenUpAndToldSo) {  // keeps I6
    on_every_device([](Device& device) {
        SharedRingOptions options;
        options.slots = 2;
        options.policy = SlowReaderPolicy::wait;
        options.reader_deadline = std::chrono::milliseconds(2);
        options.waiting = WaitPolicy::sleep;
        Ring ring = Ring::create(device, count, options).value();
        Reader slow = reader_of(device, ring);
        Reader other = reader_of(device, ring);
        produce(ring, 0);
        auto held = slow.next_frame(soon).value();
        for (std::int32_t number = 1; number < 5; ++number) {
            produce(ring, number);
            while (other.next_frame(Wait::never())) {
            }
        }
        EXPECT_TRUE(refused_as(held.finish(), Code::overtaken)) << "given up, it is protected no more";
        const std::vector<SharedReaderInfo> readers = ring.readers();
        if (readers.size() != 2) {  // a failed call reported the first reader gone, and its place went to the second
            EXPECT_TRUE(unless_fault(false));
            return;
        }
        EXPECT_TRUE(unless_fault(readers[0].state == ReaderState::too_slow));
        EXPECT_FALSE(readers[0].why.empty());
        EXPECT_TRUE(unless_fault(readers[1].state == ReaderState::live));
        Result<SharedFrame<std::int32_t>> left = slow.next_frame(soon);
        while (left) left = slow.next_frame(soon);
        EXPECT_TRUE(refused_as(left, Code::peer_lost));
    });
}

TEST(SharedFrameRing, AWaitBeforeTheDeadlineOfReadersAnswersInTime) {  // keeps I6
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::wait, 2);
        Reader reader = reader_of(device, ring);
        produce(ring, 0);
        produce(ring, 1);
        // A failed call that reports the reader gone lets the producer continue.
        EXPECT_TRUE(unless_fault(ring.begin_frame(Wait::never()).code() == Code::not_ready));
        EXPECT_TRUE(unless_fault(ring.begin_frame(soon).code() == Code::timed_out));
        EXPECT_TRUE(worked(reader.next_frame(soon).value().finish()));
        EXPECT_TRUE(worked(ring.begin_frame(soon)));
    });
}

TEST(SharedFrameRing, AClosedRingGivesWhatItHasAndThenSaysSo) {  // keeps I6
    on_every_device([](Device& device) {
        std::optional<Ring> ring(ring_of(device, SlowReaderPolicy::wait));
        Reader reader = reader_of(device, *ring);
        produce(*ring, 0);
        produce(*ring, 1);
        ring->close();
        EXPECT_TRUE(refused_as(ring->begin_frame(), Code::ended));
        EXPECT_TRUE(refused_as(ring->admit(), Code::ended));
        ring.reset();
        for (std::int32_t number = 0; number < 2; ++number) {
            auto frame = reader.next_frame(soon).value();
            EXPECT_TRUE(holds_frame(frame.buffer(), number)) << "the memory stays with who has it mapped";
        }
        EXPECT_TRUE(refused_as(reader.next_frame(soon), Code::ended));
    });
}

TEST(SharedFrameRing, AReadersEndFreesItsPlace) {  // keeps I6
    on_every_device([](Device& device) {
        SharedRingOptions options;
        options.max_readers = 1;
        options.policy = SlowReaderPolicy::wait;
        options.reader_deadline = std::chrono::seconds(20);
        Ring ring = Ring::create(device, count, options).value();
        {
            Reader first = reader_of(device, ring);
            EXPECT_TRUE(refused_while_it_lasts(ring.admit(), Code::in_use));
        }
        { const SharedRingDescriptor never_sent = ring.admit().value(); }
        for (std::int32_t number = 0; number < 9; ++number) produce(ring, number);  // it does not block the producer
        EXPECT_TRUE(unless_fault(ring.readers().at(0).state == ReaderState::gone));
        Reader next = reader_of(device, ring);
        produce(ring, 9);
        EXPECT_EQ(next.next_frame(soon).value().number(), 9u) << "from its admission on";
    });
}

TEST(SharedFrameRing, ReadersWriteOnlyWhereTheyMay) {  // keeps I5
    on_every_device([](Device& device) {
        Ring ring = ring_of(device, SlowReaderPolicy::overwrite);
        Reader reader = reader_of(device, ring);
        // The reader's mapping is read-only; the driver decides whether the device can still use it in place.
        const Buffer<std::int32_t>& frame = reader.buffer(0);
        EXPECT_FALSE(frame.explain().empty());
        EXPECT_TRUE(frame.path() == LaunchPath::pass || frame.path() == LaunchPath::stage);
        produce(ring, 0);
        auto taken = reader.next_frame(soon).value();
        const auto written = device.stream().launch(add_one, count, const_cast<Buffer<std::int32_t>&>(taken.buffer()));
        EXPECT_TRUE(refused_as(written, Code::not_accessible)) << "past the const, the runtime refuses";
        Ring open = ring_of(device, SlowReaderPolicy::overwrite, 3, ReaderRights::read_write);
        Reader trusted = reader_of(device, open);
        produce(open, 0);
        auto shared = trusted.next_frame(soon).value();
        EXPECT_TRUE(worked(const_cast<Buffer<std::int32_t>&>(shared.buffer()).write_on_host()));
    });
}

TEST(SharedFrameRing, WhatCannotBeARingIsRefused) {  // keeps I1
    on_every_device([](Device& device) {
        const auto refused = [&](SharedRingOptions options, Code why) {
            return refused_as(Ring::create(device, count, options), why);
        };
        SharedRingOptions options;
        options.slots = 1;
        EXPECT_TRUE(refused(options, Code::invalid_argument));
        options.slots = 257;
        EXPECT_TRUE(refused(options, Code::invalid_argument));
        options = {};
        options.max_readers = 0;
        EXPECT_TRUE(refused(options, Code::invalid_argument));
        options = {};
        options.reader_deadline = std::chrono::nanoseconds(0);
        EXPECT_TRUE(refused(options, Code::invalid_argument));
        EXPECT_TRUE(refused_as(Ring::create(device, 0), Code::invalid_argument));
        options = {};
        options.seen_by = SeenBy::gpus_only;
        const Result<Ring> alone = Ring::create(device, count, options);
        if (device.is_cpu()) {
            EXPECT_TRUE(worked(alone)) << "without a GPU a CPU sees it";
        } else {
            EXPECT_TRUE(refused_as(alone, Code::unsupported));
            if (!alone) {
                EXPECT_NE(alone.error().message().find("method"), std::string::npos);
            }
        }
        Ring ring = ring_of(device, SlowReaderPolicy::overwrite);
        EXPECT_TRUE(
            refused_as(SharedFrameReader<std::int64_t>::open(device, ring.admit().value()), Code::invalid_argument));
        EXPECT_TRUE(refused_as(SharedRingDescriptor::received({}, {}), Code::invalid_argument));
    });
}

// In the steady state nothing is imported and no driver function is called; a launch costs as much as over any buffer.
TEST(SharedFrameRing, ASteadyStateImportsNothingAndCallsNoDriver) {  // keeps I7
    on_every_device([](Device& device) {
        for (const SlowReaderPolicy policy : {SlowReaderPolicy::overwrite, SlowReaderPolicy::wait}) {
            Ring ring = ring_of(device, policy, 3, ReaderRights::read_write);
            Reader reader = reader_of(device, ring);
            const long before = driver_calls();
            for (std::int32_t number = 0; number < 20; ++number) {
                produce(ring, number);
                auto frame = reader.next_frame(soon).value();
                EXPECT_TRUE(holds_frame(frame.buffer(), number));
                EXPECT_TRUE(worked(frame.finish()));
            }
            EXPECT_TRUE(unless_fault(driver_calls() == before));
        }
    });
}

TEST(SharedFrameRing, ALaunchOverAFrameCallsTheDriverOnceWhereItIsUsedInPlace) {  // keeps I7
    on_every_device([](Device& device) {
        if (driver_calls() < 0 || device.is_cpu()) return;
        Ring ring = ring_of(device, SlowReaderPolicy::wait, 3, ReaderRights::read_write);
        Reader reader = reader_of(device, ring);
        if (reader.buffer(0).path() != LaunchPath::pass) return;
        Buffer<std::int32_t> out = device.allocate<std::int32_t>(count).value();
        const auto go_round = [&](std::int32_t number) {
            produce(ring, number);
            auto frame = reader.next_frame(soon).value();
            (void)device.stream().launch(scale_into, count, out, frame.buffer(), 1).value();
            EXPECT_TRUE(worked(frame.finish()));
        };
        go_round(0);  // loads the kernel
        const long launches = driver_calls("cuLaunchKernel");
        const long registered = driver_calls("cuMemHostRegister_v2");
        for (std::int32_t number = 1; number < 11; ++number) go_round(number);
        EXPECT_TRUE(unless_fault(driver_calls("cuLaunchKernel") - launches == 10));
        EXPECT_TRUE(unless_fault(driver_calls("cuMemHostRegister_v2") == registered));
    });
}

// Producer and readers at full speed, sleeping and spinning; every frame that a reader accepts is whole.
TEST(SharedFrameRing, ThreadsAtFullSpeedNeverAcceptATornFrame) {  // keeps I1
    if (!work_runs_by_itself()) GTEST_SKIP() << "threads in a seeded simulator are not repeatable";
    on_every_device([](Device& device) {
        for (const SlowReaderPolicy policy : {SlowReaderPolicy::overwrite, SlowReaderPolicy::wait}) {
            const std::int32_t frames = rounds(200);
            std::optional<Ring> ring(ring_of(device, policy));
            std::vector<Reader> readers;
            for (int at = 0; at < 2; ++at) readers.push_back(reader_of(device, *ring));
            std::vector<std::uint64_t> seen(readers.size()), lost(readers.size());
            const auto read_all = [&](std::size_t at) {
                for (;;) {
                    auto frame = readers[at].next_frame();
                    if (!frame) {
                        EXPECT_TRUE(refused_as(frame, Code::ended));
                        break;
                    }
                    lost[at] += frame->missed();
                    const bool right = holds_frame(frame->buffer(), static_cast<std::int32_t>(frame->number()));
                    const Result<void> whole = frame->finish();
                    if (whole) {
                        EXPECT_TRUE(right);
                        ++seen[at];
                    } else {
                        EXPECT_TRUE(refused_as(whole, Code::overtaken));
                        ++lost[at];
                    }
                }
            };
            Thread first([&] { read_all(0); });
            Thread second([&] { read_all(1); });
            {
                struct Close {
                    Ring& ring;
                    ~Close() { ring.close(); }
                };
                const Close close{*ring};
                for (std::int32_t number = 0; number < frames; ++number) produce(*ring, number);
            }
            first.join();
            second.join();
            for (std::size_t at = 0; at < readers.size(); ++at) {
                EXPECT_TRUE(unless_fault(seen[at] + lost[at] == static_cast<std::uint64_t>(frames)));
                if (policy == SlowReaderPolicy::wait) {
                    EXPECT_TRUE(unless_fault(lost[at] == 0));
                }
            }
        }
    });
}

}  // namespace
}  // namespace conformance
