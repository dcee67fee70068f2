// SPDX-License-Identifier: Apache-2.0
// Objects that end in an unfavourable order: moved-from handles, captures dropped on another thread, streams destroyed
// before their buffers, and a free beside a capture that begins.
#include "components.hpp"
#include "fake_device.hpp"

#include "buffer_state.hpp"
#include "memory_source.hpp"
#include "piece_release.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

ISTHMUS_KERNEL(double_it, isthmus::Index i, isthmus::View<int> data) {
    data[i] = static_cast<int>(static_cast<unsigned>(data[i]) * 2U);  // for any content of the memory, without overflow
}

using isthmus::AllocationRequest;
using isthmus::Allocator;
using isthmus::Buffer;
using isthmus::Capture;
using isthmus::Code;
using isthmus::Device;
using isthmus::Graph;
using isthmus::GraphInstance;
using isthmus::MemoryBlock;
using isthmus::MemoryKind;
using isthmus::MemoryPool;
using isthmus::Result;
using isthmus::Stream;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;

struct Lifetimes : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    Stream& stream = device.stream();
};

// Holds the blocks that the heap has free of this size and somewhat more, aligned to a cache line or not.
class TakenFromHeap {
public:
    explicit TakenFromHeap(std::size_t bytes) {
        constexpr std::size_t step = 16, most_more = 192;
        for (std::size_t more = 0; more <= most_more; more += step) {
            for (int times = 0; times < 16; ++times) {
                aligned_.push_back(::operator new(bytes + more, line));
                others_.push_back(::operator new(bytes + more));
            }
        }
    }
    TakenFromHeap(const TakenFromHeap&) = delete;
    TakenFromHeap& operator=(const TakenFromHeap&) = delete;
    ~TakenFromHeap() {
        for (void* const block : aligned_) ::operator delete(block, line);
        for (void* const block : others_) ::operator delete(block);
    }
    bool holds(std::uintptr_t address) const {
        const auto there = [address](const void* block) { return reinterpret_cast<std::uintptr_t>(block) == address; };
        return std::any_of(aligned_.begin(), aligned_.end(), there) ||
               std::any_of(others_.begin(), others_.end(), there);
    }

private:
    static constexpr std::align_val_t line{64};
    std::vector<void*> aligned_, others_;
};

// The device keeps the memory of a buffer's state for the next one. What a launch and a claim read lies in its first
// cache line, what a view changes in its second.
TEST_F(Lifetimes, TheStateOfABufferLiesInMemoryThatIsKept) {  // keeps M2
    std::optional<Buffer<int>> first = device.allocate<int>(4).value();
    const Buffer<int> second = device.allocate<int>(4).value();
    const isthmus::detail::BufferState& state = *first->state();
    const auto address = [](const auto& member) { return reinterpret_cast<std::uintptr_t>(&member); };
    const std::uintptr_t begin = address(state);
    const auto line = [&](std::uintptr_t byte) { return (byte - begin) / 64; };
    EXPECT_EQ(begin % 64, 0u);
    EXPECT_EQ(line(address(state.first_use)), 0u);
    EXPECT_EQ(line(address(state.device)), 0u);
    EXPECT_EQ(line(address(state.memory)), 0u);
    EXPECT_EQ(line(address(state.memory) + sizeof state.memory - 1), 0u);
    EXPECT_EQ(line(address(state.views)), 1u) << "the word of the lock and of the views";
    first.reset();
    const TakenFromHeap taken(sizeof(isthmus::detail::BufferState));  // so that the address is not the heap's choice
    EXPECT_FALSE(taken.holds(begin)) << "the memory went back to the heap";
    first = device.allocate<int>(4).value();
    EXPECT_EQ(address(*first->state()), begin);
    EXPECT_NE(address(*second.state()), begin);
}

// Views keep the state after its last owner; its memory is kept for the next buffer when they end, not before.
TEST_F(Lifetimes, TheMemoryOfAStateThatAViewHoldsIsNotHandedOut) {  // keeps M2
    const auto shared = [&] { return device.allocate_host<int>(4).value(); };
    std::optional<Buffer<int>> buffer = shared();
    const void* const begin = buffer->state().get();
    {
        const auto view = buffer->read_write_on_host().value();
        buffer.reset();
        const Buffer<int> other = shared();
        EXPECT_NE(other.state().get(), begin);
        view[3] = 7;
    }
    EXPECT_EQ(shared().state().get(), begin);
}

