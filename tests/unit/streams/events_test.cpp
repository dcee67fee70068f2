// SPDX-License-Identifier: Apache-2.0
// Events, marks and completions against a driver that records every call: the driver calls of each, and what a pooled
// event still stands for while it is reused.
#include "components.hpp"
#include "fake_device.hpp"
#include "refused_with.hpp"

#include "event_state.hpp"
#include "stream_state.hpp"
#include "streams_errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace {

ISTHMUS_KERNEL(count_up, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}

using isthmus::Buffer;
using isthmus::Capture;
using isthmus::Code;
using isthmus::CompletionQueue;
using isthmus::Device;
using isthmus::Event;
using isthmus::MemoryKind;
using isthmus::SharedUse;
using isthmus::Stream;
using isthmus::Wait;
using isthmus::detail::EventPool;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::refused_with;
using isthmus::testing::with;

using Calls = std::vector<std::string>;

isthmus::DeviceFacts facts_with_ipc() {
    isthmus::DeviceFacts facts = discrete_facts();
    facts.attributes.push_back({125, 1, 0});
    return facts;
}

struct Events : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world, facts_with_ipc())};
    Stream& stream = device.stream();

    Buffer<int> pinned() const { return of_kind(device, MemoryKind::pinned); }
    static Buffer<int> of_kind(const Device& on, MemoryKind kind) {
        SharedUse use;
        use.kind = kind;
        Buffer<int> made = Device(on).allocate_shared<int>(4, use).value();
        auto view = made.write_on_host().value();
        for (int& one : view) one = 0;
        return made;
    }
    Calls calls_of(auto action) {
        world.calls.clear();
        action();
        return world.calls;
    }
};

TEST_F(Events, AFreshRecordIsOneDriverCallOnceThereIsAnEventToUseAgain) {
    (void)stream.record().value();
    for (int round = 0; round < 200; ++round) {
        ASSERT_EQ(calls_of([&] { (void)stream.record().value(); }), Calls{"record"});
    }
    (void)stream.record({.timing = true}).value();
    EXPECT_EQ(calls_of([&] { (void)stream.record({.timing = true}).value(); }), Calls{"record"});
    EXPECT_EQ(world.events.size(), 2u) << "one of each kind";
}

TEST_F(Events, IdleOnesAreBounded) {
    {
        std::vector<Event> many;
        for (std::size_t at = 0; at < EventPool::max_idle + 50; ++at) many.push_back(stream.record().value());
        EXPECT_EQ(world.events.size(), EventPool::max_idle + 50);
    }
    constexpr std::size_t kept = EventPool::max_idle + 1;  // one in the place of this thread
    EXPECT_EQ(world.events.size(), kept);
    EXPECT_EQ(device.state()->events.idle(), kept);
    const std::size_t made = world.count("create event");
    {
        std::vector<Event> again;
        for (std::size_t at = 0; at < kept; ++at) again.push_back(stream.record().value());
    }
    EXPECT_EQ(world.count("create event"), made);
}

// An event that lies in the place of one thread serves another one before a further event is made.
TEST_F(Events, OneThatAThreadPutBackServesOthers) {
    { const Event event = stream.record().value(); }
    const std::size_t made = world.count("create event");
    for (int round = 0; round < 3; ++round) {
        std::thread([&] { (void)stream.record().value(); }).join();
        EXPECT_EQ(world.count("create event"), made) << round;
    }
    (void)stream.record().value();
    EXPECT_EQ(world.count("create event"), made);
}

// Threads that take events and put them back at the same time: no two have one.
TEST_F(Events, NoTwoThreadsHaveOneOfThePool) {
    EventPool& pool = device.state()->events;
    constexpr int threads = 4;
    std::atomic<int> doubled{0};
    std::vector<std::thread> all;
    for (int one = 0; one < threads; ++one) {
        all.emplace_back([&] {
            for (int round = 0; round < 2000; ++round) {
                isthmus::detail::FenceEvent* event = nullptr;
                if (!device.state()->take_event(event).ok()) continue;
                event->keep();
                if (event->references.load() != 2) ++doubled;  // another thread has it, too
                device.state()->drop_event(event);
                device.state()->drop_event(event);
            }
        });
    }
    for (std::thread& one : all) one.join();
    EXPECT_EQ(doubled.load(), 0);
    EXPECT_LE(pool.idle(), std::size_t{threads} + 1);
}

