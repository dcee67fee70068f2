// SPDX-License-Identifier: Apache-2.0
// Buffers of every kind: which can be allocated, which the host can view, what is refused.
#include "scenario.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1000;

TEST(Memory, DeviceMemoryCannotBeViewedByTheCpu) {  // keeps A6, R1
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(count).value();
        EXPECT_EQ(buffer.size(), count);
        EXPECT_NE(buffer.device_address(), 0u);
        EXPECT_EQ(device.can_access(buffer).verdict, Verdict::yes);  // keeps A1
        if (device.is_cpu()) {
            EXPECT_EQ(buffer.kind(), MemoryKind::host);
            EXPECT_TRUE(worked(buffer.read_on_host()));
            return;
        }
        EXPECT_EQ(buffer.kind(), MemoryKind::device);
        EXPECT_EQ(runtime().cpu().can_access(buffer).verdict, Verdict::no);
        const auto refused = buffer.read_on_host();
        ASSERT_TRUE(refused_as(refused, Code::not_accessible));
        EXPECT_FALSE(refused.error().remedy().empty());
    });
}

TEST(Memory, EveryKindThatTheDeviceOffersWorksAndTheOthersAreRefused) {  // keeps K1, K7
    on_every_device([](Device& device) {
        const std::vector<std::pair<MemoryKind, bool>> kinds = {
            {MemoryKind::device, true},
            {MemoryKind::pinned, true},
            {MemoryKind::host, true},
            {MemoryKind::pool, device.is_cpu() || device.capabilities().has(Feature::pools)},
            {MemoryKind::managed, device.is_cpu() || device.capabilities().has(Feature::managed)},
            {MemoryKind::registered, device.is_cpu() || device.capabilities().has(Feature::host_register)},
        };
        for (const auto& [kind, offered] : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            Result<Buffer<std::int32_t>> buffer = device.allocate<std::int32_t>(count, kind);
            if (!offered) {
                EXPECT_TRUE(refused_as(buffer, Code::unsupported));
                continue;
            }
            ASSERT_TRUE(worked(buffer));
            EXPECT_EQ(buffer->kind(), device.is_cpu() ? MemoryKind::host : kind);
            if (auto view = buffer->write_on_host(); view.ok()) {
                for (std::size_t i = 0; i < count; ++i) (*view)[i] = static_cast<std::int32_t>(i);
            } else {
                EXPECT_TRUE(refused_as(view, Code::not_accessible));
            }
            Result<void> released = buffer->release();
            EXPECT_TRUE(worked(released));
            EXPECT_TRUE(refused_as(buffer->release(), Code::invalid_handle));  // keeps K8
        }
    });
}

TEST(Memory, SharedBuffersOfEveryLawfulKindRoundTrip) {  // keeps G8, G11
    on_every_device([](Device& device) {
        for (const MemoryKind kind :
             {MemoryKind::pinned, MemoryKind::managed, MemoryKind::registered, MemoryKind::host, MemoryKind::device}) {
            SCOPED_TRACE(isthmus::name(kind));
            SharedUse use;
            use.kind = kind;
            Result<Buffer<std::int32_t>> made = device.allocate_shared<std::int32_t>(count, use);
            if (!made) {
                EXPECT_FALSE(made.error().remedy().empty()) << made.error().text();
                continue;
            }
            Buffer<std::int32_t>& buffer = *made;
            {
                auto view = buffer.write_on_host().value();
                for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::int32_t>(i);
            }
            for (int round = 0; round < 3; ++round) {
                const auto launched = device.stream().launch(add_one, count, buffer);
                ASSERT_TRUE(worked(launched));
            }
            {
                auto view = buffer.read_on_host().value();
                for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], static_cast<std::int32_t>(i) + 3);
            }
            {
                auto view = buffer.read_write_on_host().value();
                for (std::int32_t& value : view) value *= 2;
            }
            (void)device.stream().launch(add_one, count, buffer).value();
            auto view = buffer.read_on_host().value();
            ASSERT_EQ(view[10], 27);
        }
    });
}

