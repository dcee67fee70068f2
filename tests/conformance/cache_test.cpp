// SPDX-License-Identifier: Apache-2.0
// Released memory that is kept for the next allocation: what that costs, who gets it, and what is never kept.
#include "keeping.hpp"

#include <malloc.h>

#include <array>
#include <cstdint>
#include <vector>

namespace conformance {
namespace {

constexpr std::array kinds = {MemoryKind::device,  MemoryKind::pinned,     MemoryKind::write_combined,
                              MemoryKind::managed, MemoryKind::registered, MemoryKind::host};
constexpr std::size_t count = 3000;

constexpr std::uint64_t plenty = std::uint64_t{256} << 20;

Result<Buffer<std::int32_t>> shared_of(Device& device, MemoryKind kind, std::size_t many = count) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<std::int32_t>(many, use);
}

// keeps M1, M2
TEST(Cache, APairOfAllocationAndReleaseCallsNoDriver) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{100000}}) {
                const auto pair = [&] {
                    if (auto shared = shared_of(device, kind, bytes / 4); shared.code() != Code::unsupported) {
                        if (worked(shared)) {
                            EXPECT_TRUE(worked(shared->release()));
                        }
                    }
                    const Result<MemoryBlock> block = device.allocator(kind).allocate(request_of(bytes));
                    if (block.code() == Code::unsupported || !worked(block)) return;
                    EXPECT_TRUE(worked(device.allocator(kind).release(*block)));
                };
                pair();
                const long before = driver_calls();
                const CacheUsage usage = device.cache_usage();
                for (int times = 0; times < 5; ++times) pair();
                EXPECT_TRUE(unless_fault(driver_calls() == before)) << driver_calls() - before << " calls";
                EXPECT_TRUE(unless_fault(device.cache_usage().missed == usage.missed));
            }
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().served > 0));
    });
}

// keeps M1
TEST(Cache, WithoutACacheEveryPairIsTheDriversOwn) {
    on_each_device_that_keeps(0, [](Device& device) {
        (void)device.allocate<std::int32_t>(count, MemoryKind::device).value();
        const long before = driver_calls();
        { const auto buffer = device.allocate<std::int32_t>(count, MemoryKind::device).value(); }
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls() > before));
        }
        const CacheUsage usage = device.cache_usage();
        EXPECT_EQ(usage.kept_bytes + usage.kept_pieces + usage.limit_bytes + usage.served + usage.missed, 0u);
        EXPECT_EQ(device.trim_cache().value_or(1), 0u);
    });
}

// keeps M3, K6
TEST(Cache, MemoryIsHandedOnOnlyWhenItsWorkHasEnded) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        Stream other = device.create_stream().value();
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed, MemoryKind::device}) {
            SCOPED_TRACE(isthmus::name(kind));
            for (int round = 0; round < 6; ++round) {
                auto buffer = shared_of(device, kind);
                if (buffer.code() == Code::unsupported) break;
                if (!worked(buffer)) break;
                set_all(*buffer, round);
                // By turns on two streams: memory attached to one of them must have been returned before.
                Stream& stream = round % 2 == 0 ? device.stream() : other;
                for (int launch = 0; launch < 3; ++launch) stream.launch(add_one, count, *buffer).value();
                if (round % 3 != 0) expect_all(*buffer, round + 3);
                if (round % 3 == 0) {
                    EXPECT_TRUE(worked(buffer->release()));  // beside work that still runs
                }
            }
        }
        device.synchronize().value();
    });
}

// keeps M4, K8
TEST(Cache, ABlockThatWasReleasedIsNotTheOneThatHasItsAddressNow) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        for (const MemoryKind kind : kinds) {
            SCOPED_TRACE(isthmus::name(kind));
            const Allocator allocator = device.allocator(kind);
            const Result<MemoryBlock> first = allocator.allocate(request_of(5000));
            if (first.code() == Code::unsupported || !worked(first)) continue;
            EXPECT_TRUE(worked(allocator.release(*first)));
            EXPECT_TRUE(refused_as(allocator.release(*first), Code::already_released)) << "while it is kept";
            const Result<MemoryBlock> second = allocator.allocate(request_of(4900));
            if (!worked(second)) continue;
            EXPECT_TRUE(unless_fault(second->device == first->device));
            EXPECT_EQ(second->bytes, 4900u);
            EXPECT_NE(second->id, first->id);
            EXPECT_TRUE(refused_as(allocator.release(*first), Code::already_released)) << "while another has it";
            MemoryBlock inside = *second;
            inside.device += 64;
            if (inside.host != nullptr) inside.host = static_cast<char*>(inside.host) + 64;
            EXPECT_TRUE(refused_as(allocator.release(inside), Code::interior_pointer));
            EXPECT_TRUE(worked(allocator.release(*second)));
        }
    });
}

