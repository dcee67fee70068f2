// SPDX-License-Identifier: Apache-2.0
// Launch modes against a driver that records every call: refusals, warnings that come once, what a staged launch copies
// and leaves when any one call fails, and switching access between devices.
#include "components.hpp"
#include "fake_driver.hpp"
#include "refused_with.hpp"

#include "device_state.hpp"
#include "launch_at_once.hpp"
#include "launch_errors.hpp"
#include "process.hpp"
#include "staged_launch.hpp"
#include "stream_state.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

ISTHMUS_KERNEL(add_one, isthmus::Index i, isthmus::View<int> data) {
    data[i] += 1;
}
ISTHMUS_KERNEL(copy_over, isthmus::Index i, isthmus::Out<int> out, isthmus::View<const int> in) {
    out[i] = in[i];
}
ISTHMUS_KERNEL(shift, isthmus::Index i, isthmus::View<int> out, isthmus::View<const int> in) {
    out[i] = in[i] + 10;
}

ISTHMUS_KERNEL(leave_sevens, isthmus::Index i, isthmus::AtomicView<int> words) {
    words.at(i).store_relaxed(7);
}

using isthmus::Buffer;
using isthmus::Code;
using isthmus::Device;
using isthmus::LaunchMode;
using isthmus::LaunchOptions;
using isthmus::LaunchPath;
using isthmus::LaunchReport;
using isthmus::MemoryKind;
using isthmus::Result;
using isthmus::Verdict;
using isthmus::View;
using isthmus::detail::AtOnce;
using isthmus::testing::FakeDriver;
using isthmus::testing::FakeWorld;
using Calls = std::vector<std::string>;

constexpr LaunchOptions relaxed{.mode = LaunchMode::relaxed};
constexpr LaunchOptions checked{.mode = LaunchMode::checked};
constexpr LaunchOptions strict{.mode = LaunchMode::strict};
constexpr LaunchOptions staged{.mode = LaunchMode::staged};
constexpr LaunchOptions verify{.mode = LaunchMode::verify};

isthmus::DeviceFacts gpu(int ordinal, std::initializer_list<std::pair<int, int>> changed = {}) {
    isthmus::DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "fake GPU " + std::to_string(ordinal);
    std::map<int, int> values = {{18, 0}, {41, 1}, {83, 1},  {86, 0},  {88, 0}, {89, 1},
                                 {91, 1}, {99, 1}, {100, 0}, {101, 0}, {115, 1}};
    for (const auto& [id, value] : changed) values[id] = value;
    for (const auto& [id, value] : values) facts.attributes.push_back({id, value, 0});
    return facts;
}

// A runtime's devices over one world, and their log.
struct Machine {
    explicit Machine(std::vector<isthmus::DeviceFacts> all = {gpu(0)}, LaunchMode mode = LaunchMode::checked) {
        world.reachable = {};
        auto config = std::make_shared<isthmus::detail::RuntimeConfig>();
        config->launch_mode = mode;
        config->wait_timeout = std::chrono::milliseconds(200);
        config->generation = isthmus::process::generation();
        config->log = [this](isthmus::Severity, std::string_view line) { log.emplace_back(line); };
        books = std::make_shared<isthmus::detail::Books>();
        for (isthmus::DeviceFacts& facts : all) {
            const std::size_t index = devices.size();
            devices.emplace_back(std::make_shared<isthmus::detail::DeviceState>(
                config, books, std::make_unique<FakeDriver>(world, std::move(facts)), index));
        }
    }
    Device& operator[](std::size_t at) { return devices[at]; }
    // The calls that `body` makes.
    template <class Body>
    Calls during(Body body) {
        world.calls.clear();
        body();
        return world.calls;
    }
    std::size_t logged(std::string_view part) const {
        std::size_t found = 0;
        for (const std::string& line : log) found += line.find(part) != std::string::npos;
        return found;
    }

    FakeWorld world;
    std::vector<std::string> log;
    std::shared_ptr<isthmus::detail::Books> books;
    std::vector<Device> devices;
};

std::vector<int> numbered(std::size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 0);
    return values;
}
View<int> view(std::vector<int>& values) {
    return {values.data(), values.size()};
}

// The driver's answers about one allocation.
auto says(const std::vector<int>& memory, MemoryKind kind, int ordinal) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
    return [=, bytes = memory.size() * sizeof(int)](std::uint64_t address, isthmus::platform::PointerFacts& out) {
        if (address >= base && address - base < bytes) out = {kind, ordinal, base, bytes};
    };
}

