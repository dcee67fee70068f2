// SPDX-License-Identifier: Apache-2.0
// Allocators: the concept, the handle, the adaptors and C callbacks, over an allocator of the test.
#include "request.hpp"

#include <isthmus/allocator.hpp>
#include <isthmus/allocator_adaptors.hpp>
#include <isthmus/callback_allocator.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

struct counting {
    int out;
    int destroyed;
};
extern "C" isthmus_allocator_callbacks c_allocator(counting* counts);

namespace {

using isthmus::AllocationRequest;
using isthmus::Allocator;
using isthmus::Code;
using isthmus::Error;
using isthmus::MemoryBlock;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::Stream;
using isthmus::testing::bytes;

struct World {
    std::set<void*> out;
    int allocations = 0;
    int releases = 0;
    std::size_t room = std::size_t{1} << 30;
    std::uint64_t last_id = 0;
    std::size_t last_alignment = 0;
};

class HeapAllocator {
public:
    explicit HeapAllocator(World& world) : world_(&world) {}
    Result<MemoryBlock> allocate(const AllocationRequest& request) {
        ++world_->allocations;
        world_->last_alignment = request.alignment;
        if (request.bytes > world_->room) return Error(Code::out_of_memory, "no room", "make room");
        void* memory = std::aligned_alloc(256, (request.bytes + 255) / 256 * 256);
        world_->out.insert(memory);
        return MemoryBlock{++world_->last_id, memory, reinterpret_cast<std::uintptr_t>(memory), request.bytes,
                           MemoryKind::host};
    }
    Result<void> release(const MemoryBlock& block, Stream*) {
        ++world_->releases;
        if (world_->out.erase(block.host) == 0) return Error(Code::unknown_pointer, "not ours", "");
        std::free(block.host);
        return {};
    }

private:
    World* world_;
};
static_assert(isthmus::MemoryAllocator<HeapAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::StatisticsAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::LimitAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::AlignedAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::LoggingAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::FailureCallbackAllocator>);
static_assert(isthmus::MemoryAllocator<isthmus::TrackingAllocator>);
static_assert(!isthmus::MemoryAllocator<World>);

// keeps K17
TEST(Allocators, NobodyIsAskedForZeroBytesAndAFailureIsHandedOn) {
    World world;
    const Allocator allocator = HeapAllocator(world);
    EXPECT_FALSE(allocator.allocate(bytes(0)).value());
    EXPECT_EQ(world.allocations, 0);
    world.room = 8;
    const Result<MemoryBlock> refused = allocator.allocate(bytes(9));
    EXPECT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_EQ(refused.error().message(), "no room");
    MemoryBlock block = allocator.allocate(bytes(8)).value();
    EXPECT_TRUE(allocator.release(block).ok());
}

// keeps K8
TEST(Allocators, ReleasingNothingIsNothing) {
    World world;
    const Allocator allocator = HeapAllocator(world);
    EXPECT_TRUE(allocator.release(MemoryBlock{}).ok());
    EXPECT_EQ(world.releases, 0);
    EXPECT_TRUE(Allocator().release(MemoryBlock{}).ok());
}

// keeps K18
TEST(Allocators, AnEmptyHandleAndABadAlignmentAreRefusedBeforeAnyCall) {
    World world;
    const Allocator allocator = HeapAllocator(world);
    EXPECT_EQ(Allocator().allocate(bytes(1)).code(), Code::invalid_handle);
    for (const std::size_t alignment : {0, 3, 48}) {
        AllocationRequest request = bytes(16);
        request.alignment = alignment;
        EXPECT_EQ(allocator.allocate(request).code(), Code::invalid_argument) << alignment;
    }
    EXPECT_EQ(world.allocations, 0);
    const Allocator same = allocator;  // NOLINT(performance-unnecessary-copy-initialization): copies are the question
    EXPECT_EQ(same, allocator);
    EXPECT_NE(same, Allocator(HeapAllocator(world)));
}

// keeps K18
TEST(Adaptors, AnAlignmentIsRaisedAndNeverLowered) {
    World world;
    const isthmus::AlignedAllocator aligned{Allocator(HeapAllocator(world)), 4096};
    const Allocator allocator = aligned;
    AllocationRequest request = bytes(10);
    const MemoryBlock page = allocator.allocate(request).value();
    EXPECT_EQ(world.last_alignment, 4096u);
    request.alignment = 8192;
    const MemoryBlock two = allocator.allocate(request).value();
    EXPECT_EQ(world.last_alignment, 8192u);
    EXPECT_TRUE(allocator.release(page).ok());
    EXPECT_TRUE(allocator.release(two).ok());
    for (const std::size_t alignment : {0, 3, 300}) {
        const Allocator wrong = isthmus::AlignedAllocator{Allocator(HeapAllocator(world)), alignment};
        EXPECT_EQ(wrong.allocate(bytes(10)).code(), Code::invalid_argument) << alignment;
    }
    EXPECT_EQ(world.allocations, 2);
}

TEST(Adaptors, StatisticsCountWhatPassesAndWhatFailed) {
    World world;
    isthmus::StatisticsAllocator counted{Allocator(HeapAllocator(world))};
    const Allocator allocator = counted;  // shares the counters
    const MemoryBlock a = allocator.allocate(bytes(100)).value();
    const MemoryBlock b = allocator.allocate(bytes(50)).value();
    ASSERT_TRUE(allocator.release(a).ok());
    world.room = 1;
    EXPECT_FALSE(allocator.allocate(bytes(7)).ok());
    isthmus::AllocationCounters now = counted.counters();
    EXPECT_EQ(now.current_bytes, 50u);
    EXPECT_EQ(now.peak_bytes, 150u);
    EXPECT_EQ(now.total_bytes, 150u);
    EXPECT_EQ(now.current_blocks, 1u);
    EXPECT_EQ(now.peak_blocks, 2u);
    EXPECT_EQ(now.total_blocks, 2u);
    EXPECT_EQ(now.failures, 1u);
    ASSERT_TRUE(allocator.release(b).ok());
    EXPECT_FALSE(allocator.release(b).ok());  // refused upstream: not counted
    EXPECT_EQ(counted.counters().current_bytes, 0u);
}

TEST(Adaptors, StatisticsNestAndJoinTheScopeAround) {
    World world;
    isthmus::StatisticsAllocator counted{Allocator(HeapAllocator(world))};
    const Allocator allocator = counted;
    const MemoryBlock outer = allocator.allocate(bytes(1000)).value();
    {
        const isthmus::StatisticsAllocator::Scope scope(counted);
        EXPECT_EQ(counted.counters().current_bytes, 0u);
        const MemoryBlock inner = allocator.allocate(bytes(10)).value();
        EXPECT_EQ(counted.counters().peak_bytes, 10u);
        ASSERT_TRUE(allocator.release(inner).ok());
        ASSERT_TRUE(allocator.release(outer).ok());  // below zero in this scope
        EXPECT_EQ(counted.counters().peak_bytes, 10u);
    }
    EXPECT_EQ(counted.counters().current_bytes, 0u);
    EXPECT_EQ(counted.counters().peak_bytes, 1010u);
    EXPECT_EQ(counted.counters().total_blocks, 2u);
}

TEST(Adaptors, ALimitRefusesOneByteMoreAndTakesBackWhatIsReleased) {
    World world;
    isthmus::LimitAllocator limited(Allocator(HeapAllocator(world)), 100);
    const Allocator allocator = limited;
    const MemoryBlock first = allocator.allocate(bytes(60)).value();
    const MemoryBlock second = allocator.allocate(bytes(40)).value();
    const Result<MemoryBlock> refused = allocator.allocate(bytes(1));
    ASSERT_EQ(refused.code(), Code::out_of_memory);
    EXPECT_NE(refused.error().message().find("100 of 100"), std::string::npos) << refused.error().text();
    EXPECT_EQ(allocator.allocate(bytes(~std::size_t{0})).code(), Code::out_of_memory);  // the sum does not wrap
    EXPECT_EQ(world.allocations, 2);
    ASSERT_TRUE(allocator.release(second).ok());
    EXPECT_EQ(limited.used_bytes(), 60u);
    world.room = 1;
    EXPECT_EQ(allocator.allocate(bytes(30)).code(), Code::out_of_memory);  // the upstream's refusal
    EXPECT_EQ(limited.used_bytes(), 60u);
    ASSERT_TRUE(allocator.release(first).ok());
    EXPECT_EQ(limited.used_bytes(), 0u);
}

TEST(Adaptors, ThreadsTogetherDoNotPassALimit) {
    struct Counting {
        std::atomic<int>* most;
        std::atomic<int>* now;
        Result<MemoryBlock> allocate(const AllocationRequest& request) {
            const int here = now->fetch_add(1) + 1;
            int seen = most->load();
            while (here > seen && !most->compare_exchange_weak(seen, here)) {
            }
            return MemoryBlock{1, most, 1, request.bytes, MemoryKind::host};
        }
        Result<void> release(const MemoryBlock&, Stream*) { return now->fetch_sub(1), Result<void>(); }
    };
    std::atomic<int> most{0};
    std::atomic<int> now{0};
    const Allocator allocator = isthmus::LimitAllocator(Allocator(Counting{&most, &now}), 3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 2000; ++i) {
                if (Result<MemoryBlock> made = allocator.allocate(bytes(1)); made.ok()) {
                    EXPECT_TRUE(allocator.release(*made).ok());
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(most.load(), 3);
    EXPECT_GE(most.load(), 1);
}

TEST(Adaptors, TheLogIsALineOfCsvForEveryCall) {
    World world;
    std::vector<std::string> lines;
    const Allocator allocator = isthmus::LoggingAllocator(Allocator(HeapAllocator(world)),
                                                          [&](std::string_view line) { lines.emplace_back(line); });
    const MemoryBlock block = allocator.allocate(bytes(24)).value();
    ASSERT_TRUE(allocator.release(block).ok());
    EXPECT_FALSE(allocator.release(block).ok());
    world.room = 1;
    EXPECT_FALSE(allocator.allocate(bytes(25)).ok());
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(lines[0], "time_ns,thread,action,id,address,bytes,stream\n");
    EXPECT_NE(lines[1].find(",allocate,1,0x"), std::string::npos) << lines[1];
    EXPECT_NE(lines[1].find(",24,0\n"), std::string::npos) << lines[1];
    EXPECT_NE(lines[2].find(",release,1,0x"), std::string::npos) << lines[2];
    EXPECT_NE(lines[3].find(",release_failure,1,0x"), std::string::npos) << lines[3];
    EXPECT_NE(lines[4].find(",allocate_failure,0,0x0,25,0\n"), std::string::npos) << lines[4];
}

TEST(Adaptors, TheLogGoesToAFileOrSaysWhyNot) {
    World world;
    const std::string path = testing::TempDir() + "allocations-" + std::to_string(::getpid()) + ".csv";
    {
        Result<isthmus::LoggingAllocator> logged =
            isthmus::LoggingAllocator::create(Allocator(HeapAllocator(world)), path);
        ASSERT_TRUE(logged.ok());
        const Allocator allocator = *logged;
        ASSERT_TRUE(allocator.release(allocator.allocate(bytes(3)).value()).ok());
    }
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(",release,1,0x"), std::string::npos) << text.str();
    std::remove(path.c_str());
    EXPECT_EQ(isthmus::LoggingAllocator::create(Allocator(HeapAllocator(world)), "/nowhere/at/all.csv").code(),
              Code::system_error);
}

// keeps K19
TEST(Adaptors, TheFailureCallbackMakesRoomOrGivesUp) {
    World world;
    world.room = 10;
    int asked = 0;
    const Allocator allocator =
        isthmus::FailureCallbackAllocator(Allocator(HeapAllocator(world)), [&](std::size_t wanted, const Error& error) {
            EXPECT_EQ(error.code(), Code::out_of_memory);
            world.room += 10;
            return ++asked < 3 && wanted == 25;
        });
    const MemoryBlock block = allocator.allocate(bytes(25)).value();
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(allocator.allocate(bytes(1000)).code(), Code::out_of_memory);
    EXPECT_EQ(asked, 3);
    ASSERT_TRUE(allocator.release(block).ok());
}

// keeps K8, K12
TEST(Adaptors, TrackingTellsTheWaysToReleaseWrongly) {
    World world;
    isthmus::TrackingAllocator tracked{Allocator(HeapAllocator(world))};
    const Allocator allocator = tracked;
    const MemoryBlock first = allocator.allocate(bytes(512)).value();
    const MemoryBlock second = allocator.allocate(bytes(64)).value();
    ASSERT_EQ(tracked.outstanding().size(), 2u);
    EXPECT_EQ(tracked.outstanding()[0].number, 1u);
    EXPECT_NE(tracked.leak_report().find("allocation 2: 64 bytes of host memory"), std::string::npos)
        << tracked.leak_report();

    MemoryBlock inside = first;
    inside.host = static_cast<char*>(first.host) + 16;
    EXPECT_EQ(allocator.release(inside).code(), Code::interior_pointer);
    int elsewhere = 0;
    EXPECT_EQ(allocator.release(MemoryBlock{9, &elsewhere, 0, 4, MemoryKind::host}).code(), Code::unknown_pointer);
    ASSERT_TRUE(allocator.release(first).ok());
    const int before = world.releases;
    EXPECT_EQ(allocator.release(first).code(), Code::already_released);
    EXPECT_EQ(world.releases, before);  // the upstream was not called
    ASSERT_TRUE(allocator.release(second).ok());
    EXPECT_EQ(tracked.leak_report(), "");
}

TEST(Adaptors, ComposeInAnyOrder) {
    World world;
    isthmus::StatisticsAllocator inner{Allocator(HeapAllocator(world))};
    isthmus::TrackingAllocator outer{Allocator(isthmus::LimitAllocator(Allocator(inner), 100))};
    const Allocator allocator = outer;
    const MemoryBlock block = allocator.allocate(bytes(100)).value();
    EXPECT_EQ(allocator.allocate(bytes(1)).code(), Code::out_of_memory);
    EXPECT_EQ(inner.counters().failures, 0u);
    EXPECT_EQ(outer.outstanding().size(), 1u);
    ASSERT_TRUE(allocator.release(block).ok());
    EXPECT_EQ(inner.counters().current_bytes, 0u);
}

struct CallbackWorld {
    int answer = 0;
    int release_answer = 0;
    std::size_t short_by = 0;
    int kind = static_cast<int>(MemoryKind::host);
    int allocated = 0;
    int released = 0;
    int destroyed = 0;
    std::uint64_t tag_back = 0;
};

int user_allocate(void* context, std::size_t size, std::size_t, std::uint64_t, isthmus_memory_block* out) {
    auto* world = static_cast<CallbackWorld*>(context);
    ++world->allocated;
    if (world->answer != 0) return world->answer;
    *out = {std::aligned_alloc(256, (size + 255) / 256 * 256), 0, size - world->short_by, world->kind, 77};
    return 0;
}
int user_release(void* context, const isthmus_memory_block* block, std::uint64_t) {
    auto* world = static_cast<CallbackWorld*>(context);
    if (world->release_answer != 0) return world->release_answer;
    ++world->released;
    world->tag_back = block->tag;
    std::free(block->host);
    return 0;
}
void user_destroy(void* context) {
    ++static_cast<CallbackWorld*>(context)->destroyed;
}

// keeps K17
TEST(CallbackAllocators, CarryATagAndAreDestroyedOnce) {
    CallbackWorld world;
    {
        const Allocator allocator =
            isthmus::allocator_from({&world, user_allocate, user_release, user_destroy}).value();
        const Allocator copy = allocator;  // NOLINT(performance-unnecessary-copy-initialization): as above
        EXPECT_FALSE(allocator.allocate(bytes(0)).value());
        EXPECT_EQ(world.allocated, 0);
        const MemoryBlock block = copy.allocate(bytes(10)).value();
        EXPECT_EQ(block.kind, MemoryKind::host);
        EXPECT_EQ(block.device, reinterpret_cast<std::uintptr_t>(block.host));
        ASSERT_TRUE(allocator.release(block).ok());
        EXPECT_EQ(world.tag_back, 77u);
        EXPECT_EQ(allocator.release(block).code(), Code::unknown_pointer);
        EXPECT_EQ(world.released, 1);
        EXPECT_EQ(world.destroyed, 0);
    }
    EXPECT_EQ(world.destroyed, 1);
}

// keeps K17
TEST(CallbackAllocators, MayBeWrittenInC) {
    counting counts{};
    {
        const Allocator allocator = isthmus::allocator_from(c_allocator(&counts)).value();
        const MemoryBlock block = allocator.allocate(bytes(1000)).value();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.host) % 256, 0u);
        EXPECT_EQ(counts.out, 1);
        EXPECT_TRUE(allocator.release(block).ok());
    }
    EXPECT_EQ(counts.out, 0);
    EXPECT_EQ(counts.destroyed, 1);
}

