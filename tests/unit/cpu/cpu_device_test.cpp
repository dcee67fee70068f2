// SPDX-License-Identifier: Apache-2.0
// The CPU as a device, through the interface that the runtime uses.
#include "cpu/cpu_driver.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

namespace isthmus::platform::cpu {
namespace {

// A kernel without the macro: counts how often each item runs and on which thread.
struct CountPack {
    unsigned* visits;
    std::uint64_t size;
};
void count_twin(const Extent& extent, std::uint64_t first, std::uint64_t last, const void* erased) {
    const auto& pack = *static_cast<const CountPack*>(erased);
    const std::uint64_t inner = pack.size / (last - first);
    EXPECT_EQ(extent.x * extent.y * extent.z, pack.size);
    for (std::uint64_t outer = first; outer < last; ++outer) {
        for (std::uint64_t i = 0; i < inner; ++i) ++pack.visits[outer * inner + i];
    }
}

KernelInfo kernel_of(std::uint8_t rank) {
    KernelInfo kernel{};
    kernel.name = "count";
    kernel.symbol = "isthmus_count";
    kernel.parameters = "";
    kernel.pack_bytes = sizeof(CountPack);
    kernel.rank = rank;
    kernel.block_threads = rank == 0 ? 32 : 0;
    kernel.twin = count_twin;
    return kernel;
}

class CpuDevice : public testing::Test {
protected:
    std::unique_ptr<Driver> driver = open_device(MachineFacts{});
    Memory& memory = driver->memory();
    Execution& execution = driver->execution();
};

TEST_F(CpuDevice, SaysWhatItIs) {  // keeps D2
    EXPECT_TRUE(driver->facts().is_cpu());
    EXPECT_EQ(driver->facts().name, "CPU");
    EXPECT_TRUE(driver->facts().attributes.empty());
    EXPECT_TRUE(driver->synchronous());
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
    ASSERT_TRUE(memory.memory_info(free_bytes, total_bytes).ok());
    EXPECT_LE(free_bytes, total_bytes);
}

TEST_F(CpuDevice, GivesEveryKindAsAlignedHostMemory) {
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{300}, std::size_t{1} << 16}) {
            Allocation allocation;
            ASSERT_TRUE(
                memory
                    .allocate(static_cast<MemoryKind>(kind), bytes, Attachment::global, StreamHandle::none, allocation)
                    .ok());
            EXPECT_EQ(static_cast<int>(allocation.kind), kind);
            EXPECT_EQ(allocation.bytes, bytes);
            EXPECT_EQ(allocation.device, reinterpret_cast<std::uintptr_t>(allocation.host));
            EXPECT_EQ(allocation.device % 256, 0u);
            std::memset(allocation.host, 1, bytes);
            EXPECT_TRUE(memory.release(allocation, StreamHandle::none).ok());
        }
    }
}

TEST_F(CpuDevice, RefusesNothingAndTooMuchWithTypedErrors) {  // keeps R1
    Allocation allocation;
    const auto ask = [&](std::size_t bytes) {
        return memory.allocate(MemoryKind::device, bytes, Attachment::global, StreamHandle::none, allocation);
    };
    EXPECT_EQ(ask(0).code, Code::invalid_argument);
    EXPECT_EQ(ask(std::numeric_limits<std::size_t>::max()).code, Code::out_of_memory);
    const Status absurd = ask(std::size_t{1} << 62);
    EXPECT_EQ(absurd.code, Code::out_of_memory);
    EXPECT_EQ(allocation.host, nullptr);

    const Error error = driver->explain(absurd, "allocating 4 EiB");
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_EQ(error.call(), absurd.call);
    EXPECT_EQ(error.driver_code(), absurd.driver_code);
    EXPECT_NE(error.message().find("allocating 4 EiB"), std::string_view::npos);
    EXPECT_FALSE(error.remedy().empty());
    EXPECT_EQ(driver->explain(ask(0), "allocating nothing").message(), "allocating nothing: invalid_argument");
    const Status stale = execution.destroy_stream(static_cast<StreamHandle>(4711));
    EXPECT_EQ(driver->explain(stale, "ending").code(), Code::invalid_handle);
    EXPECT_EQ(driver->explain(stale, "ending").message(), "ending: the CPU device knows no such stream or event");
}

