// SPDX-License-Identifier: Apache-2.0
// The runtime's core against a driver that records every call: how many calls, in which order, and what is left when
// any one of them fails.
#include "fake_driver.hpp"
#include "sanitized.hpp"

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "event_state.hpp"
#include "far_buffers.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

namespace {

ISTHMUS_KERNEL(add_one, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}
ISTHMUS_KERNEL(copy_over, isthmus::Index i, isthmus::Out<int> out, isthmus::View<const int> in) {
    out[i] = in[i];
}
ISTHMUS_KERNEL(copy_into, isthmus::Index i, isthmus::View<const int> in, isthmus::Out<int> out) {
    out[i] = in[i];
}
ISTHMUS_KERNEL(narrow, isthmus::Index i, isthmus::Out<int> out, std::uint8_t value) {
    out[i] = value;
}

using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::SharedUse;
using isthmus::Stream;
using isthmus::Wait;
using isthmus::testing::FakeDriver;
using isthmus::testing::FakeWorld;

constexpr isthmus::LaunchOptions relaxed{.mode = isthmus::LaunchMode::relaxed};

isthmus::DeviceFacts discrete_gpu() {
    isthmus::DeviceFacts facts;
    facts.ordinal = 0;
    facts.name = "fake GPU";
    // unified addressing, managed, concurrent managed, host register, pools; no HMM
    for (const auto& [id, value] : std::initializer_list<std::pair<int, int>>{
             {18, 0}, {41, 1}, {83, 1}, {86, 0}, {88, 0}, {89, 1}, {99, 1}, {100, 0}, {101, 0}, {115, 1}}) {
        facts.attributes.push_back({id, value, 0});
    }
    return facts;
}

isthmus::DeviceFacts integrated_gpu() {
    isthmus::DeviceFacts facts = discrete_gpu();
    for (isthmus::AttributeFact& fact : facts.attributes) {
        if (fact.id == 18) fact.value = 1;
        if (fact.id == 89) fact.value = 0;
    }
    return facts;
}

isthmus::DeviceFacts coherent_gpu() {  // uses the host's page tables
    isthmus::DeviceFacts facts = discrete_gpu();
    for (isthmus::AttributeFact& fact : facts.attributes) {
        if (fact.id == 88 || fact.id == 100) fact.value = 1;
    }
    return facts;
}

Device open(FakeWorld& world, isthmus::DeviceFacts facts = discrete_gpu()) {
    auto config = std::make_shared<isthmus::detail::RuntimeConfig>();
    config->launch_mode = isthmus::LaunchMode::checked;
    config->wait_timeout = std::chrono::milliseconds(200);
    config->generation = isthmus::process::generation();
    return Device(std::make_shared<isthmus::detail::DeviceState>(
        config, std::make_shared<isthmus::detail::Books>(), std::make_unique<FakeDriver>(world, std::move(facts)), 0));
}

Buffer<int> shared(Device& device, std::size_t count, MemoryKind kind) {
    SharedUse use;
    use.kind = kind;
    return device.allocate_shared<int>(count, use).value();
}

// Staged: device memory with a pinned copy for the host.
Buffer<int> staged(Device& device, std::size_t count) {
    return device.allocate_shared<int>(count, {.kind = MemoryKind::device}).value();
}

void number(Buffer<int>& buffer, int first) {
    auto view = buffer.write_on_host().value();
    std::iota(view.begin(), view.end(), first);
}

TEST(Core, ALaunchIsOneDriverCall) {  // keeps L7
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = device.allocate<int>(8).value();
    Buffer<int> b = device.allocate<int>(8).value();
    (void)device.stream().launch(copy_over, 8, a, b).value();  // opens the stream, finds the code
    world.calls.clear();
    for (int round = 0; round < 10; ++round) {
        (void)device.stream().launch(copy_over, 8, a, b).value();
        (void)device.stream().launch(copy_over, 8, b, a).value();
    }
    EXPECT_EQ(world.calls.size(), 20u);
    EXPECT_EQ(world.count("launch"), 20u);
}

TEST(Core, ADepartureFenceIsRecordedOnceWhereAViewableBufferIsLeft) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    number(b, 0);
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, b).value();  // makes the first pooled event
    world.calls.clear();
    (void)device.stream().launch(add_one, 8, b).value();
    EXPECT_EQ(world.calls, (std::vector<std::string>{"launch add_one"}));
    world.calls.clear();
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.calls, (std::vector<std::string>{"create event", "record", "launch add_one"}));
}

