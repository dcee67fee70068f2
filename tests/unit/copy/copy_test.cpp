// SPDX-License-Identifier: Apache-2.0
// Copies and hints against a driver that records every call: which calls, in which order, and what is left when any one
// of them fails.
#include "fake_driver.hpp"
#include "refused_with.hpp"

#include "buffer_state.hpp"
#include "copy.hpp"
#include "copy_errors.hpp"
#include "device_state.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using isthmus::Buffer;
using isthmus::Code;
using isthmus::CopyPath;
using isthmus::Device;
using isthmus::HintOutcome;
using isthmus::HintPlace;
using isthmus::MemoryKind;
using isthmus::Stream;
using isthmus::detail::CopyBounce;
using isthmus::testing::FakeDriver;
using isthmus::testing::FakeWorld;
using Calls = std::vector<std::string>;

isthmus::DeviceFacts gpu(int ordinal, int concurrent = 1) {
    isthmus::DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "fake GPU";
    for (const auto& [id, value] : std::initializer_list<std::pair<int, int>>{
             {18, 0}, {41, 1}, {83, 1}, {86, 0}, {88, 0}, {89, concurrent}, {99, 1}, {100, 0}, {101, 0}, {115, 1}}) {
        facts.attributes.push_back({id, value, 0});
    }
    return facts;
}

// Devices of one runtime.
std::vector<Device> open(FakeWorld& world, int count = 1, int concurrent = 1) {
    auto config = std::make_shared<isthmus::detail::RuntimeConfig>();
    config->wait_timeout = std::chrono::milliseconds(100);
    config->generation = isthmus::process::generation();
    auto books = std::make_shared<isthmus::detail::Books>();
    std::vector<Device> devices;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        devices.emplace_back(std::make_shared<isthmus::detail::DeviceState>(
            config, books, std::make_unique<FakeDriver>(world, gpu(ordinal, concurrent)),
            static_cast<std::size_t>(ordinal)));
    }
    return devices;
}

std::vector<int> numbers(std::size_t count, int first) {
    std::vector<int> made(count);
    std::iota(made.begin(), made.end(), first);
    return made;
}

Calls of(const FakeWorld& world, const char* without = "query") {
    Calls kept;
    for (const std::string& call : world.calls) {
        if (call != without) kept.push_back(call);
    }
    return kept;
}

TEST(Copies, OfPageableMemoryPassThroughABounceBufferThatIsMadeOnce) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Stream& stream = devices[0].stream();
    Buffer<int> buffer = devices[0].allocate<int>(64).value();
    std::vector<int> source = numbers(64, 1);
    world.calls.clear();
    stream.copy_from_host(buffer, source).value();
    EXPECT_EQ(of(world), (Calls{"pointer", "allocate pinned", "create event", "create stream", "copy up", "record"}));
    world.calls.clear();
    std::fill(source.begin(), source.end(), 0);  // no work has run yet: the source was read at once
    stream.copy_from_host(buffer, std::vector<int>{7, 8}, 62).value();
    EXPECT_EQ(of(world), (Calls{"pointer", "create event", "copy up", "record"}));
    std::vector<int> read(64);
    stream.copy_to_host(read, buffer).value();
    std::vector<int> wanted = numbers(64, 1);
    wanted[62] = 7, wanted[63] = 8;
    EXPECT_EQ(read, wanted);
}

TEST(Copies, ThatAreSmallShareABufferSoThatManyWaitForNothing) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Buffer<int> buffer = devices[0].allocate<int>(64).value();
    world.stuck = true;
    for (int i = 0; i < 5000; ++i) devices[0].stream().copy_from_host(buffer, std::vector<int>{i}, 5).value();
    world.stuck = false;
    std::vector<int> read(1);
    devices[0].stream().copy_to_host(read, buffer, 5).value();
    EXPECT_EQ(read[0], 4999);
    EXPECT_EQ(world.count("allocate pinned"), 1u);
}

