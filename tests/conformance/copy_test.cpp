// SPDX-License-Identifier: Apache-2.0
// Copies and fills of every kind, shape and device: data arrives, or the refusal names the reason.
#include "scenario.hpp"
#include "gate.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::uint32_t seed = 20260815;

std::vector<std::int32_t> numbers(std::size_t count, std::int32_t first) {
    std::vector<std::int32_t> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = first + static_cast<std::int32_t>(i) * 7;
    return made;
}

std::vector<std::int32_t> content(Stream& stream, const Buffer<std::int32_t>& buffer) {
    std::vector<std::int32_t> read(buffer.size(), -1);
    stream.copy_to_host(read, buffer).value();
    return read;
}

// One buffer of every kind that the device has, and a staged one where it has separate memory.
std::vector<Buffer<std::int32_t>> one_of_each(Device& device, std::size_t count) {
    std::vector<Buffer<std::int32_t>> made;
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host, MemoryKind::pool,
                                  MemoryKind::managed, MemoryKind::registered, MemoryKind::write_combined}) {
        const bool offered = kind == MemoryKind::pool         ? device.capabilities().has(Feature::pools)
                             : kind == MemoryKind::managed    ? device.capabilities().has(Feature::managed)
                             : kind == MemoryKind::registered ? device.capabilities().has(Feature::host_register)
                                                              : true;
        if (offered || device.is_cpu()) made.push_back(device.allocate<std::int32_t>(count, kind).value());
    }
    SharedUse two_sides;
    two_sides.kind = MemoryKind::device;
    made.push_back(device.allocate_shared<std::int32_t>(count, two_sides).value());
    // Planned faults: device memory and a staged buffer only.
    if (rounds(2) < 2) made.erase(made.begin() + 1, made.end() - 1);
    return made;
}

TEST(Copies, DataArrivesBetweenEveryTwoKindsOnEveryDevice) {  // keeps K22
    constexpr std::size_t count = 500;
    on_every_device([](Device& device, Stream stream) {
        std::vector<Buffer<std::int32_t>> sources = one_of_each(device, count);
        std::vector<Buffer<std::int32_t>> targets = one_of_each(device, count);
        std::int32_t first = 1;
        for (Buffer<std::int32_t>& from : sources) {
            for (Buffer<std::int32_t>& to : targets) {
                SCOPED_TRACE(std::string(isthmus::name(from.kind())) + " to " + std::string(isthmus::name(to.kind())) +
                             ": " + std::string(stream.explain_copy(to, from).reason));
                const std::vector<std::int32_t> wanted = numbers(count, first += 1000);
                stream.copy_from_host(from, wanted).value();
                stream.copy(to, from).value();
                EXPECT_EQ(content(stream, to), wanted);
                stream.copy(to, 3, from, 10, 50).value();
                std::vector<std::int32_t> part = wanted;
                std::memcpy(part.data() + 3, wanted.data() + 10, 50 * sizeof(std::int32_t));
                EXPECT_EQ(content(stream, to), part);
            }
        }
    });
}

TEST(Copies, DataArrivesBetweenEveryTwoDevicesOnAnyStream) {  // keeps K22, S8
    constexpr std::size_t count = 300;
    const std::size_t devices = runtime().device_count();
    for (std::size_t on = 0; on < devices; ++on) {
        Stream stream = runtime().device(on).value()->create_stream().value();
        for (std::size_t a = 0; a < devices; ++a) {
            for (std::size_t b = 0; b < devices; ++b) {
                SCOPED_TRACE("on device " + std::to_string(on) + " from " + std::to_string(a) + " to " +
                             std::to_string(b));
                auto from = runtime().device(a).value()->allocate<std::int32_t>(count).value();
                auto to = runtime().device(b).value()->allocate<std::int32_t>(count).value();
                const std::vector<std::int32_t> wanted = numbers(count, static_cast<std::int32_t>(on + 10 * a));
                stream.copy_from_host(from, wanted).value();
                stream.copy(to, from).value();
                EXPECT_EQ(content(stream, to), wanted);
                auto again = runtime().device(b).value()->allocate<std::int32_t>(count).value();
                isthmus::copy(again, from).value();  // on the destination's stream
                EXPECT_EQ(content(runtime().device(b).value()->stream(), again), wanted);
                stream.copy_region(to, {0, 20, 0}, from, {100, 10, 0}, {10, 5, 1}).value();
                std::vector<std::int32_t> part = wanted;
                for (std::size_t row = 0; row < 5; ++row) {
                    std::memcpy(&part[row * 20], &wanted[100 + row * 10], 10 * sizeof(std::int32_t));
                }
                EXPECT_EQ(content(stream, to), part);
            }
        }
    }
}

