// SPDX-License-Identifier: Apache-2.0
// Allocators of a device, call by call: what is refused before the driver is called, what is undone, what is postponed.
#include "request.hpp"
#include "fake_device.hpp"

#include "buffer_memory.hpp"
#include "buffer_state.hpp"
#include "memory_source.hpp"
#include "process.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using isthmus::AllocationRequest;
using isthmus::Allocator;
using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::Error;
using isthmus::MemoryBlock;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::ScopedAllocator;
using isthmus::Stream;
using isthmus::testing::bytes;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::with;

struct Sources : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
};

const std::vector<MemoryKind> driver_kinds = {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed,
                                              MemoryKind::write_combined, MemoryKind::registered};

TEST_F(Sources, DeviceMemoryIsOneCallAndItsReleaseOne) {  // keeps K4
    const Allocator allocator = device.allocator(MemoryKind::device);
    const MemoryBlock block = allocator.allocate(bytes(64)).value();
    EXPECT_EQ(world.calls, std::vector<std::string>{"allocate device"});
    EXPECT_NE(block.id, 0u);
    EXPECT_EQ(block.host, nullptr);
    EXPECT_EQ(block.kind, MemoryKind::device);
    EXPECT_EQ(runtime.books->addresses.find(block.device + 63).id, block.id);
    world.calls.clear();
    EXPECT_TRUE(allocator.release(block).ok());
    EXPECT_EQ(world.calls, std::vector<std::string>{"release device"});
    EXPECT_EQ(runtime.books->addresses.size(), 0u);
    EXPECT_EQ(runtime.books->ledger.size(), 0u);
}

TEST_F(Sources, AnAllocatorIsMadeWithoutACallAndRefusesWhatTheDeviceLacks) {  // keeps K7
    FakeWorld bare;
    auto facts = discrete_facts(1);
    for (const int lacks : {83, 99, 115}) facts = with(facts, lacks, 0);
    Device poor(runtime.open(bare, facts));
    for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::registered, MemoryKind::pool,
                                  MemoryKind::managed_pool, MemoryKind::vmm, MemoryKind::graph}) {
        const Allocator allocator = poor.allocator(kind);
        const Result<MemoryBlock> refused = allocator.allocate(bytes(64));
        EXPECT_EQ(refused.code(), Code::unsupported) << isthmus::name(kind);
        EXPECT_FALSE(refused.error().remedy().empty());
    }
    EXPECT_TRUE(bare.calls.empty());
    EXPECT_TRUE(poor.allocator(MemoryKind::pinned).allocate(bytes(64)).ok());
    EXPECT_EQ(poor.allocator(MemoryKind::pinned), poor.allocator(MemoryKind::pinned));
    FakeWorld old;
    old.has_pools = false;
    Device outdated(runtime.open(old, discrete_facts(2)));
    const Result<MemoryBlock> refused = outdated.allocator(MemoryKind::pool).allocate(bytes(64));
    ASSERT_EQ(refused.code(), Code::unsupported);
    EXPECT_EQ(refused.error().message(), "this driver lacks functions that memory pools need");
    EXPECT_TRUE(old.calls.empty());
    EXPECT_TRUE(outdated.allocator(MemoryKind::device).allocate(bytes(64)).ok());
}

struct alignas(256) Aligned {
    int number;
};
struct alignas(4096) OnAPage {
    int number;
};
struct alignas(8192) TooAligned {
    int number;
};

TEST_F(Sources, AbsurdRequestsAreRefusedBeforeAnyCall) {  // keeps K18
    const Allocator allocator = device.allocator(MemoryKind::device);
    AllocationRequest request = bytes(64);
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{8192}}) {
        request.alignment = alignment;
        EXPECT_EQ(allocator.allocate(request).code(), Code::invalid_argument) << alignment;
    }
    EXPECT_EQ(allocator.allocate(bytes(std::numeric_limits<std::size_t>::max())).code(), Code::invalid_argument);
    const Result<Buffer<TooAligned>> coarse = device.allocate<TooAligned>(1);
    ASSERT_EQ(coarse.code(), Code::invalid_argument);
    EXPECT_EQ(coarse.error().message(),
              "an alignment of 8192 bytes; at most 4096 are kept for this memory, which is one page");
    EXPECT_TRUE(allocator.allocate(bytes(0)).ok());
    EXPECT_TRUE(world.calls.empty());
    request.alignment = 256;
    EXPECT_TRUE(allocator.allocate(request).ok());
    EXPECT_TRUE(device.allocate<Aligned>(1).ok());
}