TEST(Copies, ThatAreLargerThanAllBounceBuffersWaitWithADeadline) {  // keeps K22, R5
    FakeWorld world;
    std::vector<Device> devices = open(world);
    constexpr std::size_t count = (CopyBounce::buffers + 2) * CopyBounce::buffer_bytes / sizeof(int);
    Buffer<int> buffer = devices[0].allocate<int>(count).value();
    const std::vector<int> source = numbers(count, 3);
    std::vector<int> read(count);
    world.stuck = true;
    EXPECT_EQ(devices[0].stream().copy_from_host(buffer, source).code(), Code::timed_out) << "by the driver";
    EXPECT_EQ(world.count("allocate pinned"), 0u);
    // Beside a service the driver gets no pageable memory.
    using namespace std::chrono_literals;
    isthmus::detail::RunningServices& services = devices[0].state()->services;
    const std::uint64_t service =
        services.begin("answering", {isthmus::Wait::at_most(1s), 1s}, isthmus::WaitPolicy::adaptive).value();
    EXPECT_EQ(devices[0].stream().copy_from_host(buffer, source).code(), Code::timed_out);
    EXPECT_EQ(devices[0].stream().copy_to_host(read, buffer).code(), Code::timed_out);
    world.stuck = false;
    devices[0].stream().copy_from_host(buffer, source).value();
    devices[0].stream().copy_to_host(read, buffer).value();
    EXPECT_TRUE(read == source);
    EXPECT_EQ(world.count("allocate pinned"), 1u);
    services.end(service);  // the release of the buffer waits for it
}

TEST(Copies, OfLargePageableMemoryAreOneCallOfTheDriverOnAnIdleStream) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Stream& stream = devices[0].stream();
    constexpr std::size_t count = (CopyBounce::buffers + 2) * CopyBounce::buffer_bytes / sizeof(int);
    Buffer<int> buffer = devices[0].allocate<int>(count).value();
    stream.fill(buffer, 5).value();
    const std::vector<int> wanted = numbers(count, 3);
    std::vector<int> source = wanted;
    world.calls.clear();
    stream.copy_from_host(buffer, source).value();
    EXPECT_EQ(world.count("copy up"), 1u);
    EXPECT_EQ(world.count("allocate pinned"), 0u);
    std::fill(source.begin(), source.end(), 0);
    std::vector<int> read(count);
    world.calls.clear();
    stream.copy_to_host(read, buffer).value();
    EXPECT_EQ(world.count("copy down"), 1u);
    EXPECT_TRUE(read == wanted);
}

TEST(Copies, OfMediumPageableMemoryPassThroughBounceBuffersWhileTheStreamHasWork) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Stream& stream = devices[0].stream();
    constexpr std::size_t count = (std::size_t{2} << 20) / sizeof(int);
    Buffer<int> buffer = devices[0].allocate<int>(count).value();
    std::vector<int> source = numbers(count, 3);
    world.stuck = true;
    stream.fill(buffer, 5).value();
    world.calls.clear();
    stream.copy_from_host(buffer, source).value();  // does not wait
    EXPECT_EQ(world.count("copy up"), 2 * (std::size_t{1} << 20) / CopyBounce::buffer_bytes);
    std::fill(source.begin(), source.end(), 0);
    world.stuck = false;
    std::vector<int> read(count);
    stream.copy_to_host(read, buffer).value();
    EXPECT_TRUE(read == numbers(count, 3));
    world.calls.clear();
    stream.copy_from_host(buffer, source).value();
    EXPECT_EQ(world.count("copy up"), 1u) << "the stream is idle now";
}