// keeps P6, P8: whatever the number of passes and the size choose, the program is the same, and the data too
TEST(Memory, SharedBuffersOfEveryNumberOfPassesRoundTripAndSayWhy) {
    constexpr std::size_t MiB = std::size_t{1} << 20;
    on_every_device([](Device& device) {
        for (const int passes : {0, 1, 2, 4, 16}) {
            for (const std::size_t bytes : {std::size_t{4096}, MiB / 2, 4 * MiB}) {
                SCOPED_TRACE(std::to_string(passes) + " passes of " + std::to_string(bytes) + " bytes");
                const std::size_t elements = bytes / sizeof(std::int32_t);
                Result<Buffer<std::int32_t>> made = device.allocate_shared<std::int32_t>(
                    elements, {.host = Use::writes_once, .device = Use::reads_and_writes, .device_passes = passes});
                ASSERT_TRUE(worked(made));
                Buffer<std::int32_t>& buffer = *made;
                EXPECT_NE(buffer.path(), isthmus::LaunchPath::attach) << "never for one side at a time unasked";
                const std::string_view why = buffer.explain();  // keeps P2
                EXPECT_EQ(!why.empty() && why.back() == ')', !device.is_cpu()) << "its origin ends it: " << why;
                {
                    auto view = buffer.write_on_host().value();
                    for (std::size_t i = 0; i < elements; ++i) view[i] = static_cast<std::int32_t>(i);
                }
                for (int round = 0; round < 3; ++round) {
                    ASSERT_TRUE(worked(device.stream().launch(add_one, elements, buffer)));
                }
                const auto view = buffer.read_on_host().value();
                for (const std::size_t i : {std::size_t{0}, elements / 2, elements - 1}) {
                    ASSERT_EQ(view[i], static_cast<std::int32_t>(i) + 3);
                }
            }
        }
    });
}

// keeps P8: what the GPU uses often lies where it may migrate
TEST(Memory, WhatAGpuWithANodeUsesOftenIsBoundToNoNode) {
    on_every_device([](Device& device) {
        if (device.is_cpu() || device.capabilities().memory != isthmus::MemoryModel::coherent_node) return;
        const auto placed = [&](int passes) {
            const auto buffer = device.allocate_shared<std::int32_t>(
                count, {.host = Use::writes_once, .device = Use::reads_once, .device_passes = passes});
            EXPECT_EQ(buffer->kind(), MemoryKind::host);
            return buffer->placement().placed;
        };
        EXPECT_EQ(placed(16), isthmus::Placed::unasked);
        EXPECT_NE(placed(1), isthmus::Placed::unasked) << "read once: near the device";
    });
}

TEST(Memory, ManagedMemoryIsNotForTheCpuOutsideAViewOnPhaseGuardedMachines) {  // keeps A7, A8
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Result<Buffer<std::int32_t>> buffer = device.allocate<std::int32_t>(count, MemoryKind::managed);
        if (device.capabilities().managed == ManagedModel::none) {
            EXPECT_TRUE(refused_as(buffer, Code::unsupported));
            return;
        }
        ASSERT_TRUE(worked(buffer));
        EXPECT_EQ(device.can_access(*buffer).verdict, Verdict::yes);
        const bool guarded = device.capabilities().managed == ManagedModel::phase_guarded;
        EXPECT_EQ(runtime().cpu().can_access(*buffer).verdict, guarded ? Verdict::no : Verdict::yes);
        EXPECT_TRUE(worked(buffer->write_on_host())) << "the guarded view is the way, on every machine";
    });
}

TEST(Memory, PageableMemoryReachesTheDeviceOnlyWhereTheRowSaysSo) {  // keeps A3, L3
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Buffer<std::int32_t> host = device.allocate_host<std::int32_t>(count).value();
        {
            auto view = host.write_on_host().value();
            for (std::int32_t& value : view) value = 41;
        }
        const bool reaches = device.capabilities().has(Feature::pageable_access);
        EXPECT_EQ(device.can_access(host).verdict, reaches ? Verdict::yes : Verdict::no);
        const auto launched = device.stream().launch(add_one, count, host);
        if (!reaches) {
            ASSERT_TRUE(refused_as(launched, Code::not_accessible));
            EXPECT_NE(launched.error().message().find("'add_one'"), std::string_view::npos);  // keeps L5
            EXPECT_FALSE(launched.error().remedy().empty());
            EXPECT_TRUE(unless_fault(device.healthy())) << "refused before it became a fault";
        } else {
            ASSERT_TRUE(worked(launched));
            EXPECT_EQ(host.read_on_host().value()[count - 1], 42);
        }
    });
}

TEST(Memory, HostMemorySaysWhereItLiesAndStrictPlacementIsHonest) {  // keeps H1, H2, H3
    on_every_device([](Device& device) {
        for (const Locality locality :
             {Locality::anywhere, Locality::local, Locality::near_device, Locality::interleaved, Locality::unbound}) {
            SCOPED_TRACE(isthmus::name(locality));
            HostPlacement placement;
            placement.locality = locality;
            placement.prefault = true;
            Buffer<std::uint8_t> buffer = device.allocate_host<std::uint8_t>(1 << 20, placement).value();
            const PlacementReport report = buffer.placement();
            EXPECT_GE(report.page_bytes, 4096u);
            if (report.placed == Placed::fallback || report.placed == Placed::unverifiable) {
                EXPECT_FALSE(report.reason.empty());
            }
            const bool asked = locality != Locality::anywhere && locality != Locality::unbound;
            EXPECT_EQ(report.placed == Placed::unasked, !asked);
            auto view = buffer.write_on_host().value();
            view[view.size() - 1] = 1;
        }
        HostPlacement nowhere;
        nowhere.locality = Locality::node;
        nowhere.node = 1000;
        nowhere.strict = true;
        const auto refused = device.allocate_host<std::uint8_t>(4096, nowhere);
        ASSERT_FALSE(refused.ok());
        EXPECT_FALSE(refused.error().remedy().empty());
        nowhere.strict = false;
        EXPECT_EQ(device.allocate_host<std::uint8_t>(4096, nowhere).value().placement().placed, Placed::fallback);
    });
}

