// SPDX-License-Identifier: Apache-2.0
// Buffers that are dropped while work uses them: the drop does not wait, and nobody gets their memory before.
#include "gate.hpp"
#include "keeping.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 12;
constexpr std::uint64_t plenty = std::uint64_t{256} << 20;
constexpr std::array kinds = {MemoryKind::device, MemoryKind::pinned, MemoryKind::registered};

Result<Buffer<std::int32_t>> shared_of(Device& device, MemoryKind kind) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<std::int32_t>(count, use);
}

// keeps M3
TEST(Dropped, TheDropDoesNotWaitAndTheMemoryServesWhenItsWorkHasEnded) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu()) return;
        Stream stream = device.create_stream().value();
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            auto made = shared_of(device, kind);
            if (made.code() == Code::unsupported || !worked(made)) continue;
            Buffer<std::int32_t> buffer = std::move(made).value();
            if (buffer.path() == LaunchPath::attach) continue;
            set_all(buffer, 1);
            Gate gate(device);
            (void)stream.launch(when_raised, 1, gate.words(), buffer, 1).value();
            const std::uint64_t kept = device.cache_usage().kept_pieces;
            const long calls = driver_calls();
            { const Buffer<std::int32_t> dropped = std::move(buffer); }
            ASSERT_TRUE(unless_fault(!gate.holds() || driver_calls() == calls)) << "it waited, until its deadline";
            EXPECT_TRUE(unless_fault(!gate.holds() || device.cache_usage().kept_pieces == kept)) << "in use";
            // Another stream's buffer of this size, while the work runs: its content is its own.
            auto other = shared_of(device, kind);
            if (!worked(other)) continue;
            set_all(*other, 5);
            gate.raise();
            stream.synchronize().value();
            expect_all(*other, 5);
            EXPECT_TRUE(worked(other->release()));
            device.synchronize().value();
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces > 0)) << "kept from here on";
            (void)device.trim_cache().value();
            EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 0));
        }
    });
}

// keeps M3
TEST(Dropped, ManyDropsBetweenSynchronizationsEndWithoutAQuestion) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (int at = 0; at < 200; ++at) {
            {
                auto buffer = shared_of(device, MemoryKind::pinned);
                if (!worked(buffer)) continue;
                EXPECT_TRUE(worked(device.stream().launch(churn, count, *buffer, 1)));
            }
            EXPECT_TRUE(worked(device.synchronize()));
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces > 0));
    });
}

// keeps M2, M3
TEST(Dropped, DropsAskNothingAndTheNextAllocationAsksOnceForAll) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;
        Stream stream = device.create_stream().value();
        std::vector<Buffer<std::int32_t>> buffers;
        for (int at = 0; at < rounds(60); ++at) {
            buffers.push_back(device.allocate<std::int32_t>(count, MemoryKind::device).value());
            stream.fill(buffers.back(), at).value();
        }
        const long before = driver_calls();
        while (!buffers.empty()) buffers.pop_back();
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << driver_calls() - before << " calls";
        const long asked = driver_calls("cuStreamQuery") + driver_calls("cuEventQuery");
        (void)device.allocate<std::int32_t>(count, MemoryKind::device).value();
        const long questions = driver_calls("cuStreamQuery") + driver_calls("cuEventQuery") - asked;
        EXPECT_TRUE(unless_fault(questions == 1)) << questions;
        device.synchronize().value();
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces > 0));
    });
}

// keeps M3, M5
TEST(Dropped, AnAllocationGetsTheMemoryOfWorkThatHasEnded) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;
        Stream stream = device.create_stream().value();
        const auto pass = [&] {
            auto buffer = device.allocate<std::int32_t>(count, MemoryKind::device).value();
            stream.fill(buffer, 1).value();
        };
        for (int times = 0; times < 3; ++times) {
            pass();
            stream.synchronize().value();
        }
        const long before = driver_calls("cuMemAlloc_v2");
        for (int times = 0; times < 5; ++times) {
            pass();
            stream.synchronize().value();
        }
        EXPECT_TRUE(unless_fault(driver_calls("cuMemAlloc_v2") == before)) << "the driver is not asked for memory";
    });
}

// keeps M3
TEST(Dropped, NobodyRunsAheadOfTheDeviceByMoreThanIsBounded) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (!counts_calls(device)) return;
        Stream stream = device.create_stream().value();
        for (int at = 0; at < rounds(400); ++at) {
            auto buffer = device.allocate<std::int32_t>(count, MemoryKind::pinned).value();
            (void)stream.launch(churn, count, buffer, 20).value();
        }
        stream.synchronize().value();
        device.synchronize().value();
        EXPECT_TRUE(unless_fault(device.cache_usage().missed <= 66)) << device.cache_usage().missed;
    });
}

// keeps K9, K14: the owner of adopted memory may use it when the buffer has gone.
TEST(Dropped, MemoryOfOthersIsWaitedFor) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu()) return;
        Stream stream = device.create_stream().value();
        alignas(4096) static std::array<std::int32_t, count> memory;
        memory.fill(0);
        // Shared: where a planned fault keeps the memory registered, its owner is told at the runtime's end.
        const auto told = std::make_shared<bool>(false);
        {
            AdoptOptions options;
            options.release = [told](void*, std::size_t) { *told = true; };
            auto adopted = device.adopt<std::int32_t>(memory.data(), memory.size(), std::move(options));
            if (adopted.code() == Code::unsupported || !worked(adopted)) return;
            (void)stream.launch(churn, count, *adopted, 200).value();
        }
        EXPECT_TRUE(unless_fault(*told));
        EXPECT_TRUE(unless_fault(stream.completed(1)));
    });
}

// keeps R5
TEST(Dropped, ARuntimeEndsWithBuffersWhoseWorkRuns) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream stream = device.create_stream().value();
        auto buffer = device.allocate<std::int32_t>(count, MemoryKind::device).value();
        (void)stream.launch(churn, count, buffer, 500).value();
    });
}

}  // namespace
}  // namespace conformance
