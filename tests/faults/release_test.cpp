// SPDX-License-Identifier: Apache-2.0
// Releases whose driver call fails: the caller's result, when the memory's owner gets it back, and what is left.
#include "scenario.hpp"
#include "foreign_driver.hpp"
#include "simulator_control.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1024;
constexpr std::size_t bytes = count * sizeof(std::int32_t);
// Every driver call that unregisters memory, and the context push before it.
constexpr const char* unregistering[] = {"cuMemHostUnregister", "cuCtxPushCurrent"};

// Copies from ordinary memory behind delayed work and changes the memory as soon as the call has returned: the earlier
// values must arrive. Returns the number of wrong elements.
std::size_t wrong_after_copy(Device& device, std::int32_t* from) {
    for (std::size_t i = 0; i < count; ++i) from[i] = 5;
    Buffer<std::int32_t> there = device.allocate<std::int32_t>(count).value();
    Stream stream = device.create_stream().value();
    std::atomic<bool> go{false};
    const auto hold_up = [&]() noexcept {
        while (!go.load()) std::this_thread::yield();
    };
    (void)stream.call_on_host(hold_up).value();
    const Result<void> copied = stream.copy_from_host(there, std::span<const std::int32_t>(from, count));
    for (std::size_t i = 0; i < count; ++i) from[i] = -1;
    go.store(true);
    copied.value();
    stream.synchronize().value();
    std::vector<std::int32_t> seen(count);
    stream.copy_to_host(std::span<std::int32_t>(seen), there).value();
    stream.synchronize().value();
    std::size_t wrong = 0;
    for (const std::int32_t value : seen) wrong += value != 5;
    return wrong;
}

