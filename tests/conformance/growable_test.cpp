// SPDX-License-Identifier: Apache-2.0
// Buffers that grow in place: address and content stay, a growth step costs three driver calls, and trimmed memory is
// released.
#include "scenario.hpp"

#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/mapping/mirrored_buffer.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace conformance {
namespace {

using Numbers = GrowableBuffer<std::int32_t>;
// In elements; of every recorded machine.
constexpr std::size_t granule = (std::size_t{2} << 20) / sizeof(std::int32_t);
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

// Runs the body with memory that the driver maps, else with reserved host addresses: in the device's own memory, or in
// host memory where the device uses that.
template <class Body>
void on_every_growing_device(Body body) {
    on_every_device([&](Device& device) {
        const auto& can = device.capabilities();
        const bool uses_host = can.memory == MemoryModel::shared_dram && can.has(Feature::pageable_access);
        if (device.is_cpu() || maps_memory(device) || uses_host) {
            body(device);
        } else {
            const auto refused = Numbers::create(device, 1);
            ASSERT_TRUE(refused_as(refused, Code::unsupported));
            EXPECT_FALSE(refused.error().remedy().empty());
        }
    });
}

// keeps V11, V13, K15: memory of one kind never ends up in an object of another, nor stays behind in one.
static_assert(!std::is_assignable_v<TypedBuffer<int>&, TypedBuffer<int>&&>);
static_assert(!std::is_assignable_v<TypedBuffer<int>&, Buffer<int>&&>);
static_assert(!std::is_constructible_v<Buffer<int>, GrowableBuffer<int>&&>);
static_assert(!std::is_convertible_v<GrowableBuffer<int>&, Buffer<int>&>);
static_assert(!std::is_convertible_v<MirroredBuffer<int>&, Buffer<int>&>);
static_assert(!std::is_convertible_v<ExportableBuffer<int>&, Buffer<int>&>);
static_assert(std::is_nothrow_move_assignable_v<Buffer<int>> && std::is_move_assignable_v<GrowableBuffer<int>>);

void expect_filled(Device& device, const Numbers& buffer, std::size_t first, std::size_t elements, std::int32_t value) {
    Buffer<std::int32_t> out = pinned(device, elements, -1);
    const View<const std::int32_t> view{
        reinterpret_cast<const std::int32_t*>(static_cast<std::uintptr_t>(buffer.device_address())) + first, elements};
    (void)device.stream().launch(checked, scale_into, elements, out, view, 1).value();
    auto seen = out.read_on_host().value();
    for (std::size_t at = 0; at < elements; ++at) ASSERT_EQ(seen[at], value) << "at " << first + at;
}

// keeps V11
TEST(Growable, GrowsWhereItIsAndKeepsWhatItHolds) {
    on_every_growing_device([](Device& device) {
        Numbers buffer = Numbers::create(device, 16 * granule).value();
        EXPECT_EQ(buffer.kind(), maps_memory(device) ? MemoryKind::vmm : MemoryKind::host);
        EXPECT_EQ(buffer.size(), 0u);
        EXPECT_EQ(buffer.capacity(), 0u);
        EXPECT_FALSE(buffer.explain().empty());
        buffer.resize(100).value();
        const std::uint64_t base = buffer.device_address();
        ASSERT_NE(base, 0u);
        device.stream().fill(buffer, 7).value();
        std::size_t handles = 1;
        for (const std::size_t elements : {granule + 1, 2 * granule + 1, 4 * granule + 1, 16 * granule}) {
            const std::size_t before = buffer.capacity();
            buffer.resize(elements).value();
            EXPECT_EQ(buffer.device_address(), base);
            EXPECT_EQ(buffer.size(), elements);
            EXPECT_EQ(buffer.capacity(), 2 * before);
            EXPECT_EQ(buffer.figures().handles, ++handles);
            expect_filled(device, buffer, 0, 100, 7);
        }
        (void)device.stream().launch(checked, add_one, 100, buffer).value();
        expect_filled(device, buffer, 0, 100, 8);
        // The new end is ordinary memory of the buffer.
        device.stream().fill(buffer, 3).value();
        expect_filled(device, buffer, 16 * granule - 100, 100, 3);
        device.synchronize().value();
    });
}

// keeps V11: the claim that a step costs what it adds, by count
TEST(Growable, AStepIsThreeDriverCallsHoweverLargeTheBufferAndHoweverManyDevices) {
    (void)runtime();  // opens the driver that counts
    if (driver_calls() < 0) GTEST_SKIP() << "driver calls are counted on the simulator";
    on_every_device([](Device& device) {
        if (!maps_memory(device)) return;
        GrowableOptions options;
        options.growth = Growth::exact;
        for (Device& other : all_devices()) {
            if (!other.is_cpu() && Numbers::create(device, 1, {.also = {&other}}).ok()) options.also.push_back(&other);
        }
        Numbers buffer = Numbers::create(device, 64 * granule, options).value();
        for (std::size_t size = 1; size <= 32; size *= 2) {
            for (const char* const call : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
                const long before = driver_calls(call);
                buffer.resize(buffer.size() + granule).value();
                EXPECT_TRUE(unless_fault(driver_calls(call) == before + 1)) << call;
            }
            const long before = driver_calls();
            buffer.resize(buffer.size() + granule).value();
            EXPECT_TRUE(unless_fault(driver_calls() == before + 3)) << "at " << buffer.size();
        }
        const long before = driver_calls();
        buffer.resize(1).value();
        buffer.resize(buffer.capacity()).value();
        EXPECT_TRUE(unless_fault(driver_calls() == before));  // within the capacity the driver is not called
    });
}

// keeps V11, V1
TEST(Growable, WhatCannotGrowSaysWhyAndStaysAsItWas) {
    on_every_growing_device([](Device& device) {
        EXPECT_TRUE(refused_as(Numbers::create(device, 0), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Numbers::create(device, ~std::size_t{0}), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.also = {nullptr}}), Code::invalid_argument));
        Numbers buffer = Numbers::create(device, granule).value();
        buffer.resize(10).value();
        for (const std::size_t beyond : {granule + 1, ~std::size_t{0}}) {
            EXPECT_TRUE(refused_as(buffer.resize(beyond), Code::invalid_argument));
            EXPECT_TRUE(refused_as(buffer.reserve(beyond), Code::invalid_argument));
        }
        EXPECT_EQ(buffer.size(), 10u);
        Numbers moved = std::move(buffer);
        EXPECT_TRUE(refused_as(buffer.resize(1), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        EXPECT_TRUE(refused_as(buffer.trim(), Code::invalid_handle));
        EXPECT_TRUE(worked(moved.release()));
        EXPECT_TRUE(refused_as(moved.resize(1), Code::invalid_handle));
        EXPECT_EQ(moved.size(), 0u);
        Numbers nothing;
        EXPECT_TRUE(refused_as(nothing.reserve(1), Code::invalid_handle));
        // Where the CPU device cannot place memory by node, it refuses.
        GrowableOptions node;
        node.where = MemoryPlace::Where::host_node;
        const bool possible = device.capabilities().has(Feature::host_numa_virtual_memory);
        const auto placed = Numbers::create(device, 1, node);
        EXPECT_TRUE(possible ? worked(placed) : refused_as(placed, Code::unsupported));
    });
}

// keeps V11, G8
TEST(Growable, TheHostLooksWhereTheMemoryIsItsOwnAndNowhereElse) {
    on_every_growing_device([](Device& device) {
        Numbers own = Numbers::create(device, granule).value();
        own.resize(10).value();
        const auto view = own.read_on_host();
        EXPECT_TRUE(maps_memory(device) ? refused_as(view, Code::not_accessible) : worked(view));

        const Result<Numbers> made = Numbers::create(device, 4 * granule, on_the_host());
        const auto& can = device.capabilities();
        const bool possible =
            device.is_cpu() || can.has(Feature::host_virtual_memory) || can.has(Feature::pageable_access);
        ASSERT_TRUE(possible ? worked(made) : refused_as(made, Code::unsupported));
    });
    on_every_device([](Device& device) {
        Result<Numbers> made = Numbers::create(device, 4 * granule, on_the_host());
        if (!made) return;  // refused, as above
        Numbers& shared = *made;
        shared.resize(100).value();
        for (std::int32_t& one : shared.write_on_host().value()) one = 5;
        (void)device.stream().launch(checked, add_one, 100, shared).value();
        {
            auto early = shared.read_on_host().value();
            EXPECT_EQ(early[99], 6);
            shared.resize(2 * granule).value();  // with an open view: its addresses stay valid
            EXPECT_EQ(early.size(), 100u);
            EXPECT_EQ(early[0], 6);
            EXPECT_TRUE(refused_as(device.stream().launch(checked, add_one, 100, shared), Code::in_use));
        }
        device.stream().fill(shared, 9).value();
        auto view = shared.read_on_host().value();
        EXPECT_EQ(view.size(), 2 * granule);
        EXPECT_EQ(view[2 * granule - 1], 9);
    });
}

// keeps V11
TEST(Growable, TrimmingGivesWholeHandlesBackAndRefusesWhatWouldPullMemoryAway) {
    on_every_growing_device([](Device& device) {
        Numbers buffer = Numbers::create(device, 8 * granule).value();
        buffer.resize(granule).value();
        device.stream().fill(buffer, 4).value();
        buffer.resize(8 * granule).value();
        EXPECT_EQ(buffer.capacity(), 8 * granule);
        EXPECT_TRUE(worked(buffer.trim()));  // nothing is unused
        EXPECT_EQ(buffer.capacity(), 8 * granule);
        buffer.resize(granule / 2).value();
        EXPECT_EQ(buffer.capacity(), 8 * granule);
        EXPECT_TRUE(worked(buffer.trim()));
        EXPECT_EQ(buffer.capacity(), granule);
        expect_filled(device, buffer, 0, granule / 2, 4);
        buffer.resize(2 * granule).value();  // and grows again from there
        EXPECT_EQ(buffer.capacity(), 2 * granule);
        expect_filled(device, buffer, 0, granule / 2, 4);
        buffer.resize(0).value();
        EXPECT_TRUE(worked(buffer.trim()));
        EXPECT_EQ(buffer.figures().handles, 0u);
        EXPECT_EQ(buffer.figures().mapped_bytes, 0u);
        device.synchronize().value();

        buffer.resize(granule).value();
        buffer.resize(2 * granule).value();
        device.stream().fill(buffer, 1).value();
        buffer.resize(1).value();
        (void)device.stream().launch(checked, churn, 1, buffer, 1000).value();
        EXPECT_TRUE(worked(buffer.trim()));  // waits for the kernel
        EXPECT_EQ(buffer.capacity(), granule);
        {
            const auto part = buffer.part(0, 1).value();
            buffer.resize(2 * granule).value();
            buffer.resize(1).value();
            EXPECT_TRUE(refused_as(buffer.trim(), Code::in_use));
        }
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(buffer.trim(), Code::capture_error));
        EXPECT_TRUE(worked(capture.end()));
    });
}