TEST(Core, ABufferThatIsUsedAgainIsNotLeftWhateverItsPlaceAmongTheArguments) {  // keeps L7, G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    number(b, 0);
    (void)device.stream().launch(copy_over, 8, a, b).value();  // opens the stream, finds the code
    world.calls.clear();
    for (int round = 0; round < 3; ++round) {
        (void)device.stream().launch(copy_over, 8, b, a).value();
        (void)device.stream().launch(copy_over, 8, a, b).value();
        (void)device.stream().launch(copy_over, 8, a, b).value();
    }
    EXPECT_EQ(world.calls, std::vector<std::string>(9, "launch copy_over"));
}

TEST(Core, AViewWaitsForTheLastUseOfItsBufferAndForNothingBehindIt) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    number(b, 0);
    (void)device.stream().launch(add_one, 8, a).value();
    for (int i = 0; i < 5; ++i) (void)device.stream().launch(add_one, 8, b).value();
    {
        auto view = a.read_on_host().value();
        EXPECT_EQ(view[0], 1);
        EXPECT_EQ(view[7], 8);
    }
    std::size_t waiting = 0;
    for (const auto& [stream, work] : world.queue) waiting += work.size();
    EXPECT_EQ(waiting, 5u) << "the five launches on the other buffer have not been waited for";
    EXPECT_EQ(b.read_on_host().value()[0], 5);
}

TEST(Core, AViewOfAnIdleBufferMakesNoDriverCall) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    number(a, 1);
    (void)device.stream().launch(add_one, 8, a).value();
    (void)a.read_on_host().value();
    world.calls.clear();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.read_on_host().value()[0], 2);
    EXPECT_TRUE(world.calls.empty());
}

// Other code may hand a stream to the runtime again that nothing but buffers holds. A thread that has its lock may be
// about to store a position: the buffer keeps the stream as its first one until that thread is through.
TEST(Core, ABufferForgetsNoFirstStreamWhoseLockAThreadHas) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    const isthmus::detail::FirstUse& first_use = a.state()->first_use;
    const auto use_and_wait = [&](Stream& stream) {
        for (int times = 0; times < 2; ++times) (void)stream.launch(add_one, 8, a).value();
        (void)a.read_on_host().value();
    };
    std::optional<Stream> gone = device.create_stream().value();
    use_and_wait(*gone);
    isthmus::detail::StreamState* const first = gone->state().get();
    gone.reset();
    ASSERT_EQ(first_use.stream(), first);
    std::promise<void> locked;
    std::promise<void> through;
    std::thread user([&] {
        const std::lock_guard lock(first->mutex);
        locked.set_value();
        through.get_future().wait();
    });
    locked.get_future().wait();
    Stream second = device.create_stream().value();
    use_and_wait(second);
    const bool stayed = first_use.stream() == first;
    through.set_value();
    user.join();
    ASSERT_TRUE(stayed);
    Stream third = device.create_stream().value();
    use_and_wait(third);
    EXPECT_EQ(first_use.stream(), third.state().get()) << "nobody had the lock: the place is free for the next stream";
}

TEST(Core, AReadViewDoesNotWaitForReaders) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> in = shared(device, 8, MemoryKind::pinned);
    Buffer<int> out = device.allocate<int>(8).value();
    number(in, 1);
    (void)device.stream().launch(copy_over, 8, out, in).value();
    world.stuck = true;
    EXPECT_TRUE(in.read_on_host(Wait::never()).ok());
    EXPECT_EQ(in.write_on_host(Wait::never()).code(), Code::not_ready);
    world.stuck = false;
    EXPECT_TRUE(in.write_on_host().ok());
}

TEST(Core, LaunchesThatConflictWithAnOpenViewAreRefused) {  // keeps G9
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    {
        auto view = a.write_on_host().value();
        Result<isthmus::LaunchReport> refused = device.stream().launch(copy_over, 8, b, a);
        ASSERT_EQ(refused.code(), Code::in_use);
        EXPECT_NE(refused.error().message().find("'copy_over', argument 'in'"), std::string_view::npos);
        EXPECT_EQ(a.read_on_host().code(), Code::in_use);
    }
    auto view = a.read_on_host().value();
    EXPECT_TRUE(device.stream().launch(copy_over, 8, b, a).ok()) << "reading beside a read view is fine";
    EXPECT_EQ(device.stream().launch(add_one, 8, a).code(), Code::in_use);
    EXPECT_EQ(a.release().code(), Code::in_use);
}

TEST(Core, StagedBuffersAreCopiedOnceEachWay) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = staged(device, 8);
    ASSERT_EQ(a.path(), isthmus::LaunchPath::stage);
    number(a, 10);
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.count("copy up"), 1u);
    {
        auto view = a.read_on_host().value();
        EXPECT_EQ(view[0], 12);
        EXPECT_EQ(view[7], 19);
    }
    (void)a.read_on_host().value();
    EXPECT_EQ(world.count("copy down"), 1u);
    EXPECT_EQ(a.staged_bytes(), 2u * 8 * sizeof(int));
    number(a, 100);  // the host's copy is newer again
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.count("copy up"), 2u);
    EXPECT_EQ(a.read_on_host().value()[1], 102);
}