TEST_F(Sources, ACoarseAlignmentIsCutOutOfOneLargerAllocationOfTheDriver) {  // keeps K18
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed}) {
        const Allocator allocator = device.allocator(kind);
        AllocationRequest request = bytes(100);
        request.alignment = 4096;
        world.calls.clear();
        const MemoryBlock block = allocator.allocate(request).value();
        EXPECT_EQ(world.count("allocate"), 1u) << "one call, whatever the alignment";
        const auto host = reinterpret_cast<std::uintptr_t>(block.host);
        EXPECT_EQ((host != 0 ? host : block.device) % 4096, 0u);
        EXPECT_EQ(block.bytes, 100u);
        EXPECT_EQ(runtime.books->addresses.find(block.device + 99).id, block.id);
        EXPECT_TRUE(allocator.release(block).ok());
        EXPECT_TRUE(world.memory.empty()) << "freed by the address that the driver gave";
    }
}

TEST_F(Sources, AnElementMayBeAlignedToAPage) {  // keeps K18
    const Buffer<OnAPage> aligned = device.allocate<OnAPage>(3, MemoryKind::pinned).value();
    EXPECT_EQ(aligned.device_address() % 4096, 0u);
}

TEST_F(Sources, ABlockGoesBackThroughAnyAllocatorOfItsDeviceAndOnlyOnce) {  // keeps K8, K9
    FakeWorld second;
    Device other(runtime.open(second, discrete_facts(1)));
    const MemoryBlock block = device.allocator(MemoryKind::pinned).allocate(bytes(64)).value();
    EXPECT_EQ(other.allocator(MemoryKind::pinned).release(block).code(), Code::wrong_device);
    EXPECT_EQ(world.count("release"), 0u);
    EXPECT_TRUE(device.allocator(MemoryKind::device).release(block).ok());
    EXPECT_EQ(world.count("release pinned"), 1u) << "by its recorded kind";
    EXPECT_EQ(device.allocator(MemoryKind::pinned).release(block).code(), Code::already_released);
    EXPECT_TRUE(device.allocator(MemoryKind::pinned).release(MemoryBlock{}).ok()) << "nothing to give back";
    EXPECT_EQ(world.count("release"), 1u);
    EXPECT_TRUE(second.calls.empty());
}

TEST_F(Sources, WithAnOpenCaptureOnTheThreadNothingIsAskedOfTheDriver) {  // keeps K13
    runtime.books->captures.begun();
    for (const MemoryKind kind : driver_kinds) {
        const Result<MemoryBlock> refused = device.allocator(kind).allocate(bytes(64));
        EXPECT_EQ(refused.code(), Code::capture_error) << isthmus::name(kind);
    }
    EXPECT_EQ(device.allocator(MemoryKind::pool).allocate(bytes(64)).code(), Code::capture_error);
    EXPECT_EQ(device.stream().allocate<int>(4).code(), Code::capture_error) << "the pool is not warm";
    EXPECT_EQ(device.create_pool().code(), Code::capture_error);
    EXPECT_TRUE(world.calls.empty());
    EXPECT_TRUE(device.allocator(MemoryKind::host).allocate(bytes(64)).ok()) << "no driver is needed for that";
    runtime.books->captures.ended();
    EXPECT_TRUE(device.allocator(MemoryKind::device).allocate(bytes(64)).ok());
}

TEST_F(Sources, ReleasesDuringACaptureAreDoneInOrderBehindIt) {  // keeps K10
    const Allocator pinned = device.allocator(MemoryKind::pinned);
    const MemoryBlock first = pinned.allocate(bytes(64)).value();
    const MemoryBlock second = device.allocator(MemoryKind::device).allocate(bytes(64)).value();
    Buffer<int> third = device.allocate<int>(16, MemoryKind::managed).value();
    Buffer<int> fourth = device.allocate<int>(16).value();
    world.calls.clear();
    runtime.books->captures.begun();
    EXPECT_TRUE(pinned.release(first).ok());
    std::thread([&] {
        EXPECT_TRUE(pinned.release(second).ok()) << "any capture, whichever thread has begun it";
    }).join();
    EXPECT_TRUE(third.release().ok());
    fourth = {};
    EXPECT_TRUE(world.calls.empty());
    EXPECT_EQ(pinned.release(first).code(), Code::already_released);
    EXPECT_EQ(device.state()->put_off_bytes.load(), 128u);
    runtime.books->captures.ended();
    EXPECT_EQ(world.calls,
              (std::vector<std::string>{"release pinned", "release device", "release managed", "release device"}));
    EXPECT_EQ(device.state()->put_off_bytes.load(), 0u);
    EXPECT_TRUE(world.memory.empty());
}