TEST(Copies, OfLargePageableMemoryLeaveTheDriverAloneDuringACaptureAndBesideAService) {  // keeps K22, G10
    FakeWorld world;
    std::vector<Device> devices = open(world);
    constexpr std::size_t count = (std::size_t{6} << 20) / sizeof(int);
    constexpr std::size_t chunks = count * sizeof(int) / CopyBounce::buffer_bytes;
    Buffer<int> buffer = devices[0].allocate<int>(count).value();
    const std::vector<int> source = numbers(count, 3);
    const auto calls = [&] {
        world.calls.clear();
        devices[0].stream().copy_from_host(buffer, source).value();
        return world.count("copy up");
    };
    isthmus::detail::DeviceState& device = *devices[0].state();
    EXPECT_EQ(calls(), 1u);
    isthmus::detail::OpenCaptures& captures = device.books->captures;
    std::thread other([&] { captures.begun(); });
    const std::thread::id by = other.get_id();
    other.join();
    EXPECT_EQ(calls(), chunks);
    captures.ended(by);
    using namespace std::chrono_literals;
    const std::uint64_t service =
        device.services.begin("answering", {isthmus::Wait::at_most(1s), 1s}, isthmus::WaitPolicy::adaptive).value();
    EXPECT_EQ(calls(), chunks);
    device.services.end(service);
    EXPECT_EQ(calls(), 1u);
}

TEST(Copies, AskAboutForeignPinnedMemoryOnceAndThenCallOnce) {  // keeps K22, A10
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Stream& stream = devices[0].stream();
    Buffer<int> buffer = devices[0].allocate<int>(64).value();
    std::vector<int> foreign = numbers(64, 9);
    world.foreign = [&](std::uint64_t address, isthmus::platform::PointerFacts& out) {
        const auto base = reinterpret_cast<std::uintptr_t>(foreign.data());
        if (address - base < 64 * sizeof(int)) out = {MemoryKind::pinned, -1, base, 64 * sizeof(int)};
    };
    stream.fill_bytes(buffer, 0).value();
    world.calls.clear();
    stream.copy_from_host(buffer, foreign).value();
    EXPECT_EQ(world.calls, (Calls{"pointer", "copy up"}));
    world.calls.clear();
    stream.copy_from_host(buffer, std::span<const int>(foreign).subspan(10, 5)).value();
    stream.copy_to_host(foreign, buffer).value();
    EXPECT_EQ(world.calls, (Calls{"copy up", "copy down"}));
    foreign[0] = -1;
    stream.synchronize().value();
    EXPECT_EQ(foreign[0], 19) << "what was asynchronous came later";
}

TEST(Copies, BetweenDevicesAreStagedByTheDriverUntilTheOneReachesTheOther) {  // keeps K22, A4
    FakeWorld world;
    std::vector<Device> devices = open(world, 2);
    Buffer<int> from = devices[0].allocate<int>(64).value();
    Buffer<int> to = devices[1].allocate<int>(64).value();
    Stream& stream = devices[1].stream();
    stream.copy(to, from).value();
    world.calls.clear();
    EXPECT_EQ(stream.explain_copy(to, from).path, CopyPath::between_devices);
    stream.copy(to, from).value();
    EXPECT_EQ(world.calls, Calls{"copy between"}) << "nobody else used either: nothing has to be put in order";
    devices[0].state()->books->peers.record_peer(1, 0, true);
    world.calls.clear();
    EXPECT_EQ(stream.explain_copy(to, from).path, CopyPath::driver);
    stream.copy(to, from).value();
    stream.copy_region(to, {0, 8, 0}, from, {0, 16, 0}, {4, 4, 1}).value();
    EXPECT_EQ(world.calls, (Calls{"copy device", "copy shaped"}));
}

TEST(Copies, BetweenDevicesAreOrderedBothWaysByEventsAlone) {  // keeps K22, S10
    FakeWorld world;
    std::vector<Device> devices = open(world, 2);
    Buffer<int> from = devices[0].allocate<int>(4).value();
    Buffer<int> to = devices[1].allocate<int>(4).value();
    devices[0].stream().fill(from, 5).value();
    world.calls.clear();
    devices[1].stream().copy(to, from).value();
    EXPECT_EQ(world.count("query"), 0u) << "the host did not wait";
    EXPECT_EQ(world.count("wait"), 2u);
    devices[0].stream().fill(from, 6).value();
    std::vector<int> read(4);
    devices[1].stream().copy_to_host(read, to).value();
    EXPECT_EQ(read, std::vector<int>(4, 5));
}