TEST(LaunchModes, DifferInWhatTheyLetPass) {  // keeps L1, L2, L3, L10
    Machine machine({gpu(0), gpu(1)});
    Device& device = machine[0];
    std::vector<int> host = numbered(8), own = numbered(8), elsewhere = numbered(8);
    machine.world.foreign = [a = says(own, MemoryKind::device, 0), b = says(elsewhere, MemoryKind::pool, 1)](
                                std::uint64_t address, isthmus::platform::PointerFacts& out) {
        a(address, out);
        b(address, out);
    };
    Buffer<int> here = device.allocate<int>(8).value();
    Buffer<int> pageable = device.allocate_host<int>(8).value();
    Buffer<int> there = machine[1].allocate<int>(8).value();
    const auto code = [&](const LaunchOptions& options, auto&& argument, std::uint64_t items = 4) {
        return device.stream().launch(options, add_one, items, argument).code();
    };
    for (const LaunchOptions& options : {relaxed, checked, strict}) EXPECT_EQ(code(options, here), Code::ok);
    EXPECT_EQ(code(relaxed, pageable), Code::ok);
    EXPECT_EQ(code(checked, pageable), Code::not_accessible);
    EXPECT_EQ(code(strict, pageable), Code::not_accessible) << "allocated here, and still out of reach";
    EXPECT_EQ(code(relaxed, there), Code::ok);
    EXPECT_EQ(code(checked, there), Code::not_accessible);
    EXPECT_EQ(code(strict, there), Code::wrong_device);
    EXPECT_EQ(code(relaxed, view(host)), Code::ok);
    EXPECT_EQ(code(checked, view(host)), Code::not_accessible) << "the driver does not know it, attribute 88 is 0";
    EXPECT_EQ(code(strict, view(host)), Code::unverified);
    EXPECT_EQ(code(checked, view(own)), Code::ok);
    EXPECT_EQ(code(strict, view(own)), Code::unverified) << "not allocated by this runtime";
    EXPECT_EQ(code(checked, view(elsewhere)), Code::ok) << "nothing is known against it";
    EXPECT_EQ(code(strict, view(elsewhere)), Code::unverified);
    EXPECT_EQ(code(checked, View<int>{nullptr, 0}, 0), Code::ok);
    EXPECT_EQ(code(checked, View<int>{nullptr, 8}), Code::not_accessible);
    EXPECT_EQ(code(checked, View<int>{own.data() + 4, 5}), Code::not_accessible) << "beyond its allocation";
    EXPECT_EQ(code(checked, View<int>{own.data() + 4, 4}), Code::ok);
    EXPECT_TRUE(device.synchronize().ok());
}

// keeps L1: nothing was chosen by the runtime's options, the stream or the launch
TEST(LaunchModes, RelaxedIsTheDefaultAndAsksNothing) {
    EXPECT_FALSE(isthmus::RuntimeOptions{}.launch_mode.has_value());
    EXPECT_FALSE(LaunchOptions{}.mode.has_value());
    Machine machine({gpu(0), gpu(1)}, isthmus::detail::RuntimeConfig{}.launch_mode);
    Device& device = machine[0];
    isthmus::Stream stream = device.create_stream().value();
    EXPECT_EQ(device.stream().launch_mode(), LaunchMode::relaxed);
    EXPECT_EQ(stream.launch_mode(), LaunchMode::relaxed);
    std::vector<int> host = numbered(8);
    Buffer<int> pageable = device.allocate_host<int>(8).value();
    Buffer<int> there = machine[1].allocate<int>(8).value();
    EXPECT_TRUE(stream.launch(add_one, 8, there).ok());  // loads the code, once
    const auto calls_of = [&](auto&& argument) {
        return machine.during([&] {
            const Result<LaunchReport> report = stream.launch(add_one, 8, argument);
            ASSERT_TRUE(report.ok()) << report.error().text();
            EXPECT_EQ(report->unverified_arguments, 0u);
        });
    };
    EXPECT_EQ(calls_of(view(host)), Calls{"launch add_one"}) << "memory that nobody knows";
    EXPECT_EQ(calls_of(there), Calls{"launch add_one"}) << "memory of a device without peer access";
    EXPECT_TRUE(stream.launch(add_one, 8, pageable).ok()) << "memory that this device does not reach";
    EXPECT_TRUE(machine.log.empty()) << machine.log.front();
    EXPECT_EQ(stream.launch(checked, add_one, 8, view(host)).code(), Code::not_accessible) << "the refusal beside it";
}

TEST(LaunchModes, AreSetPerRuntimePerStreamAndPerLaunch) {  // keeps L10
    Machine machine;
    isthmus::Stream stream = machine[0].create_stream().value();
    Buffer<int> pageable = machine[0].allocate_host<int>(8).value();
    EXPECT_EQ(stream.launch_mode(), LaunchMode::checked) << "the runtime's";
    EXPECT_EQ(stream.launch(add_one, 8, pageable).code(), Code::not_accessible);
    stream.set_launch_mode(LaunchMode::relaxed);
    EXPECT_TRUE(stream.launch(add_one, 8, pageable).ok());
    EXPECT_EQ(stream.launch(checked, add_one, 8, pageable).code(), Code::not_accessible);
    EXPECT_TRUE(stream.launch({.mode = LaunchMode::staged}, add_one, 8, pageable).ok());
    EXPECT_EQ(stream.launch_mode(), LaunchMode::relaxed);
}

TEST(LaunchModes, ARefusalNamesKernelArgumentKindBothDevicesAndARemedy) {  // keeps L5
    Machine machine({gpu(0), gpu(1)});
    Buffer<int> here = machine[0].allocate<int>(8).value();
    Buffer<int> there = machine[1].allocate<int>(8).value();
    const auto calls = machine.during([&] {
        const auto refused = machine[0].stream().launch(checked, copy_over, 8, here, there);
        ASSERT_EQ(refused.code(), Code::not_accessible);
        const std::string message(refused.error().message());
        for (const char* part :
             {"kernel 'copy_over'", "argument 'in'", "device memory", "fake GPU 1", "fake GPU 0", "peer access"}) {
            EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
        }
        EXPECT_NE(refused.error().remedy().find("enable peer access"), std::string_view::npos);
    });
    EXPECT_TRUE(calls.empty()) << "refused before the driver is called";
}