TEST_F(Lifetimes, ACaptureDroppedByAnotherThreadIsEndedByItsOwnAtTheNextUse) {  // keeps K10, S19
    NEEDS(graph);
    Buffer<int> data = device.allocate<int>(4).value();
    Buffer<int> freed_meanwhile = device.allocate<int>(4).value();
    std::optional<Capture> capture = stream.begin_capture().value();
    ASSERT_TRUE(stream.launch(double_it, 4, data).ok());
    freed_meanwhile = {};
    EXPECT_EQ(world.memory.size(), 2u) << "put off";
    std::thread([&] {
        capture.reset();
        EXPECT_EQ(stream.launch(double_it, 4, data).code(), Code::capture_error) << "nobody else can end it";
        EXPECT_EQ(stream.synchronize().code(), Code::capture_error);
        EXPECT_EQ(stream.record().code(), Code::capture_error);
    }).join();
    EXPECT_EQ(world.memory.size(), 1u) << "a graph that never comes to be holds nothing up";
    EXPECT_EQ(world.count("end capture"), 0u);
    ASSERT_TRUE(stream.launch(double_it, 4, data).ok());
    EXPECT_TRUE(world.capturing.empty());
    EXPECT_TRUE(world.graphs.empty()) << "thrown away";
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_TRUE(data.release().ok()) << "no graph holds it";
    EXPECT_TRUE(stream.begin_capture().ok());
}

TEST_F(Lifetimes, AStreamEndsWithTheCaptureThatWasGivenUpOnIt) {
    NEEDS(graph);
    {
        Stream other = device.create_stream().value();
        std::optional<Capture> capture = other.begin_capture().value();
        std::thread([&] { capture.reset(); }).join();
    }
    EXPECT_TRUE(world.capturing.empty());
    EXPECT_TRUE(world.graphs.empty());
    EXPECT_TRUE(world.streams.size() <= 1) << "the device's own at most";
}

TEST_F(Lifetimes, ACaptureThatBeginsBesideAFreeIsNotMadeToWaitForOutsideWork) {  // keeps S19
    NEEDS(graph);
    Stream captured = device.create_stream().value();
    Buffer<int> data = stream.allocate<int>(4).value();
    ASSERT_TRUE(stream.launch(double_it, 4, data).ok());
    ASSERT_TRUE(captured.launch(double_it, 4, data).ok());
    const MemoryBlock block = device.allocator(MemoryKind::pool).allocate({.bytes = 16, .stream = &stream}).value();
    const Capture capture = captured.begin_capture().value();
    // A thread that found no capture open continues its free while this capture begins.
    world.calls.clear();
    EXPECT_EQ(captured.state()->wait_behind(isthmus::platform::EventHandle{1}, *captured.state(), 0).code(),
              Code::capture_error);
    EXPECT_EQ(world.count("wait"), 0u);
    isthmus::detail::Piece piece = runtime.books->ledger.take(block, 0).value();
    EXPECT_TRUE(isthmus::detail::free_now(*device.state(), piece, captured.state().get()).ok());
    EXPECT_NE(world.released_on, static_cast<std::uintptr_t>(captured.state()->handle));
    EXPECT_EQ(world.count("release pool"), 1u);
}

TEST_F(Lifetimes, CopiesAndFillsThroughTheHostAreNotDoneDuringACapture) {
    NEEDS(graph);
    FakeWorld second;
    Device elsewhere(runtime.open(second, discrete_facts(1)));
    Buffer<int> here = device.allocate<int>(4, MemoryKind::pinned).value();
    Buffer<int> there = elsewhere.allocate<int>(4, MemoryKind::pinned).value();
    here.write_on_host().value()[0] = 1;
    there.write_on_host().value()[0] = 2;
    {
        Capture capture = stream.begin_capture().value();
        EXPECT_EQ(stream.copy(here, there).code(), Code::capture_error);
        EXPECT_EQ(stream.fill_bytes(there, 0).code(), Code::capture_error);
        EXPECT_TRUE(capture.end().ok()) << "unharmed";
    }
    EXPECT_EQ(here.read_on_host().value()[0], 1);
    EXPECT_EQ(there.read_on_host().value()[0], 2);
    EXPECT_TRUE(stream.copy(here, there).ok());
    EXPECT_EQ(here.read_on_host().value()[0], 2);
}