TEST(Core, AViewOfAStagedBufferWaitsForNothingBehindItsLastUseEither) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = staged(device, 8);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    number(b, 0);
    (void)device.stream().launch(add_one, 8, a).value();
    for (int i = 0; i < 5; ++i) (void)device.stream().launch(add_one, 8, b).value();
    EXPECT_EQ(a.read_on_host().value()[7], 8);
    std::size_t waiting = 0;
    for (const auto& [stream, work] : world.queue) waiting += work.size();
    EXPECT_EQ(waiting, 5u);
}

TEST(Core, AnUploadOnOneStreamIsWaitedForOnAnother) {
    FakeWorld world;
    Device device = open(world);
    Stream other = device.create_stream().value();
    Buffer<int> a = staged(device, 8);
    Buffer<int> x = device.allocate<int>(8).value();
    Buffer<int> y = shared(device, 8, MemoryKind::pinned);
    number(a, 1);
    (void)device.stream().launch(copy_over, 8, x, a).value();
    EXPECT_EQ(world.count("wait"), 0u);
    (void)other.launch(copy_over, 8, y, a).value();
    EXPECT_EQ(world.count("wait"), 1u);
    EXPECT_EQ(y.read_on_host().value()[7], 8);
}

TEST(Core, ALaunchThatFailsLeavesTheHostsSideOfAStagedBuffer) {
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = staged(device, 8);
    Buffer<int> b = staged(device, 8);
    (void)device.stream().launch(copy_over, 8, a, b).value();
    number(a, 5);
    world.fail_at = static_cast<int>(world.calls.size()) + 2;  // nothing has to be uploaded: the launch itself fails
    world.calls.reserve(64);
    Result<isthmus::LaunchReport> failed = device.stream().launch(copy_over, 8, a, b);
    if (failed) failed = device.stream().launch(copy_over, 8, a, b);
    world.fail_at = 0;
    number(a, 5);
    const auto view = a.read_on_host().value();
    EXPECT_EQ(view[0], 5);
    EXPECT_EQ(view[7], 12);
}

TEST(Core, AStagedBufferInTwoPlacesIsUploadedWhereOneOfThemReads) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = staged(device, 8);
    number(a, 5);
    (void)device.stream().launch(copy_over, 8, a, a).value();
    EXPECT_EQ(world.count("copy up"), 1u);
    EXPECT_EQ(a.read_on_host().value()[7], 12);
}

TEST(Core, ALaunchThatFailsLeavesTheHostsSideOfAStagedBufferInTwoPlaces) {  // keeps G8
    for (int call = 1; call <= 3; ++call) {
        FakeWorld world;
        Device device = open(world);
        Buffer<int> a = staged(device, 8);
        (void)device.stream().launch(copy_over, 8, a, a).value();
        number(a, 5);
        world.fail_at = static_cast<int>(world.calls.size()) + call;
        (void)device.stream().launch(copy_over, 8, a, a);
        world.fail_at = 0;
        const auto view = a.read_on_host().value();
        EXPECT_EQ(view[0], 5) << call;
        EXPECT_EQ(view[7], 12) << call;
    }
}

TEST(Core, ARefusedLaunchKeepsNobodyFromItsOtherBuffers) {  // keeps G8, G9
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    Buffer<int> busy = device.allocate<int>(8).value();
    world.stuck = true;
    {
        const auto view = b.write_on_host().value();
        EXPECT_EQ(device.stream().launch(copy_over, 8, a, b).code(), Code::in_use);
    }
    (void)device.stream().launch(add_one, 8, busy).value();
    EXPECT_TRUE(a.write_on_host(Wait::never()).ok()) << "the kernel that runs has nothing to do with it";
    world.stuck = false;
}