TEST(LaunchModes, WhatIsUnknownIsWarnedAboutOncePerKernelArgumentSourceAndDevice) {  // keeps L3
    Machine machine({gpu(0), gpu(1), gpu(2)});
    std::vector<int> pool = numbered(8), other = numbered(8);
    machine.world.foreign = [a = says(pool, MemoryKind::pool, 2), b = says(other, MemoryKind::pool, 2)](
                                std::uint64_t address, isthmus::platform::PointerFacts& out) {
        a(address, out);
        b(address, out);
    };
    isthmus::Stream& stream = machine[0].stream();
    for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(stream.launch(add_one, 8, view(pool)).value().unverified_arguments, 1u) << "each launch tells";
    }
    EXPECT_EQ(machine.log.size(), 1u);
    EXPECT_EQ(machine.logged("kernel 'add_one', argument 'data', is foreign pool memory of fake GPU 2"), 1u);
    (void)stream.launch(add_one, 4, View<int>{pool.data() + 4, 4}).value();
    EXPECT_EQ(machine.log.size(), 1u) << "the same allocation";
    (void)stream.launch(add_one, 8, view(other)).value();
    EXPECT_EQ(machine.log.size(), 2u) << "another source";
    EXPECT_EQ(stream.launch(shift, 8, view(other), view(pool)).value().unverified_arguments, 2u);
    EXPECT_EQ(machine.log.size(), 4u) << "another kernel, two arguments";
    (void)machine[1].stream().launch(add_one, 8, view(pool)).value();
    EXPECT_EQ(machine.log.size(), 5u) << "another launch device";
    (void)machine[2].stream().launch(add_one, 8, view(pool)).value();
    EXPECT_EQ(machine.log.size(), 5u) << "its own device may touch it";
    EXPECT_EQ(machine.books->launches.unverified_arguments.load(), 10u);
    EXPECT_EQ(machine.books->launches.warnings_given.load(), 5u);
    for (Device& device : machine.devices) EXPECT_TRUE(device.synchronize().ok());
}

TEST(LaunchModes, TheWarningsAreBoundedAndNeverGivenTwice) {  // keeps L3
    using isthmus::detail::WarnOnce;
    WarnOnce warnings;
    std::size_t first = 0, full = 0, first_full = 0;
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t source = 1; source <= 2000; ++source) {
            const WarnOnce::Answer answer = warnings.ask({&add_one, 0, source, 0});
            first += answer == WarnOnce::Answer::first;
            full += answer == WarnOnce::Answer::full;
            first_full += answer == WarnOnce::Answer::first_full;
        }
    }
    EXPECT_EQ(first, WarnOnce::max_warnings);
    EXPECT_EQ(first_full, 1u);
    EXPECT_EQ(full, 3 * (2000 - WarnOnce::max_warnings) - 1);
    EXPECT_EQ(warnings.size(), WarnOnce::max_warnings);
}

TEST(LaunchModes, AForeignAddressIsAskedOfTheDriverOnce) {  // keeps A10, K4
    Machine machine;
    std::vector<int> memory = numbered(64);
    machine.world.foreign = says(memory, MemoryKind::managed, 0);
    (void)machine[0].stream().launch(relaxed, add_one, 8, view(memory)).value();  // opens the stream, finds the code
    EXPECT_EQ(machine.during([&] { (void)machine[0].stream().launch(add_one, 8, view(memory)).value(); }),
              (Calls{"pointer", "launch add_one"}));
    EXPECT_EQ(machine.during([&] {
        (void)machine[0].stream().launch(add_one, 8, View<int>{memory.data() + 8, 8}).value();
        EXPECT_TRUE(machine[0].can_access(memory.data() + 63, 4));
        EXPECT_FALSE(machine[0].can_access(memory.data() + 63, 5));
    }),
              (Calls{"launch add_one", "pointer"}))
        << "asked again only before an earlier answer would refuse";
    EXPECT_TRUE(machine[0].synchronize().ok());
}

TEST(LaunchModes, AnEarlierAnswerNeverRefusesWhatLiesThereNow) {  // keeps A10, L3
    Machine machine;
    std::vector<int> memory = numbered(64);
    const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
    machine.world.foreign = [=](std::uint64_t, isthmus::platform::PointerFacts& out) {
        out = {MemoryKind::device, 0, base, 8 * sizeof(int)};
    };
    EXPECT_TRUE(machine[0].can_access(memory.data(), 8 * sizeof(int)));
    EXPECT_FALSE(machine[0].can_access(memory.data(), 9 * sizeof(int)));
    machine.world.foreign = says(memory, MemoryKind::managed, 0);  // freed, and a longer allocation is there
    EXPECT_TRUE(machine[0].can_access(memory.data(), 64 * sizeof(int)));
    EXPECT_TRUE(machine[0].can_access(memory.data() + 60, 4 * sizeof(int)));
    EXPECT_EQ(machine.books->addresses.size(), 1u);
}

TEST(LaunchModes, WhatTheDriverCannotBeAskedIsNotVerified) {  // keeps A9
    Machine machine;
    std::vector<int> memory = numbered(8);
    machine.world.calls.clear();
    machine.world.fail_at = 1;
    EXPECT_EQ(machine[0].can_access(memory.data(), 4).verdict, Verdict::not_verified);
    machine.world.fail_at = 0;
    EXPECT_EQ(machine[0].can_access(memory.data(), 4).verdict, Verdict::no);
    machine.world.calls.clear();
    machine.world.fail_at = 1;
    EXPECT_EQ(machine[0].stream().launch(checked, add_one, 8, view(memory)).code(), Code::unverified)
        << "a check that did not happen is no reason to go on";
    EXPECT_EQ(machine.world.count("launch"), 0u);
}