TEST_F(CpuDevice, CopiesFillsAndOverlapsAtOnce) {  // keeps S1
    std::array<std::uint8_t, 8> bytes{1, 2, 3, 4, 5, 6, 7, 8};
    const std::uint64_t base = reinterpret_cast<std::uintptr_t>(bytes.data());
    ASSERT_TRUE(memory.copy(base + 2, base, 6, CopyDirection::device_to_device, StreamHandle::none).ok());
    EXPECT_EQ(bytes, (std::array<std::uint8_t, 8>{1, 2, 1, 2, 3, 4, 5, 6}));
    ASSERT_TRUE(memory.fill(base, 9, 3, StreamHandle::none).ok());
    EXPECT_EQ(bytes, (std::array<std::uint8_t, 8>{9, 9, 9, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(memory.copy(0, 0, 0, CopyDirection::host_to_host, StreamHandle::none).ok());
    EXPECT_TRUE(memory.fill(0, 0, 0, StreamHandle::none).ok());
}

TEST_F(CpuDevice, RegisteredMemoryKeepsItsAddressAndForeignMemoryStaysUnknown) {
    int word = 0;
    std::uint64_t address = 0;
    ASSERT_TRUE(memory.register_host(&word, sizeof word, false, address).ok());
    EXPECT_EQ(address, reinterpret_cast<std::uintptr_t>(&word));
    EXPECT_TRUE(memory.unregister_host(&word).ok());
    PointerFacts facts{MemoryKind::device, 3, 1, 1};
    ASSERT_TRUE(memory.pointer_facts(address, facts).ok());
    EXPECT_EQ(facts.kind, MemoryKind::unknown);
    EXPECT_EQ(facts.ordinal, -1);
}

TEST_F(CpuDevice, HasDoneALaunchWhenItReturnsForEveryRank) {  // keeps S1
    for (std::uint8_t rank = 0; rank <= 3; ++rank) {
        const KernelInfo kernel = kernel_of(rank);
        const Extent extent{rank == 1 ? 30u : 5u, rank == 1 ? 1u : 3u, rank == 3 || rank == 0 ? 2u : 1u};
        std::array<unsigned, 30> visits{};
        const CountPack pack{visits.data(), extent.x * extent.y * extent.z};
        FunctionHandle function = FunctionHandle::none;
        ASSERT_TRUE(execution.resolve(kernel, function).ok());
        EXPECT_NE(function, FunctionHandle::none);
        ASSERT_TRUE(execution.launch({&kernel, function, extent, &pack, StreamHandle::none}).ok());
        for (std::uint64_t i = 0; i < visits.size(); ++i) {
            EXPECT_EQ(visits[i], i < pack.size ? 1u : 0u) << "rank " << int{rank} << ", item " << i;
        }
    }
}

TEST_F(CpuDevice, AnEmptyExtentRunsNothing) {
    KernelInfo kernel = kernel_of(2);
    kernel.twin = [](const Extent&, std::uint64_t, std::uint64_t, const void*) { FAIL() << "ran"; };
    EXPECT_TRUE(execution.launch({&kernel, FunctionHandle::none, {4, 0, 1}, nullptr, StreamHandle::none}).ok());
    EXPECT_TRUE(execution.launch({&kernel, FunctionHandle::none, {0, 4, 1}, nullptr, StreamHandle::none}).ok());
}

TEST_F(CpuDevice, AKernelWithoutACpuFunctionIsRefusedWithARemedy) {  // keeps R1
    KernelInfo kernel = kernel_of(1);
    kernel.twin = nullptr;
    FunctionHandle function = FunctionHandle::none;
    const Status status = execution.resolve(kernel, function);
    EXPECT_EQ(status.code, Code::unsupported);
    EXPECT_EQ(function, FunctionHandle::none);
    EXPECT_EQ(execution.launch({&kernel, function, {1, 1, 1}, nullptr, StreamHandle::none}).code, Code::unsupported);
    EXPECT_NE(driver->explain(status, "resolving count").remedy().find("ISTHMUS_KERNEL"), std::string_view::npos);
}

TEST_F(CpuDevice, StreamsAreNumberedAndNeverReused) {  // keeps S17, S18
    StreamHandle first{};
    StreamHandle second{};
    ASSERT_TRUE(execution.create_stream(0, first).ok());
    EXPECT_NE(first, StreamHandle::none);
    EXPECT_TRUE(execution.query_stream(first).ok());
    ASSERT_TRUE(execution.destroy_stream(first).ok());
    EXPECT_EQ(execution.destroy_stream(first).code, Code::invalid_handle);
    ASSERT_TRUE(execution.create_stream(-1, second).ok());
    EXPECT_NE(first, second);
    EXPECT_TRUE(execution.destroy_stream(second).ok());
}

TEST_F(CpuDevice, EventsMeasureBetweenRecordedTimingEventsOnly) {  // keeps S11
    EventHandle begin{};
    EventHandle end{};
    EventHandle untimed{};
    ASSERT_TRUE(execution.create_event(EventKind::timing, begin).ok());
    ASSERT_TRUE(execution.create_event(EventKind::timing, end).ok());
    ASSERT_TRUE(execution.create_event(EventKind::plain, untimed).ok());
    float milliseconds = -1;
    EXPECT_EQ(execution.elapsed_ms(begin, end, milliseconds).code, Code::invalid_handle);
    for (const EventHandle event : {begin, end, untimed}) {
        EXPECT_TRUE(execution.record_event(event, StreamHandle::none).ok());
        EXPECT_TRUE(execution.query_event(event).ok());
        EXPECT_TRUE(execution.wait_event(StreamHandle::none, event).ok());
    }
    ASSERT_TRUE(execution.elapsed_ms(begin, end, milliseconds).ok());
    EXPECT_GE(milliseconds, 0.0f);
    EXPECT_EQ(execution.elapsed_ms(begin, untimed, milliseconds).code, Code::invalid_handle);
    for (const EventHandle event : {begin, end, untimed}) EXPECT_TRUE(execution.destroy_event(event).ok());
    EXPECT_EQ(execution.destroy_event(begin).code, Code::invalid_handle);
    EXPECT_EQ(execution.record_event(begin, StreamHandle::none).code, Code::invalid_handle);
}

std::uint64_t at(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data);
}

// keeps K22: any strides
TEST_F(CpuDevice, CopiesRectanglesAndBoxesOnly) {
    std::array<std::uint8_t, 48> from{}, to{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i + 1);
    Transfers& transfers = *driver->transfers();
    // 2 slices of 2 rows of 3 bytes: from rows of 6 in slices of 4, into rows of 4 in slices of 3.
    ASSERT_TRUE(
        transfers.copy_shaped({at(to.data()), true, 4, 3}, {at(from.data()), true, 6, 4}, {3, 2, 2}, StreamHandle::none)
            .ok());
    std::array<std::uint8_t, 48> expected{};
    for (std::size_t slice = 0; slice < 2; ++slice) {
        for (std::size_t row = 0; row < 2; ++row) {
            for (std::size_t x = 0; x < 3; ++x) expected[(slice * 3 + row) * 4 + x] = from[(slice * 4 + row) * 6 + x];
        }
    }
    EXPECT_EQ(to, expected);
    for (const CopyExtent& nothing : {CopyExtent{0, 2, 2}, CopyExtent{3, 0, 2}, CopyExtent{3, 2, 0}}) {
        EXPECT_TRUE(
            transfers
                .copy_shaped({at(to.data()), true, 4, 3}, {at(from.data()), true, 6, 4}, nothing, StreamHandle::none)
                .ok());
    }
    EXPECT_EQ(to, expected);
}

// keeps K22: shifting a picture within itself
TEST_F(CpuDevice, OverlappingCopiesReadBeforeTheyWrite) {
    for (const int shift : {-5, -4, 4, 5}) {
        std::array<std::uint8_t, 40> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
        std::array<std::uint8_t, 40> expected = bytes;
        for (std::size_t row = 0; row < 5; ++row) {
            for (std::size_t x = 0; x < 3; ++x) {
                const std::size_t to = 8 + row * 4 + x + static_cast<std::size_t>(shift);
                expected[to] = static_cast<std::uint8_t>(8 + row * 4 + x);
            }
        }
        const std::uint64_t source = at(bytes.data()) + 8;
        const std::uint64_t destination = source + static_cast<std::uint64_t>(shift);
        ASSERT_TRUE(driver->transfers()
                        ->copy_shaped({destination, true, 4, 5}, {source, true, 4, 5}, {3, 5, 1}, StreamHandle::none)
                        .ok());
        EXPECT_EQ(bytes, expected) << shift;
    }
}

TEST_F(CpuDevice, FillsElementsOfOneTwoAndFourBytes) {
    Transfers& transfers = *driver->transfers();
    for (const std::size_t size : {1u, 2u, 4u}) {
        std::array<std::uint8_t, 32> bytes{}, expected{};
        const std::uint32_t value = 0x04030201;
        ASSERT_TRUE(transfers.fill_elements(at(bytes.data()) + 1, value, size, 3, StreamHandle::none).ok());
        for (std::size_t i = 0; i < 3 * size; ++i) expected[1 + i] = static_cast<std::uint8_t>(1 + i % size);
        EXPECT_EQ(bytes, expected) << size;
        bytes = expected = {};
        ASSERT_TRUE(
            transfers.fill_shaped({at(bytes.data()), true, 10, 2}, value, size, {8, 2, 1}, StreamHandle::none).ok());
        for (std::size_t row = 0; row < 2; ++row) {
            for (std::size_t x = 0; x < 8; ++x) expected[row * 10 + x] = static_cast<std::uint8_t>(1 + x % size);
        }
        EXPECT_EQ(bytes, expected) << size;
    }
    std::uint64_t word = 0;
    for (const std::size_t size : {0u, 3u, 8u}) {
        EXPECT_EQ(transfers.fill_elements(at(&word), 1, size, 1, StreamHandle::none).code, Code::invalid_argument);
    }
    EXPECT_EQ(word, 0u);
}

// keeps K21, D2: hints are not heard, and nobody is a peer
TEST_F(CpuDevice, TakesNoHintsAndReachesNoOtherDevice) {
    Transfers& transfers = *driver->transfers();
    int from = 7, to = 0;
    const Status hint = transfers.prefetch(at(&from), sizeof from, {}, StreamHandle::none);
    EXPECT_EQ(hint.code, Code::unsupported);
    EXPECT_NE(driver->explain(hint, "prefetching").message().find("hints"), std::string_view::npos);
    EXPECT_EQ(transfers.advise(at(&from), sizeof from, Advice::prefer, {}).code, Code::unsupported);
    bool reach = true;
    EXPECT_TRUE(transfers.can_reach(0, reach).ok());
    EXPECT_FALSE(reach);
    EXPECT_EQ(transfers.set_peer_access(0, true).code, Code::unsupported);
    const Status other = transfers.copy_between(at(&to), -1, at(&from), 0, sizeof from, StreamHandle::none);
    EXPECT_EQ(other.code, Code::unsupported);
    EXPECT_NE(driver->explain(other, "copying").remedy().find("other device"), std::string_view::npos);
    EXPECT_EQ(to, 0);
    EXPECT_TRUE(transfers.copy_between(at(&to), -1, at(&from), -1, sizeof from, StreamHandle::none).ok());
    EXPECT_EQ(to, 7);
    EXPECT_EQ(driver->pools(), nullptr);
    EXPECT_FALSE(driver->context_died());
}

}  // namespace
}  // namespace isthmus::platform::cpu
