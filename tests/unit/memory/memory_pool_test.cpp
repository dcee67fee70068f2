// SPDX-License-Identifier: Apache-2.0
// Pools and stream-ordered memory, call by call: which stream waits for what, and that the host never waits.
#include "fake_device.hpp"

#include "buffer_state.hpp"
#include "stream_state.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

ISTHMUS_KERNEL(add_one, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}

using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::MemoryPool;
using isthmus::Result;
using isthmus::Stream;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;

using Calls = std::vector<std::string>;

struct Pools : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    Stream other = device.create_stream().value();

    // Afterwards the pool, the stream's handle, the kernel's code and events exist.
    void warm() {
        Buffer<int> first = device.stream().allocate<int>(8).value();
        (void)device.stream().launch(add_one, 8, first).value();
        (void)other.launch(add_one, 8, first).value();
        (void)device.synchronize().value();
        first = {};
        world.calls.clear();
    }
};

TEST_F(Pools, AllocatingAndReleasingOnOneStreamAreTwoCalls) {  // keeps S3
    warm();
    {
        Buffer<int> buffer = device.stream().allocate<int>(8).value();
        EXPECT_EQ(buffer.kind(), MemoryKind::pool);
        EXPECT_EQ(device.can_access(buffer).verdict, isthmus::Verdict::yes);
    }
    EXPECT_EQ(world.calls, (Calls{"allocate pool", "release pool"}));
}

TEST_F(Pools, ReleasingMemoryInUseWaitsForNothing) {  // keeps S3
    warm();
    world.stuck = true;
    {
        Buffer<int> buffer = device.stream().allocate<int>(8).value();
        (void)device.stream().launch(add_one, 8, buffer).value();
    }
    EXPECT_EQ(world.calls, (Calls{"allocate pool", "launch add_one", "release pool"}));
    world.stuck = false;
}

TEST_F(Pools, AnotherStreamWaitsForTheAllocationBeforeItsFirstUseOnly) {  // keeps S3
    warm();
    Buffer<int> buffer = device.stream().allocate<int>(8).value();
    (void)other.launch(add_one, 8, buffer).value();
    (void)other.launch(add_one, 8, buffer).value();
    EXPECT_EQ(world.calls, (Calls{"allocate pool", "record", "wait", "launch add_one", "launch add_one"}));
}

TEST_F(Pools, MemoryInUseOnSeveralStreamsIsFreedBehindAllOfThem) {  // keeps S3
    warm();
    {
        Buffer<int> buffer = device.stream().allocate<int>(8).value();
        (void)device.stream().launch(add_one, 8, buffer).value();
        (void)other.launch(add_one, 8, buffer).value();
        (void)device.stream().launch(add_one, 8, buffer).value();
        world.calls.clear();
        world.stuck = true;  // the host would wait in vain
        ASSERT_TRUE(buffer.release(isthmus::Wait::never()).ok());
    }
    EXPECT_EQ(world.count("query"), 0u);
    EXPECT_EQ(world.count("record"), 1u) << "behind the uses on one stream";
    ASSERT_GE(world.calls.size(), 3u);
    EXPECT_EQ(world.calls[world.calls.size() - 2], "wait") << "the other one waits";
    EXPECT_EQ(world.calls.back(), "release pool");
    EXPECT_EQ(world.released_on, static_cast<std::uintptr_t>(other.state()->handle));
    world.stuck = false;
}

TEST_F(Pools, AllocatedWithoutAStreamItIsThereForEverybody) {  // keeps S3
    warm();
    Buffer<int> buffer = device.allocate<int>(8, MemoryKind::pool).value();
    world.calls.clear();
    (void)other.launch(add_one, 8, buffer).value();
    EXPECT_EQ(world.count("wait"), 0u);
    EXPECT_EQ(world.count("launch"), 1u);
}

