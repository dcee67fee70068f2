// SPDX-License-Identifier: Apache-2.0
// Refusals that need a driver in a rare state: the test brings each about, and tries the alternative beside it.
#include "core_errors.hpp"
#include "device_errors.hpp"
#include "fake_device.hpp"
#include "refused_with.hpp"

#include "buffer_state.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

namespace {

ISTHMUS_KERNEL(add_one, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}

using isthmus::ArgumentUse;
using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::MemoryKind;
using isthmus::Stream;
using isthmus::Wait;
using isthmus::detail::BufferState;
using isthmus::detail::StreamState;
using isthmus::rules::ByteSpan;
using isthmus::rules::ViewWord;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::refused_with;
namespace errors = isthmus::errors;
namespace platform = isthmus::platform;

struct Refusals : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    Stream& stream = device.stream();

    Buffer<int> shared(MemoryKind kind) { return device.allocate_shared<int>(8, {.kind = kind}).value(); }
    // A staged buffer whose newer content is on the device: the host reaches it only by a copy.
    Buffer<int> written_on_device() {
        Buffer<int> data = shared(MemoryKind::device);
        { auto view = data.write_on_host().value(); }
        EXPECT_TRUE(stream.launch(add_one, 8, data).ok());
        EXPECT_TRUE(stream.synchronize().ok());
        return data;
    }
    void lose_the_device(Buffer<int>& data) {
        world.fail_at = static_cast<int>(world.calls.size()) + 1;
        world.fail_code = Code::device_lost;
        world.sticky = true;
        EXPECT_EQ(stream.launch(add_one, 8, data).code(), Code::device_lost);
    }
};

TEST_F(Refusals, AViewThatMayNotWaitDoesNotCopy) {  // keeps G8
    const Buffer<int> data = written_on_device();
    EXPECT_TRUE(refused_with<errors::content_on_device_side>(data.read_on_host(Wait::never())));
    EXPECT_TRUE(data.read_on_host().ok());
    EXPECT_TRUE(data.read_on_host(Wait::never()).ok()) << "it is copied by now";
}

TEST_F(Refusals, AViewWaitsForAnothersCopyAsLongAsItMay) {  // keeps G8
    const Buffer<int> data = written_on_device();
    {
        const std::lock_guard copying(data.state()->blocks().downloading());
        std::thread([&] {
            using errors::content_copied_for_another_view;
            EXPECT_TRUE(
                refused_with<content_copied_for_another_view>(data.read_on_host(Wait::never()), Code::not_ready));
            const Wait short_wait = Wait::at_most(std::chrono::milliseconds(1));
            EXPECT_TRUE(refused_with<content_copied_for_another_view>(data.read_on_host(short_wait), Code::timed_out));
        }).join();
    }
    EXPECT_TRUE(data.read_on_host().ok());
}

TEST_F(Refusals, ReadViewsAreCountedUpToALimit) {  // keeps G8
    Buffer<int> data = shared(MemoryKind::pinned);
    BufferState& state = *data.state();
    {
        const std::lock_guard lock(state.views);
        for (ViewWord::Bits count = 0; count < ViewWord::max_readers; ++count) {
            state.views.open({ArgumentUse::read, {}});
        }
    }
    EXPECT_TRUE(refused_with<errors::too_many_views_are_open>(data.read_on_host()));
    const auto close_one = [&] { isthmus::detail::close_view(state, ArgumentUse::read, 0, ByteSpan::to_the_end); };
    close_one();
    EXPECT_TRUE(data.read_on_host().ok());
    for (ViewWord::Bits count = 1; count < ViewWord::max_readers; ++count) close_one();
    EXPECT_TRUE(data.write_on_host().ok()) << "none is open";
}

TEST_F(Refusals, OnlyWhatTheHostCanStillReadIsSalvaged) {  // keeps R2
    Buffer<int> pinned = shared(MemoryKind::pinned);
    Buffer<int> on_device = device.allocate<int>(8).value();
    lose_the_device(on_device);
    EXPECT_TRUE(refused_with<errors::content_lost_with_device>(on_device.salvage_on_host()));
    EXPECT_TRUE(pinned.salvage_on_host().ok());
    world.died = true;
    EXPECT_TRUE(refused_with<errors::memory_gone_with_context>(pinned.salvage_on_host()));
}

TEST_F(Refusals, SynchronizingWaitsForStreamsThatAreGoneAndForWorkOfOthers) {  // keeps S9, R5
    std::array<int, 8> memory{};
    const isthmus::View<int> view{memory.data(), memory.size()};
    {
        Stream passing = device.create_stream().value();  // a buffer would keep it alive
        ASSERT_TRUE(passing.launch({.mode = isthmus::LaunchMode::relaxed}, add_one, memory.size(), view).ok());
        world.stuck = true;
    }
    const Wait short_wait = Wait::at_most(std::chrono::milliseconds(1));
    using errors::destroyed_stream_still_works;
    EXPECT_TRUE(refused_with<destroyed_stream_still_works>(device.synchronize(Wait::never()), Code::not_ready));
    EXPECT_TRUE(refused_with<destroyed_stream_still_works>(device.synchronize(short_wait), Code::timed_out));
    world.stuck = false;
    EXPECT_TRUE(device.synchronize().ok());
    world.others_work = true;
    world.stuck = true;
    using errors::other_code_still_works;
    EXPECT_TRUE(refused_with<other_code_still_works>(device.synchronize(Wait::never()), Code::not_ready));
    EXPECT_TRUE(refused_with<other_code_still_works>(device.synchronize(short_wait), Code::timed_out));
    world.stuck = false;
    EXPECT_TRUE(device.synchronize().ok());
}