TEST(LaunchModes, WorkInACaptureWithoutACallThatWouldEndIt) {  // keeps L6, L11
    NEEDS(graph);
    Machine machine;
    Device& device = machine[0];
    std::vector<int> memory = numbered(8);
    Buffer<int> here = device.allocate<int>(8).value();
    Buffer<int> pageable = device.allocate_host<int>(8).value();
    (void)device.stream().launch(add_one, 8, here).value();
    isthmus::Capture capture = device.stream().begin_capture().value();
    EXPECT_EQ(machine.during([&] { EXPECT_TRUE(device.stream().launch(checked, add_one, 8, here).ok()); }),
              (Calls{"launch add_one"}));
    EXPECT_EQ(machine.during([&] { EXPECT_TRUE(device.stream().launch(strict, add_one, 8, here).ok()); }),
              (Calls{"launch add_one"}));
    EXPECT_EQ(machine.during([&] { EXPECT_TRUE(device.stream().launch(staged, add_one, 8, here).ok()); }),
              (Calls{"launch add_one"}))
        << "nothing to stage";
    EXPECT_EQ(machine.during([&] {
        EXPECT_EQ(device.stream().launch(checked, add_one, 8, view(memory)).code(), Code::not_accessible);
        EXPECT_EQ(device.stream().launch(verify, add_one, 8, here).code(), Code::capture_error);
        EXPECT_EQ(device.stream().launch(staged, add_one, 8, pageable).code(), Code::capture_error);
        EXPECT_EQ(device.stream().explain(staged, add_one, 8, pageable).refusal->code(), Code::capture_error);
    }),
              (Calls{"pointer"}))
        << "asking about an address leaves a capture alone";
    EXPECT_EQ(device.stream().explain(checked, add_one, 8, here).driver_calls, 1);
    (void)capture.end().value();
    EXPECT_TRUE(device.stream().launch(staged, add_one, 8, pageable).ok());
}

TEST(LaunchModes, VerifyWaitsAndNamesTheKernel) {  // keeps L8, L11
    Machine machine;
    Buffer<int> here = machine[0].allocate<int>(8).value();
    (void)machine[0].stream().launch(add_one, 8, here).value();
    EXPECT_TRUE(machine[0].stream().launch(verify, add_one, 8, here).ok());
    EXPECT_TRUE(machine[0].stream().state()->reached(2));
    machine.world.stuck = true;
    const Result<LaunchReport> hung = machine[0].stream().launch(verify, add_one, 8, here);
    EXPECT_EQ(hung.code(), Code::timed_out);
    EXPECT_EQ(hung.error().message().rfind("kernel 'add_one', verified", 0), 0u) << hung.error().message();
    machine.world.stuck = false;
    machine.world.calls.clear();
    machine.world.fail_at = 4;  // launch, create event, record, and the query after the kernel
    machine.world.fail_code = Code::device_lost;
    machine.world.sticky = true;
    const Result<LaunchReport> lost = machine[0].stream().launch(verify, add_one, 8, here);
    ASSERT_EQ(lost.code(), Code::device_lost) << ::testing::PrintToString(machine.world.calls);
    EXPECT_EQ(lost.error().message().rfind("kernel 'add_one', verified", 0), 0u) << lost.error().message();
    EXPECT_EQ(lost.error().driver_code(), 999);
    EXPECT_FALSE(machine[0].healthy());
}

TEST(Staged, CopiesByUseAndOnTheStream) {  // keeps L4
    Machine machine;
    isthmus::Stream& stream = machine[0].stream();
    std::vector<int> in = numbered(8), out(8, -1), both = numbered(8);
    (void)stream.launch(staged, copy_over, 8, std::span<int>(out), view(in)).value();
    (void)stream.launch(staged, add_one, 8, view(both)).value();  // pooled events and code exist now
    EXPECT_EQ(out, in);
    EXPECT_EQ(both[7], 8);
    Calls calls = machine.during([&] {
        const LaunchReport report = stream.launch(staged, copy_over, 8, std::span<int>(out), view(both)).value();
        EXPECT_EQ(report.staged_bytes, 32u);
        EXPECT_EQ(report.copied_back_bytes, 32u);
    });
    std::erase(calls, "query");
    std::erase(calls, "pointer");
    EXPECT_EQ(calls,
              (Calls{"allocate pool", "copy up", "launch copy_over", "record", "copy down", "release pool", "record"}));
    EXPECT_EQ(out, both);
    calls = machine.during([&] { (void)stream.launch(staged, add_one, 8, view(both)).value(); });
    std::erase(calls, "query");
    std::erase(calls, "pointer");
    EXPECT_EQ(calls,
              (Calls{"allocate pool", "copy up", "launch add_one", "record", "copy down", "release pool", "record"}));
    EXPECT_EQ(machine.books->launches.staged_launches.load(), 4u);
}

TEST(Staged, ReturnsWhenItsArgumentsWereReadWhereNothingComesBackToTheHost) {  // keeps L4
    Machine machine;
    std::vector<int> in = numbered(8);
    Buffer<int> out = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::pinned}).value();
    (void)machine[0].stream().launch(staged, copy_over, 8, out, view(in)).value();
    std::fill(in.begin(), in.end(), -1);  // allowed as soon as the launch has returned
    const auto result = out.read_on_host().value();
    for (int i = 0; i < 8; ++i) EXPECT_EQ(result[static_cast<std::size_t>(i)], i);
}

TEST(Staged, OverlappingArgumentsAreOneCopyThatBothSee) {  // keeps L4
    Machine machine;
    std::vector<int> data = numbered(12);
    (void)machine[0].stream().launch(staged, add_one, 8, view(data)).value();
    data = numbered(12);
    // out = [0, 8), in = [4, 12): in place, elements 4..7 are read as they were written, in the order of the items.
    const Calls calls = machine.during([&] {
        (void)machine[0]
            .stream()
            .launch(staged, shift, 8, View<int>{data.data(), 8}, View<const int>{data.data() + 4, 8})
            .value();
    });
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "copy up"), 1);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "copy down"), 1);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "allocate pool"), 1);
    EXPECT_EQ(data, (std::vector<int>{14, 15, 16, 17, 18, 19, 20, 21, 8, 9, 10, 11}));
}