class FailedReleases : public testing::Test {
protected:
    void SetUp() override {
        RuntimeOptions options;
        options.log = [this](Severity, std::string_view line) { log_.append(line).append("\n"); };
        options.cache_bytes = 0;  // every release asks the driver
        runtime_.emplace(Runtime::open(options).value());
        if (device().is_cpu() || control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan") == nullptr) {
            GTEST_SKIP() << "only the simulator fails a call";
        }
        // Objects that are made with the first use stay: they are no leak.
        std::vector<std::int32_t> ordinary(count);
        EXPECT_EQ(wrong_after_copy(device(), ordinary.data()), 0u);
    }
    void TearDown() override {
        if (control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan") != nullptr) works();
        close();
    }
    void close() { runtime_.reset(); }
    static void plan(const std::string& text) {
        ASSERT_EQ(control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan")(text.c_str()), 0);
    }
    static void works() { plan(""); }
    static void fails(const std::string& call) { plan("call=" + call + ":code=2"); }
    static void fails_once(const std::string& call) { plan("call=" + call + ":nth=1:code=2"); }
    static std::int64_t live(const char* what) { return control<isthmus_sim_live_fn>("isthmus_sim_live")(what); }
    Runtime& runtime() { return *runtime_; }
    Device& device() { return runtime_->default_device(); }
    const std::string& log() const { return log_; }
    bool registers() { return device().capabilities().has(Feature::host_register); }

private:
    std::string log_;
    std::optional<Runtime> runtime_;
};

// Memory whose owner unmaps it when the release callback reports it unused, and maps ordinary memory in its place. It
// stays mapped until the process ends: the driver may have it registered still, and later memory must not get its
// addresses.
class Owned {
public:
    Owned() : data_(map(nullptr)) {
        for (std::size_t i = 0; i < count; ++i) numbers()[i] = static_cast<std::int32_t>(i);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    AdoptOptions options() {
        AdoptOptions made;
        made.use.kind = MemoryKind::registered;
        made.release = [this](void* pointer, std::size_t) {
            ++told_;
            (void)::munmap(pointer, bytes);
            EXPECT_EQ(map(pointer), pointer);
        };
        return made;
    }
    std::int32_t* numbers() const { return static_cast<std::int32_t*>(data_); }
    int told() const { return told_; }

private:
    static void* map(void* where) {
        const int there = where == nullptr ? 0 : MAP_FIXED;
        void* const made = ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | there, -1, 0);
        if (made == MAP_FAILED) std::abort();
        return made;
    }
    std::atomic<int> told_{0};
    void* const data_;
};

// keeps R6: one failure that passes is none
TEST_F(FailedReleases, AFailureThatPassesIsTriedAgainBeforeTheOwnerIsTold) {
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    for (const char* const call : unregistering) {
        SCOPED_TRACE(call);
        Owned memory;
        Buffer<std::int32_t> buffer = device().adopt<std::int32_t>(memory.numbers(), count, memory.options()).value();
        const std::int64_t registered = live("registered");
        fails_once(call);
        EXPECT_TRUE(buffer.release().ok());
        works();
        EXPECT_FALSE(buffer);
        EXPECT_EQ(memory.told(), 1);
        EXPECT_EQ(live("registered"), registered - 1);
        EXPECT_EQ(wrong_after_copy(device(), memory.numbers()), 0u);
    }
}

// keeps R6, K12: an error says that nothing has changed
TEST_F(FailedReleases, AdoptedMemoryThatStaysRegisteredIsItsBuffersStill) {
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    for (const char* const call : unregistering) {
        SCOPED_TRACE(call);
        Owned memory;
        Buffer<std::int32_t> buffer = device().adopt<std::int32_t>(memory.numbers(), count, memory.options()).value();
        fails(call);
        const Result<void> refused = buffer.release();
        works();
        ASSERT_EQ(refused.code(), Code::out_of_memory);
        EXPECT_NE(refused.error().message().find("nothing has changed"), std::string_view::npos)
            << refused.error().text();
        EXPECT_EQ(memory.told(), 0);
        ASSERT_TRUE(buffer);
        (void)device().stream().launch(add_one, count, buffer).value();
        EXPECT_EQ(buffer.read_on_host().value()[7], 8);
        EXPECT_EQ(device().adopt<std::int32_t>(memory.numbers(), count).code(), Code::in_use);
        EXPECT_TRUE(buffer.release().ok());
        EXPECT_EQ(memory.told(), 1);
        EXPECT_EQ(wrong_after_copy(device(), memory.numbers()), 0u);
    }
}

// keeps R6: a destructor has nobody to tell
TEST_F(FailedReleases, TheOwnerIsToldWhenTheDriverHasLetGo) {
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    for (const char* const call : unregistering) {
        SCOPED_TRACE(call);
        Owned memory;
        const std::int64_t registered = live("registered");
        {
            Buffer<std::int32_t> buffer =
                device().adopt<std::int32_t>(memory.numbers(), count, memory.options()).value();
            fails(call);
        }
        EXPECT_EQ(memory.told(), 0) << "the driver has its pages still";
        works();
        // An owner that asked for no callback takes the memory back: copies from it are still right.
        EXPECT_EQ(live("registered"), registered + 1);
        for (std::size_t i = 0; i < count; ++i) memory.numbers()[i] = 3;
        (void)device().allocate<std::int32_t>(count).value();
        EXPECT_EQ(memory.told(), 1) << "the next allocation tried again";
        EXPECT_EQ(live("registered"), registered);
        EXPECT_EQ(wrong_after_copy(device(), memory.numbers()), 0u);
        Buffer<std::int32_t> again = device().adopt<std::int32_t>(memory.numbers(), count).value();
        EXPECT_TRUE(again.release().ok());
    }
}

TEST_F(FailedReleases, MemoryThatStaysRegisteredIsCopiedAsOrdinaryMemoryIs) {  // keeps R6, K22
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    void* const memory = std::aligned_alloc(4096, bytes);
    {
        AdoptOptions options;
        options.use.kind = MemoryKind::registered;
        Buffer<std::int32_t> buffer = device().adopt<std::int32_t>(memory, count, options).value();
        fails("cuMemHostUnregister");
    }
    EXPECT_EQ(wrong_after_copy(device(), static_cast<std::int32_t*>(memory)), 0u);
    EXPECT_EQ(device().adopt<std::int32_t>(memory, count).code(), Code::in_use);
    works();
    EXPECT_TRUE(device().adopt<std::int32_t>(memory, count).ok()) << "an adoption tries again, too";
    std::free(memory);
}

TEST_F(FailedReleases, AnAdoptionThatFailsAndStaysRegisteredIsUndoneLater) {  // keeps R6, K12
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    Owned memory;
    const std::int64_t registered = live("registered");
    plan("call=cuMemHostGetDevicePointer:code=2;call=cuMemHostUnregister:code=2");
    AdoptOptions options = memory.options();
    options.use.kind = MemoryKind::registered;
    EXPECT_FALSE(device().adopt<std::int32_t>(memory.numbers(), count, options).ok());
    EXPECT_EQ(live("registered"), registered + 1);
    EXPECT_EQ(wrong_after_copy(device(), memory.numbers()), 0u);
    works();
    for (std::size_t i = 0; i < count; ++i) memory.numbers()[i] = 1;
    EXPECT_TRUE(device().adopt<std::int32_t>(memory.numbers(), count, memory.options()).ok());
    EXPECT_EQ(memory.told(), 1) << "the second adoption's; the first was none";
    EXPECT_EQ(live("registered"), registered);
}

TEST_F(FailedReleases, WhatIsRegisteredAtTheEndIsNotHandedBack) {  // keeps R6
    if (!registers()) GTEST_SKIP() << "no memory is registered here";
    Owned memory;
    {
        Buffer<std::int32_t> buffer = device().adopt<std::int32_t>(memory.numbers(), count, memory.options()).value();
        fails("cuMemHostUnregister");
    }
    close();
    EXPECT_EQ(memory.told(), 0);
    EXPECT_NE(log().find("registered"), std::string::npos) << log();
    EXPECT_NE(log().find("is not told"), std::string::npos) << log();
}

// keeps R6, K12: of memory that the runtime allocated, each way of releasing
TEST_F(FailedReleases, OwnMemoryIsReleasedForItsUserAndGivenBackLater) {
    Stream& stream = device().stream();
    const auto made = [&](MemoryKind kind) { return device().allocate<std::int32_t>(count, kind); };
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::write_combined,
                                  MemoryKind::managed, MemoryKind::pool, MemoryKind::registered}) {
        SCOPED_TRACE(name(kind));
        if (!made(kind)) continue;  // refused here, or its pool was made now
        for (const bool pushes : {false, true}) {
            for (const int way : {0, 1, 2}) {
                device().synchronize().value();  // pools free on their own streams
                const std::int64_t before = live("allocations");
                Buffer<std::int32_t> buffer = made(kind).value();
                const Allocator allocator = device().allocator(kind);
                MemoryBlock block = allocator.allocate({.bytes = bytes}).value();
                if (kind != MemoryKind::write_combined) (void)stream.launch(add_one, count, buffer).value();
                stream.synchronize().value();
                if (pushes) {
                    fails("cuCtxPushCurrent");
                } else {
                    plan(
                        "call=cuMemFree:code=2;call=cuMemFreeHost:code=2;call=cuMemFreeAsync:code=2;"
                        "call=cuMemHostUnregister:code=2");
                }
                if (way == 0) {
                    EXPECT_TRUE(buffer.release().ok());
                    EXPECT_FALSE(buffer);
                } else if (way == 1) {
                    buffer = {};
                } else {
                    EXPECT_TRUE(allocator.release(block).ok());
                    EXPECT_EQ(allocator.release(block).code(), Code::already_released);
                    buffer = {};
                    block = {};
                }
                works();
                if (block) {
                    EXPECT_TRUE(allocator.release(block).ok());
                }
                (void)device().allocate<std::int32_t>(count, MemoryKind::device).value();
                device().synchronize().value();
                EXPECT_EQ(live("allocations"), before) << (pushes ? "pushes fail, " : "frees fail, ") << way;
            }
        }
    }
}

