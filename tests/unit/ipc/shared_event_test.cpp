// SPDX-License-Identifier: Apache-2.0
// Events of other processes against a driver that records every call: descriptors, failed imports, and the driver calls
// of each query.
#include "fake_device.hpp"

#include "event_state.hpp"
#include "shared_event_bytes.hpp"
#include "stream_state.hpp"

#include <isthmus/ipc/shared_event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using isthmus::Code;
using isthmus::Device;
using isthmus::Event;
using isthmus::Stream;
using isthmus::Wait;
using isthmus::testing::discrete_facts;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;

using Calls = std::vector<std::string>;

isthmus::DeviceFacts facts_with_ipc() {
    isthmus::DeviceFacts facts = discrete_facts();
    facts.attributes.push_back({125, 1, 0});
    return facts;
}

struct SharedEvents : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world, facts_with_ipc())};
    Stream& stream = device.stream();

    Calls calls_of(auto action) {
        world.calls.clear();
        action();
        return world.calls;
    }
};

isthmus::SharedEventDescriptor descriptor_of(const Device& device) {
    isthmus::rules::EventHandleBytes handle{};
    handle.fill(9);
    const auto bytes = isthmus::rules::encode_shared_event({device.facts().uuid}, handle);
    return isthmus::SharedEventDescriptor::received(bytes).value();
}

TEST_F(SharedEvents, TheDescriptorOfASharedOneComesBackAsItWentAndSaysWhatIsWrong) {  // keeps I2
    using isthmus::SharedEventDescriptor;
    const SharedEventDescriptor sent = export_event(device.create_event({.interprocess = true}).value()).value();
    EXPECT_EQ(SharedEventDescriptor::received(sent.bytes()).value().facts(), sent.facts());
    const std::vector<std::byte> good(sent.bytes().begin(), sent.bytes().end());
    EXPECT_EQ(std::memcmp(good.data(), "isthmevt", 8), 0) << "who finds it in a log knows what it is";
    const std::pair<std::size_t, const char*> wrong[] = {{0, "magic"}, {8, "version"}, {12, "MIG"}};
    for (const auto& [at, word] : wrong) {
        std::vector<std::byte> bytes = good;
        bytes[at] ^= std::byte{6};
        const auto refused = SharedEventDescriptor::received(bytes);
        ASSERT_EQ(refused.code(), Code::invalid_argument);
        EXPECT_NE(refused.error().message().find(word), std::string_view::npos) << refused.error().text();
    }
    std::vector<std::byte> empty = good;
    std::fill(empty.begin() + 32, empty.end(), std::byte{0});
    EXPECT_EQ(SharedEventDescriptor::received(empty).code(), Code::invalid_argument);
    for (const std::size_t length : {std::size_t{0}, std::size_t{95}}) {
        EXPECT_EQ(SharedEventDescriptor::received(std::span(good).first(length)).code(), Code::invalid_argument);
    }
}

TEST_F(SharedEvents, AnImportThatFailsLeavesNothingBehind) {  // keeps I2, R6
    for (const Code code : {Code::driver_error, Code::invalid_handle, Code::out_of_memory}) {
        world.fail_at = static_cast<int>(world.calls.size()) + 1;
        world.fail_code = code;
        const auto refused = import_event(device, descriptor_of(device));
        EXPECT_EQ(refused.code(), code == Code::out_of_memory ? code : Code::invalid_argument);
        EXPECT_FALSE(refused.error().remedy().empty());
        EXPECT_TRUE(world.events.empty());
    }
    const Event event = device.create_event({.interprocess = true}).value();
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_EQ(export_event(event).code(), world.fail_code);
    EXPECT_TRUE(event.finished().value());
    EXPECT_EQ(calls_of([&] { (void)event.finished().value(); }), Calls{}) << "nobody else has it";
    {
        const Event taken = import_event(device, descriptor_of(device)).value();
        EXPECT_EQ(world.events.size(), 2u);
    }
    EXPECT_EQ(world.events.size(), 1u);
}

// This process's own state of a shared event proves nothing: another process may have recorded it last.
TEST_F(SharedEvents, SharedOnesAreAskedEveryTime) {  // keeps I2
    Event event = import_event(device, descriptor_of(device)).value();
    const auto handle = static_cast<std::uintptr_t>(event.state()->taken->handle);
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{"query"});
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{"query"});
    world.stuck = true;
    world.pending[handle] = 1;  // recorded by another process
    EXPECT_FALSE(event.finished().value());
    EXPECT_EQ(event.synchronize(Wait::never()).code(), Code::not_ready);
    EXPECT_EQ(event.synchronize(Wait::at_most(std::chrono::microseconds(50))).code(), Code::timed_out);
    world.pending.erase(handle);
    world.stuck = false;
    EXPECT_TRUE(event.synchronize().ok());
    (void)stream.record().value();
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(stream.wait(event).ok()); }), Calls{"wait"}) << "never recorded here";
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(stream.record(event).ok()); }), Calls{"record"});
    EXPECT_TRUE(stream.synchronize().ok());
    EXPECT_EQ(calls_of([&] { EXPECT_TRUE(event.finished().value()); }), Calls{"query"}) << "though the stream is done";
    Event lost = event;
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    world.fail_code = Code::device_lost;
    world.sticky = true;
    EXPECT_EQ(event.finished().code(), Code::device_lost);
    EXPECT_EQ(calls_of([&] {
                  EXPECT_EQ(lost.finished().code(), Code::device_lost);
                  EXPECT_EQ(stream.wait(lost).code(), Code::device_lost);
                  EXPECT_EQ(import_event(device, descriptor_of(device)).code(), Code::device_lost);
              }),
              Calls{});
}

}  // namespace
