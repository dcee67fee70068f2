// SPDX-License-Identifier: Apache-2.0
// Staged launches on the machine at hand: the same program over memory that the device may or may not access.
#include "scenario.hpp"

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1000;
constexpr std::size_t bytes = count * sizeof(std::int32_t);
constexpr LaunchOptions staged{.mode = LaunchMode::staged};

std::vector<std::int32_t> numbered() {
    std::vector<std::int32_t> values(count);
    std::iota(values.begin(), values.end(), 0);
    return values;
}
bool reaches_pageable(const Device& device) {
    return device.is_cpu() || device.capabilities().has(Feature::pageable_access);
}

TEST(Staged, PlainMemoryGoesInAndOutByItsUse) {  // keeps L4, A17
    on_every_device([](Device& device) {
        std::vector<std::int32_t> in = numbered();
        std::vector<std::int32_t> out(count, -1);
        const Settled settled(device);
        const LaunchReport report =
            device.stream()
                .launch(staged, scale_into, count, std::span(out), std::span<const std::int32_t>(in), 3)
                .value();
        if (reaches_pageable(device)) {
            EXPECT_TRUE(unless_fault(report.staged_bytes == 0 && report.copied_back_bytes == 0)) << "used in place";
            device.synchronize().value();
        } else {
            EXPECT_TRUE(unless_fault(report.staged_bytes == bytes)) << "in: what is read";
            EXPECT_TRUE(unless_fault(report.copied_back_bytes == bytes)) << "out: what is written";
        }
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], static_cast<std::int32_t>(3 * i));
        EXPECT_EQ(in, numbered());
        (void)device.stream().launch(staged, add_one, count, View<std::int32_t>{in.data(), count}).value();
        device.synchronize().value();
        EXPECT_EQ(in[count - 1], static_cast<std::int32_t>(count));
    });
}

TEST(Staged, PageableBuffersTakePartLikeAnyOther) {  // keeps L4
    on_every_device([](Device& device) {
        Buffer<std::int32_t> pageable = device.allocate_host<std::int32_t>(count).value();
        Buffer<std::int32_t> shared = device.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::device}).value();
        {
            auto view = pageable.write_on_host().value();
            std::iota(view.begin(), view.end(), 0);
        }
        for (int round = 0; round < 3; ++round) {
            (void)device.stream().launch(staged, add_one, count, pageable).value();
        }
        (void)device.stream().launch(staged, scale_into, count, shared, pageable, 2).value();
        const auto view = shared.read_on_host().value();
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], static_cast<std::int32_t>(2 * (i + 3)));
        EXPECT_EQ(pageable.read_on_host().value()[0], 3);
    });
}

TEST(Staged, OverlappingArgumentsAreCopiedOnce) {  // keeps L4
    on_every_device([](Device& device) {
        std::vector<std::int32_t> data = numbered();
        constexpr std::size_t half = count / 2;
        const Settled settled(device);
        // Reads [half, count) and writes [0, half); ten elements belong to both arguments.
        const LaunchReport report = device.stream()
                                        .launch(staged, scale_into, half, Out<std::int32_t>{data.data(), half + 10},
                                                View<const std::int32_t>{data.data() + half, half}, 2)
                                        .value();
        device.synchronize().value();
        for (std::size_t i = 0; i < half; ++i) ASSERT_EQ(data[i], static_cast<std::int32_t>(2 * (half + i)));
        for (std::size_t i = half; i < count; ++i) ASSERT_EQ(data[i], static_cast<std::int32_t>(i));
        const std::size_t copied = reaches_pageable(device) ? 0 : bytes - half * sizeof(std::int32_t);
        EXPECT_TRUE(unless_fault(report.staged_bytes == copied)) << "what both arguments have is one copy";
    });
}

TEST(Staged, HostMemoryThatIsOnlyReadMayChangeWhenTheLaunchHasReturned) {  // keeps L4
    Device& device = runtime().default_device();
    if (reaches_pageable(device)) GTEST_SKIP() << "used in place: it may change when the kernel has ended";
    Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::device}).value();
    Buffer<std::int32_t> busy = device.allocate<std::int32_t>(count).value();
    device.stream().fill_bytes(busy, 1).value();
    std::vector<std::int32_t> in = numbered();
    (void)device.stream().launch(churn, count, busy, 20000).value();
    (void)device.stream().launch(staged, scale_into, count, out, std::span<const std::int32_t>(in), 1).value();
    std::fill(in.begin(), in.end(), -1);
    const auto view = out.read_on_host().value();
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], static_cast<std::int32_t>(i));
}

TEST(Staged, AnOpenViewRefusesTheLaunchAndNothingIsLeft) {  // keeps G9, L4
    on_every_device([](Device& device) {
        if (reaches_pageable(device)) return;
        Buffer<std::int32_t> pageable = device.allocate_host<std::int32_t>(count).value();
        auto view = pageable.write_on_host().value();
        view[0] = 7;
        EXPECT_TRUE(refused_as(device.stream().launch(staged, add_one, count, pageable), Code::in_use));
        EXPECT_EQ(view[0], 7);
    });
}

TEST(Staged, MemoryOfAnotherGpuIsCopiedBetweenTheTwo) {  // keeps L4, A4
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU, or none";
    Device& here = *runtime().device(0).value();
    Device& there = *runtime().device(1).value();
    Buffer<std::int32_t> data = there.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> seen = there.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::device}).value();
    there.stream().fill_bytes(data, 0).value();
    there.synchronize().value();
    EXPECT_TRUE(refused_as(here.stream().launch(add_one, count, data), Code::not_accessible));
    const LaunchReport report = here.stream().launch(staged, add_one, count, data).value();
    EXPECT_TRUE(unless_fault(report.staged_bytes == bytes && report.copied_back_bytes == bytes));
    here.synchronize().value();
    (void)there.stream().launch(scale_into, count, seen, data, 5).value();
    const auto view = seen.read_on_host().value();
    EXPECT_EQ(view[0], 5);
    EXPECT_EQ(view[count - 1], 5);
}

}  // namespace
}  // namespace conformance