TEST(Core, AKernelOnAPartOfManagedMemoryDrawsThePagesOfThatPartAlone) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::managed);
    ASSERT_EQ(a.path(), isthmus::LaunchPath::prefetch);
    const auto first = a.part(0, 4).value();
    const auto second = a.part(4, 4).value();
    number(a, 1);
    EXPECT_EQ(device.stream().explain(add_one, 4, first).driver_calls, 2);
    EXPECT_EQ(device.stream().explain(copy_over, 4, first, second).driver_calls, 3) << "each part by itself";
    world.stuck = true;
    (void)device.stream().launch(add_one, 4, first).value();
    EXPECT_EQ(world.count("prefetch"), 1u);
    EXPECT_EQ(world.prefetched, std::make_pair(a.device_address(), std::size_t{16}));
    EXPECT_TRUE(second.write_on_host(Wait::never()).ok());
    EXPECT_EQ(first.read_on_host(Wait::never()).code(), Code::not_ready);
    world.stuck = false;
    EXPECT_EQ(a.read_on_host().value()[0], 2);
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.prefetched.second, 32u) << "all of it is drawn as before";
    world.calls.clear();
    (void)device.stream().launch(add_one, 4, first).value();
    EXPECT_EQ(world.count("prefetch"), 0u) << "nobody had it open since";
    second.write_on_host().value()[0] = 5;
    (void)device.stream().launch(add_one, 4, first).value();
    EXPECT_EQ(world.count("prefetch"), 0u) << "another part was open";
    (void)device.stream().launch(add_one, 4, second).value();
    EXPECT_EQ(world.count("prefetch"), 1u);
    EXPECT_EQ(world.prefetched, std::make_pair(a.device_address() + 16, std::size_t{16}));
}

// keeps P1: managed memory of one DRAM with the CPU's page tables gets its pages by one prefetch
TEST(Core, ManagedMemoryOfOneDramIsPrefetchedOnceBeforeItsFirstUse) {
    isthmus::DeviceFacts facts = coherent_gpu();
    for (isthmus::AttributeFact& fact : facts.attributes) {
        if (fact.id == 18) fact.value = 1;
    }
    FakeWorld world;
    Device device = open(world, facts);
    Buffer<int> a = shared(device, 8, MemoryKind::managed);
    ASSERT_EQ(a.path(), isthmus::LaunchPath::prefetch);
    EXPECT_EQ(device.stream().explain(add_one, 8, a).driver_calls, 2);
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.count("prefetch"), 1u) << "though the host did not touch it";
    number(a, 1);
    EXPECT_EQ(device.stream().explain(add_one, 8, a).driver_calls, 1);
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.count("prefetch"), 1u) << "one DRAM: the host's use moved nothing";
    EXPECT_EQ(a.read_on_host().value()[0], 2);
    Buffer<int> plain = shared(device, 8, MemoryKind::pinned);
    (void)device.stream().launch(add_one, 8, plain).value();
    EXPECT_EQ(world.count("prefetch"), 1u);
}

TEST(Core, PartsOfWhatNobodyViewsInPartsCostNoEvents) {  // keeps L7
    FakeWorld world;
    Device device = open(world);
    Buffer<int> plain = device.allocate<int>(8).value();
    Buffer<int> both = staged(device, 8);
    number(both, 0);
    for (Buffer<int>* const buffer : {&plain, &both}) {
        (void)device.stream().launch(add_one, 8, *buffer).value();
        world.calls.clear();
        for (const std::size_t at : {0u, 4u, 0u, 4u}) {
            (void)device.stream().launch(add_one, 4, buffer->part(at, 4).value()).value();
        }
        EXPECT_EQ(world.calls.size(), 4u) << "launches of kernels only";
    }
    const auto part = both.part(0, 4).value();
    EXPECT_EQ(device.stream().explain(add_one, 4, part).driver_calls, 1);
    EXPECT_EQ(both.read_on_host().value()[0], 3);
    EXPECT_TRUE(both.release().ok());
    EXPECT_EQ(device.stream().explain(add_one, 4, part).refusal->code(), Code::invalid_handle);
}

TEST(Core, ManagedMemoryOfPhaseGuardedMachinesIsAttachedAndGivenBack) {  // keeps K6
    FakeWorld world;
    Device device = open(world, integrated_gpu());
    Buffer<int> a = shared(device, 8, MemoryKind::managed);
    Buffer<int> b = device.allocate<int>(8).value();
    ASSERT_EQ(a.path(), isthmus::LaunchPath::attach);
    number(a, 3);
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.count("attach stream"), 1u);
    EXPECT_EQ(world.count("attach host"), 0u);
    (void)device.stream().launch(add_one, 8, b).value();  // the stream stops using it
    EXPECT_EQ(world.count("attach host"), 1u);
    EXPECT_EQ(a.read_on_host().value()[0], 5);
    Stream other = device.create_stream().value();
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(other.launch(add_one, 8, a).code(), Code::in_use);
    EXPECT_EQ(a.read_on_host().value()[0], 6);
    EXPECT_TRUE(other.launch(add_one, 8, a).ok());
}