TEST_F(Sources, MemoryOfADeadContextIsReleasedInTheBooksOnly) {  // keeps K11
    std::vector<MemoryBlock> blocks;
    for (const MemoryKind kind : driver_kinds) blocks.push_back(device.allocator(kind).allocate(bytes(64)).value());
    const MemoryBlock pooled = device.allocator(MemoryKind::pool).allocate(bytes(64)).value();
    world.calls.clear();
    world.died = true;
    const Allocator any = device.allocator(MemoryKind::device);
    for (const MemoryBlock& block : blocks) EXPECT_TRUE(any.release(block).ok());
    EXPECT_TRUE(world.calls.empty());
    EXPECT_EQ(any.release(blocks[0]).code(), Code::already_released);
    EXPECT_TRUE(any.release(pooled).ok());
    EXPECT_EQ(world.count("release pool"), 1u) << "pool memory survives its context";
    EXPECT_EQ(runtime.books->ledger.size(), 0u);
    world.forget_memory();
}

TEST_F(Sources, AfterAFaultNoDriverIsAskedToFreeAnything) {  // keeps K11, R2
    const MemoryBlock block = device.allocator(MemoryKind::pinned).allocate(bytes(64)).value();
    const MemoryBlock pooled = device.allocator(MemoryKind::pool).allocate(bytes(64)).value();
    (void)device.state()->failure({Code::device_lost, 700, "launch"}, "a launch");
    world.calls.clear();
    EXPECT_TRUE(device.allocator(MemoryKind::device).release(block).ok());
    EXPECT_TRUE(device.allocator(MemoryKind::device).release(pooled).ok());
    EXPECT_TRUE(world.calls.empty());
    EXPECT_EQ(device.allocator(MemoryKind::device).allocate(bytes(64)).code(), Code::device_lost);
    EXPECT_TRUE(device.allocator(MemoryKind::host).allocate(bytes(64)).ok()) << "needs no device";
    world.forget_memory();
}

TEST_F(Sources, WhatIsNeverGivenBackIsFreedWhenTheDeviceCloses) {  // keeps K11
    FakeWorld closing;
    {
        Device other(runtime.open(closing, discrete_facts(1)));
        for (const MemoryKind kind : driver_kinds) (void)other.allocator(kind).allocate(bytes(64)).value();
        (void)other.allocator(MemoryKind::pool).allocate(bytes(64)).value();
    }
    EXPECT_TRUE(closing.clean());
    EXPECT_EQ(runtime.books->addresses.size(), 0u);
}

TEST_F(Sources, ShortOfMemoryThePoolsGiveBackFirst) {  // keeps K19
    { const auto pooled = device.stream().allocate<int>(1 << 10).value(); }
    world.calls.clear();
    world.fail_at = 1;
    world.fail_code = Code::out_of_memory;
    EXPECT_TRUE(device.allocator(MemoryKind::device).allocate(bytes(64)).ok());
    EXPECT_EQ(world.calls, (std::vector<std::string>{"allocate device", "trim pool", "allocate device"}));
}

TEST_F(Sources, ShortOfMemoryTheHandlerIsAskedUntilItGivesUp) {  // keeps K19
    const Allocator allocator = device.allocator(MemoryKind::device);
    MemoryBlock held = allocator.allocate(bytes(4096)).value();
    std::vector<std::size_t> asked;
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::out_of_memory;
    world.sticky = true;
    device.set_out_of_memory_handler([&](std::size_t wanted) {
        asked.push_back(wanted);
        return asked.size() < 3;
    });
    const Result<MemoryBlock> refused = allocator.allocate(bytes(64));
    ASSERT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_EQ(asked, (std::vector<std::size_t>{64, 64, 64}));
    for (const char* part : {"64 bytes", "free", "cached", "pending"}) {
        EXPECT_NE(refused.error().message().find(part), std::string_view::npos) << refused.error().text();
    }
    asked.clear();
    world.sticky = world.failing = false;
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    device.set_out_of_memory_handler([&](std::size_t) { return allocator.release(std::exchange(held, {})).ok(); });
    EXPECT_TRUE(allocator.allocate(bytes(64)).ok()) << "the handler made room";
    EXPECT_FALSE(held);
}