TEST_F(Events, InterprocessOnesAreNeverUsedAgain) {
    { const Event event = stream.record({.interprocess = true}).value(); }
    EXPECT_EQ(world.count("create event for others"), 1u);
    EXPECT_EQ(world.count("destroy event"), 1u);
    { const Event event = stream.record({.interprocess = true}).value(); }
    EXPECT_EQ(world.count("create event for others"), 2u);
}

TEST_F(Events, WhatCannotBeIsRefusedWithoutTheDriver) {  // keeps S11
    EXPECT_EQ(stream.record({.timing = true, .interprocess = true}).code(), Code::invalid_argument);
    EXPECT_EQ(device.create_event({.timing = true, .interprocess = true}).code(), Code::invalid_argument);
    FakeWorld other_world;
    Device without(runtime.open(other_world, with(facts_with_ipc(), 125, 0)));
    const auto refused = without.create_event({.interprocess = true});
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_NE(refused.error().message().find("IPC_EVENT_SUPPORTED"), std::string_view::npos);
    FakeWorld silent_world;
    Device silent(runtime.open(silent_world, discrete_facts()));  // a driver that does not know the attribute
    EXPECT_EQ(silent.create_event({.interprocess = true}).code(), Code::unsupported);
    EXPECT_TRUE(world.calls.empty() && other_world.calls.empty() && silent_world.calls.empty());
}

TEST_F(Events, AFailedRecordLeavesTheLastOneAsItWas) {  // keeps S10
    Buffer<int> data = pinned();
    ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    Event event = stream.record().value();  // also serves as the launch's fence
    ASSERT_TRUE(event.state()->taken->shared());
    const auto handle = event.state()->taken->handle;
    const std::uint64_t position = event.state()->position;
    ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    for (const int failing : {1, 2}) {  // the creation of another event, and the record
        world.fail_at = static_cast<int>(world.calls.size()) + failing;
        EXPECT_EQ(stream.record(event).code(), Code::driver_error);
        EXPECT_EQ(event.state()->taken->handle, handle);
        EXPECT_EQ(event.state()->position, position);
    }
    ASSERT_EQ(world.calls.back(), "record");
    EXPECT_TRUE(event.synchronize().ok());
    EXPECT_TRUE(event.finished().value());
    ASSERT_TRUE(stream.record(event).ok());
    EXPECT_NE(event.state()->taken->handle, handle);
    EXPECT_GT(event.state()->position, position);
}

TEST_F(Events, AWaitIsForTheRecordThatWasTheLastOneThenThoughTheEventIsUsedAgain) {  // keeps S10
    Stream producer = device.create_stream().value();
    Stream other = device.create_stream().value();
    Buffer<int> data = device.allocate<int>(4).value();
    ASSERT_TRUE(producer.launch(count_up, 4, data).ok());
    isthmus::platform::EventHandle handle{};
    {
        const Event event = producer.record().value();
        handle = event.state()->taken->handle;
        ASSERT_TRUE(stream.wait(event).ok());
    }
    const Event reused = other.record().value();  // of an idle stream
    ASSERT_EQ(reused.state()->taken->handle, handle);
    EXPECT_TRUE(reused.synchronize().ok());
    const auto& producers_work = world.queue[static_cast<std::uintptr_t>(producer.state()->handle)];
    EXPECT_EQ(producers_work.size(), 2u) << "the launch and the first record";
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_TRUE(producers_work.empty()) << "the wait was for these";
}