TEST_F(Lifetimes, ABufferThatStaysKeepsNoStreamsThatAreDone) {
    Buffer<int> shared = device.allocate<int>(4, MemoryKind::pinned).value();
    Buffer<int> own = device.allocate<int>(4).value();
    for (int round = 0; round < 50; ++round) {
        Stream brief = device.create_stream().value();
        ASSERT_TRUE(brief.launch(double_it, 4, shared).ok());
        ASSERT_TRUE(brief.launch(double_it, 4, own).ok());
        ASSERT_TRUE(brief.synchronize().ok());
    }
    EXPECT_LE(world.streams.size(), 4u);
    EXPECT_LE(shared.state()->uses().size(), 2u);
    EXPECT_LE(own.state()->uses().size(), 2u);
    // A stream that a handle still holds stays in the list: its next work may have to be ordered after a copy by
    // another device.
    Stream held = device.create_stream().value();
    ASSERT_TRUE(held.launch(double_it, 4, shared).ok());
    ASSERT_TRUE(held.synchronize().ok());
    Stream later = device.create_stream().value();
    ASSERT_TRUE(later.launch(double_it, 4, shared).ok());
    const auto uses = shared.state()->uses();
    EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [&](const auto& use) { return use.stream == held.state(); }));
    // Work that still runs is waited for.
    {
        Stream brief = device.create_stream().value();
        shared.write_on_host().value()[0] = 21;
        ASSERT_TRUE(brief.launch(double_it, 4, shared).ok());
    }
    ASSERT_TRUE(stream.launch(double_it, 4, own).ok());
    EXPECT_EQ(shared.read_on_host().value()[0], 42);
}

TEST_F(Lifetimes, AnInstanceThatWasGivenUpStillCounts) {  // keeps R5, K13
    NEEDS(graph);
    Capture capture = stream.begin_capture().value();
    Buffer<int> within = stream.allocate<int>(4).value();
    ASSERT_TRUE(stream.launch(double_it, 4, within).ok());
    Graph graph = capture.end().value();
    {
        const GraphInstance instance = graph.instantiate().value();
        EXPECT_EQ(graph.instantiate().code(), Code::in_use);
        ASSERT_TRUE(stream.launch(instance).ok());
        world.stuck = true;
    }
    EXPECT_EQ(world.instances.size(), 1u) << "left to the driver";
    EXPECT_EQ(graph.instantiate().code(), Code::in_use) << "the driver has it still";
    world.stuck = false;
}

// They have copies for moves; that a caller may not know this is what the test is about.
// NOLINTBEGIN(performance-move-const-arg,bugprone-use-after-move)
TEST_F(Lifetimes, HandlesThatWereMovedFromNameWhatTheyNamed) {
    NEEDS(graph);
    MemoryPool pool = device.create_pool().value();
    const MemoryPool pools_too = std::move(pool);
    EXPECT_EQ(pool.kind(), MemoryKind::pool);
    EXPECT_TRUE(pool.usage().ok());
    Capture capture = stream.begin_capture().value();
    Graph graph = capture.end().value();
    const Graph graphs_too = std::move(graph);
    EXPECT_EQ(graph.size(), 0u);
    GraphInstance instance = graph.instantiate().value();
    const GraphInstance instances_too = std::move(instance);
    EXPECT_TRUE(stream.launch(instance).ok());
    isthmus::StatisticsAllocator statistics(device.allocator(MemoryKind::pinned));
    device.set_allocator(std::move(statistics));
    const Buffer<int> counted = device.allocate<int>(4).value();
    EXPECT_EQ(statistics.counters().current_blocks, 1u);
}
// NOLINTEND(performance-move-const-arg,bugprone-use-after-move)

// An allocator that returns more or less than requested, or another kind.
struct Answering {
    Allocator upstream;
    std::ptrdiff_t more = 0;
    MemoryKind kind = MemoryKind::unknown;
    std::optional<std::uint64_t> id = std::nullopt;