// keeps V11, S15
TEST(Growable, AGraphGoesOnWithTheElementsThatItWasCapturedWith) {
    on_every_growing_device([](Device& device) {
        Numbers buffer = Numbers::create(device, 8 * granule).value();
        buffer.resize(100).value();
        device.stream().fill(buffer, 0).value();
        device.synchronize().value();
        Stream stream = device.create_stream().value();
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(add_one, 100, buffer).value();
        if (maps_memory(device)) {
            EXPECT_TRUE(refused_as(buffer.resize(2 * granule), Code::capture_error));
        }
        std::optional<Graph> graph = capture.end().value();
        std::optional<GraphInstance> again = graph->instantiate().value();
        stream.launch(*again).value();
        stream.synchronize().value();
        buffer.resize(4 * granule).value();
        device.stream().fill(buffer, 10).value();
        device.synchronize().value();
        stream.launch(*again).value();
        stream.synchronize().value();
        expect_filled(device, buffer, 0, 100, 11);
        expect_filled(device, buffer, 100, 100, 10);
        buffer.resize(100).value();
        EXPECT_TRUE(refused_as(buffer.trim(), Code::in_use));  // its unfinished work uses the address
        stream.launch(*again).value();
        stream.synchronize().value();
        expect_filled(device, buffer, 0, 100, 12);
        again.reset();
        graph.reset();
        device.synchronize().value();
        EXPECT_TRUE(worked(buffer.trim()));
        EXPECT_EQ(buffer.capacity(), granule);
    });
}