// `a` is aligned to a page, which no allocation of this driver is. cuStreamAttachMemAsync takes whole allocations only.
void expect_attached_as_a_whole(FakeWorld& world, Device& device, Buffer<int>& a) {
    ASSERT_EQ(a.path(), isthmus::LaunchPath::attach);
    EXPECT_EQ(a.device_address() % 4096, 0u);
    EXPECT_EQ(world.memory.count(a.device_address()), 0u) << "the driver's allocation begins before it";
    number(a, 3);
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_EQ(world.memory.count(world.attached), 1u) << "to the stream";
    EXPECT_EQ(a.read_on_host().value()[0], 4);
    EXPECT_EQ(world.count("attach host"), 1u);
    EXPECT_EQ(world.memory.count(world.attached), 1u) << "to the host";
}

TEST(Core, ManagedMemoryInsideALargerAllocationIsAttachedAsAWhole) {  // keeps K6, K18
    FakeWorld world;
    Device device = open(world, integrated_gpu());
    isthmus::SharedUse use;
    use.kind = MemoryKind::managed;
    use.alignment_bytes = 4096;
    Buffer<int> a = device.allocate_shared<int>(8, use).value();
    expect_attached_as_a_whole(world, device, a);
}

TEST(Core, ManagedMemoryOfAnAllocatorInsideALargerAllocationIsAttachedAsAWhole) {  // keeps K6, K18
    FakeWorld world;
    Device device = open(world, integrated_gpu());
    const isthmus::AlignedAllocator aligned(device.allocator(MemoryKind::managed), 4096);
    Buffer<int> a = device.allocate<int>(8, aligned).value();
    expect_attached_as_a_whole(world, device, a);
}

TEST(Core, ManagedMemoryIsTakenOverByAnotherStreamBehindItsReturn) {  // keeps K6, S10
    FakeWorld world;
    Device device = open(world, integrated_gpu());
    Stream other = device.create_stream().value();
    Buffer<int> a = shared(device, 8, MemoryKind::managed);
    Buffer<int> b = device.allocate<int>(8).value();
    number(a, 3);
    (void)other.launch(add_one, 8, b).value();  // opens the stream
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, b).value();  // stops using it: its return is queued, and no work runs yet
    ASSERT_EQ(world.calls.back(), "launch add_one");
    ASSERT_EQ(world.count("attach host"), 1u);
    world.calls.clear();
    (void)other.launch(add_one, 8, a).value();
    ASSERT_EQ(world.calls, (std::vector<std::string>{"wait", "attach stream", "launch add_one"}));
    (void)other.launch(add_one, 8, b).value();
    world.calls.clear();
    (void)other.launch(add_one, 8, a).value();  // after the return on the same stream, whose order suffices
    EXPECT_EQ(world.calls, (std::vector<std::string>{"attach stream", "launch add_one"}));
    EXPECT_EQ(a.read_on_host().value()[0], 6);
}

TEST(Core, ACopyToTheHostThatWasGivenUpNeverLandsOnWhatTheHostWroteSince) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = staged(device, 8);
    Buffer<int> y = shared(device, 8, MemoryKind::pinned);
    number(a, 1);
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, y).value();       // the fence after a
    world.fail_at = static_cast<int>(world.calls.size()) + 4;  // query, copy down, record, query
    EXPECT_FALSE(a.read_on_host().ok());
    world.fail_at = 0;
    ASSERT_EQ(world.count("copy down"), 1u);
    number(a, 100);
    (void)device.stream().synchronize().value();
    EXPECT_EQ(a.read_on_host().value()[0], 100);
}

TEST(Core, AnUploadForARefusedLaunchNeverLandsOnALaterResult) {  // keeps G9
    FakeWorld world;
    Device device = open(world);
    Stream other = device.create_stream().value();
    Buffer<int> a = staged(device, 8);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 1);
    {
        const auto held = b.read_on_host().value();
        EXPECT_EQ(other.launch(copy_into, 8, a, b).code(), Code::in_use);
    }
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().synchronize().value();
    (void)other.synchronize().value();
    EXPECT_EQ(a.read_on_host().value()[0], 2);
}

TEST(Core, ARefusedLaunchDoesNotKeepManagedMemoryOnItsStream) {  // keeps K6, G9
    FakeWorld world;
    Device device = open(world, integrated_gpu());
    Stream other = device.create_stream().value();
    Buffer<int> a = shared(device, 8, MemoryKind::managed);
    Buffer<int> b = shared(device, 8, MemoryKind::managed);
    {
        const auto held = b.read_on_host().value();
        EXPECT_EQ(device.stream().launch(copy_into, 8, a, b).code(), Code::in_use);
    }
    (void)a.read_on_host().value();
    EXPECT_EQ(world.count("attach host"), world.count("attach stream")) << "the host may touch it now";
    EXPECT_TRUE(other.launch(add_one, 8, a).ok());
}