TEST_F(FailedReleases, StagedBuffersAndTemporariesAreGivenBackLater) {  // keeps R6, L4
    Stream& stream = device().stream();
    std::vector<std::int32_t> ordinary(count, 1);
    for (const char* const failing : {"call=cuMemFree:code=2;call=cuMemFreeHost:code=2;call=cuMemFreeAsync:code=2;"
                                      "call=cuMemHostUnregister:code=2",
                                      "call=cuCtxPushCurrent:code=2"}) {
        SCOPED_TRACE(failing);
        Owned memory;
        {
            auto host = device().allocate<std::int32_t>(count, MemoryKind::host).value();
            (void)stream.launch({.mode = LaunchMode::staged}, add_one, count, host).value();
        }
        device().synchronize().value();
        const std::int64_t before = live("allocations");
        {
            SharedUse use;
            use.host = Use::reads_once;
            use.device = Use::reads_often;
            AdoptOptions options = memory.options();
            options.use = use;
            auto adopted = device().adopt<std::int32_t>(memory.numbers(), count, options).value();
            auto shared = device().allocate_shared<std::int32_t>(count, use).value();
            auto host = device().allocate<std::int32_t>(count, MemoryKind::host).value();
            (void)stream.launch({.mode = LaunchMode::staged}, add_one, count, host).value();
            stream.synchronize().value();
            plan(failing);
            // Most calls need cuCtxPushCurrent.
            const bool free_alone = std::string_view(failing).find("Push") == std::string_view::npos;
            if (free_alone) (void)stream.launch({.mode = LaunchMode::staged}, add_one, count, host);
        }
        works();
        (void)device().allocate<std::int32_t>(count).value();
        device().synchronize().value();
        EXPECT_EQ(memory.told(), 1);
        EXPECT_EQ(live("allocations"), before);
    }
}