TEST(Staged, WhatTheDeviceReachesIsNotCopied) {  // keeps L4
    Machine machine({gpu(0, {{88, 1}, {100, 1}})});
    std::vector<int> data = numbered(8);
    Buffer<int> pageable = machine[0].allocate_host<int>(8).value();
    { (void)pageable.write_on_host().value(); }
    (void)machine[0].stream().launch(staged, shift, 8, view(data), pageable).value();
    const Calls calls = machine.during([&] {
        const LaunchReport report =
            machine[0].stream().launch(staged, shift, 8, std::span<int>(data), pageable).value();
        EXPECT_EQ(report.staged_bytes + report.copied_back_bytes, 0u);
    });
    EXPECT_EQ(calls, (Calls{"pointer", "launch shift"}));
    EXPECT_TRUE(machine[0].synchronize().ok());
}

TEST(Staged, ASpanIsForTheCpuOrStaged) {  // keeps A17
    Machine machine;
    std::vector<int> data = numbered(8);
    for (const LaunchOptions& options : {relaxed, checked, strict, verify}) {
        const auto refused = machine[0].stream().launch(options, add_one, 8, std::span<int>(data));
        EXPECT_EQ(refused.code(), Code::not_accessible) << isthmus::name(*options.mode);
    }
    EXPECT_TRUE(machine[0].stream().launch(staged, add_one, 8, std::span<int>(data)).ok());
    EXPECT_EQ(data[0], 1);
}

TEST(Staged, BuffersAreOpenForTheLaunchAndNoLonger) {  // keeps L4, G9
    Machine machine;
    Buffer<int> pageable = machine[0].allocate_host<int>(8).value();
    {
        auto open = pageable.write_on_host().value();
        std::iota(open.begin(), open.end(), 0);
        EXPECT_EQ(machine[0].stream().launch(staged, add_one, 8, pageable).code(), Code::in_use);
    }
    EXPECT_TRUE(machine[0].stream().launch(staged, add_one, 8, pageable).ok());
    EXPECT_EQ(pageable.read_on_host().value()[7], 8);
}

TEST(Staged, MemoryOfAnotherGpuTravelsBetweenTheTwo) {  // keeps L4, A4
    Machine machine({gpu(0), gpu(1)});
    Buffer<int> there = machine[1].allocate<int>(8).value();
    machine[1].stream().fill_bytes(there, 0).value();
    machine[1].synchronize().value();
    (void)machine[0].stream().launch(staged, add_one, 8, there).value();
    Calls calls = machine.during([&] { (void)machine[0].stream().launch(staged, add_one, 8, there).value(); });
    EXPECT_EQ(calls, (Calls{"allocate pool", "copy between", "launch add_one", "copy between", "release pool"}));
    machine[0].synchronize().value();
    machine.world.reachable = {1};
    machine[0].enable_peer_access(machine[1]).value();
    calls = machine.during([&] { (void)machine[0].stream().launch(staged, add_one, 8, there).value(); });
    EXPECT_EQ(calls, (Calls{"launch add_one"})) << "reached now: nothing is copied";
    Buffer<int> back = machine[1].allocate_shared<int>(8, {.kind = MemoryKind::pinned}).value();
    machine[0].synchronize().value();
    machine[1].stream().copy(back, there).value();
    EXPECT_EQ(back.read_on_host().value()[3], 3);
}

TEST(Staged, WithoutPoolsTheTemporaryIsGivenBackWhenItIsDone) {  // keeps L4
    Machine machine({gpu(0, {{115, 0}})});
    std::vector<int> in = numbered(8);
    Buffer<int> out = machine[0].allocate<int>(8).value();
    const std::size_t before = machine.world.memory.size();
    (void)machine[0].stream().launch(staged, copy_over, 8, out, view(in)).value();
    EXPECT_EQ(machine.world.memory.size(), before);
    EXPECT_EQ(machine.world.count("allocate pool"), 0u);
}

TEST(Staged, AHungKernelEndsInATimeoutAndTheHostsMemoryIsLeftAlone) {  // keeps R5
    Machine machine;
    std::vector<int> data = numbered(8);
    (void)machine[0].stream().launch(staged, add_one, 8, view(data)).value();
    machine.world.stuck = true;
    const Calls calls = machine.during(
        [&] { EXPECT_EQ(machine[0].stream().launch(staged, add_one, 8, view(data)).code(), Code::timed_out); });
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "copy down"), 0);
    EXPECT_EQ(data[0], 1);
    machine.world.stuck = false;
    EXPECT_TRUE(machine[0].synchronize().ok());
}

TEST(Staged, ADeviceThatDoesNotComeToReadingItsArgumentsEndsInATimeout) {  // keeps R5, L4
    Machine machine;
    std::vector<int> in = numbered(8);
    Buffer<int> out = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::pinned}).value();
    using isthmus::errors::staged_upload_timed_out;
    ASSERT_TRUE(machine[0].stream().launch(staged, copy_over, 8, out, view(in)).ok());
    machine.world.stuck = true;
    const auto launched = machine[0].stream().launch(staged, copy_over, 8, out, view(in));
    EXPECT_TRUE(isthmus::testing::refused_with<staged_upload_timed_out>(launched));
    machine.world.stuck = false;
    EXPECT_TRUE(machine[0].synchronize().ok());
    EXPECT_EQ(out.read_on_host().value()[7], 7);
}

TEST(Staged, MemoryThatTheHostUsesBesideTheKernelIsNotCopied) {  // keeps L4, G14
    Machine machine;
    std::vector<int> words = numbered(8);
    using isthmus::errors::concurrent_argument_needs_copies;
    const Calls calls = machine.during([&] {
        const auto launched = machine[0].stream().launch(staged, leave_sevens, 8, std::span<int>(words));
        EXPECT_TRUE(isthmus::testing::refused_with<concurrent_argument_needs_copies>(launched));
    });
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "copy up"), 0);
    EXPECT_EQ(words, numbered(8));
    Buffer<int> pinned = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::pinned}).value();
    EXPECT_TRUE(machine[0].stream().launch(staged, leave_sevens, 8, pinned).ok());
    EXPECT_EQ(pinned.read_on_host().value()[7], 7);
}

