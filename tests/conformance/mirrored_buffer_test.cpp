// SPDX-License-Identifier: Apache-2.0
// Mirrored buffers: the same memory mapped twice in a row, for hosts and devices, in stream order.
#include "scenario.hpp"

#include <isthmus/mapping/mirrored_buffer.hpp>

#include <cstdint>

namespace conformance {
namespace {

using Ring = MirroredBuffer<std::int32_t>;
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

std::int32_t element(Device& device, const Ring& ring, std::size_t at) {
    Buffer<std::int32_t> out = pinned(device, 1, -1);
    const auto part = ring.part(at, 1).value();
    (void)device.stream().launch(checked, scale_into, 1, out, part, 1).value();
    return out.read_on_host().value()[0];
}

// keeps V12
TEST(MirroredBuffer, WhatIsWrittenThroughOneCopyIsReadThroughTheOther) {
    on_every_device([](Device& device) {
        Result<Ring> made = Ring::create(device, 1000);
        if (!device.is_cpu() && !device.capabilities().has(Feature::virtual_memory)) return;  // tested with the rules
        ASSERT_TRUE(worked(made));
        Ring& ring = *made;
        ASSERT_GE(ring.capacity(), 1000u);
        EXPECT_EQ(ring.size(), 2 * ring.capacity());
        EXPECT_EQ(ring.place(ring.capacity() + 3), 3u);
        EXPECT_FALSE(ring.explain().empty());
        device.stream().fill(ring, 0).value();
        const std::size_t last = ring.capacity() - 1;
        {  // 100 contiguous elements across the end
            auto across = ring.part(ring.capacity() - 50, 100).value();
            EXPECT_FALSE(across.independent());
            (void)device.stream().launch(checked, add_one, 100, across).value();
        }
        EXPECT_EQ(element(device, ring, last), 1);
        EXPECT_EQ(element(device, ring, 0), 1);  // the 50 after the end are the first 50
        EXPECT_EQ(element(device, ring, 49), 1);
        EXPECT_EQ(element(device, ring, 50), 0);
        EXPECT_EQ(element(device, ring, ring.capacity() + last), 1);
        EXPECT_EQ(element(device, ring, ring.capacity() - 51), 0);
        EXPECT_TRUE(worked(ring.release()));
        EXPECT_EQ(ring.capacity(), 0u);
        EXPECT_EQ(ring.place(5), 0u);
    });
}

// keeps V12
TEST(MirroredBuffer, AKernelReadsWhatItWroteThroughTheOtherCopyBehindTheFence) {
    on_every_device([](Device& device) {
        Result<Ring> made = Ring::create(device, 1000);
        if (!made) return;  // refused, as above
        Buffer<std::int32_t> seen = pinned(device, 1000, 0);
        device.stream().fill(*made, 0).value();
        const auto launched =
            device.stream().launch(checked, write_and_read_alias, 1000, *made, std::uint64_t{made->capacity()}, seen);
        ASSERT_TRUE(worked(launched));
        auto view = seen.read_on_host().value();
        for (std::size_t at = 0; at < 1000; ++at) ASSERT_EQ(view[at], static_cast<std::int32_t>(at) + 1);
    });
}

// keeps V12: the simulator shows what a GPU may show, so that a forgotten fence is found
TEST(MirroredBuffer, WithoutTheFenceAKernelOfTheSimulatorReadsWhatIsStaleAndItsEndIsAFence) {
    (void)runtime();
    if (driver_calls() < 0) GTEST_SKIP() << "what a real GPU reads is undefined; the CPU is coherent";
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Result<Ring> made = Ring::create(device, 1000);
        if (!made || made->kind() != MemoryKind::vmm) return;  // refused, as above; pages of the system are coherent
        Buffer<std::int32_t> seen = pinned(device, 1000, -1);
        device.stream().fill(*made, 7).value();
        for (const std::int32_t wanted : {7, 0}) {  // the ring's content before each launch
            const auto launched = device.stream().launch(checked, write_and_read_alias_unfenced, 1000, *made,
                                                         std::uint64_t{made->capacity()}, seen);
            ASSERT_TRUE(worked(launched));
            auto view = seen.read_on_host().value();
            for (std::size_t at = 0; at < 1000; ++at) {
                ASSERT_EQ(view[at], wanted != 0 ? wanted : static_cast<std::int32_t>(at) + 1);
            }
        }
        EXPECT_EQ(element(device, *made, 999), 1000) << "operations are in order, through either copy";
        EXPECT_EQ(element(device, *made, made->capacity() + 999), 1000);
        // A kernel that uses only one of the two mappings is coherent with itself.
        const auto second = made->part(made->capacity(), 1000).value();
        (void)device.stream().launch(checked, add_one, 1000, second).value();
        EXPECT_EQ(element(device, *made, 999), 1001);
    });
}

// keeps V12, G8
TEST(MirroredBuffer, TheHostSeesBothCopiesWhereTheMemoryLiesThere) {
    on_every_device([](Device& device) {
        MirroredOptions options;
        options.where = MemoryPlace::Where::host;
        const auto& can = device.capabilities();
        const bool possible =
            device.is_cpu() || can.has(Feature::host_virtual_memory) || can.has(Feature::pageable_access);
        Result<Ring> made = Ring::create(device, 1000, options);
        ASSERT_TRUE(possible ? worked(made) : refused_as(made, Code::unsupported));
        if (!made) return;
        Ring& ring = *made;
        const std::size_t capacity = ring.capacity();
        {
            auto view = ring.read_write_on_host().value();
            for (std::size_t at = 0; at < capacity; ++at) view[at] = static_cast<std::int32_t>(at);
            isthmus::alias_fence();
            EXPECT_EQ(view[capacity], 0);
            EXPECT_EQ(view[capacity + 999], 999);
            view[2 * capacity - 1] = -7;
            isthmus::alias_fence();
            EXPECT_EQ(view[capacity - 1], -7);
        }
        (void)device.stream().launch(checked, add_one, capacity, ring).value();
        auto view = ring.read_on_host().value();
        EXPECT_EQ(view[capacity], 1);
        EXPECT_EQ(view[2 * capacity - 1], -6);
    });
}

// keeps V12: nothing takes one copy for memory apart from the other
TEST(MirroredBuffer, PartsAndCopiesWithinItAreNotApart) {
    on_every_device([](Device& device) {
        MirroredOptions options;
        options.where = MemoryPlace::Where::host;
        Result<Ring> made = Ring::create(device, 1000, options);
        if (!made) return;  // refused, as above
        Ring& ring = *made;
        device.stream().fill(ring, 0).value();
        device.synchronize().value();
        auto first = ring.part(0, 10).value();
        auto second = ring.part(ring.capacity(), 10).value();
        const auto view = first.read_on_host().value();
        EXPECT_TRUE(refused_as(second.write_on_host(), Code::in_use));
        EXPECT_TRUE(refused_as(device.stream().launch(checked, add_one, 10, second), Code::in_use));
    });
    on_every_device([](Device& device) {
        EXPECT_TRUE(refused_as(Ring::create(device, ~std::size_t{0}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Ring::create(device, 0), Code::invalid_argument));
    });
}

}  // namespace
}  // namespace conformance
