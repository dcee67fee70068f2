// SPDX-License-Identifier: Apache-2.0
// Device memory in a segment (ISTHMUS_DEVICE_SEGMENTS=1): what is mapped, who has which bytes, and steps that fail.
#include "foreign_driver.hpp"
#include "keeping.hpp"
#include "simulator_control.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t granule = std::size_t{2} << 20;
constexpr std::size_t most_kept_bytes = std::size_t{256} << 20;

class Segments : public testing::Test {
protected:
    void SetUp() override {
        ::setenv("ISTHMUS_DEVICE_SEGMENTS", "1", 1);
        runtime_.emplace(Runtime::open(options_with(most_kept_bytes)).value());
        ::unsetenv("ISTHMUS_DEVICE_SEGMENTS");
        if (device().is_cpu() || plan() == nullptr) GTEST_SKIP() << "only the simulator counts mappings";
        const Capabilities& found = device().capabilities();
        divided_ = found.has(Feature::virtual_memory) && found.memory == MemoryModel::separate &&
                   runtime_->device_count() == 2;
    }
    void TearDown() override {
        if (plan() != nullptr) (void)plan()(nullptr);
        runtime_.reset();
        if (plan() != nullptr) {
            EXPECT_EQ(live("mappings"), 0);
            EXPECT_EQ(live("physical"), 0);
        }
    }
    static isthmus_sim_fault_plan_fn plan() { return control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan"); }
    static std::int64_t live(const char* what) { return control<isthmus_sim_live_fn>("isthmus_sim_live")(what); }
    Device& device() { return runtime_->default_device(); }
    Allocator memory() { return device().allocator(MemoryKind::device); }
    MemoryBlock block(std::size_t bytes) { return memory().allocate(request_of(bytes)).value(); }
    void release(const MemoryBlock& one) { memory().release(one).value(); }
    bool divided_ = false;

private:
    std::optional<Runtime> runtime_;
};

// keeps M5, M8, A16
TEST_F(Segments, BlocksShareHandlesWhereNoAnswerWouldChange) {
    std::vector<MemoryBlock> blocks;
    for (int one = 0; one < 5; ++one) blocks.push_back(block(granule + granule / 8));
    EXPECT_EQ(live("mappings"), divided_ ? 6 : 0) << "6 granules for 5 blocks of 1.125";
    EXPECT_EQ(live("allocations") - live("mappings"), divided_ ? 0 : 5);
    for (const MemoryBlock& one : blocks) {
        EXPECT_EQ(one.kind, MemoryKind::device);
        EXPECT_EQ(one.device % 256, 0u);
    }
    for (const MemoryBlock& one : blocks) release(one);
    EXPECT_GT(device().trim_cache().value(), 0u);
    EXPECT_EQ(live("mappings"), 0);
    EXPECT_EQ(live("physical"), 0);
    EXPECT_EQ(live("allocations"), 0);
}

// keeps M5: nobody has to trim
TEST_F(Segments, ABlockThatIsNotKeptLeavesNoGranuleMapped) {
    const MemoryBlock stays = block(granule);
    const MemoryBlock large = block(most_kept_bytes + granule);
    const std::int64_t mapped = live("mappings");
    release(large);
    const std::int64_t granules = (most_kept_bytes + granule) / granule;
    EXPECT_EQ(mapped - live("mappings"), divided_ ? granules : 0);
    EXPECT_EQ(live("allocations"), 1) << "the other block";
    release(stays);
}

// keeps M2, M5
TEST_F(Segments, APairInSteadyStateCallsNoDriver) {
    release(block(3 * granule));
    const long before = driver_calls();
    release(block(3 * granule));
    EXPECT_EQ(driver_calls(), before);
}

// keeps M5: copies, fills and kernels reach all of a block that lies in several handles, and nothing beside it
TEST_F(Segments, ABlockOverSeveralHandlesIsOneMemory) {
    constexpr std::size_t count = 3 * granule / sizeof(std::int32_t);
    const MemoryBlock odd = block(granule / 2);
    auto first = device().allocate<std::int32_t>(count, MemoryKind::device).value();
    auto second = device().allocate<std::int32_t>(count, MemoryKind::device).value();
    Stream stream = device().create_stream().value();
    stream.fill(first, 5).value();
    stream.fill(second, 7).value();
    stream.launch(add_one, count, first).value();
    auto seen = device().allocate_shared<std::int32_t>(count).value();
    stream.copy(seen, first).value();
    stream.synchronize().value();
    expect_all(seen, 6);
    stream.copy(first, second).value();
    stream.copy(seen, first).value();
    stream.synchronize().value();
    expect_all(seen, 7);
    release(odd);
}

// keeps M2: the simulator knows the bounds of each block, and its release
TEST_F(Segments, NeighboursInAHandleAreOutOfBounds) {
    const MemoryBlock one = block(4096);
    const MemoryBlock other = block(4096);
    const auto copy = control<int (*)(std::uint64_t, std::uint64_t, std::size_t, void*)>("cuMemcpyDtoDAsync_v2");
    Stream stream = device().create_stream().value();
    void* const native = stream.native_handle().value();
    EXPECT_EQ(copy(one.device, other.device, 4096, native), 0);
    EXPECT_EQ(copy(one.device, other.device, 4097, native), 1);
    EXPECT_EQ(copy(one.device + 4095, other.device, 2, native), 1);
    stream.synchronize().value();
    release(other);
    EXPECT_EQ(copy(one.device, other.device, 1, native), 1) << "it was released";
    release(one);
}

// keeps R6, W4: the wait before such memory is unmapped would end the capture of other code; a trim behind it unmaps
TEST_F(Segments, AReleaseLeavesTheCaptureOfOtherCodeAlone) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    for (const bool of_pool : {false, true}) {
        SCOPED_TRACE(of_pool ? "MemoryPool::trim()" : "Device::trim_cache()");
        if (of_pool && !device().capabilities().has(Feature::pools)) continue;
        std::optional<MemoryPool> pool;
        if (of_pool) pool = device().pool().value();
        ForeignStream foreign(device());
        Stream stream = device().wrap_stream(foreign.get()).value();
        std::optional<Buffer<std::int32_t>> given = device().allocate<std::int32_t>(granule / 4).value();
        (void)given->device_address();  // something may use it that the runtime does not know
        const std::int64_t mapped = live("mappings");
        EXPECT_GT(mapped, 0);
        constexpr int relaxed = 2;
        driver_call(0, "cuStreamBeginCapture_v2", foreign.get(), relaxed);
        given.reset();
        EXPECT_EQ(live("mappings"), mapped) << "kept until no capture is open";
        void* graph = nullptr;
        driver_call(0, "cuStreamEndCapture", foreign.get(), &graph);
        EXPECT_NE(graph, nullptr);
        driver_call(0, "cuGraphDestroy", graph);
        if (of_pool) {
            EXPECT_TRUE(worked(pool->trim(0)));
        } else {
            (void)device().trim_cache().value();
        }
        EXPECT_EQ(live("mappings"), 0);
    }
}