TEST(Copies, OfOtherDevicesMemoryAreCarriedByThatDevice) {  // keeps K22, S8
    FakeWorld world;
    std::vector<Device> devices = open(world, 2);
    Buffer<int> theirs = devices[1].allocate<int>(16).value();
    Stream& stream = devices[0].stream();
    stream.fill(theirs, 3).value();
    stream.copy_from_host(theirs, numbers(8, 100), 4).value();
    std::vector<int> read(16);
    stream.copy_to_host(read, theirs).value();
    std::vector<int> wanted(16, 3);
    std::iota(wanted.begin() + 4, wanted.begin() + 12, 100);
    EXPECT_EQ(read, wanted);
}

TEST(Copies, OfMemoryThatAnotherGpuSharesByPhasesGoThroughTheHost) {  // keeps K6, K22
    FakeWorld world;
    std::vector<Device> devices = open(world, 3, 0);
    const isthmus::SharedUse managed{.kind = MemoryKind::managed};
    Buffer<int> from = devices[1].allocate_shared<int>(4, managed).value();
    for (int& one : from.write_on_host().value()) one = 6;
    Buffer<int> to = devices[2].allocate<int>(4).value();
    devices[2].stream().fill(to, 1).value();
    using isthmus::errors::copy_refused;
    EXPECT_TRUE(isthmus::testing::refused_with<copy_refused>(devices[0].stream().copy(to, from)));
    std::vector<int> read(4);
    devices[2].stream().copy_to_host(read, to).value();
    EXPECT_EQ(read[0], 1) << "nothing was copied";
    // As the remedy proposes.
    Buffer<int> pinned = devices[1].allocate<int>(4, MemoryKind::pinned).value();
    devices[1].stream().copy(pinned, from).value();
    devices[0].stream().copy(to, pinned).value();
    devices[2].stream().copy_to_host(read, to).value();
    EXPECT_EQ(read[0], 6);
}

TEST(Copies, OfPageableMemoryAreRefusedInACapture) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Buffer<int> buffer = devices[0].allocate<int>(4).value();
    Buffer<int> pinned = devices[0].allocate<int>(4, MemoryKind::pinned).value();
    std::vector<int> host(4);
    devices[0].stream().fill(buffer, 1).value();
    isthmus::detail::OpenCaptures& captures = devices[0].state()->books->captures;
    captures.begun();
    EXPECT_EQ(devices[0].stream().copy_from_host(buffer, host).code(), Code::capture_error);
    EXPECT_EQ(devices[0].stream().copy_to_host(host, buffer).code(), Code::capture_error);
    EXPECT_TRUE(devices[0].stream().copy(pinned, buffer).ok());
    captures.ended();
    EXPECT_TRUE(devices[0].stream().copy_from_host(buffer, host).ok());
}

TEST(Copies, GiveTheirBuffersBackWhenTheyAreIdleAndMakeThemAgain) {  // keeps K22, K19
    FakeWorld world;
    std::vector<Device> devices = open(world);
    isthmus::detail::DeviceState& device = *devices[0].state();
    Buffer<int> buffer = devices[0].allocate<int>(4).value();
    EXPECT_FALSE(device.copies.bounce.trim(device)) << "there is nothing yet";
    devices[0].stream().copy_from_host(buffer, std::vector<int>{1, 2, 3, 4}).value();
    world.stuck = true;
    EXPECT_FALSE(device.copies.bounce.trim(device)) << "the device still reads it";
    world.stuck = false;
    EXPECT_TRUE(device.copies.bounce.trim(device));
    EXPECT_EQ(world.count("release pinned"), 1u);
    std::vector<int> read(4);
    devices[0].stream().copy_to_host(read, buffer).value();
    EXPECT_EQ(read[3], 4);
    EXPECT_EQ(world.count("allocate pinned"), 2u);
}