// A large piece that served a small request is too much as soon as it has left its lane.
TEST(KeptSources, ShortOfMemoryWhatOnlyALaneKeptMakesRoom) {  // keeps M5
    FakeWorld world;
    FakeRuntime runtime;
    runtime.config->cache_bytes = 256 << 20;
    Device device(runtime.open(world));
    const Allocator allocator = device.allocator(MemoryKind::pinned);
    const Allocator uncached = isthmus::detail::MemorySource(device.state(), MemoryKind::device).uncached();
    ASSERT_TRUE(allocator.release(allocator.allocate(bytes(4 << 20)).value()).ok());
    const MemoryBlock small = allocator.allocate(bytes(8192)).value();
    ASSERT_EQ(device.trim_cache().value(), 0u);
    ASSERT_TRUE(allocator.release(small).ok());
    ASSERT_EQ(device.cache_usage().kept_bytes, 4u << 20);
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::out_of_memory;
    const Result<MemoryBlock> made = uncached.allocate(bytes(64));
    ASSERT_TRUE(made.ok()) << made.error().text();
    EXPECT_EQ(device.cache_usage().kept_bytes, 0u);
    EXPECT_TRUE(uncached.release(*made).ok());
}

// Small buffers share a slab, whose size is nothing that the program asked for.
TEST(SmallSources, ShortOfMemoryForASlabTheSizeThatWasAskedForIsNamed) {  // keeps K19
    FakeWorld world;
    FakeRuntime runtime;
    runtime.config->cache_bytes = 64 << 20;
    Device device(runtime.open(world));
    isthmus::SharedUse use;
    use.kind = MemoryKind::pinned;
    std::vector<Buffer<std::uint8_t>> live;
    const auto until_the_driver_is_asked = [&]() -> Result<void> {
        for (const std::size_t calls = world.calls.size(); world.calls.size() == calls;) {
            auto made = device.allocate_shared<std::uint8_t>(64, use);
            if (!made) return made.error();
            live.push_back(std::move(made).value());
        }
        return {};
    };
    while (live.size() < 400) ASSERT_TRUE(until_the_driver_is_asked().ok());  // the next slab is larger than a page
    std::vector<std::size_t> asked;
    device.set_out_of_memory_handler([&](std::size_t wanted) {
        asked.push_back(wanted);
        return asked.size() < 3;
    });
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::out_of_memory;
    EXPECT_TRUE(until_the_driver_is_asked().ok()) << "a page serves where a larger slab does not";
    EXPECT_TRUE(asked.empty());
    { const auto kept = device.allocate_shared<std::uint8_t>(4 << 20, use); }
    ASSERT_GE(device.state()->cache.usage().bytes, 4u << 20);
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_TRUE(until_the_driver_is_asked().ok());
    EXPECT_LT(device.state()->cache.usage().bytes, 1u << 20) << "what is kept goes back before pages serve";
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.sticky = true;
    const Result<void> refused = until_the_driver_is_asked();
    ASSERT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_EQ(asked, (std::vector<std::size_t>{64, 64, 64}));
    const std::string_view message = refused.error().message();
    EXPECT_NE(message.find(" 64 bytes of pinned memory were requested"), std::string_view::npos) << message;
    world.sticky = world.failing = false;
    live.clear();  // as a runtime's end does: what rests holds its device
    EXPECT_TRUE(device.trim_cache().ok());
}

TEST(SmallSources, ABudgetWithoutRoomForASlabNamesTheSizeThatWasAskedFor) {  // keeps K20
    FakeWorld world;
    FakeRuntime runtime;
    runtime.config->cache_bytes = 64 << 20;
    Device device(runtime.open(world));
    world.free_bytes = 100;
    world.total_bytes = 1 << 21;
    isthmus::SharedUse use;
    use.kind = MemoryKind::managed;
    const auto refused = device.allocate_shared<std::uint8_t>(64, use);
    ASSERT_EQ(refused.code(), Code::out_of_memory);
    const std::string_view message = refused.error().message();
    EXPECT_NE(message.find(" 64 bytes of managed memory were requested, 100 bytes are free"), std::string_view::npos)
        << message;
    EXPECT_EQ(message.find("4096"), std::string_view::npos) << message;
}