// One side of a random box: gaps between rows and slices, and elements before and after.
CopyLayout random_layout(std::mt19937& random, const CopyBox& box, std::size_t& elements) {
    const auto upto = [&](std::size_t most) { return random() % (most + 1); };
    CopyLayout layout;
    layout.offset = upto(9);
    layout.row_pitch = box.width + upto(3);
    const std::size_t slice = (box.height - 1) * layout.row_pitch + box.width;
    layout.slice_pitch = upto(1) == 0 ? box.height * layout.row_pitch : slice + upto(9);
    elements = layout.offset + (box.depth - 1) * layout.slice_pitch + slice + upto(5);
    return layout;
}

void copy_plainly(std::vector<std::int32_t>& to, const CopyLayout& into, const std::vector<std::int32_t>& from,
                  const CopyLayout& out_of, const CopyBox& box) {
    for (std::size_t z = 0; z < box.depth; ++z) {
        for (std::size_t y = 0; y < box.height; ++y) {
            for (std::size_t x = 0; x < box.width; ++x) {
                to[into.offset + z * into.slice_pitch + y * into.row_pitch + x] =
                    from[out_of.offset + z * out_of.slice_pitch + y * out_of.row_pitch + x];
            }
        }
    }
}

TEST(Copies, RandomBoxesAreWhatAPlainLoopMakesOfThem) {  // keeps K22
    on_every_device([](Device& device) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        Stream stream = device.create_stream().value();
        for (int round = 0; round < rounds(40); ++round) {
            const CopyBox box{1 + random() % 12, 1 + random() % 5, 1 + random() % 4};
            std::size_t here = 0, there = 0, outside = 0;
            const CopyLayout a = random_layout(random, box, here);
            const CopyLayout b = random_layout(random, box, there);
            const CopyLayout c = random_layout(random, box, outside);
            std::vector<std::int32_t> host = numbers(outside, round), middle = numbers(here, -1000);
            std::vector<std::int32_t> last = numbers(there, -9000), back = numbers(outside, -20000);
            auto first = device.allocate<std::int32_t>(here).value();
            auto second = device.allocate<std::int32_t>(there).value();
            stream.copy_from_host(first, middle).value();
            stream.copy_from_host(second, last).value();
            stream.copy_region_from_host(first, a, std::span<const std::int32_t>(host), c, box).value();
            stream.copy_region(second, b, first, a, box).value();
            std::vector<std::int32_t> read = back;
            stream.copy_region_to_host(std::span<std::int32_t>(read), c, second, b, box).value();
            copy_plainly(middle, a, host, c, box);
            copy_plainly(last, b, middle, a, box);
            copy_plainly(back, c, last, b, box);
            ASSERT_EQ(content(stream, first), middle) << round;
            ASSERT_EQ(content(stream, second), last) << round;
            ASSERT_EQ(read, back) << round;
        }
    });
}

TEST(Copies, LargePageableMemoryGoesThroughBounceBuffersBothWays) {  // keeps K22
    constexpr std::size_t count = (std::size_t{5} << 20) / sizeof(std::int32_t) + 13;
    on_every_device([](Device& device, Stream stream) {
        auto buffer = device.allocate<std::int32_t>(count).value();
        std::vector<std::int32_t> source = numbers(count, 5);
        const std::vector<std::int32_t> wanted = source;
        stream.copy_from_host(buffer, source).value();
        source.assign(count, 0);  // the copy has read it
        std::vector<std::int32_t> read(count);
        stream.copy_to_host(read, buffer).value();
        EXPECT_TRUE(read == wanted);  // a bool, because the values are too long to print
        const CopyBox rows{700, 1000, 1};
        std::vector<std::int32_t> part(700 * 1000);
        stream.copy_region_to_host(std::span<std::int32_t>(part), {}, buffer, {1, 900, 0}, rows).value();
        bool same = true;
        for (std::size_t i = 0; i < part.size(); ++i) same &= part[i] == wanted[1 + i / 700 * 900 + i % 700];
        EXPECT_TRUE(same);
    });
}