TEST_F(Refusals, AWaitForAStreamThatAnotherThreadHoldsNamesTheCall) {  // keeps R5
    Stream other = device.create_stream().value();
    const std::lock_guard held(other.state()->mutex);
    std::thread([&] {
        Wait never = Wait::never();
        EXPECT_TRUE(
            refused_with<errors::stream_held_by_call>(other.state()->lock_within(never, "a test"), Code::not_ready));
        other.state()->gives("a launch");
        Wait short_wait = Wait::at_most(std::chrono::milliseconds(1));
        const auto named = other.state()->lock_within(short_wait, "a test");
        ASSERT_TRUE(refused_with<errors::stream_held_by_named_call>(named, Code::timed_out));
        EXPECT_NE(named.error().message().find("'a launch'"), std::string_view::npos) << named.error().text();
    }).join();
}

TEST_F(Refusals, PoolMemoryThatIsStillInUseIsWaitedForAsLongAsTheRuntimeWaits) {  // keeps S3, R5
    { const Buffer<int> before = device.allocate<int>(8, MemoryKind::pool).value(); }
    ASSERT_FALSE(world.queue.empty());
    world.stuck = true;
    EXPECT_TRUE(refused_with<errors::pool_memory_not_free_in_time>(device.allocate<int>(8, MemoryKind::pool)));
    world.stuck = false;
    EXPECT_TRUE(device.allocate<int>(8, MemoryKind::pool).ok());
    EXPECT_EQ(device.pool().value().usage().value().used_bytes, 0u) << "nothing of what failed is left";
}

// An external stream, as Device::wrap_stream() makes it where the driver reports streams of other code.
struct ExternalRefusals : Refusals {
    static constexpr std::uintptr_t native = 77;
    Stream wrap(bool with_handle) {
        const platform::ForeignStream foreign{platform::StreamHandle{native}, 1};
        std::shared_ptr<StreamState> state = StreamState::make(device.state(), foreign);
        if (with_handle) state->handle = foreign.handle;
        return Stream(std::move(state));
    }
};

TEST_F(ExternalRefusals, AStreamWithoutAWrapperTakesNoWork) {  // keeps S5, S18
    Buffer<int> data = device.allocate<int>(8).value();
    Stream gone = wrap(false);
    EXPECT_TRUE(refused_with<errors::external_stream_has_no_wrapper>(gone.launch(add_one, 8, data)));
    EXPECT_TRUE(wrap(true).launch(add_one, 8, data).ok());
}

TEST_F(ExternalRefusals, ALostCaptureOfOtherCodeTakesNoWork) {  // keeps S5
    Buffer<int> data = device.allocate<int>(8).value();
    Stream external = wrap(true);
    world.lost_captures.insert(native);
    EXPECT_TRUE(refused_with<errors::external_capture_was_lost>(external.launch(add_one, 8, data)));
    world.lost_captures.clear();
    EXPECT_TRUE(external.launch(add_one, 8, data).ok());
}

TEST_F(ExternalRefusals, ACaptureOfOtherCodeDoesNotWaitForAnAllocation) {  // keeps S5, S19
    Stream external = wrap(true);
    Buffer<int> data = stream.allocate<int>(8).value();  // the capture could not wait for it
    world.capturing[native];
    EXPECT_TRUE(refused_with<errors::unallocated_memory_in_foreign_capture>(external.launch(add_one, 8, data)));
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_TRUE(external.launch(add_one, 8, data).ok());
    EXPECT_EQ(world.capturing[native].size(), 1u) << "it is recorded";
    world.capturing.erase(native);
}

// The CPU device passes buffers to an operation only during captures, and another thread may have ended the capture.
TEST(SynchronousRefusals, AnOperationThatIsNoLongerCapturedIsNotDone) {  // keeps S14
    FakeWorld world;
    world.synchronous = true;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    const Buffer<int> data = device.allocate<int>(8).value();
    isthmus::detail::Operation operation(*device.stream().state(), "a test", nullptr);
    operation.uses(data.state(), ArgumentUse::read, 0);
    bool done = false;
    const auto issued = operation.issue([&] { return done = true, platform::Status{}; });
    EXPECT_TRUE(refused_with<errors::capture_ended_during_recording>(issued));
    EXPECT_FALSE(done);
    isthmus::detail::Operation without(*device.stream().state(), "a test", nullptr);
    EXPECT_TRUE(without.issue([&] { return done = true, platform::Status{}; }).ok());
    EXPECT_TRUE(done);
}

}  // namespace