// keeps M2, R6: what waits for the end of a capture of other code, lost or not, costs the pairs of others nothing
TEST_F(Segments, WhatWaitsForACaptureOfOtherCodeLeavesLanesAlone) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    for (const bool is_lost : {false, true}) {
        SCOPED_TRACE(is_lost ? "lost" : "open");
        ForeignStream foreign(device());
        Stream stream = device().wrap_stream(foreign.get()).value();
        std::optional<Buffer<std::int32_t>> given = device().allocate<std::int32_t>(granule / 4).value();
        (void)given->device_address();  // something may use it that the runtime does not know
        constexpr int relaxed = 2;
        constexpr int unsupported = 900, invalidated = 901;
        driver_call(0, "cuStreamBeginCapture_v2", foreign.get(), relaxed);
        if (is_lost) {
            const ForeignContext current(device());
            driver_call(unsupported, "cuCtxSynchronize");
        }
        const std::int64_t mapped = live("mappings");
        given.reset();
        EXPECT_EQ(live("mappings"), mapped) << "kept until the capture has ended";
        release(block(granule / 2));
        const long before = driver_calls();
        for (int pair = 0; pair < 8; ++pair) release(block(granule / 2));
        EXPECT_EQ(driver_calls(), before);
        void* graph = nullptr;
        driver_call(is_lost ? invalidated : 0, "cuStreamEndCapture", foreign.get(), &graph);
        if (!is_lost) driver_call(0, "cuGraphDestroy", graph);
        release(block(granule));  // tries again what was not given back
        (void)device().trim_cache().value();
        EXPECT_EQ(live("mappings"), 0);
    }
}