    Result<MemoryBlock> allocate(const AllocationRequest& request) const {
        AllocationRequest larger = request;
        if (more > 0) larger.bytes += static_cast<std::size_t>(more);
        Result<MemoryBlock> made = upstream.allocate(larger);
        if (!made) return made;
        if (more < 0) made->bytes -= static_cast<std::size_t>(-more);
        if (kind != MemoryKind::unknown) made->kind = kind;
        if (id) made->id = *id;
        return made;
    }
    Result<void> release(const MemoryBlock& block, isthmus::Stream* after) const {
        return upstream.release(block, after);
    }
};

TEST_F(Lifetimes, AdaptorsTakeOffWhatTheyCountedWhereTheUpstreamRoundsUp) {
    isthmus::LimitAllocator limit(Answering{device.allocator(MemoryKind::pinned), 100}, 1000);
    isthmus::StatisticsAllocator statistics(limit);
    for (int round = 0; round < 3; ++round) {
        Buffer<char> one = device.allocate<char>(200, statistics).value();
        EXPECT_EQ(limit.used_bytes(), 300u);
        EXPECT_EQ(statistics.counters().current_bytes, 300u);
    }
    EXPECT_EQ(limit.used_bytes(), 0u);
    EXPECT_EQ(statistics.counters().current_bytes, 0u);
    EXPECT_EQ(statistics.counters().peak_bytes, 300u);
}

TEST_F(Lifetimes, AnAllocatorThatAnswersWithGraphMemoryIsRefused) {  // keeps K17
    const Answering liar{device.allocator(MemoryKind::pinned), 0, MemoryKind::graph, 0};
    EXPECT_EQ(device.allocate<int>(4, liar).code(), Code::invalid_argument);
    EXPECT_EQ(stream.allocate<int>(4, liar).code(), Code::invalid_argument);
}

TEST_F(Lifetimes, PoolMemoryOfARefusedAnswerIsFreedBehindItsAllocation) {  // keeps K17
    const Answering too_small{device.allocator(MemoryKind::pool), -1};
    EXPECT_EQ(stream.allocate<int>(4, too_small).code(), Code::invalid_argument);
    EXPECT_EQ(world.count("release pool"), 1u);
    EXPECT_EQ(world.released_on, static_cast<std::uintptr_t>(stream.state()->handle));
}

TEST_F(Lifetimes, PagesThatTheDeviceMayStillReachStayMappedUntilTheDriverLetsGo) {  // keeps R6
    Buffer<char> buffer = device.allocate<char>(4096, MemoryKind::registered).value();
    auto* const bytes = static_cast<volatile char*>(buffer.state()->memory->host);
    world.calls.clear();
    world.fail_at = 1;
    EXPECT_TRUE(buffer.release().ok());
    EXPECT_EQ(world.calls.front(), "unregister");
    bytes[0] = 7;  // would be SIGSEGV
    EXPECT_EQ(bytes[0], 7);
    EXPECT_EQ(world.registrations.size(), 1u);
    EXPECT_EQ(device.state()->unreturned.bytes(), 4096u);
    EXPECT_TRUE(device.allocate<int>(4).ok()) << "an allocation tries again";
    EXPECT_TRUE(world.registrations.empty());
    EXPECT_FALSE(device.state()->unreturned.any());
}

TEST_F(Lifetimes, WhatTheDriverDoesNotTakeBackWaitsForCapturesAndServices) {  // keeps K10, R6
    NEEDS(graph);
    isthmus::detail::RunningServices& services = device.state()->services;
    Buffer<int> buffer = device.allocate<int>(4, MemoryKind::pinned).value();
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_TRUE(buffer.release().ok());
    const std::size_t tried = world.count("release");
    {
        Capture capture = stream.begin_capture().value();
        (void)device.allocator(MemoryKind::host).allocate({.bytes = 64}).value();
        EXPECT_EQ(world.count("release"), tried) << "a graph may be about to use it";
        EXPECT_TRUE(capture.end().ok());
    }
    const std::uint64_t service =
        services.begin("answering", isthmus::detail::Deadline(isthmus::Wait::never(), {}), isthmus::WaitPolicy::spin)
            .value();
    (void)device.allocator(MemoryKind::host).allocate({.bytes = 64}).value();
    EXPECT_EQ(world.count("release"), tried) << "freeing pinned memory waits for the service";
    EXPECT_TRUE(device.state()->unreturned.any());
    services.end(service);
    (void)device.allocator(MemoryKind::host).allocate({.bytes = 64}).value();
    EXPECT_EQ(world.count("release"), tried + 1);
    EXPECT_FALSE(device.state()->unreturned.any());
}