// Each case once: staged in, out and both, by view and by buffer, beside memory that is used in place.
void staged_scenario(Machine& machine) {
    std::vector<int> in = numbered(8), out(8, -1);
    Result<Buffer<int>> pageable = machine[0].allocate_host<int>(8);
    Result<Buffer<int>> pinned = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::pinned});
    if (!pageable || !pinned) return;
    if (auto open = pageable->write_on_host()) std::iota(open->begin(), open->end(), 100);
    isthmus::Stream& stream = machine[0].stream();
    if (stream.launch(staged, copy_over, 8, std::span<int>(out), view(in)).ok()) {
        EXPECT_EQ(out, numbered(8)) << ::testing::PrintToString(machine.world.calls);
    }
    EXPECT_EQ(in, numbered(8)) << "what is only read is never written";
    if (stream.launch(staged, add_one, 8, *pageable).ok()) {
        if (const auto open = pageable->read_on_host()) {
            EXPECT_EQ((*open)[0], 101);
        }
    }
    if (stream.launch(staged, copy_over, 8, *pinned, view(in)).ok()) {
        if (const auto open = pinned->read_on_host()) {
            EXPECT_EQ((*open)[7], 7);
        }
    }
}

TEST(Staged, FailingAnyOneCallLeavesNothingBehind) {  // keeps R6, L4
    for (const int pools : {1, 0}) {
        int calls = 0;
        {
            Machine machine({gpu(0, {{115, pools}})});
            staged_scenario(machine);
            machine.devices.clear();
            EXPECT_TRUE(machine.world.clean());
            calls = static_cast<int>(machine.world.calls.size());
        }
        ASSERT_GT(calls, 20);
        for (int at = 1; at <= calls; ++at) {
            Machine machine({gpu(0, {{115, pools}})});
            machine.world.fail_at = at;
            staged_scenario(machine);
            machine.devices.clear();
            EXPECT_TRUE(machine.world.memory.empty())
                << "pools " << pools << ", call " << at << ::testing::PrintToString(machine.world.calls);
            EXPECT_TRUE(machine.world.streams.empty() && machine.world.events.empty()) << at;
        }
    }
}

TEST(Staged, ALostDeviceIsToldAndNothingHangs) {  // keeps R2, R6
    int calls = 0;
    {
        Machine machine;
        staged_scenario(machine);
        calls = static_cast<int>(machine.world.calls.size());
    }
    for (int at = 1; at <= calls; ++at) {
        Machine machine;
        machine.world.fail_at = at;
        machine.world.fail_code = Code::device_lost;
        machine.world.sticky = true;
        staged_scenario(machine);
        EXPECT_FALSE(machine[0].healthy()) << at;
    }
}

TEST(Peers, AccessIsSwitchedPerDirectionAndRecorded) {  // keeps A4, A14, A15, L6
    Machine machine({gpu(0), gpu(1), gpu(2)});
    machine.world.reachable = {0, 1};
    Buffer<int> there = machine[1].allocate<int>(8).value();
    Buffer<int> pooled = machine[1].allocate<int>(8, MemoryKind::pool).value();
    EXPECT_EQ(machine[0].can_access(there).verdict, Verdict::no);
    EXPECT_EQ(machine.during([&] { EXPECT_TRUE(machine[0].enable_peer_access(machine[1]).ok()); }),
              (Calls{"can reach", "peer on"}));
    EXPECT_EQ(machine.during([&] {
        EXPECT_TRUE(machine[0].enable_peer_access(machine[1]).ok()) << "already so";
        EXPECT_EQ(machine[0].can_access(there).verdict, Verdict::yes);
        EXPECT_EQ(machine[0].can_access(pooled).verdict, Verdict::no) << "peer access does not open a pool";
        EXPECT_TRUE(machine[0].can_access(machine[1]));
        EXPECT_FALSE(machine[1].can_access(machine[0])) << "the other direction is a switch of its own";
    }),
              Calls{});
    EXPECT_TRUE(machine[0].stream().launch(add_one, 8, there).ok());
    EXPECT_EQ(machine[0].stream().launch(add_one, 8, pooled).code(), Code::not_accessible);
    EXPECT_TRUE(machine[0].synchronize().ok());
    EXPECT_TRUE(machine[0].disable_peer_access(machine[1]).ok());
    EXPECT_EQ(machine[0].can_access(there).verdict, Verdict::no);
}

TEST(Peers, TheCoarseQueryFollowsTheAllocatorThatIsCurrentNow) {  // keeps A14
    Machine machine({gpu(0), gpu(1)});
    machine.world.reachable = {0, 1};
    ASSERT_TRUE(machine[0].enable_peer_access(machine[1]).ok());
    EXPECT_TRUE(machine[0].can_access(machine[1]));
    const isthmus::ScopedAllocator scope(machine[1], machine[1].allocator(MemoryKind::pool));
    EXPECT_FALSE(machine[0].can_access(machine[1])) << "peer access opens no pool, which it allocates from now";
    EXPECT_TRUE(machine[0].can_access(machine[0]));
}