TEST_F(Sources, ManagedMemoryBeyondTheDevicesIsRefusedUnlessAskedFor) {  // keeps K20
    world.free_bytes = 1 << 20;
    world.total_bytes = 1 << 21;
    const Allocator managed = device.allocator(MemoryKind::managed);
    EXPECT_EQ(managed.allocate(bytes((1 << 20) + 1)).code(), Code::out_of_memory);
    EXPECT_EQ(world.count("allocate"), 0u);
    EXPECT_TRUE(managed.allocate(bytes(1 << 20)).ok());
    runtime.config->budget.allow_oversubscription = true;
    EXPECT_TRUE(managed.allocate(bytes((1 << 20) + 1)).ok());
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_EQ(managed.allocate(bytes(64)).code(), Code::driver_error) << "not to be known is no permission";
}

TEST_F(Sources, ARegistrationThatFailsLeavesNothing) {  // keeps K12
    world.fail_at = 1;
    EXPECT_FALSE(device.allocator(MemoryKind::registered).allocate(bytes(64)).ok());
    EXPECT_EQ(runtime.books->ledger.size(), 0u);
    EXPECT_EQ(runtime.books->addresses.size(), 0u);
    EXPECT_EQ(world.count("unregister"), 0u);
    EXPECT_TRUE(device.allocator(MemoryKind::registered).allocate(bytes(64)).ok());
}

// An allocator of a user.
struct Mine {
    std::vector<std::string>* calls;
    std::vector<std::uint64_t>* storage;
    bool fails = false;
    Result<MemoryBlock> allocate(const AllocationRequest& request) {
        calls->push_back("allocate " + std::to_string(request.bytes));
        if (fails) return Error(Code::system_limit, "the user's own limit", "raise it");
        MemoryBlock block;
        block.host = storage->data();
        block.device = reinterpret_cast<std::uintptr_t>(storage->data());
        block.bytes = storage->size() * 8;
        block.kind = MemoryKind::pinned;
        return block;
    }
    Result<void> release(const MemoryBlock& block, Stream* after) {
        calls->push_back(std::string("release") + (after ? " behind" : "") + (block.id == 0 ? "" : " with identity"));
        return {};
    }
    MemoryKind kind() const noexcept { return MemoryKind::pinned; }
};

TEST_F(Sources, ABufferStandsOnAUsersAllocator) {  // keeps K17, K3
    std::vector<std::string> calls;
    std::vector<std::uint64_t> storage(64);
    const Allocator mine = Mine{&calls, &storage};
    {
        Buffer<int> empty = device.allocate<int>(0, mine).value();
        EXPECT_EQ(empty.kind(), MemoryKind::pinned);
        EXPECT_TRUE(calls.empty());
        Buffer<int> buffer = device.allocate<int>(16, mine).value();
        EXPECT_EQ(buffer.kind(), MemoryKind::pinned);
        const auto known = runtime.books->addresses.find(buffer.device_address());
        EXPECT_EQ(known.kind, MemoryKind::pinned);
        EXPECT_NE(known.id, 0u);
        buffer.write_on_host().value()[15] = 7;
        EXPECT_EQ(runtime.books->addresses.find(buffer.device_address() + 15).id, known.id);
    }
    EXPECT_EQ(calls, (std::vector<std::string>{"allocate 64", "release"}));
    EXPECT_EQ(runtime.books->addresses.size(), 0u);
    calls.clear();
    const Result<Buffer<int>> refused = device.allocate<int>(16, Mine{&calls, &storage, true});
    ASSERT_EQ(refused.code(), Code::system_limit) << "handed on as it is";
    EXPECT_EQ(refused.error().message(), "the user's own limit");
    const Result<Buffer<int>> too_small = device.allocate<int>(1000, mine);
    EXPECT_EQ(too_small.code(), Code::invalid_argument);
    EXPECT_EQ(calls.back(), "release") << "what is too small goes back";
    EXPECT_TRUE(world.calls.empty());
}