// Its handle is made at its first operation. What was freed is overwritten, so that a use of it fails.
TEST(Cache, AStreamWithoutWorkThatTookKeptMemoryIsForgottenAtItsEnd) {  // keeps M3, M7
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 0x5a);
#endif
    on_each_device_that_keeps(plenty, [](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) return;
        const Allocator pool = device.allocator(MemoryKind::pool);
        AllocationRequest request = request_of(10000);
        {
            Stream other = device.create_stream().value();
            request.stream = &other;
            const Result<MemoryBlock> block = pool.allocate(request);
            if (!worked(block)) return;
            EXPECT_TRUE(worked(other.synchronize()));
            EXPECT_TRUE(worked(pool.release(*block, &other)));
            EXPECT_TRUE(worked(other.synchronize()));
        }
        const std::uint64_t served = device.cache_usage().served;
        request.stream = &device.stream();
        const Result<MemoryBlock> block = pool.allocate(request);
        if (!worked(block)) return;
        EXPECT_TRUE(unless_fault(device.cache_usage().served == served + 1)) << "what the other stream left";
        EXPECT_TRUE(worked(pool.release(*block)));
        (void)device.allocate<std::uint8_t>(50000).value();  // is kept: the end of the device looks for what goes first
    });
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 0);
#endif
}

// keeps M3
TEST(Cache, WhatOtherCodeMayUseGoesBackToTheDriver) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        const auto kept = [&] { return device.cache_usage().kept_pieces; };
        Buffer<std::int32_t> known = device.allocate<std::int32_t>(count, MemoryKind::device).value();
        Buffer<std::int32_t> asked = device.allocate<std::int32_t>(count, MemoryKind::device).value();
        Buffer<std::int32_t> asked_and_used = device.allocate<std::int32_t>(count, MemoryKind::device).value();
        (void)asked.device_address();
        EXPECT_TRUE(worked(asked.release()));
        EXPECT_EQ(kept(), 0u) << "somebody has its address";
        (void)asked_and_used.device_address();
        EXPECT_TRUE(worked(device.stream().fill(asked_and_used, 1)));
        EXPECT_TRUE(worked(asked_and_used.release()));
        EXPECT_EQ(kept(), 0u) << "somebody has its address, also where work used it";
        EXPECT_TRUE(worked(known.release()));
        EXPECT_TRUE(unless_fault(kept() == 1));
        (void)device.trim_cache();

        const Allocator allocator = device.allocator(MemoryKind::pinned);
        Stream stream = device.stream();
        const MemoryBlock block = allocator.allocate(request_of(4096)).value();
        EXPECT_TRUE(worked(allocator.release(block, &stream)));
        EXPECT_EQ(kept(), 0u) << "the stream may still use it; the driver's free waits for that";
        EXPECT_TRUE(worked(allocator.release(allocator.allocate(request_of(4096)).value())));
        EXPECT_TRUE(unless_fault(kept() == 1));
        (void)device.trim_cache();

        auto advised = shared_of(device, MemoryKind::managed);
        if (device.is_cpu() || advised.code() == Code::unsupported || !worked(advised)) return;
        const Result<HintReport> report = device.advise(*advised, Advice::read_mostly);
        if (!worked(report)) return;
        EXPECT_TRUE(worked(advised->release()));
        EXPECT_TRUE(unless_fault(kept() == (report->outcome == HintOutcome::done ? 0u : 1u)));
    });
}

// keeps M5, K19
TEST(Cache, KeptMemoryGoesBackOnRequestAndBeforeMemoryRunsOut) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        {
            std::vector<Buffer<std::int32_t>> beside;
            for (const std::size_t many : {count, 10 * count, 100 * count}) {
                beside.push_back(device.allocate<std::int32_t>(many, MemoryKind::device).value());
            }
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == 3));
        const std::uint64_t most = count * 4 + 10 * count * 4;
        const Result<std::uint64_t> largest = device.trim_cache(most);
        if (worked(largest)) {
            EXPECT_TRUE(unless_fault(*largest == 100 * count * 4));
        }
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_bytes == most));
        if (device.is_cpu()) {
            EXPECT_TRUE(unless_fault(device.trim_cache().value_or(0) == most));
        } else {
            const auto refused = device.allocate<std::uint8_t>(std::size_t{1} << 45, MemoryKind::device);
            EXPECT_TRUE(refused_as(refused, Code::out_of_memory));
        }
        EXPECT_EQ(device.cache_usage().kept_bytes, 0u);
        EXPECT_EQ(device.cache_usage().kept_pieces, 0u);
    });
}