TEST(Peers, ImpossibleSwitchesAreTypedRefusals) {  // keeps A4
    Machine machine({gpu(0), gpu(1)});
    Machine stranger({gpu(0), gpu(1)});
    EXPECT_EQ(machine[0].enable_peer_access(machine[0]).code(), Code::invalid_argument);
    EXPECT_EQ(machine[0].enable_peer_access(stranger[1]).code(), Code::wrong_device);
    EXPECT_EQ(machine[0].can_access(stranger[1]).verdict, Verdict::not_verified);
    const Result<void> unlinked = machine[0].enable_peer_access(machine[1]);
    EXPECT_EQ(unlinked.code(), Code::unsupported);
    EXPECT_NE(unlinked.error().message().find("fake GPU 1"), std::string_view::npos);
    EXPECT_EQ(machine.world.count("peer on"), 0u);
    machine.world.reachable = {1};
    machine.world.calls.clear();
    machine.world.fail_at = 2;
    EXPECT_EQ(machine[0].enable_peer_access(machine[1]).code(), Code::driver_error);
    EXPECT_FALSE(machine[0].can_access(machine[1])) << "what failed is not recorded";
    machine.world.has_transfers = false;
    EXPECT_EQ(machine[0].enable_peer_access(machine[1]).code(), Code::unsupported);
}

TEST(Prefetch, BringsManagedMemoryBackOnceAfterTheHostHadIt) {  // keeps K21
    Machine machine;
    Buffer<int> managed = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::managed}).value();
    ASSERT_EQ(managed.path(), LaunchPath::prefetch);
    isthmus::Stream& stream = machine[0].stream();
    { (void)managed.write_on_host().value(); }
    (void)stream.launch(add_one, 8, managed).value();
    { (void)managed.read_on_host().value(); }
    EXPECT_EQ(machine.during([&] { (void)stream.launch(add_one, 8, managed).value(); }),
              (Calls{"prefetch up", "launch add_one"}));
    EXPECT_EQ(machine.during([&] { (void)stream.launch(add_one, 8, managed).value(); }), (Calls{"launch add_one"}));
    EXPECT_EQ(machine.books->launches.prefetches.load(), 2u);
    { (void)managed.read_on_host().value(); }
    machine.world.calls.clear();
    machine.world.fail_at = 1;
    EXPECT_TRUE(stream.launch(add_one, 8, managed).ok()) << "a hint that fails is no error";
    EXPECT_EQ(machine.books->launches.failed_hints.load(), 1u);
    machine.world.fail_at = 0;
    machine.world.has_transfers = false;
    { (void)managed.read_on_host().value(); }
    EXPECT_EQ(machine.during([&] { (void)stream.launch(add_one, 8, managed).value(); }), (Calls{"launch add_one"}));
}

// The fast path's answer to a launch, called as Stream::launch() does.
struct ShortWay {
    explicit ShortWay(const isthmus::Stream& given) : stream(*given.state()) {}
    AtOnce operator()(const isthmus::KernelInfo& kernel, std::initializer_list<const Buffer<int>*> arguments) {
        std::array<const std::shared_ptr<isthmus::detail::BufferState>*, 4> buffers{};
        std::size_t count = 0;
        for (const Buffer<int>* buffer : arguments) buffers[count++] = &buffer->state();
        return isthmus::detail::launch_at_once(stream, kernel, {8, 1, 1}, pack.data(), buffers.data(), position,
                                               status);
    }
    isthmus::detail::StreamState& stream;
    alignas(16) std::array<unsigned char, 64> pack{};
    std::uint64_t position = 0;
    isthmus::platform::Status status;
};

TEST(AtOnce, ServesMemoryThatTheHostMayViewWhileNoViewIsOpen) {  // keeps G8, G9
    Machine machine;
    isthmus::Stream& stream = machine[0].stream();
    Buffer<int> picture = machine[0].allocate<int>(8, MemoryKind::pinned).value();
    Buffer<int> device_only = machine[0].allocate<int>(8, MemoryKind::device).value();
    ShortWay at_once(stream);
    EXPECT_EQ(at_once(add_one.info(), {&picture}), AtOnce::not_so_simple) << "its code is not loaded yet";
    (void)stream.launch(add_one, 8, picture).value();
    (void)stream.launch(copy_over, 8, device_only, picture).value();
    EXPECT_EQ(machine.during([&] { EXPECT_EQ(at_once(add_one.info(), {&picture}), AtOnce::done); }),
              (Calls{"launch add_one"}));
    EXPECT_EQ(at_once.position, 3u);
    EXPECT_EQ(machine.during([&] {
        EXPECT_EQ(at_once(copy_over.info(), {&device_only, &picture}), AtOnce::done);
    }),
              (Calls{"launch copy_over"}));
    const auto view = picture.read_on_host().value();  // waits for the launch, which the buffer's uses list
    EXPECT_EQ(machine.world.count("record"), 1u);
    EXPECT_TRUE(stream.completed(4));
    EXPECT_EQ(at_once(add_one.info(), {&picture}), AtOnce::not_so_simple) << "a view is open";
    EXPECT_EQ(stream.state()->issued, 4u) << "nothing happened";
    EXPECT_EQ(stream.launch(add_one, 8, picture).code(), Code::in_use);
}