// Returns no memory, and no error.
struct AnswersNothing {
    Result<MemoryBlock> allocate(const AllocationRequest&) { return MemoryBlock{}; }
    Result<void> release(const MemoryBlock&, Stream*) { return {}; }
};

TEST_F(Sources, AnAllocatorThatAnswersNothingMakesNoBuffer) {  // keeps K17
    const Result<Buffer<int>> refused = device.allocate<int>(16, Allocator(AnswersNothing{}));
    ASSERT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.error().message(),
              "an allocator was asked for 64 bytes and answered with no memory and no error");
    EXPECT_EQ(runtime.books->addresses.size(), 0u);
    EXPECT_TRUE(device.allocate<int>(0, Allocator(AnswersNothing{})).ok()) << "it is not asked for that";
}

// Memory that was composed for one buffer.
struct ForOneBuffer : isthmus::detail::BufferMemory {
    explicit ForOneBuffer(const MemoryBlock& all) : all_of_it(all) { kind = all.kind; }
    void end() override { ended = true; }
    MemoryBlock block() const override { return all_of_it; }
    const MemoryBlock all_of_it;
};

TEST_F(Sources, MemoryOfOneBufferIsAnAllocatorOfOneBlock) {
    std::vector<std::uint64_t> storage(8);
    const MemoryBlock block{0, storage.data(), reinterpret_cast<std::uintptr_t>(storage.data()), 64, MemoryKind::host};
    const auto memory = std::make_shared<ForOneBuffer>(block);
    isthmus::detail::NewBuffer made(device.state());
    lay_over(made, memory);
    std::shared_ptr<isthmus::detail::BufferState> buffer = made.make();
    const Result<MemoryBlock> refused = buffer->extras()->allocator.allocate(bytes(64));
    ASSERT_EQ(refused.code(), Code::unsupported);
    EXPECT_EQ(refused.error().message(), "this allocator has one block, which its buffer holds");
    EXPECT_FALSE(memory->ended);
    buffer.reset();
    EXPECT_TRUE(memory->ended) << "the buffer's end gives the block back";
    EXPECT_TRUE(world.calls.empty());
}

