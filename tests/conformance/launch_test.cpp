// SPDX-License-Identifier: Apache-2.0
// Launches: index spaces, blocks, refusals, and numbers of driver calls.
#include "scenario.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace conformance {
namespace {

TEST(Launch, EveryIndexSpaceVisitsEveryItemOnce) {
    on_every_device([](Device& device) {
        for (const auto& [width, height] : std::initializer_list<std::pair<std::uint64_t, std::uint64_t>>{
                 {1, 1}, {31, 7}, {33, 9}, {257, 3}, {1, 1000}}) {
            Buffer<std::uint64_t> out = device.allocate_shared<std::uint64_t>(width * height).value();
            (void)device.stream().launch(coordinates, {width, height}, out, width).value();
            auto view = out.read_on_host().value();
            for (std::uint64_t y = 0; y < height; ++y) {
                for (std::uint64_t x = 0; x < width; ++x) ASSERT_EQ(view[y * width + x], y * 100000 + x);
            }
        }
        Buffer<std::uint64_t> cube = device.allocate_shared<std::uint64_t>(5 * 6 * 7).value();
        (void)device.stream().launch(coordinates_3d, {5, 6, 7}, cube, 5u, 6u).value();
        auto view = cube.read_on_host().value();
        EXPECT_EQ(view[(4 * 6 + 3) * 5 + 2], (4 * 1000 + 3) * 1000 + 2);
        EXPECT_EQ(view[5 * 6 * 7 - 1], (6 * 1000 + 5) * 1000 + 4);
    });
}

TEST(Launch, BlocksShareMemoryAndMeetAtBarriers) {
    on_every_device([](Device& device) {
        constexpr std::size_t blocks = 50;
        Buffer<std::int32_t> in = device.allocate_shared<std::int32_t>(blocks * 64).value();
        Buffer<std::int64_t> sums = device.allocate_shared<std::int64_t>(blocks).value();
        {
            auto view = in.write_on_host().value();
            for (std::size_t i = 0; i < view.size(); ++i) view[i] = static_cast<std::int32_t>(i);
        }
        (void)device.stream().launch(block_sums, Blocks(blocks), sums, in).value();
        auto view = sums.read_on_host().value();
        for (std::size_t b = 0; b < blocks; ++b) {
            ASSERT_EQ(view[b], static_cast<std::int64_t>(64 * 64 * b + 64 * 63 / 2));
        }
    });
}

TEST(Launch, DeviceBuffersFeedEachOtherInStreamOrder) {  // keeps S3
    on_every_device([](Device& device) {
        constexpr std::size_t count = 4096;
        Buffer<std::int32_t> in = device.allocate_shared<std::int32_t>(count).value();
        Buffer<std::int32_t> a = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> b = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count).value();
        {
            auto view = in.write_on_host().value();
            for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
        }
        Stream& stream = device.stream();
        (void)stream.launch(scale_into, count, a, in, 2).value();
        stream.copy(b, a).value();
        (void)stream.launch(add_one, count, b).value();
        (void)stream.launch(scale_into, count, out, b, 3).value();
        auto view = out.read_on_host().value();
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], static_cast<std::int32_t>((2 * i + 1) * 3));
    });
}

TEST(Launch, FillsAndCopiesAreOrderedWithLaunches) {
    on_every_device([](Device& device) {
        Buffer<std::uint8_t> a = device.allocate<std::uint8_t>(4096).value();
        Buffer<std::uint8_t> b = device.allocate_shared<std::uint8_t>(4096).value();
        device.stream().fill_bytes(a, 0x5A).value();
        device.stream().copy(b, a).value();
        EXPECT_EQ(b.read_on_host().value()[4095], 0x5A);
        Buffer<std::uint8_t> other = device.allocate<std::uint8_t>(5).value();
        EXPECT_TRUE(refused_as(device.stream().copy(other, a), Code::invalid_argument));
    });
}

TEST(Launch, ConflictingViewsAndUsesExcludeEachOther) {  // keeps G9
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = device.allocate_shared<std::int32_t>(64).value();
        auto view = buffer.write_on_host().value();
        EXPECT_TRUE(refused_as(device.stream().launch(add_one, 64, buffer), Code::in_use));
        const auto told = device.stream().explain({}, add_one, 64, buffer);
        ASSERT_TRUE(told.refusal.has_value());
        EXPECT_EQ(told.refusal->code(), Code::in_use);
        EXPECT_TRUE(refused_as(buffer.read_on_host(), Code::in_use));
        auto gone = std::move(view);
        { auto closes = std::move(gone); }
        EXPECT_TRUE(worked(device.stream().launch(add_one, 64, buffer)));
    });
}