TEST_F(Pools, ADevicesOwnPoolIsMadeOnceAndKeepsWhatItWasGiven) {
    EXPECT_TRUE(world.pools.empty()) << "not before its first use";
    Buffer<int> one = device.allocate<int>(8, MemoryKind::pool).value();
    Buffer<int> two = other.allocate<int>(8).value();
    ASSERT_EQ(world.pools.size(), 1u);
    EXPECT_EQ(world.pools.begin()->second.threshold, ~std::uint64_t{0});
    EXPECT_EQ(device.pool().value().usage().value().used_bytes, 64u);
    EXPECT_EQ(world.count("create pool"), 1u);
}

TEST_F(Pools, APoolStaysAsLongAsItsMemory) {
    Buffer<int> buffer;
    {
        MemoryPool pool = device.create_pool({.release_threshold_bytes = 4096}).value();
        buffer = other.allocate<int>(8, pool.allocator()).value();
    }
    ASSERT_EQ(world.pools.size(), 1u);
    EXPECT_EQ(world.pools.begin()->second.threshold, 4096u);
    EXPECT_EQ(world.count("destroy pool"), 0u);
    EXPECT_TRUE(buffer.release().ok());
    EXPECT_TRUE(world.pools.empty());
    EXPECT_EQ(world.calls.back(), "destroy pool") << "behind the release";
}

TEST_F(Pools, FiguresAndLimitsAreThePoolsOwn) {
    MemoryPool pool = device.create_pool().value();
    Buffer<int> buffer = other.allocate<int>(256, pool.allocator()).value();
    EXPECT_EQ(pool.usage().value().used_bytes, 1024u);
    EXPECT_TRUE(buffer.release().ok());
    EXPECT_EQ(pool.usage().value().used_bytes, 0u);
    EXPECT_EQ(pool.usage().value().reserved_bytes, 1024u);
    EXPECT_TRUE(pool.trim(0).ok());
    EXPECT_EQ(pool.usage().value().reserved_bytes, 0u);
    EXPECT_EQ(pool.usage().value().used_high_bytes, 1024u);
    EXPECT_TRUE(pool.reset_high_marks().ok());
    EXPECT_EQ(pool.usage().value().used_high_bytes, 0u);
    EXPECT_TRUE(pool.set_release_threshold(7).ok());
    EXPECT_EQ(world.pools.begin()->second.threshold, 7u);
    EXPECT_EQ(device.create_pool({.kind = MemoryKind::pinned}).code(), Code::invalid_argument);
}

TEST_F(Pools, WhomAPoolLetsInIsThatPoolsMatter) {  // keeps A5, A15
    FakeWorld second;
    Device peer(runtime.open(second, discrete_facts(1)));
    MemoryPool open = device.create_pool().value();
    MemoryPool closed = device.create_pool().value();
    ASSERT_TRUE(open.allow(peer).ok());
    Buffer<int> reachable = other.allocate<int>(8, open.allocator()).value();
    Buffer<int> unreachable = other.allocate<int>(8, closed.allocator()).value();
    EXPECT_TRUE(reachable.state()->peer_state(*peer.state()).pool_access);
    EXPECT_FALSE(unreachable.state()->peer_state(*peer.state()).pool_access);
    EXPECT_FALSE(runtime.books->peers.state(1, 0).pool_access) << "not the device's own pool";
    ASSERT_TRUE(device.pool().value().allow(peer).ok());
    EXPECT_TRUE(runtime.books->peers.state(1, 0).pool_access);
    EXPECT_FALSE(runtime.books->peers.state(0, 1).pool_access) << "directional";
    ASSERT_TRUE(open.allow(peer, false).ok());
    EXPECT_FALSE(reachable.state()->peer_state(*peer.state()).pool_access);
    EXPECT_FALSE(open.allows(peer));
    EXPECT_TRUE(open.allows(device));
}

TEST_F(Pools, WhoCannotReachAPoolIsRefused) {  // keeps A5
    FakeWorld second;
    second.reachable = {};
    Device far(runtime.open(second, discrete_facts(1)));
    FakeRuntime elsewhere;
    FakeWorld third;
    Device stranger(elsewhere.open(third, discrete_facts(1)));
    MemoryPool pool = device.create_pool().value();
    EXPECT_EQ(pool.allow(far).code(), Code::unsupported);
    EXPECT_EQ(pool.allow(stranger).code(), Code::wrong_device);
    EXPECT_EQ(pool.allow(device, false).code(), Code::invalid_argument);
    EXPECT_TRUE(pool.allow(device).ok());
    EXPECT_EQ(world.count("pool access"), 0u);
    EXPECT_EQ(far.stream().allocate<int>(8, pool.allocator()).code(), Code::wrong_device);
}