TEST(Copies, ThatFailAtAnyCallLeaveNothingAndLaterOnesWork) {  // keeps R6
    for (int failing = 1; failing < 200; ++failing) {
        SCOPED_TRACE("call " + std::to_string(failing));
        FakeWorld world;
        bool failed = false;
        {
            std::vector<Device> devices = open(world, 2);
            Buffer<int> a = devices[0].allocate<int>(400).value();
            Buffer<int> b = devices[1].allocate<int>(400).value();
            const std::vector<int> source = numbers(400, 50);
            std::vector<int> read(400);
            const auto all = [&](std::vector<int>& out) {
                std::vector<isthmus::Result<void>> results;
                results.push_back(devices[0].stream().copy_from_host(a, source));
                results.push_back(devices[1].stream().copy(b, a));
                results.push_back(devices[0].stream().copy_region(b, {0, 20, 0}, a, {0, 20, 0}, {10, 20, 1}));
                results.push_back(devices[0].stream().copy_to_host(out, b));
                bool fine = true;
                for (const isthmus::Result<void>& result : results) fine &= result.ok();
                return fine;
            };
            world.calls.clear();
            world.fail_at = failing;
            failed = !all(read);
            if (!failed) {
                EXPECT_TRUE(read == source);
            }
            world.fail_at = 0;
            EXPECT_TRUE(all(read));
            EXPECT_TRUE(read == source);
            if (!failed && static_cast<int>(world.calls.size()) / 2 < failing) failing = 1000;
        }
        EXPECT_TRUE(world.clean());
    }
}

TEST(Fills, OfLongPatternsTakeAColumnForEachWordAndThenDouble) {  // keeps K22
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Buffer<double> buffer = devices[0].allocate<double>(5000).value();
    devices[0].stream().fill_bytes(buffer, 0).value();
    world.calls.clear();
    devices[0].stream().fill(buffer, 2.75).value();
    // 2.75 is 0x4006000000000000: 1024 elements by columns, then 1024, 2048 and the rest.
    EXPECT_EQ(world.calls, (Calls{"fill shaped", "fill shaped", "copy device", "copy device", "copy device"}));
    std::vector<double> read(5000);
    devices[0].stream().copy_to_host(read, buffer).value();
    EXPECT_TRUE(read == std::vector<double>(5000, 2.75));
    world.calls.clear();
    devices[0].stream().fill(buffer, 0.0).value();
    EXPECT_EQ(world.calls, Calls{"fill"}) << "every byte is the same";
}

TEST(Hints, AreToldToADriverThatListensAndCountedWhereNoneDoes) {  // keeps K21
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Device& device = devices[0];
    Buffer<int> managed = device.allocate<int>(16, MemoryKind::managed).value();
    Stream& stream = device.stream();
    stream.fill(managed, 1).value();
    world.calls.clear();
    EXPECT_EQ(stream.prefetch(managed).value().outcome, HintOutcome::done);
    EXPECT_EQ(stream.prefetch(managed, HintPlace::on_host()).value().outcome, HintOutcome::done);
    EXPECT_EQ(device.advise(managed, isthmus::Advice::read_mostly).value().outcome, HintOutcome::done);
    EXPECT_EQ(world.calls, (Calls{"prefetch up", "prefetch down", "advise 0"}));
    world.hints = false;
    EXPECT_EQ(stream.prefetch(managed).value().outcome, HintOutcome::unsupported);
    EXPECT_EQ(device.advise(managed, isthmus::Advice::read_mostly).value().outcome, HintOutcome::unsupported);
    EXPECT_EQ(device.hint_counts().done, 3u);
    EXPECT_EQ(device.hint_counts().unsupported, 2u);
    { auto view = managed.write_on_host().value(); }
    auto view = managed.write_on_host().value();
    EXPECT_EQ(stream.prefetch(managed).value().outcome, HintOutcome::unsupported) << "open on the host: no error";
}