TEST(Core, AViewDoesNotWaitForAnEventThatItsStreamWaitsForSince) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Stream other = device.create_stream().value();
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    (void)other.launch(add_one, 8, b).value();
    const isthmus::Event event = other.record().value();
    (void)device.stream().launch(add_one, 8, a).value();
    (void)device.stream().wait(event).value();
    EXPECT_EQ(a.read_on_host().value()[0], 1);
    EXPECT_FALSE(other.state()->reached(1));
    EXPECT_EQ(world.pending.count(static_cast<std::uintptr_t>(event.state()->taken->handle)), 1u)
        << "the other stream's work has not been waited for";
}

TEST(Core, SynchronizingADeviceCoversStreamsThatAreGone) {  // keeps S9
    FakeWorld world;
    Device device = open(world);
    std::array<int, 4> memory{};
    {
        Stream passing = device.create_stream().value();
        (void)passing.launch(relaxed, add_one, 4, isthmus::View<int>{memory.data(), 4}).value();
    }
    EXPECT_EQ(memory[0], 0);
    EXPECT_TRUE(device.synchronize().ok());
    EXPECT_EQ(memory[3], 1);
}

TEST(Core, StreamsThatComeAndGoLeaveNoEventsBehind) {
    std::array<int, 4> memory{};  // outlives the device: queued work still runs while it closes
    FakeWorld world;
    Device device = open(world);
    for (int round = 0; round < 100; ++round) {
        Stream passing = device.create_stream().value();
        (void)passing.launch(relaxed, add_one, 4, isthmus::View<int>{memory.data(), 4}).value();
    }
    EXPECT_LE(world.events.size(), 4u);
}

// NOLINTBEGIN(bugprone-use-after-move, performance-move-const-arg): that is the question here
TEST(Core, HandlesThatWereMovedFromStillWork) {
    FakeWorld world;
    Device device = open(world);
    Stream first = device.create_stream().value();
    const Stream second = std::move(first);
    EXPECT_EQ(first.id(), second.id());
    EXPECT_TRUE(first.synchronize().ok());
    isthmus::Event event = first.record().value();
    const isthmus::Event moved = std::move(event);
    EXPECT_TRUE(event.synchronize().ok());
    EXPECT_TRUE(moved.finished().ok());
}
// NOLINTEND(bugprone-use-after-move, performance-move-const-arg)

TEST(Core, HostMemoryUsedByAnotherDeviceThatWasLostCanBeSalvagedAndReleased) {  // keeps R2
    FakeWorld here;
    FakeWorld there;
    Device owner = open(here, coherent_gpu());
    Device user = open(there, coherent_gpu());
    Buffer<int> a = owner.allocate_host<int>(8).value();
    number(a, 4);
    (void)user.stream().launch(add_one, 8, a).value();
    there.fail_at = static_cast<int>(there.calls.size()) + 1;
    there.fail_code = Code::device_lost;
    there.sticky = true;
    EXPECT_EQ(a.read_on_host().code(), Code::device_lost);
    EXPECT_EQ(a.salvage_on_host().value()[0], 4);
    EXPECT_TRUE(a.release().ok());
}

// Another thread of the parent may have held the lock of the list at the fork: the child takes it never.
TEST(Core, ABufferThatAnotherDeviceUsedEndsInAForkedChildWithoutALock) {  // keeps R3
#ifdef ISTHMUS_SANITIZED
    GTEST_SKIP() << "a child frees nothing, which a sanitizer finds in the one process that plays it";
#endif
    FakeWorld here;
    FakeWorld there;
    Device owner = open(here, coherent_gpu());
    Device user = open(there, coherent_gpu());
    std::optional<Buffer<int>> a = owner.allocate_host<int>(8).value();
    (void)user.stream().launch(add_one, 8, *a).value();
    ASSERT_TRUE(user.stream().synchronize().ok());
    std::promise<void> held;
    std::promise<void> ended;
    bool ended_meanwhile = false;
    std::thread holder([&] {
        user.state()->books->far_buffers.visit([&](isthmus::detail::BufferState&) {
            held.set_value();
            const auto waited = ended.get_future().wait_for(std::chrono::seconds(20));
            ended_meanwhile = waited == std::future_status::ready;
        });
    });
    held.get_future().wait();
    isthmus::process::forks.fetch_add(1);  // what the child of a fork() finds
    a.reset();
    isthmus::process::forks.fetch_sub(1);
    ended.set_value();
    holder.join();
    EXPECT_TRUE(ended_meanwhile);
}