// keeps V9, V11
TEST(Growable, OtherDevicesUseItWhereTheyWereLetIn) {
    on_every_device([](Device& device) {
        if (!device.capabilities().has(Feature::virtual_memory)) return;
        for (Device& other : all_devices()) {
            if (other.is_cpu() || other.index() == device.index()) continue;
            Numbers closed = Numbers::create(device, granule).value();
            closed.resize(100).value();
            EXPECT_EQ(other.can_access(closed).verdict, Verdict::no);
            EXPECT_TRUE(refused_as(other.stream().launch(checked, add_one, 100, closed), Code::not_accessible));
            Result<Numbers> open = Numbers::create(device, 4 * granule, {.also = {&other}});
            if (!open) {
                EXPECT_TRUE(refused_as(open, Code::unsupported));
                continue;
            }
            open->resize(granule).value();
            device.stream().fill(*open, 1).value();
            open->resize(3 * granule).value();
            device.stream().fill(*open, 20).value();
            device.synchronize().value();
            (void)other.stream().launch(checked, add_one, 3 * granule, *open).value();
            other.synchronize().value();
            expect_filled(device, *open, 3 * granule - 100, 100, 21);
        }
        // No machine gives the CPU access to device memory.
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.also = {&runtime().cpu()}}), Code::unsupported));
    });
}