TEST_F(Sources, MemoryIsAdoptedWhereTheSystemSaysThatItIsThere) {  // keeps K18, G11
    std::vector<int> numbers(4096);
    auto* const beyond = reinterpret_cast<int*>(std::numeric_limits<std::uintptr_t>::max() - 255);
    const Result<Buffer<int>> too_far = device.adopt<int>(beyond, numbers.size());
    ASSERT_EQ(too_far.code(), Code::invalid_argument);
    EXPECT_EQ(too_far.error().message(), "adopting the memory is refused: it would end beyond all addresses");
    EXPECT_TRUE(world.calls.empty());
    auto* const near_zero = reinterpret_cast<int*>(std::uintptr_t{4096});  // systems map nothing there
    const Result<Buffer<int>> unmapped = device.adopt<int>(near_zero, numbers.size());
    ASSERT_EQ(unmapped.code(), Code::not_accessible);
    EXPECT_EQ(unmapped.error().message(), "adopting the memory is refused: not all of it is mapped in this process");
    struct rlimit files {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none { 0, files.rlim_max };
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const Result<Buffer<int>> unknown = device.adopt<int>(numbers.data(), numbers.size());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    ASSERT_EQ(unknown.code(), Code::unverified) << "/proc/self/smaps could not be opened";
    EXPECT_NE(unknown.error().remedy().find("/proc/self/smaps"), std::string_view::npos);
    EXPECT_TRUE(world.registrations.empty());
    EXPECT_TRUE(device.adopt<int>(numbers.data(), numbers.size()).ok());
}

TEST_F(Sources, HostMemoryAtAPlaceIsCutOutOfSlabsThatGoBackWhenMemoryIsShort) {  // keeps H6, K19
    isthmus::HostPlacement near;
    near.locality = isthmus::Locality::local;
    const Allocator placed = device.host_allocator(near);
    const MemoryBlock one = placed.allocate(bytes(1000)).value();
    const MemoryBlock two = placed.allocate(bytes(1000)).value();
    const auto apart = static_cast<char*>(two.host) - static_cast<char*>(one.host);
    EXPECT_LT(std::abs(apart), 1 << 20) << "out of one slab";
    EXPECT_EQ(device.state()->slabs.trim(), 0u) << "pieces are out";
    EXPECT_TRUE(placed.release(one).ok());
    EXPECT_TRUE(placed.release(two).ok());
    world.fail_at = 1;
    world.fail_code = Code::out_of_memory;
    EXPECT_TRUE(device.allocator(MemoryKind::device).allocate(bytes(64)).ok()) << "the slabs went back";
    EXPECT_EQ(device.state()->slabs.trim(), 0u);
    EXPECT_TRUE(world.calls.size() == 2 && world.count("allocate device") == 2);
}

TEST_F(Sources, AnEmptyBufferKeepsTheKindOfWhatAnAdaptorStandsOn) {  // keeps K3
    const isthmus::LimitAllocator limited(device.allocator(MemoryKind::managed), 1024);
    EXPECT_EQ(device.allocate<int>(0, limited).value().kind(), MemoryKind::managed);
    EXPECT_TRUE(world.calls.empty());
}

TEST_F(Sources, ABufferIsNotMadeFromAnotherDevicesAllocator) {  // keeps K9
    FakeWorld second;
    Device other(runtime.open(second, discrete_facts(1)));
    EXPECT_EQ(other.allocate<int>(4, device.allocator(MemoryKind::device)).code(), Code::wrong_device);
    EXPECT_TRUE(world.memory.empty());
    EXPECT_TRUE(device.allocate<int>(4, device.allocator(MemoryKind::device)).ok());
}

TEST_F(Sources, TheCurrentAllocatorIsPerDeviceAndThreadAndComesBack) {  // keeps K5
    FakeWorld second;
    Device other(runtime.open(second, discrete_facts(1)));
    Buffer<int> outlives;
    {
        const ScopedAllocator scope(device, device.allocator(MemoryKind::pinned));
        outlives = device.allocate<int>(4).value();
        EXPECT_EQ(outlives.kind(), MemoryKind::pinned);
        EXPECT_EQ(other.allocate<int>(4).value().kind(), MemoryKind::device);
        {
            const ScopedAllocator inner(device, device.allocator(MemoryKind::managed));
            EXPECT_EQ(device.allocate<int>(4).value().kind(), MemoryKind::managed);
        }
        EXPECT_EQ(device.allocate<int>(4).value().kind(), MemoryKind::pinned);
        std::thread([&] { EXPECT_EQ(device.allocate<int>(4).value().kind(), MemoryKind::device); }).join();
    }
    EXPECT_EQ(device.allocate<int>(4).value().kind(), MemoryKind::device);
    EXPECT_EQ(outlives.write_on_host().value().size(), 4u);
    device.set_allocator(device.allocator(MemoryKind::pinned));
    EXPECT_EQ(device.allocate<int>(4).value().kind(), MemoryKind::pinned);
    EXPECT_EQ(device.allocate<int>(0).value().kind(), MemoryKind::pinned);  // keeps K3
    EXPECT_EQ(device.allocate<int>(4, MemoryKind::device).value().kind(), MemoryKind::device);
    device.set_allocator({});
    EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::device));
}

// Another thread of the parent may have held the locks at the fork: the child takes none of them, and so it neither
// sees what was set nor sets anything.
TEST(CurrentAllocator, AForkedChildNeitherSeesNorSetsIt) {  // keeps R3
    FakeWorld world;
    FakeRuntime runtime;
    Device device(runtime.open(world));
    const Allocator pinned = device.allocator(MemoryKind::pinned);
    device.set_allocator(pinned);
    auto kept = std::make_shared<int>(0);
    device.set_out_of_memory_handler([kept](std::size_t) { return false; });
    isthmus::process::forks.fetch_add(1);  // what the child of a fork() finds
    EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::device));
    EXPECT_EQ(device.allocate<int>(4).code(), Code::forked);
    device.set_allocator({});
    device.set_out_of_memory_handler({});
    {
        const ScopedAllocator scope(device, device.allocator(MemoryKind::managed));  // of this thread
        EXPECT_EQ(device.current_allocator(), device.allocator(MemoryKind::managed));
    }
    isthmus::process::forks.fetch_sub(1);
    EXPECT_EQ(device.current_allocator(), pinned);
    EXPECT_EQ(kept.use_count(), 2);
}

}  // namespace