TEST_F(Lifetimes, AScopeOfADeviceThatIsGoneSaysNothingOfTheNextOne) {  // keeps K5
    FakeWorld first;
    std::optional<Device> gone(runtime.open(first));
    const isthmus::StatisticsAllocator statistics(device.allocator(MemoryKind::pinned));
    const isthmus::ScopedAllocator scope(*gone, statistics);
    gone.reset();
    for (int round = 0; round < 8; ++round) {
        FakeWorld next;
        const Device another(runtime.open(next));
        EXPECT_EQ(another.current_allocator(), another.allocator(MemoryKind::device));
    }
}

TEST_F(Lifetimes, TheEndOfAnOutOfMemoryHandlerMayCallTheDevice) {  // keeps K19
    struct AtItsEnd {
        Device* device;
        explicit AtItsEnd(Device* called) : device(called) {}
        AtItsEnd(const AtItsEnd&) = delete;
        AtItsEnd& operator=(const AtItsEnd&) = delete;
        ~AtItsEnd() { device->set_out_of_memory_handler({}); }
    };
    auto end = std::make_shared<AtItsEnd>(&device);
    device.set_out_of_memory_handler([end = std::move(end)](std::size_t) { return false; });
    device.set_out_of_memory_handler({});
    EXPECT_TRUE(device.allocate<int>(4).ok());
}

TEST_F(Lifetimes, ABufferThatAHostFunctionLetGoOfIsNotFreedDuringACapture) {  // keeps K10, S20
    NEEDS(graph);
    Buffer<int> dropped = device.allocate<int>(4).value();
    isthmus::process::here.in_host_function = true;
    dropped = {};
    isthmus::process::here.in_host_function = false;
    EXPECT_EQ(world.memory.size(), 1u);
    {
        Capture capture = stream.begin_capture().value();
        runtime.books->after_host_functions.drain();
        EXPECT_EQ(world.memory.size(), 1u) << "a graph may be about to use it";
        EXPECT_TRUE(capture.end().ok());
    }
    EXPECT_TRUE(world.memory.empty());
}

TEST_F(Lifetimes, PoolMemoryIsFreedBehindItsLastUseElsewhereOrNotAtAll) {  // keeps R5
    FakeWorld second;
    Device elsewhere(runtime.open(second, discrete_facts(1)));
    Stream after = elsewhere.create_stream().value();
    Buffer<int> busy = elsewhere.allocate<int>(4).value();
    const Allocator pool = device.allocator(MemoryKind::pool);
    for (const bool stuck : {false, true}) {
        AllocationRequest request;
        request.bytes = 64;
        const MemoryBlock block = pool.allocate(request).value();
        ASSERT_TRUE(after.launch(double_it, 4, busy).ok());
        second.stuck = stuck;
        world.fail_at = static_cast<int>(world.calls.size()) + 1;  // the wait of the pool's stream
        EXPECT_EQ(pool.release(block, &after).code(), stuck ? Code::timed_out : Code::ok);
        EXPECT_EQ(world.calls.back(), stuck ? "wait" : "release pool");
        EXPECT_EQ(after.completed(after.state()->issued), !stuck) << "the host waited instead";
        EXPECT_EQ(world.memory.contains(block.device), stuck);
    }
    second.stuck = false;
}

TEST_F(Lifetimes, ADeviceWhoseLastWorkCannotBeAskedForIsLeftOpen) {  // keeps R5
    static FakeWorld hung;                                           // its driver stays until the process ends
    std::shared_ptr<isthmus::detail::DeviceState> ending = runtime.open(hung, discrete_facts(1));
    isthmus::platform::StreamHandle running{};
    isthmus::detail::FenceEvent* last = nullptr;
    ASSERT_TRUE(ending->execution.create_stream(0, running).ok());
    ASSERT_TRUE(ending->take_event(last).ok());
    ASSERT_TRUE(ending->execution.record_event(last->handle, running).ok());
    ending->outlive(last);
    hung.stuck = true;
    hung.fail_at = static_cast<int>(hung.calls.size()) + 1;
    ending.reset();
    EXPECT_EQ(hung.calls.back(), "query");
    EXPECT_EQ(hung.count("destroy event"), 0u) << "one failed call tells nothing";
}

}  // namespace