TEST(Core, DeviceMemoryOnTwoStreamsIsReleasedBehindBoth) {  // keeps G8
    FakeWorld world;
    Device device = open(world);
    Stream other = device.create_stream().value();
    Buffer<int> a = device.allocate<int>(8).value();
    (void)device.stream().launch(add_one, 8, a).value();
    (void)other.launch(add_one, 8, a).value();
    (void)device.stream().launch(add_one, 8, a).value();
    EXPECT_TRUE(a.release().ok());
    for (const auto& [stream, work] : world.queue) EXPECT_TRUE(work.empty());
}

TEST(Core, AHungKernelIsNamedWhenTheDeadlinePasses) {  // keeps R5
    FakeWorld world;
    world.stuck = true;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    (void)device.stream().launch(add_one, 8, a).value();
    const auto view = a.read_on_host(Wait::at_most(std::chrono::milliseconds(2)));
    ASSERT_EQ(view.code(), Code::timed_out);
    EXPECT_NE(view.error().message().find("add_one"), std::string_view::npos);
    EXPECT_EQ(a.release(Wait::never()).code(), Code::not_ready) << "still ours: the kernel may write it";
    const auto part = a.part(0, 4).value();
    EXPECT_EQ(a.release(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(part.read_on_host(Wait::never()).code(), Code::not_ready) << "not released: its parts go on";
    world.stuck = false;
    EXPECT_TRUE(part.read_on_host().ok());
    EXPECT_TRUE(a.release().ok());
    EXPECT_EQ(a.release().code(), Code::invalid_handle);
    EXPECT_EQ(part.read_on_host().code(), Code::invalid_handle);
}

TEST(Core, AStagedLaunchThatWasNotWaitedForStillHasItsHostMemory) {  // keeps L4, R5
    FakeWorld world;
    Device device = open(world);
    Buffer<int> in = device.allocate_host<int>(8).value();
    Buffer<int> out = device.allocate_host<int>(8).value();
    number(in, 3);
    number(out, 0);
    world.stuck = true;
    const isthmus::LaunchOptions copied{.mode = isthmus::LaunchMode::staged};
    ASSERT_EQ(device.stream().launch(copied, copy_over, 8, out, in).code(), Code::timed_out);
    EXPECT_EQ(in.write_on_host(Wait::never()).code(), Code::not_ready) << "the copy to the device may still read it";
    EXPECT_TRUE(in.read_on_host(Wait::never()).ok());
    EXPECT_EQ(in.release(Wait::never()).code(), Code::not_ready);
    world.stuck = false;
    EXPECT_TRUE(in.write_on_host().ok());
    EXPECT_TRUE(in.release().ok());
}

TEST(Core, ClosingADeviceWithAHungKernelEndsAndLeavesTheDriverOpen) {  // keeps R5
    FakeWorld world;
    world.stuck = true;
    {
        Device device = open(world);
        Buffer<int> a = device.allocate<int>(8).value();
        (void)device.stream().launch(add_one, 8, a).value();
    }
    EXPECT_EQ(world.count("release"), 0u) << "the kernel may still write there";
    EXPECT_EQ(world.count("destroy event"), 0u);
    EXPECT_EQ(world.memory.size(), 1u);
}

TEST(Core, AStickyErrorIsLatchedAndHostMemoryCanBeSalvaged) {  // keeps R2
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    number(a, 7);
    (void)device.stream().launch(add_one, 8, a).value();
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::device_lost;
    world.sticky = true;
    EXPECT_EQ(device.stream().launch(add_one, 8, a).code(), Code::device_lost);
    EXPECT_FALSE(device.healthy());
    const std::size_t made = world.calls.size();
    EXPECT_EQ(device.stream().launch(add_one, 8, a).code(), Code::device_lost);
    EXPECT_EQ(device.allocate<int>(8).code(), Code::device_lost);
    EXPECT_EQ(device.stream().synchronize().code(), Code::device_lost);
    EXPECT_EQ(world.calls.size(), made) << "answered without a driver call";
    EXPECT_EQ(a.read_on_host().code(), Code::device_lost) << "its launch never finished: no silent answer";
    EXPECT_EQ(a.salvage_on_host().value()[0], 7);
    EXPECT_EQ(a.write_on_host().code(), Code::device_lost);
    EXPECT_EQ(world.calls.size(), made);
}

TEST(Core, ArgumentsAreJudgedByNameBeforeTheDriverIsCalled) {  // keeps L3, L5
    FakeWorld world;
    Device device = open(world);
    Buffer<int> host = device.allocate_host<int>(8).value();
    Buffer<int> a = device.allocate<int>(8).value();
    const Result<isthmus::LaunchReport> refused = device.stream().launch(copy_over, 8, a, host);
    ASSERT_EQ(refused.code(), Code::not_accessible);
    EXPECT_NE(refused.error().message().find("argument 'in', is host memory"), std::string_view::npos);
    EXPECT_EQ(world.count("launch"), 0u);
    Buffer<int> moved = std::move(a);
    EXPECT_EQ(device.stream().launch(add_one, 8, a).code(), Code::invalid_handle);  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(device.stream().launch(add_one, 8, moved).ok());
    EXPECT_EQ(device.stream().launch(narrow, 8, moved, 256).code(), Code::invalid_argument);
    EXPECT_TRUE(device.stream().launch(narrow, 8, moved, 255).ok());
}

TEST(Core, AbsurdSizesAreRefusedBeforeTheDriverIsCalled) {  // keeps K18
    FakeWorld world;
    Device device = open(world);
    EXPECT_EQ(device.allocate<int>(std::size_t(-1)).code(), Code::invalid_argument);
    EXPECT_EQ(device.allocate_shared<double>(std::size_t{1} << 62).code(), Code::invalid_argument);
    EXPECT_EQ(device.allocate<int>(8, MemoryKind::vmm).code(), Code::unsupported);
    EXPECT_TRUE(world.calls.empty());
    Buffer<int> none = device.allocate<int>(0).value();  // keeps K3
    EXPECT_EQ(none.kind(), MemoryKind::device);
    EXPECT_EQ(none.size(), 0u);
    EXPECT_TRUE(world.calls.empty());
}

TEST(Core, FencesStayFewHoweverLongNobodyLooks) {
    FakeWorld world;
    Device device = open(world);
    Buffer<int> a = shared(device, 8, MemoryKind::pinned);
    Buffer<int> b = shared(device, 8, MemoryKind::pinned);
    number(a, 0);
    world.stuck = true;
    for (int i = 0; i < 1000; ++i) {
        (void)device.stream().launch(add_one, 8, a).value();
        (void)device.stream().launch(add_one, 8, b).value();
    }
    EXPECT_LE(world.events.size(), 70u);
    world.stuck = false;
    EXPECT_EQ(a.read_on_host().value()[0], 1000);
}

// One pass over most of the runtime. Every step may fail; what succeeded is destroyed in the end.
void scenario(FakeWorld& world) {
    Device device = open(world);
    Result<Stream> other = device.create_stream();
    Result<Buffer<int>> a = device.allocate_shared<int>(8, {.kind = MemoryKind::device});
    SharedUse pinned;
    pinned.kind = MemoryKind::pinned;
    Result<Buffer<int>> b = device.allocate_shared<int>(8, pinned);
    pinned.kind = MemoryKind::registered;
    Result<Buffer<int>> c = device.allocate_shared<int>(8, pinned);
    Result<Buffer<int>> p = device.allocate<int>(8, MemoryKind::pool);
    if (!a || !b || !c || !p || !other) return;
    if (auto view = a->write_on_host()) std::fill(view->begin(), view->end(), 1);
    (void)device.stream().launch(add_one, 8, *a).code();
    (void)other->launch(copy_over, 8, *b, *a).code();
    (void)device.stream().launch(add_one, 8, *p).code();
    (void)device.stream().copy(*c, *b).code();
    (void)device.stream().fill_bytes(*b, 1).code();
    (void)device.stream().wait_stream(*other).code();
    if (auto event = other->record()) (void)event->synchronize().code();
    (void)a->read_on_host().code();
    (void)c->read_on_host().code();
    (void)b->release().code();
    (void)device.synchronize().code();
}

TEST(Core, FailingAnyOneCallNeverLeaksNorCrashes) {  // keeps R6
    FakeWorld whole;
    scenario(whole);
    ASSERT_TRUE(whole.clean());
    const int calls = static_cast<int>(whole.calls.size());
    ASSERT_GT(calls, 30);
    for (const Code code : {Code::driver_error, Code::out_of_memory, Code::device_lost}) {
        for (const bool sticky : {false, true}) {
            for (int at = 1; at <= calls; ++at) {
                FakeWorld world;
                world.fail_at = at;
                world.fail_code = code;
                world.sticky = sticky;
                scenario(world);
                // A driver that never answers again cannot report that the device has finished: such memory is
                // abandoned.
                if (sticky && code != Code::device_lost) continue;
                // A lost device frees nothing: its memory is dropped from the records and ends with the process (K11).
                if (code == Code::device_lost) world.forget_memory();
                EXPECT_TRUE(world.clean()) << "call " << at << " (" << world.calls[static_cast<std::size_t>(at) - 1]
                                           << ") failed with " << isthmus::name(code) << (sticky ? " for good" : "");
            }
        }
    }
}

}  // namespace
