// SPDX-License-Identifier: Apache-2.0
// Allocators of every kind: what they allocate, what is refused before the driver is called, which allocator owns a
// buffer's memory.
#include "scenario.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

namespace conformance {
namespace {

TEST(Allocation, EveryKindHandsOutBlocksOrRefusesWithoutADriverCall) {  // keeps K1, K7, K23
    on_every_device([](Device& device) {
        for (int code = 1; code < isthmus::memory_kind_count; ++code) {
            const auto kind = static_cast<MemoryKind>(code);
            SCOPED_TRACE(isthmus::name(kind));
            const long before = driver_calls();
            const Allocator allocator = device.allocator(kind);
            const long taken = driver_calls();
            EXPECT_EQ(before, taken);
            const Result<MemoryBlock> block = allocator.allocate(request_of(1000));
            if (!block && block.code() == Code::unsupported && kind != MemoryKind::managed_pool) {
                EXPECT_TRUE(unless_fault(driver_calls() == taken));
                EXPECT_FALSE(block.error().remedy().empty());
                continue;
            }
            if (kind == MemoryKind::managed_pool && block.code() == Code::unsupported) continue;  // drivers before 13
            ASSERT_TRUE(worked(block));
            EXPECT_EQ(block->kind, device.is_cpu() ? MemoryKind::host : kind);
            EXPECT_NE(block->id, 0u);
            EXPECT_NE(block->device, 0u);
            const bool hidden = block->kind == MemoryKind::device || block->kind == MemoryKind::pool;
            EXPECT_EQ(block->host == nullptr, hidden);
            if (device.capabilities().has(Feature::registered_same_pointer) && kind == MemoryKind::registered) {
                EXPECT_EQ(block->device, reinterpret_cast<std::uintptr_t>(block->host));
            }
            EXPECT_TRUE(worked(allocator.release(*block)));
        }
    });
}

TEST(Allocation, ABlockIsAlignedAsTheLargestPromiseSays) {  // keeps K18
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
            const Allocator allocator = device.allocator(kind);
            for (const std::size_t size : {std::size_t{1}, std::size_t{4097}}) {
                const MemoryBlock block = allocator.allocate(request_of(size)).value();
                EXPECT_EQ(block.device % 256, 0u);
                EXPECT_TRUE(worked(allocator.release(block)));
            }
        }
    });
}

// keeps K18: direct I/O, V4L2 user pointers and udmabuf work on pages
TEST(Allocation, EveryKindBeginsAtAPageWhereThatIsAskedFor) {
    on_every_device([](Device& device) {
        const std::size_t page = runtime().machine().page_size_bytes;
        for (int code = 1; code < isthmus::memory_kind_count; ++code) {
            const auto kind = static_cast<MemoryKind>(code);
            SCOPED_TRACE(isthmus::name(kind));
            const Allocator allocator = device.allocator(kind);
            for (const std::size_t alignment : {std::size_t{512}, std::size_t{4096}, page}) {
                AllocationRequest request = request_of(1);
                const auto odd = allocator.allocate(request);  // so that the next block does not begin at a page anyway
                if (odd.code() == Code::unsupported) break;
                request = request_of(3 * alignment + 1);
                request.alignment = alignment;
                const auto block = allocator.allocate(request);
                if (worked(block)) {
                    const auto host = reinterpret_cast<std::uintptr_t>(block->host);
                    EXPECT_EQ((host != 0 ? host : block->device) % alignment, 0u);
                    EXPECT_EQ(block->bytes, request.bytes);
                    EXPECT_TRUE(worked(allocator.release(*block)));
                }
                if (worked(odd)) {
                    EXPECT_TRUE(worked(allocator.release(*odd)));
                }
            }
        }
    });
}

// keeps K18, K6: managed memory that is attached and detached as a whole, copies of two sides, memory used in place
TEST(Allocation, SharedMemoryBeginsAtAPageForTheCpuAndIsUsedByKernelsAsEver) {
    on_every_device([](Device& device) {
        const std::size_t page = runtime().machine().page_size_bytes;
        for (const std::optional<MemoryKind> kind : std::initializer_list<std::optional<MemoryKind>>{
                 {}, MemoryKind::pinned, MemoryKind::managed, MemoryKind::device, MemoryKind::host}) {
            SharedUse use;
            use.kind = kind;
            use.alignment_bytes = page;
            auto made = device.allocate_shared<std::int32_t>(1000, use);
            if (made.code() == Code::unsupported) continue;
            if (!worked(made)) continue;
            set_all(*made, 4);
            for (int times = 0; times < 2; ++times) (void)device.stream().launch(add_one, 1000, *made).value();
            const auto view = made->read_on_host().value();
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % page, 0u);
            for (const std::int32_t one : view) ASSERT_EQ(one, 6);
        }
    });
}

