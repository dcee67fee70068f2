// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include "scenario.hpp"
#include "gate.hpp"

#include <chrono>
#include <cstdint>

namespace conformance {
namespace {

TEST(Streams, ThereIsOneFromTheStartAndIdsAreNeverReused) {  // keeps S4, S17
    on_every_device([](Device& device) {
        EXPECT_EQ(&device.stream(), &device.stream());
        std::uint64_t last = device.stream().id();
        for (int i = 0; i < 5; ++i) {
            Stream stream = device.create_stream({.priority = -1}).value();
            EXPECT_GT(stream.id(), last);
            last = stream.id();
        }
    });
}

// Rounds of churn() that keep a GPU busy for a while; a simulated GPU processes the data item by item, so it gets
// fewer.
int busy(int rounds_on_a_gpu) {
    const bool simulated = driver_calls() >= 0;
    return rounds(simulated ? rounds_on_a_gpu / 50 : rounds_on_a_gpu);
}

TEST(Streams, WaitStreamOrdersTwoStreams) {  // keeps S10
    on_every_device([](Device& device) {
        constexpr std::size_t count = 1 << 14;
        Stream producer = device.create_stream().value();
        Stream consumer = device.create_stream().value();
        Buffer<std::int32_t> a = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> b = device.allocate_shared<std::int32_t>(count).value();
        for (int round = 1; round <= 10; ++round) {
            producer.fill_bytes(a, 0).value();
            (void)producer.launch(churn, count, a, busy(2000)).value();
            producer.fill_bytes(a, static_cast<std::uint8_t>(round)).value();
            consumer.wait_stream(producer).value();
            (void)consumer.launch(scale_into, count, b, a, 1).value();
            producer.wait_stream(consumer).value();
            ASSERT_EQ(b.read_on_host().value()[count - 1], 0x01010101 * round);
        }
    });
}

// Where managed memory is exclusive to one stream, leaving it only queues its return. The next stream is ordered after
// that return, not only after the event that the caller saw.
TEST(Streams, ManagedMemoryGoesFromStreamToStreamBehindItsReturn) {  // keeps K6, S10
    on_every_device([](Device& device) {
        if (device.capabilities().managed == ManagedModel::none) return;
        constexpr std::size_t count = 1 << 12;
        Stream streams[] = {device.create_stream().value(), device.create_stream().value()};
        Buffer<std::int32_t> managed = shared_numbers(device, count, MemoryKind::managed);
        Buffer<std::int32_t> others[] = {device.allocate<std::int32_t>(count).value(),
                                         device.allocate<std::int32_t>(count).value()};
        { (void)managed.write_on_host().value(); }
        streams[0].fill_bytes(managed, 0).value();
        for (int turn = 0; turn < 10; ++turn) {
            Stream& stream = streams[turn % 2];
            Stream& next = streams[(turn + 1) % 2];
            stream.launch(add_one, count, managed).value();
            const Event used = stream.record().value();
            next.wait(used).value();
            stream.fill_bytes(others[turn % 2], 0).value();  // stops using the managed memory, after the event
        }
        ASSERT_EQ(managed.read_on_host().value()[count - 1], 10);
    });
}

TEST(Streams, EventsFinishWithTheirWorkAndMeasureTime) {  // keeps S10, S11
    on_every_device([](Device& device, Stream stream) {
        Event never = device.create_event().value();
        EXPECT_TRUE(never.finished().value()) << "never recorded counts as complete";
        Buffer<std::int32_t> a = device.allocate<std::int32_t>(1 << 12).value();
        Event begin = stream.record({.timing = true}).value();
        (void)stream.launch(churn, 1 << 12, a, 1000).value();
        Event end = stream.record({.timing = true}).value();
        end.synchronize().value();
        EXPECT_TRUE(begin.finished().value());
        EXPECT_TRUE(end.finished().value());
        EXPECT_GE(Event::elapsed_ms(begin, end).value(), 0.0F);
        Event untimed = stream.record().value();
        untimed.synchronize().value();
        EXPECT_TRUE(refused_as(Event::elapsed_ms(begin, untimed), Code::invalid_argument));
        EXPECT_TRUE(stream.finished().value());
    });
}

TEST(Streams, AnEventOfAnotherDeviceIsRefusedForRecordingAndFineForWaiting) {  // keeps S10
    Device& device = runtime().default_device();
    Device& cpu = runtime().cpu();
    if (device.is_cpu()) GTEST_SKIP() << "one device only";
    Event foreign = cpu.create_event().value();
    EXPECT_TRUE(refused_as(device.stream().record(foreign), Code::wrong_device));
    EXPECT_TRUE(worked(device.stream().wait(foreign)));
    Event own = device.stream().record().value();
    EXPECT_TRUE(worked(cpu.stream().wait(own)));
}

TEST(Streams, CpuLaunchesAreFinishedWhenTheyReturn) {  // keeps S1
    Device& cpu = runtime().cpu();
    Buffer<std::int32_t> a = cpu.allocate<std::int32_t>(100).value();
    cpu.stream().fill_bytes(a, 0).value();
    (void)cpu.stream().launch(add_one, 100, a).value();
    EXPECT_TRUE(cpu.stream().finished().value());
    EXPECT_EQ(a.read_on_host(Wait::never()).value()[99], 1);
}

TEST(Streams, WaitsHaveDeadlines) {  // keeps S9, R5
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        constexpr std::size_t count = 1 << 10;
        SharedUse in_place;
        in_place.kind = MemoryKind::pinned;
        Buffer<std::int32_t> a = device.allocate_shared<std::int32_t>(count, in_place).value();
        { (void)a.write_on_host().value(); }
        Gate gate(device);
        (void)device.stream().launch(when_raised, 1, gate.words(), a, 1).value();
        if (gate.holds()) {
            const auto refused = a.read_on_host(Wait::never());
            ASSERT_TRUE(refused_while_it_lasts(refused, Code::not_ready));
            EXPECT_TRUE(unless_fault(refused.error().message().find("when_raised") != std::string_view::npos));
            const Wait briefly = Wait::at_most(std::chrono::microseconds(1));
            EXPECT_TRUE(refused_while_it_lasts(device.stream().synchronize(briefly), Code::timed_out));
        }
        gate.raise();
        EXPECT_TRUE(worked(device.synchronize()));
        EXPECT_TRUE(worked(a.read_on_host(Wait::never())));
    });
}

}  // namespace
}  // namespace conformance