TEST_F(Events, AFreshOneOfThePoolStandsForNothing) {
    { const Event earlier = stream.record().value(); }
    world.stuck = true;  // the driver event's earlier record is still pending
    const Event fresh = device.create_event().value();
    EXPECT_EQ(calls_of([&] {
                  EXPECT_TRUE(fresh.finished().value());
                  EXPECT_TRUE(fresh.synchronize(Wait::never()).ok());
                  EXPECT_TRUE(stream.wait(fresh).ok());
              }),
              Calls{});
    world.stuck = false;
}

TEST_F(Events, NothingBlocksTheHostWhileTheDeviceHangs) {  // keeps S10
    Stream other = device.create_stream().value();
    Buffer<int> data = pinned();
    ASSERT_TRUE(other.launch(count_up, 4, data).ok());
    ASSERT_TRUE(stream.mark().ok());  // opens the stream
    world.stuck = true;
    const Event event = other.record().value();
    EXPECT_EQ(calls_of([&] {
                  EXPECT_TRUE(stream.wait(event).ok());
                  EXPECT_TRUE(stream.wait_stream(other).ok());
                  (void)stream.record().value();
              }),
              (Calls{"wait", "create event", "record", "wait", "record"}));
    EXPECT_FALSE(event.finished().value());
    EXPECT_EQ(event.synchronize(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(event.synchronize(Wait::at_most(std::chrono::microseconds(1))).code(), Code::timed_out);
    world.stuck = false;
    EXPECT_TRUE(event.synchronize().ok());
}

TEST_F(Events, SeenCompleteTheyAskNobodyUntilTheyAreRecordedAgain) {
    Buffer<int> data = device.allocate<int>(4).value();
    ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    Event event = stream.record().value();
    world.stuck = true;
    EXPECT_EQ(calls_of([&] { EXPECT_FALSE(event.finished().value()); }), Calls{"query"});
    world.stuck = false;
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{"query"});
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{});
    EXPECT_TRUE(stream.completed(1)) << "the stream learned it, too";
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(stream.synchronize().ok()); }), Calls{});
    ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    ASSERT_TRUE(stream.record(event).ok());
    world.stuck = true;
    EXPECT_FALSE(event.finished().value());
    EXPECT_FALSE(stream.completed(2));
    world.stuck = false;
    EXPECT_TRUE(event.synchronize().ok());
    EXPECT_TRUE(stream.completed(2));
}

// Although the work before it has ended, the driver may not have recorded the time yet.
TEST_F(Events, ATimingEventIsAskedOnceThoughItsStreamIsKnownToBeDone) {
    const Event event = stream.record({.timing = true}).value();
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{"query"});
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{});
    EXPECT_FLOAT_EQ(Event::elapsed_ms(event, event).value(), 1.0F);
}

TEST_F(Events, ARecordIsTheFenceThatItsStreamOwes) {  // keeps G8
    Buffer<int> a = pinned();
    Buffer<int> b = pinned();
    ASSERT_TRUE(stream.launch(count_up, 4, a).ok());
    const Event event = stream.record().value();
    EXPECT_EQ(calls_of([&] { ASSERT_TRUE(stream.launch(count_up, 4, b).ok()); }), Calls{"launch count_up"});
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(a.read_on_host().value()[0], 1); }), Calls{"query"});
    EXPECT_TRUE(event.finished().value());
}

TEST_F(Events, ARecordElsewhereLeavesTheFenceWhereItStood) {  // keeps G8
    Stream other = device.create_stream().value();
    Buffer<int> a = pinned();
    ASSERT_TRUE(stream.launch(count_up, 4, a).ok());
    Event event = stream.record().value();
    ASSERT_TRUE(other.record(event).ok());  // done at once, while the launch is not
    EXPECT_TRUE(event.finished().value());
    EXPECT_FALSE(stream.completed(1));
    EXPECT_EQ(a.read_on_host().value()[0], 1) << "the view waited for the launch, not for the other stream";
    EXPECT_EQ(other.record(event).ok(), true);
}