// keeps K18
TEST(Allocation, HugePagesBeginAtAHugePage) {
    on_every_device([](Device& device) {
        const std::size_t huge = runtime().machine().huge_page_bytes;
        HostPlacement placement;
        placement.page_size = PageSize::huge;
        const std::size_t most = std::max(huge, runtime().machine().page_size_bytes);
        const AlignedAllocator coarser(device.host_allocator(placement), 2 * most);
        EXPECT_TRUE(refused_as(device.allocate<std::uint8_t>(1, coarser), Code::invalid_argument));
        if (most > (std::size_t{32} << 20)) return;  // more than a test should take
        auto made = device.allocate<std::uint8_t>(1000, AlignedAllocator(device.host_allocator(placement), most));
        if (!worked(made)) return;
        const auto view = made->write_on_host().value();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % most, 0u);
        SharedUse use;
        use.kind = MemoryKind::host;
        use.placement = placement;
        use.alignment_bytes = most;
        const auto shared = device.allocate_shared<std::uint8_t>(1000, use);
        if (shared.code() == Code::unsupported || !worked(shared)) return;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shared->read_on_host().value().data()) % most, 0u);
    });
}

// keeps K17, K18
TEST(Allocation, AnAllocatorThatIgnoresTheAlignmentIsRefused) {
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };
    struct Careless {
        alignas(64) std::uint8_t memory[256];
        int released = 0;
    };
    static Careless careless;
    struct Odd {
        Result<MemoryBlock> allocate(const AllocationRequest& request) {
            MemoryBlock block;
            block.host = careless.memory + 16;
            block.device = reinterpret_cast<std::uintptr_t>(block.host);
            block.bytes = request.bytes;
            block.kind = MemoryKind::host;
            return block;
        }
        Result<void> release(const MemoryBlock&, Stream*) {
            ++careless.released;
            return {};
        }
    };
    on_every_device([](Device& device) {
        careless.released = 0;
        EXPECT_TRUE(refused_as(device.allocate<Line>(1, Allocator(Odd{})), Code::invalid_argument));
        EXPECT_EQ(careless.released, 1) << "it gets its block back";
        EXPECT_TRUE(worked(device.allocate<std::uint8_t>(16, Allocator(Odd{}))));
    });
}

TEST(Allocation, WhatNoMachineAcceptsIsRefusedBeforeAnyCall) {  // keeps K17, K18
    on_every_device([](Device& device) {
        const long before = driver_calls();
        AllocationRequest request = request_of(64);
        const std::size_t page = runtime().machine().page_size_bytes;
        for (const std::size_t alignment : {std::size_t{0}, std::size_t{24}, 2 * page}) {
            request.alignment = alignment;
            EXPECT_TRUE(refused_as(device.allocator(MemoryKind::device).allocate(request), Code::invalid_argument));
        }
        for (const std::size_t alignment : {std::size_t{24}, 2 * page}) {
            EXPECT_TRUE(refused_as(device.allocate_shared<int>(1, SharedUse{.alignment_bytes = alignment}),
                                   Code::invalid_argument));
        }
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        EXPECT_TRUE(refused_as(allocator.allocate(request_of(std::numeric_limits<std::size_t>::max())),
                               Code::invalid_argument));
        EXPECT_FALSE(allocator.allocate(request_of(0)).value()) << "nothing, and nobody is asked";
        EXPECT_TRUE(refused_as(device.allocate<std::uint64_t>(std::size_t{1} << 61), Code::invalid_argument));
        EXPECT_TRUE(unless_fault(driver_calls() == before));
    });
}

// Where registering fails, ordinary memory takes its place, if the device reaches that.
TEST(Allocation, MemoryForLatencyIsUsedInPlaceRegisteredOrNot) {  // keeps G11
    on_every_device([](Device& device, Stream stream) {
        SharedUse quick;
        quick.prefer = Prefer::latency;
        Buffer<std::int32_t> buffer = device.allocate_shared<std::int32_t>(3000, quick).value();
        EXPECT_NE(buffer.path(), LaunchPath::stage) << buffer.explain();
        if (device.capabilities().model == Model::ats) {
            EXPECT_TRUE(unless_fault(buffer.kind() == MemoryKind::registered)) << buffer.explain();
            EXPECT_TRUE(buffer.kind() == MemoryKind::registered || buffer.kind() == MemoryKind::host);
        }
        for (std::int32_t& value : buffer.write_on_host().value()) value = 8;
        stream.launch(add_one, 3000, buffer).value();
        EXPECT_EQ(buffer.read_on_host().value()[2999], 9);
    });
}