// keeps M5: whichever step fails, the segment is as it was, and the next allocation works
TEST_F(Segments, AStepThatFailsLeavesNothingBehind) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    const MemoryBlock held = block(granule / 2);
    const std::int64_t mappings = live("mappings");
    for (const char* const failing :
         {"call=cuMemCreate:n=1:code=999", "call=cuMemCreate:n=3:code=2", "call=cuMemMap:n=1:code=999",
          "call=cuMemMap:n=2:code=999", "call=cuMemSetAccess:n=1:code=999"}) {
        ASSERT_EQ(plan()(failing), 0);
        const auto made = memory().allocate(request_of(3 * granule));
        ASSERT_EQ(plan()(nullptr), 0);
        EXPECT_FALSE(made) << failing;
        if (!made) {
            const bool short_of_memory = std::string(failing).ends_with("code=2");
            EXPECT_EQ(made.code(), short_of_memory ? Code::out_of_memory : Code::driver_error) << failing;
        }
        EXPECT_EQ(live("mappings"), mappings) << failing;
        EXPECT_EQ(live("physical"), mappings) << failing;
    }
    const MemoryBlock next = block(3 * granule);
    EXPECT_EQ(live("mappings"), 4);
    release(next);
    release(held);
}

// keeps M5: what the driver does not unmap serves again, and goes back at a trim
TEST_F(Segments, AGranuleThatStaysMappedServesAgain) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    release(block(2 * granule));
    ASSERT_EQ(plan()("call=cuMemUnmap:code=999"), 0);
    device().trim_cache().value();
    ASSERT_EQ(plan()(nullptr), 0);
    const std::int64_t left = live("mappings");
    const MemoryBlock again = block(2 * granule);
    EXPECT_EQ(live("mappings"), 2) << left << " were left";
    release(again);
    device().trim_cache().value();
    EXPECT_EQ(live("mappings"), 0);
}

// keeps M3: cuMemFree waits for all work and cuMemUnmap for none, so that the runtime waits
TEST_F(Segments, MemoryThatWorkMayStillUseStaysMapped) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    if (!work_runs_by_itself()) GTEST_SKIP() << "a host function takes its time";
    const ForeignStream other(device());
    std::atomic<bool> ended{false};
    constexpr auto takes_time = +[](void* flag) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        static_cast<std::atomic<bool>*>(flag)->store(true);
    };
    const auto use = [&](std::uint64_t address) {
        ended = false;
        driver_call(0, "cuLaunchHostFunc", other.get(), takes_time, static_cast<void*>(&ended));
        driver_call(0, "cuMemsetD32Async", address, 1u, 2 * granule / sizeof(std::int32_t), other.get());
    };
    {
        auto exposed = device().allocate<std::int32_t>(2 * granule / sizeof(std::int32_t), MemoryKind::device).value();
        use(exposed.device_address());
    }
    EXPECT_TRUE(ended || live("mappings") == 2) << "a buffer whose address was given away";
    driver_call(0, "cuStreamSynchronize", other.get());
    device().trim_cache().value();
    EXPECT_EQ(live("mappings"), 0);

    Stream stream = device().create_stream().value();
    const MemoryBlock behind = block(2 * granule);
    use(behind.device);
    memory().release(behind, &stream).value();
    EXPECT_TRUE(ended || live("mappings") == 2) << "a block that is released behind a stream";
    driver_call(0, "cuStreamSynchronize", other.get());
    device().trim_cache().value();
    EXPECT_EQ(live("mappings"), 0);
}

// keeps K11: mapped memory survives its context; the device is lost to the runtime, and nothing is left
TEST_F(Segments, NothingIsLeftBehindAContextThatOtherCodeDestroyed) {
    if (!divided_) GTEST_SKIP() << "memory comes from cuMemAlloc here";
    auto used = device().allocate<std::int32_t>(1000, MemoryKind::device).value();
    device().stream().fill(used, 1).value();  // the context is in use
    device().synchronize().value();
    const MemoryBlock held = block(granule);
    release(block(granule));
    const auto reset = control<int (*)(int)>("cuDevicePrimaryCtxReset_v2");
    ASSERT_NE(reset, nullptr);
    ASSERT_EQ(reset(0), 0);
    EXPECT_EQ(memory().allocate(request_of(5 * granule)).code(), Code::device_lost);
    (void)memory().release(held);
}

}  // namespace
}  // namespace conformance