TEST(Copies, LargePageableMemoryArrivesBehindWorkOfTheStreamAndItsSourceMayChangeAtOnce) {  // keeps K22, S1
    constexpr std::size_t count = (std::size_t{70} << 20) / sizeof(std::int32_t) + 3;       // more than one call copies
    on_every_device([](Device& device, Stream stream) {
        auto buffer = device.allocate<std::int32_t>(count).value();
        auto busy = device.allocate<std::int32_t>(1 << 12).value();
        stream.fill_bytes(busy, 0).value();
        (void)stream.launch(churn, busy.size(), busy, rounds(2000)).value();
        stream.fill(buffer, 9).value();
        std::vector<std::int32_t> source = numbers(count, 5);
        const long before = driver_calls("cuMemcpyHtoDAsync_v2");
        stream.copy_from_host(buffer, source).value();
        // Where CPU and GPU have memory of their own the driver stages it, 64 MiB at a time.
        const MemoryModel memory = device.capabilities().memory;
        if (counts_calls(device) && memory != MemoryModel::shared_dram) {
            EXPECT_TRUE(unless_fault(driver_calls("cuMemcpyHtoDAsync_v2") - before == 2));
        }
        source.assign(count, 0);
        (void)stream.launch(churn, 1, buffer, 1).value();  // changes the first number
        std::vector<std::int32_t> read(count, -1);
        stream.copy_to_host(read, buffer).value();
        std::vector<std::int32_t> wanted = numbers(count, 5);
        wanted[0] = static_cast<std::int32_t>(5u * 1664525u + 1013904223u);
        EXPECT_TRUE(read == wanted);
    });
}

TEST(Copies, ManySmallOnesOfPageableMemoryDoNotWaitForEachOther) {  // keeps K22
    on_every_device([](Device& device, Stream stream) {
        auto buffer = device.allocate<std::int32_t>(1000).value();
        for (std::int32_t i = 0; i < 100; ++i) {
            const std::int32_t pair[] = {i, -i};
            stream.copy_from_host(buffer, pair, static_cast<std::size_t>(i) * 2).value();
        }
        const std::vector<std::int32_t> read = content(stream, buffer);
        for (std::int32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(read[static_cast<std::size_t>(i) * 2], i);
            ASSERT_EQ(read[static_cast<std::size_t>(i) * 2 + 1], -i);
        }
    });
}

TEST(Copies, OfPinnedMemoryTheyReturnBeforeTheyAreDone) {  // keeps K22, S1
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "the CPU device has finished when a call returns";
    constexpr std::size_t count = 1 << 12;
    Stream stream = device.create_stream().value();
    auto pinned = device.allocate<std::int32_t>(count, MemoryKind::pinned).value();
    auto busy = device.allocate<std::int32_t>(count).value();
    auto target = device.allocate<std::int32_t>(count).value();
    auto view = pinned.write_on_host().value();
    const Settled settled(device);  // a copy from a span does not hold its memory
    for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
    stream.fill_bytes(busy, 0).value();
    Gate gate(device);
    (void)stream.launch(when_raised, 1, gate.words(), busy, 1).value();
    const std::span<const std::int32_t> span(view.data(), count);
    stream.copy_from_host(target, span).value();
    if (gate.holds()) {
        EXPECT_TRUE(refused_while_it_lasts(stream.synchronize(Wait::never()), Code::not_ready));
    }
    gate.raise();
    stream.synchronize().value();
    EXPECT_EQ(content(stream, target)[count - 1], static_cast<std::int32_t>(count - 1));
}

TEST(Copies, BetweenDevicesWaitForTheSourcesStreamAndHoldItBack) {  // keeps K22, S10
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU only";
    constexpr std::size_t count = 1 << 12;
    Device& one = *runtime().device(0).value();
    Device& other = *runtime().device(1).value();
    Stream producer = one.create_stream().value();
    Stream consumer = other.create_stream().value();
    auto from = one.allocate<std::int32_t>(count).value();
    auto to = other.allocate<std::int32_t>(count).value();
    for (std::int32_t round = 1; round < 10; ++round) {
        producer.fill(from, 0).value();
        (void)producer.launch(churn, count, from, rounds(3000)).value();
        producer.fill(from, round).value();
        consumer.copy(to, from).value();  // without a wait for the producer
        producer.fill(from, -1).value();  // nor for the copy
        ASSERT_EQ(content(consumer, to), std::vector<std::int32_t>(count, round));
    }
}