// keeps K21: a batch is one call, or one for each where the driver has no batches; what is in use is left out alone
TEST(Hints, OfABatchAreToldTogetherWhereTheDriverTakesBatches) {
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Device& device = devices[0];
    Buffer<int> one = device.allocate<int>(16, MemoryKind::managed).value();
    Buffer<int> other = device.allocate<int>(16, MemoryKind::managed).value();
    Buffer<int> pinned = device.allocate<int>(16, MemoryKind::pinned).value();
    const isthmus::BufferBase* const all[] = {&one, &pinned, &other};
    Stream& stream = device.stream();
    stream.fill(one, 1).value();
    stream.fill(other, 1).value();
    const auto outcomes = [](const std::vector<isthmus::HintReport>& reports) {
        std::vector<HintOutcome> found;
        for (const isthmus::HintReport& report : reports) found.push_back(report.outcome);
        return found;
    };
    using enum HintOutcome;
    const std::vector<HintOutcome> both{done, not_needed, done};
    world.batches = true;
    world.calls.clear();
    EXPECT_EQ(outcomes(stream.prefetch(all).value()), both);
    EXPECT_EQ(outcomes(stream.discard(all).value()), both);
    EXPECT_EQ(outcomes(stream.discard(all, HintPlace::on_device()).value()), both);
    EXPECT_EQ(of(world, "record"), (Calls{"prefetch batch of 2", "discard batch of 2", "discard and prefetch 2"}));
    world.batches = false;
    world.calls.clear();
    EXPECT_EQ(outcomes(stream.prefetch(all, HintPlace::on_host()).value()), both);
    EXPECT_EQ(world.count("prefetch down"), 2u);
    EXPECT_EQ(outcomes(stream.discard(all).value()), (std::vector<HintOutcome>{unsupported, not_needed, unsupported}));
    EXPECT_EQ(world.count("discard"), 0u);
    world.batches = true;
    auto view = other.write_on_host().value();
    world.calls.clear();
    EXPECT_EQ(outcomes(stream.prefetch(all).value()), (std::vector<HintOutcome>{done, not_needed, unsupported}));
    EXPECT_EQ(world.count("prefetch batch of 1"), 1u);
    EXPECT_EQ(stream.discard(other).value().outcome, unsupported) << "open on the host: no error";
    EXPECT_EQ(device.hint_counts().done, 9u);
}

// keeps K21
TEST(Hints, AdviceIsReadBackFromADriverThatTellsIt) {
    FakeWorld world;
    std::vector<Device> devices = open(world);
    Device& device = devices[0];
    Buffer<int> managed = device.allocate<int>(16, MemoryKind::managed).value();
    isthmus::AdviceReport report = device.advice_for(managed).value();
    EXPECT_EQ(report.outcome, HintOutcome::unsupported);
    EXPECT_FALSE(report.preferred.has_value());
    world.advice.emplace();
    world.advice->read_mostly = true;
    world.advice->preferred = isthmus::platform::Place{-1, 2};
    world.advice->prefetched = isthmus::platform::Place{0, -1};
    report = device.advice_for(managed).value();
    EXPECT_EQ(report.outcome, HintOutcome::done);
    EXPECT_TRUE(report.read_mostly);
    EXPECT_FALSE(report.accessed_by_device);
    using isthmus::MemoryPlace;
    EXPECT_EQ(report.preferred, (MemoryPlace{MemoryPlace::Where::host_node, 2}));
    EXPECT_EQ(report.prefetched, (MemoryPlace{MemoryPlace::Where::device, 0}));
}

TEST(Hints, AttachAndDetachWhereMemoryIsSharedByPhases) {  // keeps K21, K6
    FakeWorld world;
    std::vector<Device> devices = open(world, 1, 0);
    Buffer<int> managed = devices[0].allocate<int>(16, MemoryKind::managed).value();
    Stream& stream = devices[0].stream();
    EXPECT_EQ(stream.prefetch(managed).value().outcome, HintOutcome::done);
    EXPECT_EQ(world.count("attach stream"), 1u);
    stream.fill(managed, 1).value();
    EXPECT_EQ(world.count("attach"), 1u) << "the fill found it attached";
    EXPECT_EQ(stream.prefetch(managed, HintPlace::on_host()).value().outcome, HintOutcome::done);
    EXPECT_EQ(world.count("attach host"), 1u);
    EXPECT_EQ(managed.read_on_host().value()[0], 1);
    EXPECT_EQ(world.count("attach host"), 1u);
    EXPECT_EQ(world.count("prefetch"), 0u);
}

}  // namespace