TEST(AtOnce, LeavesToTheLongWayWhatHasToBeFencedCopiedOrJudged) {  // keeps G8, L4
    Machine machine({gpu(0), gpu(1)});
    isthmus::Stream& stream = machine[0].stream();
    Buffer<int> one = machine[0].allocate<int>(8, MemoryKind::pinned).value();
    Buffer<int> two = machine[0].allocate<int>(8, MemoryKind::pinned).value();
    Buffer<int> elsewhere = machine[1].allocate<int>(8, MemoryKind::pinned).value();
    Buffer<int> managed = machine[0].allocate_shared<int>(8, {.kind = MemoryKind::managed}).value();
    (void)stream.launch(add_one, 8, one).value();
    ShortWay at_once(stream);
    EXPECT_EQ(at_once(add_one.info(), {&two}), AtOnce::not_so_simple) << "the stream owes a fence of the other";
    (void)stream.launch(add_one, 8, two).value();
    EXPECT_EQ(machine.world.count("record"), 1u);
    { (void)two.read_on_host().value(); }
    EXPECT_EQ(at_once(add_one.info(), {&elsewhere}), AtOnce::not_so_simple);
    EXPECT_EQ(at_once(add_one.info(), {&managed}), AtOnce::not_so_simple) << "pages may have to be prefetched";
    Buffer<int> gone = std::move(two);
    EXPECT_EQ(at_once(add_one.info(), {&two}), AtOnce::not_so_simple);  // NOLINT(bugprone-use-after-move)
    const std::uint64_t before = stream.state()->issued;
    const isthmus::Capture capture = stream.begin_capture().value();
    EXPECT_EQ(at_once(add_one.info(), {&gone}), AtOnce::not_so_simple) << "it is to be recorded";
    EXPECT_EQ(stream.state()->issued, before);
}

TEST(AtOnce, ALaunchThatTheDriverRefusesCountsAsGiven) {
    Machine machine;
    isthmus::Stream& stream = machine[0].stream();
    Buffer<int> picture = machine[0].allocate<int>(8, MemoryKind::pinned).value();
    (void)stream.launch(add_one, 8, picture).value();
    ShortWay at_once(stream);
    machine.world.calls.clear();
    machine.world.fail_at = 1;
    EXPECT_EQ(at_once(add_one.info(), {&picture}), AtOnce::failed);
    machine.world.fail_at = 0;
    EXPECT_EQ(stream.state()->issued, 2u);
    EXPECT_TRUE(picture.read_on_host().ok());
}

TEST(Explain, CountsTheCallsThatTheLaunchMakes) {  // keeps L4, L7
    Machine machine({gpu(0), gpu(1)});
    isthmus::Stream& stream = machine[0].stream();
    std::vector<int> raw = numbered(8), more = numbered(8);
    const auto shared = [&](MemoryKind kind) { return machine[0].allocate_shared<int>(8, {.kind = kind}).value(); };
    Buffer<int> own = machine[0].allocate<int>(8).value();
    Buffer<int> there = machine[1].allocate<int>(8).value();
    Buffer<int> pinned = shared(MemoryKind::pinned), other = shared(MemoryKind::pinned);
    Buffer<int> managed = shared(MemoryKind::managed), twofold = shared(MemoryKind::device);
    ASSERT_EQ(twofold.path(), LaunchPath::stage);
    Buffer<int> pageable = machine[0].allocate_host<int>(8).value();
    for (int round = 0; round < 3; ++round) (void)stream.launch(add_one, 8, round == 1 ? pinned : other).value();
    (void)stream.launch(staged, shift, 8, pageable, view(raw)).value();
    const auto agree = [&](const LaunchOptions& options, auto& first, auto&& second) {
        isthmus::LaunchExplanation told = stream.explain(options, shift, 8, first, second);
        EXPECT_FALSE(told.refusal.has_value());
        Calls calls = machine.during([&] { (void)stream.launch(options, shift, 8, first, second).value(); });
        for (const char* uncounted : {"query", "pointer", "create event"}) std::erase(calls, uncounted);
        EXPECT_EQ(told.driver_calls, static_cast<int>(calls.size())) << ::testing::PrintToString(calls);
        return told;
    };
    (void)agree(checked, own, own);
    (void)agree(checked, pinned, own);
    (void)agree(checked, pinned, pinned);
    (void)agree(checked, other, own);
    { (void)managed.read_on_host().value(); }
    EXPECT_EQ(agree(checked, managed, pinned).arguments[0].path, LaunchPath::prefetch);
    (void)agree(checked, managed, pinned);
    { (void)twofold.write_on_host().value(); }
    (void)agree(checked, twofold, own);
    (void)agree(checked, twofold, own);
    EXPECT_EQ(agree(staged, pageable, own).arguments[0].path, LaunchPath::stage);
    (void)agree(staged, own, view(raw));
    View<int> seen = view(raw);
    (void)agree(staged, seen, view(more));
    (void)agree(staged, there, own);
    (void)agree(verify, own, own);
}

TEST(Explain, TellsEachArgumentAndTheRefusalWithoutLaunching) {  // keeps L5
    Machine machine({gpu(0), gpu(1)});
    Buffer<int> own = machine[0].allocate<int>(8).value();
    Buffer<int> there = machine[1].allocate<int>(8).value();
    machine.world.calls.clear();
    const isthmus::LaunchExplanation told = machine[0].stream().explain(checked, copy_over, 8, own, there);
    EXPECT_TRUE(machine.world.calls.empty());
    EXPECT_EQ(told.device, "fake GPU 0 (device 0)");
    ASSERT_EQ(told.arguments.size(), 2u);
    EXPECT_EQ(told.arguments[0].name, "out");
    EXPECT_EQ(told.arguments[0].kind, MemoryKind::device);
    EXPECT_EQ(told.arguments[0].verdict, Verdict::yes);
    EXPECT_EQ(told.arguments[1].name, "in");
    EXPECT_EQ(told.arguments[1].device, "fake GPU 1 (device 1)");
    EXPECT_EQ(told.arguments[1].path, LaunchPath::refuse);
    EXPECT_EQ(told.arguments[1].verdict, Verdict::no);
    EXPECT_NE(told.arguments[1].sentence.find("peer access"), std::string::npos);
    ASSERT_TRUE(told.refusal.has_value());
    const Result<LaunchReport> refused = machine[0].stream().launch(checked, copy_over, 8, own, there);
    EXPECT_EQ(refused.error().text(), told.refusal->text()) << "the same words";
}

}  // namespace