TEST(Launch, StrictRefusesWhatOtherDevicesAllocated) {  // keeps L2, L10
    Device& device = runtime().default_device();
    Buffer<std::int32_t> elsewhere = runtime().cpu().allocate<std::int32_t>(64).value();
    Stream stream = device.create_stream().value();
    stream.set_launch_mode(LaunchMode::strict);
    const auto refused = stream.launch(add_one, 64, elsewhere);
    if (device.is_cpu()) {
        EXPECT_TRUE(worked(refused));
        return;
    }
    EXPECT_TRUE(refused_as(refused, Code::wrong_device));
    Buffer<std::int32_t> here = device.allocate<std::int32_t>(64).value();
    EXPECT_TRUE(worked(stream.launch(add_one, 64, here)));
}

TEST(Launch, TheCpuDeviceUsesBuffersOfAGpuInTurn) {
    Device& gpu = runtime().default_device();
    Buffer<std::int32_t> buffer = gpu.allocate_shared<std::int32_t>(1000).value();
    {
        auto view = buffer.write_on_host().value();
        for (std::int32_t& value : view) value = 5;
    }
    (void)gpu.stream().launch(add_one, 1000, buffer).value();
    (void)runtime().cpu().stream().launch(add_one, 1000, buffer).value();
    (void)gpu.stream().launch(add_one, 1000, buffer).value();
    EXPECT_EQ(buffer.read_on_host().value()[999], 8);
}

TEST(Launch, TakesExactlyOneDriverCallAndAFenceWhereAViewableBufferIsLeft) {  // keeps L7
    Device& device = runtime().default_device();
    if (device.is_cpu() || driver_calls() < 0) GTEST_SKIP() << "driver calls are counted on the simulator";
    Buffer<std::int32_t> a = device.allocate<std::int32_t>(64).value();
    Buffer<std::int32_t> b = device.allocate<std::int32_t>(64).value();
    SharedUse pinned;
    pinned.kind = MemoryKind::pinned;
    Buffer<std::int32_t> p = device.allocate_shared<std::int32_t>(64, pinned).value();
    Buffer<std::int32_t> q = device.allocate_shared<std::int32_t>(64, pinned).value();
    Stream& stream = device.stream();
    for (Buffer<std::int32_t>* buffer : {&a, &b, &p, &q}) {
        stream.fill_bytes(*buffer, 0).value();
        (void)stream.launch(add_one, 64, *buffer).value();
    }
    (void)stream.launch(scale_into, 64, b, a, 2).value();
    device.synchronize().value();
    const auto counted = [&](auto launch) {
        const long before = driver_calls();
        launch();
        return driver_calls() - before;
    };
    EXPECT_TRUE(unless_fault(counted([&] { (void)stream.launch(scale_into, 64, b, a, 2).value(); }) == 1));
    EXPECT_TRUE(unless_fault(counted([&] { (void)stream.launch(add_one, 64, p).value(); }) == 1));
    EXPECT_TRUE(unless_fault(counted([&] { (void)stream.launch(add_one, 64, p).value(); }) == 1))
        << "same buffer: no fence";
    EXPECT_TRUE(unless_fault(counted([&] { (void)stream.launch(add_one, 64, q).value(); }) == 2))
        << "p is left: one fence";
    EXPECT_TRUE(unless_fault(counted([&] { (void)device.can_access(p); }) == 0));  // keeps K4
    EXPECT_TRUE(unless_fault(counted([&] { (void)p.kind(); }) == 0));
    (void)p.read_on_host().value();
    EXPECT_TRUE(unless_fault(counted([&] { (void)p.read_on_host().value(); }) == 0))
        << "nothing in flight: no driver call";
}

TEST(Launch, ManyThreadsOnManyStreamsLoseNothing) {
    on_every_device([](Device& device) {
        constexpr int threads = 8;
        constexpr int rounds = 20;
        std::vector<std::int32_t> results(threads, -1);
        std::deque<Thread> workers;  // last: joined before anything that the threads use is destroyed
        for (int t = 0; t < threads; ++t) {
            workers.emplace_back([&device, &results, t] {
                Stream stream = device.create_stream().value();
                Buffer<std::int32_t> mine = device.allocate_shared<std::int32_t>(256).value();
                {
                    auto view = mine.write_on_host().value();
                    for (std::int32_t& value : view) value = t;
                }
                for (int round = 0; round < rounds; ++round) {
                    (void)stream.launch(add_one, 256, mine).value();
                    if (round % 5 == 0) (void)mine.read_on_host().value();
                }
                results[static_cast<std::size_t>(t)] = mine.read_on_host().value()[255];
            });
        }
        for (Thread& worker : workers) worker.join();
        for (int t = 0; t < threads; ++t) EXPECT_EQ(results[static_cast<std::size_t>(t)], t + rounds);
    });
}

}  // namespace
}  // namespace conformance