// keeps K17
TEST(CallbackAllocators, WhatTheyAnswerIsTypedAndWhatTheyHandOutIsChecked) {
    CallbackWorld world;
    const Allocator allocator = isthmus::allocator_from({&world, user_allocate, user_release, nullptr}).value();
    world.answer = static_cast<int>(Code::out_of_memory);
    EXPECT_EQ(allocator.allocate(bytes(10)).code(), Code::out_of_memory);
    world.answer = 4711;
    EXPECT_EQ(allocator.allocate(bytes(10)).code(), Code::driver_error);
    world.answer = 0;
    world.short_by = 1;
    EXPECT_EQ(allocator.allocate(bytes(10)).code(), Code::invalid_argument);
    EXPECT_EQ(world.released, 1);  // released, not leaked
    world.short_by = 0;
    world.kind = 99;
    EXPECT_EQ(allocator.allocate(bytes(10)).code(), Code::invalid_argument);
    EXPECT_EQ(world.released, 2);
}

// keeps K8
TEST(CallbackAllocators, AReleaseThatFailedCanBeTriedAgain) {
    CallbackWorld world;
    const Allocator allocator = isthmus::allocator_from({&world, user_allocate, user_release, nullptr}).value();
    const MemoryBlock block = allocator.allocate(bytes(10)).value();
    world.release_answer = static_cast<int>(Code::in_use);
    EXPECT_EQ(allocator.release(block).code(), Code::in_use);
    world.release_answer = 0;
    EXPECT_TRUE(allocator.release(block).ok());
    EXPECT_EQ(world.tag_back, 77u);
    EXPECT_EQ(allocator.release(block).code(), Code::unknown_pointer);
}

TEST(CallbackAllocators, NeedBothFunctions) {
    CallbackWorld world;
    EXPECT_EQ(isthmus::allocator_from({&world, nullptr, user_release, user_destroy}).code(), Code::invalid_argument);
    EXPECT_EQ(isthmus::allocator_from({&world, user_allocate, nullptr, user_destroy}).code(), Code::invalid_argument);
    EXPECT_EQ(world.destroyed, 0);
}

}  // namespace