TEST_F(FailedReleases, TheCallersContextIsRestoredWhereAPopFailsOnce) {  // keeps R7
    auto* const current = driver_function<int(void**)>("cuCtxGetCurrent");
    ASSERT_NE(current, nullptr);
    void* before = nullptr;
    ASSERT_EQ(current(&before), 0);
    Buffer<std::int32_t> buffer = device().allocate<std::int32_t>(count, MemoryKind::pinned).value();
    fails_once("cuCtxPopCurrent");
    EXPECT_TRUE(buffer.release().ok());
    works();
    void* after = &after;
    ASSERT_EQ(current(&after), 0);
    EXPECT_EQ(after, before);
}

TEST_F(FailedReleases, MemoryThatALostDeviceHasRegisteredIsOrdinaryMemoryToTheOthers) {  // keeps R2, K22
    std::vector<Device*> gpus;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        Device* const each = runtime().device(at).value();
        if (!each->is_cpu()) gpus.push_back(each);
    }
    if (gpus.size() < 2) GTEST_SKIP() << "there is one GPU";
    Device& lost = *gpus[1];
    Owned memory;
    Buffer<std::int32_t> buffer = lost.adopt<std::int32_t>(memory.numbers(), count, memory.options()).value();
    const View<std::int32_t> nowhere{reinterpret_cast<std::int32_t*>(std::uintptr_t{0x10}), count};
    (void)lost.stream().launch(add_one, count, nowhere);
    EXPECT_FALSE(lost.synchronize().ok());
    ASSERT_FALSE(lost.healthy());
    EXPECT_TRUE(buffer.release().ok());
    EXPECT_EQ(memory.told(), 1) << "a lost device uses nothing any more";
    EXPECT_EQ(wrong_after_copy(*gpus[0], memory.numbers()), 0u);
    for (std::size_t i = 0; i < count; ++i) memory.numbers()[i] = 3;
    Buffer<std::int32_t> again = gpus[0]->adopt<std::int32_t>(memory.numbers(), count).value();
    (void)gpus[0]->stream().launch(add_one, count, again).value();
    EXPECT_EQ(again.read_on_host().value()[9], 4);
    EXPECT_TRUE(again.release().ok());
    EXPECT_EQ(wrong_after_copy(*gpus[0], memory.numbers()), 0u);
}

// A caller's allocator that cannot deallocate now.
struct Refusing {
    bool* refuses;
    int* released;
    Result<MemoryBlock> allocate(const AllocationRequest& request) {
        MemoryBlock block;
        block.host = std::aligned_alloc(256, (request.bytes + 255) / 256 * 256);
        block.bytes = request.bytes;
        block.kind = MemoryKind::host;
        return block;
    }
    Result<void> release(const MemoryBlock& block, Stream*) {
        if (*refuses) return Error(Code::system_error, "not now", "later");
        ++*released;
        std::free(block.host);
        return {};
    }
};

TEST_F(FailedReleases, AnAllocatorThatRefusesLeavesTheBufferItsMemory) {  // keeps K17, K12
    bool refuses = true;
    int released = 0;
    Buffer<std::int32_t> buffer = runtime().cpu().allocate<std::int32_t>(count, Refusing{&refuses, &released}).value();
    buffer.write_on_host().value()[3] = 4;
    EXPECT_EQ(buffer.release().code(), Code::system_error);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.read_on_host().value()[3], 4);
    refuses = false;
    EXPECT_TRUE(buffer.release().ok());
    EXPECT_EQ(released, 1);
    EXPECT_FALSE(buffer);
}

}  // namespace
}  // namespace conformance