TEST(Allocation, ManagedMemoryBeyondWhatIsFreeIsRefused) {  // keeps K20
    on_every_device([](Device& device) {
        if (device.is_cpu() || !device.capabilities().has(Feature::managed)) return;
        const auto refused = device.allocate<std::uint8_t>(std::size_t{1} << 45, MemoryKind::managed);
        // The driver commits managed memory page by page; where the system does not report its free memory, too much
        // cannot be detected.
        EXPECT_TRUE(unless_fault(refused.code() == Code::out_of_memory));
        if (!refused.ok()) {
            EXPECT_FALSE(refused.error().remedy().empty());
        }
        EXPECT_TRUE(unless_fault(device.healthy()));
        EXPECT_TRUE(worked(device.allocate<std::uint8_t>(4096, MemoryKind::managed)));
    });
}

TEST(Allocation, OutOfMemorySaysHowMuchThereIsAndAsksTheHandlerFirst) {  // keeps K19
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        int asked = 0;
        device.set_out_of_memory_handler([&asked](std::size_t) { return ++asked < 2; });
        const auto refused = device.allocate<std::uint8_t>(std::size_t{1} << 45);
        device.set_out_of_memory_handler({});
        ASSERT_TRUE(refused_as(refused, Code::out_of_memory));
        for (const char* part : {"35184372088832", "free"}) {
            EXPECT_NE(refused.error().message().find(part), std::string_view::npos) << refused.error().text();
        }
        // Also where CPU and GPU share one DRAM, whose budget refuses before the driver is called.
        EXPECT_TRUE(unless_fault(asked == 2)) << asked;
        EXPECT_TRUE(worked(device.allocate<std::uint8_t>(1 << 16)));
    });
}

TEST(Allocation, OptingIntoAnAllocatorIsPerDeviceAndThreadAndEnds) {  // keeps K5
    on_every_device([](Device& device) {
        const MemoryKind usual = device.is_cpu() ? MemoryKind::host : MemoryKind::device;
        const MemoryKind chosen = device.is_cpu() ? MemoryKind::host : MemoryKind::pinned;
        Buffer<std::int32_t> outlives;
        {
            const ScopedAllocator scope(device, device.allocator(MemoryKind::pinned));
            EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::pinned));
            outlives = device.allocate<std::int32_t>(16).value();
            Thread([&] { EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::device)); }).join();
        }
        EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::device));
        EXPECT_EQ(outlives.kind(), chosen);
        EXPECT_EQ(device.allocate<std::int32_t>(16).value().kind(), usual);
        outlives.write_on_host().value()[15] = 3;
        EXPECT_EQ(outlives.read_on_host().value()[15], 3);
    });
}

// Host memory from the C library, declared as that kind.
struct FromMalloc {
    Result<MemoryBlock> allocate(const AllocationRequest& request) {
        MemoryBlock block;
        block.host = std::aligned_alloc(256, (request.bytes + 255) / 256 * 256);
        if (block.host == nullptr) return Error(Code::out_of_memory, "malloc has nothing left", "ask for less");
        block.bytes = request.bytes;
        block.kind = MemoryKind::host;
        return block;
    }
    Result<void> release(const MemoryBlock& block, Stream*) {
        std::free(block.host);
        return {};
    }
    MemoryKind kind() const noexcept { return MemoryKind::host; }
};

TEST(Allocation, ABufferOfAUsersAllocatorFollowsTheRulesOfItsKind) {  // keeps K17, A3
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(100, FromMalloc{}).value();
        EXPECT_EQ(buffer.kind(), MemoryKind::host);
        {
            auto view = buffer.write_on_host().value();
            for (std::int32_t& value : view) value = 41;
        }
        const auto launched = device.stream().launch(add_one, 100, buffer);
        if (device.is_cpu() || device.capabilities().has(Feature::pageable_access)) {
            ASSERT_TRUE(worked(launched));
            EXPECT_EQ(buffer.read_on_host().value()[99], 42);
        } else {
            ASSERT_TRUE(refused_as(launched, Code::not_accessible));
            EXPECT_EQ(buffer.read_on_host().value()[99], 41);
        }
        EXPECT_EQ(device.allocate<std::int32_t>(0, FromMalloc{}).value().kind(), MemoryKind::host);
    });
}

TEST(Allocation, KindAndAccessOfOwnMemoryAreAnsweredWithoutTheDriver) {  // keeps K4, A1
    on_every_device([](Device& device) {
        Buffer<std::int32_t> buffer = device.allocate<std::int32_t>(16).value();
        const long before = driver_calls();
        EXPECT_NE(buffer.kind(), MemoryKind::unknown);
        EXPECT_EQ(device.can_access(buffer).verdict, Verdict::yes);
        EXPECT_EQ(driver_calls(), before);
    });
}

}  // namespace
}  // namespace conformance