TEST(Memory, EmptyBuffersKeepTheirKindAndLaunchNothing) {  // keeps K3, K18
    on_every_device([](Device& device) {
        Buffer<std::int32_t> none = device.allocate_shared<std::int32_t>(0).value();
        EXPECT_EQ(none.size(), 0u);
        EXPECT_NE(none.kind(), MemoryKind::unknown);
        EXPECT_EQ(device.allocate<std::int32_t>(0).value().kind(),
                  device.is_cpu() ? MemoryKind::host : MemoryKind::device);
        EXPECT_EQ(none.read_on_host().value().size(), 0u);
        EXPECT_TRUE(worked(device.stream().launch(add_one, 0, none)));
        EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(static_cast<std::size_t>(-1)), Code::invalid_argument));
        EXPECT_TRUE(refused_as(device.allocate_shared<std::int64_t>(std::size_t{1} << 61), Code::invalid_argument));
    });
}

TEST(Memory, MoreThanTheMachineHasIsOutOfMemoryAndNothingElseChanges) {  // keeps R1
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        const Result<Buffer<std::uint8_t>> refused = device.allocate<std::uint8_t>(std::size_t{1} << 45);
        ASSERT_TRUE(refused_as(refused, Code::out_of_memory));
        EXPECT_TRUE(unless_fault(device.healthy()));
        EXPECT_TRUE(worked(device.allocate<std::uint8_t>(1 << 20)));
    });
}

TEST(Memory, BuffersOutliveStreamsAndMovesKeepTheMemory) {
    on_every_device([](Device& device) {
        Buffer<std::int32_t> moved;
        {
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> buffer = device.allocate_shared<std::int32_t>(count).value();
            {
                auto view = buffer.write_on_host().value();
                for (std::int32_t& value : view) value = 1;
            }
            (void)stream.launch(churn, count, buffer, 10000).value();
            (void)stream.launch(add_one, count, buffer).value();
            moved = std::move(buffer);
            EXPECT_TRUE(refused_as(buffer.release(), Code::invalid_handle));  // NOLINT(bugprone-use-after-move)
        }
        std::int32_t expected = 1;
        for (int round = 0; round < 10000; ++round) {
            expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(expected) * 1664525u + 1013904223u);
        }
        EXPECT_EQ(moved.read_on_host().value()[0], expected + 1);
    });
}

TEST(Memory, TheKindIsWhatItWasAllocatedAsWhereverItsPagesAreAndSaysNothingOfAccess) {  // keeps K2
    on_every_device([](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::managed)) return;
        Buffer<std::int32_t> buffer = shared_numbers(device, count, MemoryKind::managed);
        { (void)buffer.write_on_host().value(); }
        EXPECT_EQ(buffer.kind(), MemoryKind::managed);  // its pages are now on the host
        (void)device.stream().launch(add_one, count, buffer).value();
        device.synchronize().value();
        EXPECT_EQ(buffer.kind(), MemoryKind::managed);  // and now on the GPU, on most machines
        const bool shared_at_any_time = device.capabilities().managed != ManagedModel::phase_guarded;
        EXPECT_EQ(runtime().cpu().can_access(buffer).verdict, shared_at_any_time ? Verdict::yes : Verdict::no);
    });
}

TEST(Memory, ExportOfManagedViewedAndForeignMemoryIsRefusedEachInItsOwnWords) {  // keeps K15
    on_every_device([](Device& device) {
        Buffer<std::int32_t> host = device.allocate<std::int32_t>(count, MemoryKind::host).value();
        EXPECT_EQ(host.can_export().verdict, Verdict::no);
        const auto view = host.read_on_host().value();
        EXPECT_EQ(isthmus::can_export(view).verdict, Verdict::no);
        EXPECT_NE(isthmus::can_export(view).reason, host.can_export().reason);
        EXPECT_EQ(Buffer<std::int32_t>().can_export().verdict, Verdict::no);
        if (device.is_cpu() || !device.capabilities().has(Feature::managed)) return;
        Buffer<std::int32_t> managed = device.allocate<std::int32_t>(count, MemoryKind::managed).value();
        EXPECT_EQ(managed.can_export().verdict, Verdict::no);
        EXPECT_FALSE(managed.can_export().remedy.empty());
        EXPECT_NE(managed.can_export().reason, host.can_export().reason);
    });
}

}  // namespace
}  // namespace conformance