// Behind every launch a record serves as its fence, which keeps the driver event: the event uses two by turns, and a
// third only while both are kept.
TEST_F(Events, RecordedAgainTheyReturnToTheirOwnDriverEventWhenNothingUsesIt) {  // keeps G8, S10
    Buffer<int> data = pinned();
    const auto launch_and_record = [&](Event& event) {
        ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
        ASSERT_TRUE(stream.record(event).ok());
    };
    Event event = device.create_event().value();
    const auto* const own = event.state()->home;
    launch_and_record(event);
    EXPECT_EQ(event.state()->taken, own);
    launch_and_record(event);
    const auto* const second = event.state()->taken;
    EXPECT_NE(second, own) << "the first launch's fence";
    launch_and_record(event);
    EXPECT_NE(event.state()->taken, own) << "still its fence";
    EXPECT_NE(event.state()->taken, second) << "the second launch's fence";
    ASSERT_TRUE(stream.synchronize().ok());
    for (int round = 0; round < 3; ++round) {
        launch_and_record(event);
        launch_and_record(event);
        EXPECT_EQ(event.state()->taken, own) << round;
        ASSERT_TRUE(stream.synchronize().ok());
        launch_and_record(event);
        EXPECT_EQ(event.state()->taken, own) << "free again";
        launch_and_record(event);
        EXPECT_NE(event.state()->taken, own);
        ASSERT_TRUE(stream.synchronize().ok());
    }
    EXPECT_EQ(world.count("create event"), 3u);
}

TEST_F(Events, ARecordThatFailsOnTheirOwnDriverEventLeavesTheLastOne) {  // keeps S10
    Buffer<int> data = pinned();
    Event event = device.create_event().value();
    for (int record = 0; record < 2; ++record) {
        ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
        ASSERT_TRUE(stream.record(event).ok());
    }
    ASSERT_TRUE(stream.synchronize().ok());
    ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    ASSERT_TRUE(stream.record(event).ok());
    const auto* const last = event.state()->taken;
    ASSERT_TRUE(last->shared());
    ASSERT_NE(last, event.state()->home);
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_EQ(stream.record(event).code(), Code::driver_error);
    EXPECT_EQ(event.state()->taken, last);
    ASSERT_TRUE(stream.record(event).ok());
    EXPECT_EQ(event.state()->taken, event.state()->home);
    EXPECT_EQ(world.count("create event"), 2u);
}

// What a fresh event costs beside the driver's call are references, above all: the stream's one, by which the device
// lives, too. An event without a stream holds the device itself.
TEST_F(Events, AFreshOneCountsOneReference) {  // keeps S10
    const auto device_before = device.state().use_count();
    const auto stream_before = stream.state().use_count();
    {
        const Event fresh = stream.record().value();
        EXPECT_EQ(device.state().use_count(), device_before);
        EXPECT_EQ(stream.state().use_count(), stream_before + 1);
        EXPECT_EQ(fresh.state().use_count(), 1);
    }
    EXPECT_EQ(stream.state().use_count(), stream_before);
    const Event made = device.create_event().value();
    EXPECT_EQ(made.state().use_count(), 1);
    EXPECT_EQ(device.state().use_count(), device_before + 1);
}

TEST_F(Events, AFreshOneOfACaptureHoldsItsDevice) {  // keeps S10, S14
    FakeWorld passing;
    std::optional<Device> gone(runtime.open(passing, facts_with_ipc()));
    std::optional<Event> event;
    {
        Capture capture = gone->stream().begin_capture().value();
        event = gone->stream().record().value();
        EXPECT_EQ(event->state()->stream, nullptr);
        (void)capture.end();
    }
    gone.reset();
    EXPECT_EQ(passing.count("destroy event"), 0u);
    EXPECT_FALSE(event->finished().ok());
    event.reset();
    EXPECT_GE(passing.count("destroy event"), 1u);
}

// The memory of an event lies with the device, which the event holds to the end.
TEST_F(Events, TheLastHolderOfADeviceMayBeAnEvent) {  // keeps S10
    for (const bool recorded : {false, true}) {
        FakeWorld passing;
        std::optional<Device> gone(runtime.open(passing, facts_with_ipc()));
        std::optional<Event> event = recorded ? gone->stream().record().value() : gone->create_event().value();
        std::optional<Event> copy = event;
        gone.reset();
        event.reset();
        EXPECT_EQ(passing.count("destroy event"), 0u);
        copy.reset();
        EXPECT_EQ(passing.count("destroy event"), 1u);
    }
}