// Everything that pools do; each step may fail.
void scenario(FakeWorld& world) {
    FakeRuntime runtime;
    Device device(runtime.open(world));
    Result<Stream> other = device.create_stream();
    Result<MemoryPool> pool = device.create_pool();
    if (!other || !pool) return;
    Result<Buffer<int>> a = device.stream().allocate<int>(8);
    Result<Buffer<int>> b = other->allocate<int>(8, pool->allocator());
    Result<Buffer<int>> c = device.allocate<int>(8, MemoryKind::pool);
    Result<Buffer<int>> d = device.stream().allocate<int>(8, device.allocator(MemoryKind::managed));
    if (!a || !b || !c || !d) return;
    (void)other->launch(add_one, 8, *a).code();
    (void)device.stream().launch(add_one, 8, *a).code();
    (void)device.stream().launch(add_one, 8, *b).code();
    (void)other->launch(add_one, 8, *c).code();
    (void)a->release().code();
    (void)pool->trim(0).code();
    (void)pool->usage().code();
}

TEST(PoolFaults, FailingAnyOneCallNeverLeaksNorCrashes) {  // keeps R6, K12
    FakeWorld whole;
    scenario(whole);
    ASSERT_TRUE(whole.clean());
    const int calls = static_cast<int>(whole.calls.size());
    ASSERT_GT(calls, 25);
    for (const Code code : {Code::driver_error, Code::out_of_memory, Code::device_lost}) {
        for (int at = 1; at <= calls; ++at) {
            FakeWorld world;
            world.fail_at = at;
            world.fail_code = code;
            scenario(world);
            if (code == Code::device_lost) world.forget_memory();
            EXPECT_TRUE(world.clean()) << "call " << at << " (" << world.calls[static_cast<std::size_t>(at) - 1]
                                       << ") failed with " << isthmus::name(code);
        }
    }
}

TEST_F(Pools, APoolThatGoesBesideAServiceIsDestroyedWhenThatStops) {  // keeps G10
    isthmus::detail::RunningServices& services = device.state()->services;
    {
        MemoryPool pool = device.create_pool().value();
        { Buffer<int> buffer = device.stream().allocate<int>(8).value(); }
        (void)device.synchronize().value();
        const std::uint64_t service =
            services
                .begin("answering", isthmus::detail::Deadline(isthmus::Wait::never(), {}), isthmus::WaitPolicy::spin)
                .value();
        world.calls.clear();
        pool = device.pool().value();
        EXPECT_EQ(world.count("destroy pool"), 0u) << "the driver may wait for the service";
        services.end(service);
        EXPECT_EQ(world.count("destroy pool"), 1u);
    }
}

TEST_F(Pools, AReleaseThatWaitsForSeveralStreamsHasOneDeadline) {  // keeps R5
    const isthmus::Wait wait = isthmus::Wait::at_most(std::chrono::milliseconds(20));
    Buffer<int> buffer = device.allocate<int>(8).value();
    (void)device.stream().launch(add_one, 8, buffer).value();
    (void)other.launch(add_one, 8, buffer).value();
    world.stuck_streams = {static_cast<std::uintptr_t>(other.state()->handle)};
    const Result<void> released = buffer.release(wait);
    EXPECT_EQ(released.code(), Code::timed_out);
    // The first stream, which ended, used some of the time.
    EXPECT_NE(released.error().message().find("has not finished within"), std::string_view::npos);
    EXPECT_EQ(released.error().message().find("within 20000"), std::string_view::npos) << released.error().text();
    world.stuck_streams.clear();
    EXPECT_TRUE(buffer.release().ok());
}

}  // namespace
