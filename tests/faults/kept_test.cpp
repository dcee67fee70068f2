// SPDX-License-Identifier: Apache-2.0
// Kept memory where something ends or fails at the wrong moment: a runtime, an allocation, a wait.
#include "gate.hpp"
#include "keeping.hpp"
#include "simulator_control.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace conformance {
namespace {

constexpr std::size_t count = 4096;
constexpr std::uint64_t plenty = std::uint64_t{256} << 20;

class KeptMemory : public testing::Test {
protected:
    void SetUp() override { open(plenty); }
    void TearDown() override {
        if (plan() != nullptr) (void)plan()(nullptr);
        runtime_.reset();
    }
    void open(std::uint64_t cache_bytes) { open(options_with(cache_bytes)); }
    void open(const RuntimeOptions& options) {
        runtime_.reset();
        runtime_.emplace(Runtime::open(options).value());
        if (device().is_cpu() || plan() == nullptr) GTEST_SKIP() << "only the simulator holds a call up";
    }
    void close() { runtime_.reset(); }
    static isthmus_sim_fault_plan_fn plan() { return control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan"); }
    static std::int64_t live(const char* what) { return control<isthmus_sim_live_fn>("isthmus_sim_live")(what); }
    static void until_somebody_stands() {
        while (live("standing_calls") == 0) std::this_thread::yield();
    }
    Device& device() { return runtime_->default_device(); }

private:
    std::optional<Runtime> runtime_;
};

// keeps M3, R5
TEST_F(KeptMemory, OfBuffersThatAnotherThreadAsksForEndsWithTheRuntime) {
    {
        std::optional<Gate> gate(std::in_place, device());
        if (!gate->holds()) GTEST_SKIP() << "nothing runs beside the host";
        std::optional<Stream> stream(device().create_stream().value());
        Allocator allocator = device().allocator(MemoryKind::device);
        {
            auto dropped = device().allocate<std::int32_t>(count, MemoryKind::device).value();
            (void)stream->launch(when_raised, 1, gate->words(), dropped, 1).value();
        }
        ASSERT_EQ(plan()("call=cuEventQuery:stands;call=cuStreamQuery:stands"), 0);
        Thread asks([&] {
            AllocationRequest request;
            request.bytes = std::size_t{1} << 20;
            const MemoryBlock block = allocator.allocate(request).value();
            EXPECT_TRUE(allocator.release(block).ok());
        });
        until_somebody_stands();
        close();
        ASSERT_EQ(plan()(nullptr), 0);
        gate->raise();
        asks.join();
        stream->synchronize().value();
        stream.reset();
        allocator = {};
        gate.reset();
    }
    EXPECT_EQ(live("contexts"), 0) << "what nobody ends keeps the device";
}

// keeps M3
TEST_F(KeptMemory, OfOneStreamThatIsReleasedUnusedServesOthersBehindTheWorkBefore) {
    if (!device().capabilities().has(Feature::pools)) GTEST_SKIP();
    Gate gate(device());
    if (!gate.holds()) GTEST_SKIP() << "nothing runs beside the host";
    Stream first = device().create_stream().value(), second = device().create_stream().value();
    {
        auto before = first.allocate<std::int32_t>(count).value();
        (void)first.launch(when_raised, 1, gate.words(), before, 1).value();
    }
    const Allocator allocator = device().allocator(MemoryKind::pool);
    AllocationRequest request;
    request.bytes = count * sizeof(std::int32_t);
    request.stream = &first;
    const MemoryBlock unused = allocator.allocate(request).value();
    EXPECT_TRUE(allocator.release(unused).ok());
    auto result = device().allocate<std::int32_t>(count, MemoryKind::pinned).value();
    auto after = second.allocate<std::int32_t>(count).value();
    second.fill(after, 5).value();
    EXPECT_FALSE(gate.passed());
    gate.raise();
    first.synchronize().value();
    second.copy(result, after).value();
    second.synchronize().value();
    expect_all(result, 5);
}

// keeps M5
TEST_F(KeptMemory, OfDroppedBuffersIsRoomAlsoWhereItGoesStraightToTheDriver) {
    constexpr std::uint64_t limit = std::uint64_t{2} << 20;
    open(limit);
    Gate gate(device());
    if (!gate.holds()) GTEST_SKIP() << "nothing runs beside the host";
    Stream stream = device().create_stream().value();
    {
        SharedUse use;
        use.kind = MemoryKind::device;
        use.host = Use::never;
        use.alignment_bytes = 4096;  // its memory is larger than what may be kept
        auto dropped = device().allocate_shared<std::int32_t>(limit / sizeof(std::int32_t), use);
        if (!dropped) GTEST_SKIP() << dropped.error().text();
        (void)stream.launch(when_raised, 1, gate.words(), *dropped, 1).value();
    }
    const auto limit_device = control<isthmus_sim_set_memory_bytes_fn>("isthmus_sim_set_memory_bytes");
    ASSERT_EQ(limit_device(0, 2 * limit), 0);  // the driver gives whole chunks of 2 MiB: nothing is left
    const long before = driver_calls("cuMemAlloc_v2");
    Thread raises([&] {
        while (driver_calls("cuMemAlloc_v2") == before) std::this_thread::yield();
        gate.raise();
    });
    const auto made = device().allocate<std::uint8_t>(limit, MemoryKind::device);
    raises.join();
    ASSERT_EQ(limit_device(0, 0), 0);
    EXPECT_TRUE(made.ok()) << made.error().text();
}

// keeps M5: what a thread takes out and ends is no longer there for others, but is about to be room.
TEST_F(KeptMemory, ThatAnotherThreadIsAboutToGiveBackIsWaitedForBeforeAnythingIsRefused) {
    constexpr std::uint64_t chunk = std::uint64_t{2} << 20;
    Gate gate(device());
    if (!gate.holds()) GTEST_SKIP() << "nothing runs beside the host";
    Stream stream = device().create_stream().value();
    {
        auto dropped = device().allocate<std::int32_t>(2 * chunk / sizeof(std::int32_t), MemoryKind::device).value();
        (void)stream.launch(when_raised, 1, gate.words(), dropped, 1).value();
    }
    const auto limit_device = control<isthmus_sim_set_memory_bytes_fn>("isthmus_sim_set_memory_bytes");
    ASSERT_EQ(limit_device(0, 2 * chunk), 0);
    const long before = driver_calls("cuMemAlloc_v2");
    using Made = std::optional<Result<Buffer<std::uint8_t>>>;
    const auto asks = [&](Made& made) { made.emplace(device().allocate<std::uint8_t>(chunk, MemoryKind::device)); };
    Made first, second;
    Thread one([&] { asks(first); }), other([&] { asks(second); });
    while (driver_calls("cuMemAlloc_v2") < before + 2) std::this_thread::yield();  // both were refused
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.raise();
    one.join();
    other.join();
    ASSERT_EQ(limit_device(0, 0), 0);
    EXPECT_TRUE(first->ok()) << first->error().text();
    EXPECT_TRUE(second->ok()) << second->error().text();
}

// keeps M5, R4: what another thread is about to end still counts where this one is refused.
TEST_F(KeptMemory, ThatAnotherThreadHoldsIsPendingInARefusal) {
    constexpr std::uint64_t chunk = std::uint64_t{2} << 20;
    RuntimeOptions options = options_with(plenty);
    options.wait_timeout = std::chrono::milliseconds(50);
    open(options);
    Gate gate(device());
    if (!gate.holds()) GTEST_SKIP() << "nothing runs beside the host";
    Stream stream = device().create_stream().value();
    {
        auto dropped = device().allocate<std::int32_t>(2 * chunk / sizeof(std::int32_t), MemoryKind::device).value();
        (void)stream.launch(when_raised, 1, gate.words(), dropped, 1).value();
    }
    ASSERT_EQ(plan()("call=cuEventQuery:stands;call=cuStreamQuery:stands"), 0);
    Thread asks([&] { (void)device().allocate<std::uint8_t>(chunk, MemoryKind::device); });
    until_somebody_stands();  // with the dropped buffer in its hands
    const auto limit_device = control<isthmus_sim_set_memory_bytes_fn>("isthmus_sim_set_memory_bytes");
    ASSERT_EQ(limit_device(0, 2 * chunk), 0);
    const auto refused = device().allocate<std::uint8_t>(chunk, MemoryKind::device);
    ASSERT_EQ(limit_device(0, 0), 0);
    ASSERT_EQ(plan()(nullptr), 0);
    gate.raise();
    asks.join();
    EXPECT_EQ(refused.code(), Code::out_of_memory);
    const std::string pending = std::to_string(2 * chunk) + " bytes released and pending";
    EXPECT_NE(refused.error().message().find(pending), std::string::npos) << refused.error().text();
    while (!stream.synchronize()) continue;  // each waits for 50 ms
}

}  // namespace
}  // namespace conformance