TEST(Copies, BetweenDevicesTakeTheNewerSideOfStagedBuffers) {  // keeps K22, L4
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU only";
    constexpr std::size_t count = 100;
    SharedUse two_sides;
    two_sides.kind = MemoryKind::device;
    Device& one = *runtime().device(0).value();
    Device& other = *runtime().device(1).value();
    auto from = one.allocate_shared<std::int32_t>(count, two_sides).value();
    auto to = other.allocate_shared<std::int32_t>(count, two_sides).value();
    {
        auto view = from.write_on_host().value();
        for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
    }
    other.stream().copy(to, from).value();
    EXPECT_EQ(to.read_on_host().value()[99], 99);
    (void)one.stream().launch(add_one, count, from).value();
    one.stream().copy(to, 0, from, 50, 50).value();
    auto view = to.read_on_host().value();
    EXPECT_EQ(view[0], 51);
    EXPECT_EQ(view[49], 100);
    EXPECT_EQ(view[50], 50);
}

TEST(Copies, OneSideMayBeBothWhereTheBoxesDoNotMeet) {  // keeps K22, K18
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        auto buffer = device.allocate<std::int32_t>(100).value();
        std::vector<std::int32_t> wanted = numbers(100, 0);
        stream.copy_from_host(buffer, wanted).value();
        stream.copy_region(buffer, {5, 10, 0}, buffer, {0, 10, 0}, {5, 10, 1}).value();
        copy_plainly(wanted, {5, 10, 0}, std::vector<std::int32_t>(wanted), {0, 10, 0}, {5, 10, 1});
        EXPECT_EQ(content(stream, buffer), wanted);
        EXPECT_TRUE(
            refused_as(stream.copy_region(buffer, {4, 10, 0}, buffer, {0, 10, 0}, {5, 10, 1}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy(buffer, 0, buffer, 49, 50), Code::invalid_argument));
        EXPECT_TRUE(worked(stream.copy(buffer, 0, buffer, 50, 50)));
        EXPECT_TRUE(worked(stream.copy(buffer, buffer)));
    });
}