// keeps M5, M8
TEST(Cache, ADeviceKeepsNoMoreThanItsLimitNorThanItsPeakNeeded) {
    on_each_device_that_keeps(100000, [](Device& device) {
        const auto kept = [&device] { return device.cache_usage().kept_bytes; };
        const auto allocated = [&device](std::size_t bytes) {
            return device.allocate<std::uint8_t>(bytes, MemoryKind::device).value();
        };
        {
            const auto one = allocated(60000);
            const auto other = allocated(20000);
        }
        EXPECT_TRUE(unless_fault(kept() == 80000)) << "as much as lived";
        {
            const auto large = allocated(100001);
            EXPECT_TRUE(unless_fault(kept() == 20000)) << "beside more than ever lived";
        }
        EXPECT_TRUE(unless_fault(kept() == 20000)) << "too large to be kept";
        (void)allocated(45000);
        EXPECT_TRUE(unless_fault(kept() == 65000));
        (void)allocated(70000);
        EXPECT_TRUE(unless_fault(kept() == 90000)) << "45000 bytes went: the most for the longest";
        EXPECT_EQ(device.cache_usage().limit_bytes, 100000u);
    });
}

// keeps M2, K13
TEST(Cache, ACaptureNeitherTakesKeptMemoryNorGivesAny) {
    NEEDS(graph);
    on_each_device_that_keeps(plenty, [](Device& device) {
        Buffer<std::int32_t> numbers = pinned(device, count, 1);
        (void)device.allocate<std::int32_t>(count, MemoryKind::device).value();
        (void)device.allocate<std::int32_t>(count, MemoryKind::host).value();
        Buffer<std::int32_t> released = device.allocate<std::int32_t>(2 * count, MemoryKind::device).value();
        const std::uint64_t served = device.cache_usage().served;
        const std::uint64_t kept = device.cache_usage().kept_pieces;
        Result<Capture> capture = device.stream().begin_capture();
        if (!worked(capture)) return;
        if (!device.is_cpu()) {
            EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(count, MemoryKind::device), Code::capture_error));
        }
        { const auto host = device.allocate<std::int32_t>(count, MemoryKind::host); }
        EXPECT_EQ(device.cache_usage().served, served);
        (void)device.stream().launch(add_one, count, numbers);
        EXPECT_TRUE(worked(released.release()));
        EXPECT_EQ(device.cache_usage().kept_pieces, kept) << "not before the capture has ended";
        const Result<Graph> graph = capture->end();
        if (!worked(graph)) return;
        EXPECT_TRUE(unless_fault(device.cache_usage().kept_pieces == kept + 1));
    });
}

// keeps M2
TEST(Cache, KeptMemoryIsNobodysMemory) {
    on_each_device_that_keeps(plenty, [](Device& device) {
        Buffer<std::int32_t> buffer = pinned(device, count, 1);
        std::int32_t* const stale = buffer.write_on_host().value().data();
        EXPECT_TRUE(worked(buffer.release()));
        if (device.cache_usage().kept_pieces == 0) return;  // a planned fault
        EXPECT_TRUE(refused_as(device.adopt<std::int32_t>(stale, count), Code::in_use));
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        EXPECT_TRUE(unless_fault((device.can_access(stale, 4).verdict == Verdict::yes) == reaches))
            << "no more than any memory of the system";
    });
}

// keeps M7
TEST(Cache, ThreadsGetMemoryOfTheirOwn) {
    on_every_device([](Device& device) {
        const auto churn = [&device](std::int32_t own) {
            for (int round = 0; round < 30; ++round) {
                Buffer<std::int32_t> buffer = pinned(device, 500, own);
                expect_all(buffer, own);
            }
        };
        Thread one([&] { churn(1); });
        Thread two([&] { churn(2); });
        one.join();
        two.join();
    });
}

}  // namespace
}  // namespace conformance