TEST_F(Events, AnInterprocessRecordIsNoFenceBecauseItsEventStaysTheSame) {  // keeps G8
    Stream other = device.create_stream().value();
    Buffer<int> a = pinned();
    ASSERT_TRUE(stream.launch(count_up, 4, a).ok());
    Event event = stream.record({.interprocess = true}).value();
    const auto* const before = event.state()->taken;
    ASSERT_TRUE(other.record(event).ok());
    EXPECT_EQ(event.state()->taken, before);
    EXPECT_TRUE(event.finished().value());
    EXPECT_FALSE(stream.completed(1));
    EXPECT_EQ(a.read_on_host().value()[0], 1);
}

// 89=0: memory attached to a stream has to be returned before the host may access it, however the end of the work was
// observed.
TEST_F(Events, AnEventSeenCompleteGivesNoAttachedMemoryToTheHost) {  // keeps K6
    FakeWorld integrated_world;
    Device integrated(runtime.open(integrated_world, with(with(discrete_facts(), 18, 1), 89, 0)));
    Buffer<int> a = of_kind(integrated, MemoryKind::managed);
    ASSERT_EQ(a.path(), isthmus::LaunchPath::attach);
    ASSERT_TRUE(integrated.stream().launch(count_up, 4, a).ok());
    const Event event = integrated.stream().record().value();
    EXPECT_TRUE(event.synchronize().ok());
    EXPECT_TRUE(integrated.stream().poll().ok());
    EXPECT_EQ(a.read_on_host().value()[0], 1);
    EXPECT_EQ(integrated_world.count("attach host"), integrated_world.count("attach stream"));
}

TEST_F(Events, AWaitForAnEventThatAnotherThreadRecordsEnds) {  // keeps S10, R5
    const Event begin = stream.record({.timing = true}).value();
    const Event end = stream.record({.timing = true}).value();
    using isthmus::errors::event_is_being_recorded;
    {
        const std::lock_guard recording(end.state()->mutex);
        std::thread([&] {
            EXPECT_TRUE(refused_with<event_is_being_recorded>(end.synchronize(Wait::never()), Code::not_ready));
            const Wait short_wait = Wait::at_most(std::chrono::milliseconds(1));
            EXPECT_TRUE(refused_with<event_is_being_recorded>(end.synchronize(short_wait), Code::timed_out));
            EXPECT_TRUE(refused_with<event_is_being_recorded>(Event::elapsed_ms(begin, end), Code::timed_out));
            EXPECT_FALSE(end.finished().value()) << "an answer that needs no waiting";
        }).join();
    }
    EXPECT_TRUE(end.synchronize().ok());
    EXPECT_TRUE(Event::elapsed_ms(begin, end).ok());
}

TEST_F(Events, ElapsedTimeIsThereBehindBothEvents) {  // keeps S10
    const Event begin = stream.record({.timing = true}).value();
    const Event end = stream.record({.timing = true}).value();
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::not_ready;
    EXPECT_TRUE(refused_with<isthmus::errors::elapsed_time_not_ready>(Event::elapsed_ms(begin, end)));
    EXPECT_TRUE(end.synchronize().ok());
    EXPECT_EQ(Event::elapsed_ms(begin, end).value(), 1.0F);
}

TEST_F(Events, AStreamOfAnotherRuntimeDoesNotJoinACapture) {  // keeps S14
    NEEDS(graph);
    FakeRuntime another;
    FakeWorld beyond;
    Device foreign{another.open(beyond, facts_with_ipc())};
    Buffer<int> data = pinned();
    isthmus::Capture capture = stream.begin_capture().value();
    const Event event = stream.record().value();
    EXPECT_TRUE(refused_with<isthmus::errors::capture_of_another_runtime>(foreign.stream().wait(event)));
    Stream joined = device.create_stream().value();
    EXPECT_TRUE(joined.wait(event).ok());
    EXPECT_TRUE(stream.launch(count_up, 4, data).ok());
    EXPECT_EQ(capture.end().value().size(), 1u);
    EXPECT_TRUE(foreign.stream().synchronize().ok());
}