TEST(Copies, WhatLeavesItsSideIsRefusedBeforeAnyCall) {  // keeps K18, R1
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        auto to = device.allocate<std::int32_t>(100).value();
        auto from = device.allocate<std::int32_t>(80).value();
        stream.fill(to, 1).value();
        stream.fill(from, 2).value();
        constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();
        const long before = driver_calls();
        const auto source = stream.copy(to, 0, from, 60, 30);
        ASSERT_TRUE(refused_as(source, Code::invalid_argument));
        EXPECT_NE(source.error().message().find("the source has 80 elements, and the box ends 10 behind"),
                  std::string_view::npos);
        const auto target = stream.copy(to, 90, from, 0, 30);
        ASSERT_TRUE(refused_as(target, Code::invalid_argument));
        EXPECT_NE(target.error().message().find("the destination"), std::string_view::npos);
        EXPECT_TRUE(refused_as(stream.copy(to, huge, from, 0, 2), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy(to, 0, from, 0, huge), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy(to, huge - 4, from, 0, 10), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy(to, from), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy_region(to, {0, 4, 0}, from, {}, {5, 2, 1}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy_region(to, {0, 5, 8}, from, {}, {5, 2, 2}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.copy_region(to, {0, huge / 2, 0}, from, {}, {5, 4, 1}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.fill_region(to, {90, 0, 0}, {20, 1, 1}, 3), Code::invalid_argument));
        const std::vector<std::int32_t> many(101);
        EXPECT_TRUE(refused_as(stream.copy_from_host(to, many), Code::invalid_argument));
        EXPECT_TRUE(worked(stream.copy(to, 100, from, 80, 0)));  // zero elements, at the very end
        EXPECT_TRUE(worked(stream.copy_region(to, {}, from, {}, {5, 0, 1})));
        EXPECT_TRUE(worked(stream.copy_from_host(to, {})));
        EXPECT_EQ(driver_calls(), before);
        EXPECT_EQ(content(stream, to), std::vector<std::int32_t>(100, 1));
        EXPECT_TRUE(worked(stream.copy(to, 70, from, 50, 30)));
        EXPECT_EQ(content(stream, to)[99], 2);
    });
}

TEST(Copies, EmptyAndForeignBuffersAndOpenViewsAreRefused) {  // keeps K18, G9
    Runtime second = Runtime::open().value();
    on_every_device([&](Device& device) {
        Stream& stream = device.stream();
        auto to = device.allocate_shared<std::int32_t>(10).value();
        auto from = device.allocate_shared<std::int32_t>(10).value();
        stream.fill(from, 7).value();
        stream.fill(to, 8).value();
        auto theirs = second.device(device.index()).value()->allocate<std::int32_t>(10).value();
        EXPECT_TRUE(refused_as(stream.copy(to, theirs), Code::wrong_device));
        EXPECT_TRUE(refused_as(stream.copy(theirs, from), Code::wrong_device));
        EXPECT_TRUE(refused_as(stream.fill(theirs, 1), Code::wrong_device));
        Buffer<std::int32_t> empty;
        EXPECT_TRUE(refused_as(stream.copy(to, empty), Code::invalid_handle));
        EXPECT_TRUE(refused_as(stream.copy(empty, 0, from, 0, 1), Code::invalid_handle));
        EXPECT_TRUE(refused_as(stream.fill(empty, 1), Code::invalid_handle));
        std::vector<std::int32_t> ten(10);
        EXPECT_TRUE(refused_as(stream.copy_to_host(ten, empty), Code::invalid_handle));
        {
            auto view = to.read_on_host().value();
            EXPECT_TRUE(refused_as(stream.copy(to, from), Code::in_use));
            EXPECT_TRUE(refused_as(stream.copy_from_host(to, std::span<const std::int32_t>(view.data(), 5)),
                                   Code::invalid_argument));  // the buffer's own memory
            EXPECT_TRUE(worked(stream.copy(from, to)));
            EXPECT_EQ(view[0], 8);
        }
        stream.fill(from, 9).value();
        EXPECT_TRUE(worked(stream.copy(to, from)));
        EXPECT_EQ(to.read_on_host().value()[9], 9);
    });
}

struct Pair {
    std::uint64_t a, b;
    friend bool operator==(const Pair&, const Pair&) = default;
};
struct Triple {
    std::uint8_t r, g, b;
    friend bool operator==(const Triple&, const Triple&) = default;
};

template <class T>
void fill_and_read(Device& device, T value, T other) {
    Stream& stream = device.stream();
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
        auto buffer = device.allocate<T>(count).value();
        stream.fill(buffer, value).value();
        std::vector<T> wanted(count, value), read(count);
        stream.copy_to_host(read, buffer).value();
        EXPECT_TRUE(read == wanted) << sizeof(T) << " bytes, " << count;
        if (count < 7) continue;
        stream.fill_region(buffer, {2, 0, 0}, {4, 1, 1}, other).value();
        for (std::size_t i = 2; i < 6; ++i) wanted[i] = other;
        stream.copy_to_host(read, buffer).value();
        EXPECT_TRUE(read == wanted) << sizeof(T) << " bytes, part of " << count;
    }
}

TEST(Fills, OfEveryElementSizeThatADeviceFillsAreExact) {  // keeps S3, K22
    on_every_device([](Device& device) {
        fill_and_read<std::uint8_t>(device, 0x12, 0x34);
        fill_and_read<std::uint16_t>(device, 0x1234, 0x5678);
        fill_and_read<float>(device, 1.5F, -2.25F);
        fill_and_read<double>(device, 3.14159, 2.71828);
        fill_and_read<Pair>(device, {1, 2}, {3, 4});
        fill_and_read<Triple>(device, {9, 9, 9}, {0, 0, 0});
    });
}

TEST(Fills, OfBoxesLeaveTheGapsAlone) {  // keeps S3
    on_every_device([](Device& device) {
        Stream& stream = device.stream();
        auto buffer = device.allocate<std::int32_t>(200).value();
        std::vector<std::int32_t> wanted(200, 1);
        stream.fill(buffer, 1).value();
        stream.fill_region(buffer, {3, 10, 45}, {4, 3, 4}, 77).value();
        for (std::size_t z = 0; z < 4; ++z) {
            for (std::size_t i = 0; i < 12; ++i) wanted[3 + z * 45 + i / 4 * 10 + i % 4] = 77;
        }
        EXPECT_EQ(content(stream, buffer), wanted);
    });
}