TEST(Growable, DevicesOfAnotherRuntimeAreNotLetIn) {
    Runtime second = Runtime::open().value();
    on_every_growing_device([&](Device& device) {
        const Device* const theirs = second.device(device.index()).value();
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.also = {theirs}}), Code::wrong_device));
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.also = {nullptr}}), Code::invalid_argument));
    });
}

// keeps V11
TEST(Growable, HostMemoryIsForDevicesThatReachIt) {
    for (const Device& other : all_devices()) {
        if (other.is_cpu()) continue;
        const auto made = Numbers::create(runtime().cpu(), 1, {.also = {&other}});
        const bool reaches = other.capabilities().has(Feature::pageable_access);
        EXPECT_TRUE(reaches ? worked(made) : refused_as(made, Code::unsupported)) << other.name();
    }
}

// keeps V11
TEST(Growable, IsNotTrimmedUnderAnOpenView) {
    Numbers buffer = Numbers::create(runtime().cpu(), 4 * granule).value();
    buffer.resize(granule).value();
    buffer.resize(2 * granule).value();
    buffer.resize(1).value();  // the second handle is unused
    {
        const auto view = buffer.read_on_host().value();
        EXPECT_TRUE(refused_as(buffer.trim(), Code::in_use));
    }
    EXPECT_TRUE(worked(buffer.trim()));
}

// keeps V11, R5: it is a buffer to everything that takes one
TEST(Growable, IsABufferToCopiesAndOutlivesItsHandleThere) {
    on_every_growing_device([](Device& device) {
        Numbers grown = Numbers::create(device, 4 * granule).value();
        grown.resize(100).value();
        device.stream().fill(grown, 6).value();
        Buffer<std::int32_t> copy = device.allocate<std::int32_t>(100).value();
        device.stream().copy(copy, grown).value();
        Buffer<std::int32_t> out = pinned(device, 100, 0);
        device.stream().copy(out, copy).value();
        EXPECT_EQ(out.read_on_host().value()[99], 6);
        Numbers moved = std::move(grown);
        EXPECT_EQ(moved.size(), 100u);
        EXPECT_TRUE(refused_as(grown.resize(1), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        (void)device.stream().launch(checked, add_one, 100, moved).value();
        EXPECT_TRUE(worked(moved.release()));
    });
}

}  // namespace
}  // namespace conformance