// A buffer that is destroyed before its stream must leave that stream's tail.
TEST_F(Events, WhatAnEventProvedToBeUnusedGoesWithoutATrace) {
    for (int round = 0; round < 3; ++round) {
        Buffer<int> a = pinned();
        Stream passing = device.create_stream().value();
        ASSERT_TRUE(passing.launch(count_up, 4, a).ok());
        EXPECT_TRUE(passing.record().value().synchronize().ok());
        ASSERT_TRUE(stream.launch(count_up, 4, a).ok());
        EXPECT_TRUE(a.release().ok());
        EXPECT_TRUE(passing.launch(count_up, 4, pinned()).ok());
    }
}

struct Marks : Events {
    Buffer<int> data = device.allocate<int>(4).value();
    // Launches and marks; returns the driver's events behind the marks.
    std::uint64_t step() {
        EXPECT_TRUE(stream.launch(count_up, 4, data).ok());
        return stream.mark().value();
    }
    void finish(int operations) {  // the driver finishes them, and the runtime is not told
        auto& work = world.queue[static_cast<std::uintptr_t>(stream.state()->handle)];
        for (int at = 0; at < operations * 2; ++at) {  // a launch and a record
            work.front()();
            work.pop_front();
        }
    }
};

TEST_F(Marks, AStreamWithNothingToDoIsNotAsked) {
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 0u); }), Calls{});
    const std::uint64_t last = step();
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_EQ(calls_of([&] {
                  EXPECT_EQ(stream.poll().value(), last);
                  EXPECT_EQ(stream.mark().value(), last);
                  EXPECT_TRUE(stream.completed(last));
                  EXPECT_FALSE(stream.completed(last + 1));
              }),
              Calls{});
}

TEST_F(Marks, NoProgressCostsOneQueryAndProgressItsLogarithm) {
    std::vector<std::uint64_t> at;
    for (int i = 0; i < 60; ++i) at.push_back(step());
    world.stuck = true;
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 0u); }), Calls{"query"});
    }
    finish(1);
    EXPECT_LE(calls_of([&] { EXPECT_EQ(stream.poll().value(), at[0]); }).size(), 3u);
    finish(40);
    EXPECT_LE(calls_of([&] { EXPECT_EQ(stream.poll().value(), at[40]); }).size(), 13u);
    EXPECT_TRUE(stream.completed(at[40]));
    EXPECT_FALSE(stream.completed(at[41]));
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), at[40]); }), Calls{"query"});
    finish(19);
    EXPECT_LE(calls_of([&] { EXPECT_EQ(stream.poll().value(), at[59]); }).size(), 11u);
    EXPECT_EQ(world.count("record"), 0u);
    world.stuck = false;
}

TEST_F(Marks, WithoutAMarkThePollTellsWhenTheStreamIsIdle) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.launch(count_up, 4, data).ok());
    world.stuck = true;
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 0u); }), Calls{"query stream"});
    world.stuck = false;
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 3u); }), Calls{"query stream"});
}

TEST_F(Marks, WhereAViewableBufferIsOwedAFenceThePollPutsIt) {  // keeps G8
    Buffer<int> a = pinned();
    ASSERT_TRUE(stream.launch(count_up, 4, a).ok());
    world.stuck = true;
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 0u); }), (Calls{"create event", "record", "query"}));
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), 0u); }), Calls{"query"});
    world.stuck = false;
    EXPECT_EQ(stream.poll().value(), 1u);
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(a.read_on_host(Wait::never()).value()[0], 1); }), Calls{});
}