TEST(Fills, OfOddPatternsAreRefusedOnADeviceAndExactOnTheHost) {  // keeps K18
    on_every_device([](Device& device) {
        auto buffer = device.allocate<Triple>(10).value();
        const auto filled = device.stream().fill(buffer, Triple{1, 2, 3});
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(filled, Code::unsupported));
            return;
        }
        EXPECT_TRUE(worked(filled));
        EXPECT_EQ(buffer.read_on_host().value()[9], (Triple{1, 2, 3}));
    });
}

TEST(Fills, OfAnotherDevicesMemoryAreOrderedOnTheStreamThatAsked) {  // keeps S3, S8
    const std::size_t devices = runtime().device_count();
    for (std::size_t on = 0; on < devices; ++on) {
        Stream stream = runtime().device(on).value()->create_stream().value();
        for (std::size_t at = 0; at < devices; ++at) {
            auto buffer = runtime().device(at).value()->allocate<std::int32_t>(64).value();
            stream.fill(buffer, 5).value();
            stream.fill_region(buffer, {1, 0, 0}, {2, 1, 1}, 6).value();
            const std::vector<std::int32_t> read = content(stream, buffer);
            EXPECT_EQ(read[0], 5);
            EXPECT_EQ(read[2], 6);
            EXPECT_EQ(read[63], 5);
        }
    }
}

// Exact numbers of driver calls; streams, events and bounce buffers have been made before.
TEST(Copies, CostTheDriverCallsThatTheirRowNeedsAndNoMore) {  // keeps K22
    Device& device = runtime().default_device();
    if (device.is_cpu() || driver_calls() < 0) GTEST_SKIP() << "only the simulator counts calls";
    Stream stream = device.create_stream().value();
    auto a = device.allocate<std::int32_t>(1000).value();
    auto b = device.allocate<std::int32_t>(1000).value();
    auto pinned = device.allocate<std::int32_t>(1000, MemoryKind::pinned).value();
    std::vector<std::int32_t> pageable(1000, 1);
    // A span must live until its copy has ended, also where a planned fault ends the scenario.
    const struct Settled {
        Stream& stream;
        ~Settled() { (void)stream.synchronize(); }
    } settled{stream};
    stream.fill(pinned, 3).value();
    stream.copy_from_host(a, pageable).value();
    stream.copy(b, a).value();
    stream.copy(b, pinned).value();
    stream.synchronize().value();
    const auto calls = [](auto body) {
        const long before = driver_calls();
        body();
        return driver_calls() - before;
    };
    EXPECT_TRUE(unless_fault(calls([&] { stream.copy(b, a).value(); }) == 1));
    EXPECT_TRUE(unless_fault(calls([&] { stream.copy(b, 1, a, 2, 3).value(); }) == 1));
    EXPECT_TRUE(unless_fault(calls([&] { stream.copy_region(b, {0, 20, 0}, a, {0, 10, 0}, {5, 9, 1}).value(); }) == 1));
    EXPECT_TRUE(unless_fault(calls([&] {
                                 stream.copy_region(b, {0, 10, 40}, a, {0, 20, 60}, {5, 3, 4}).value();
                             }) == 1));
    EXPECT_TRUE(unless_fault(calls([&] { stream.copy(a, pinned).value(); }) == 1));
    EXPECT_TRUE(unless_fault(calls([&] { stream.fill_region(pinned, {}, {10, 1, 1}, 5).value(); }) == 1));
    // Allocates a bounce buffer, copies, records an event; the runtime does not know the address.
    EXPECT_TRUE(unless_fault(calls([&] { stream.copy_from_host(a, pageable).value(); }) <= 4));
    auto view = pinned.read_on_host().value();
    EXPECT_TRUE(unless_fault(
        calls([&] { stream.copy_from_host(a, std::span<const std::int32_t>(view.data(), 1000)).value(); }) == 1))
        << "the runtime's own pinned memory is known";
    stream.synchronize().value();
}

}  // namespace
}  // namespace conformance