TEST_F(Marks, ACapturedStreamIsPolledForWhatRanBeforeAndTakesNoMark) {  // keeps S14
    NEEDS(graph);
    const std::uint64_t before = step();
    auto capture = stream.begin_capture().value();
    EXPECT_EQ(stream.mark().code(), Code::capture_error);
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), before); }), Calls{"query"});
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(stream.poll().value(), before); }), Calls{});
    EXPECT_TRUE(capture.end().ok());
}

TEST_F(Marks, ALostDeviceAnswersWithoutTheDriver) {  // keeps R2
    (void)step();
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::device_lost;
    world.sticky = true;
    EXPECT_EQ(stream.poll().code(), Code::device_lost);
    EXPECT_EQ(calls_of([&] {
                  EXPECT_EQ(stream.poll().code(), Code::device_lost);
                  EXPECT_EQ(stream.mark().code(), Code::device_lost);
                  EXPECT_EQ(stream.record().code(), Code::device_lost);
              }),
              Calls{});
    EXPECT_FALSE(stream.completed(1));
}

TEST_F(Marks, CompletionQueuesPollEachStreamOnceWhateverTheyTrack) {
    Stream other = device.create_stream().value();
    Buffer<int> others_data = device.allocate<int>(4).value();
    CompletionQueue tracked;
    std::vector<std::uint64_t> done;
    for (std::uint64_t tag = 0; tag < 30; ++tag) {
        tracked.add(stream, step(), tag);
        ASSERT_TRUE(other.launch(count_up, 4, others_data).ok());
        tracked.add(other, other.mark().value(), 100 + tag);
    }
    EXPECT_EQ(tracked.outstanding(), 60u);
    world.stuck = true;
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(tracked.collect(done).value(), 0u); }), (Calls{"query", "query"}));
    finish(7);
    EXPECT_EQ(tracked.collect(done).value(), 7u);
    EXPECT_EQ(done, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
    world.stuck = false;
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_TRUE(other.synchronize().ok());
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(tracked.collect(done).value(), 53u); }), Calls{}) << "known already";
    EXPECT_EQ(tracked.outstanding(), 0u);
    EXPECT_EQ(std::accumulate(done.begin(), done.end(), std::uint64_t{0}), 29u * 30 + 30 * 100);
    EXPECT_EQ(tracked.collect(done).value(), 0u);
}

TEST_F(Marks, CompletionQueuesTakePositionsInAnyOrderAndOneTwice) {
    const std::uint64_t first = step(), second = step(), third = step();
    CompletionQueue tracked;
    std::vector<std::uint64_t> done;
    tracked.add(stream, third, 3);
    tracked.add(stream, first, 1);
    tracked.add(stream, second, 2);
    tracked.add(stream, first, 11);
    world.stuck = true;
    finish(2);
    EXPECT_EQ(tracked.collect(done).value(), 3u);
    EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 11, 2}));
    tracked.add(stream, second, 22);
    EXPECT_EQ(tracked.collect(done).value(), 1u);
    world.stuck = false;
    EXPECT_EQ(tracked.collect(done).value(), 1u);
    EXPECT_EQ(done.back(), 3u);
}

TEST_F(Marks, CompletionQueuesOfALostDeviceStayUntilTheyAreAbandonedAndOthersGoOn) {  // keeps R2
    FakeWorld other_world;
    Device other(runtime.open(other_world, discrete_facts(1)));
    Buffer<int> others_data = other.allocate<int>(4).value();
    ASSERT_TRUE(other.stream().launch(count_up, 4, others_data).ok());
    CompletionQueue tracked;
    tracked.add(stream, step(), 1);
    tracked.add(other.stream(), other.stream().mark().value(), 2);
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::device_lost;
    world.sticky = true;
    std::vector<std::uint64_t> done, lost;
    EXPECT_EQ(tracked.collect(done).code(), Code::device_lost);
    EXPECT_EQ(done, std::vector<std::uint64_t>{2});
    EXPECT_EQ(tracked.outstanding(), 1u);
    tracked.abandon(stream, lost);
    EXPECT_EQ(lost, std::vector<std::uint64_t>{1});
    EXPECT_EQ(tracked.collect(done).value(), 0u);
}

}  // namespace
