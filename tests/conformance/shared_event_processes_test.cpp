// SPDX-License-Identifier: Apache-2.0
// Events of one process in another, over a channel: streams of each process wait for what streams of the other
// recorded.
#include "scenario.hpp"
#include "gate.hpp"
#include "two_processes.hpp"

#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

namespace conformance {
namespace {

using Numbers = ExportableBuffer<std::int32_t>;
constexpr std::size_t count = 1000;
enum Kind : std::uint32_t { event, memory, nothing, your_turn };

// Empty, with a message, where this device has no interprocess events.
std::optional<Event> hand_out_event(Device& device, Channel& line) {
    Result<Event> made = device.create_event({.interprocess = true});
    if (!made) {
        EXPECT_FALSE(device.capabilities().has(Feature::ipc_events));
        EXPECT_TRUE(refused_as(made, Code::unsupported));
        line.send(nothing, {}).value();
        return std::nullopt;
    }
    line.send(event, export_event(*made).value().bytes()).value();
    return *made;
}
std::optional<Event> take_in_event(const Device& device, Channel& line) {
    const ChannelMessage message = line.receive().value();
    if (message.kind == nothing) return std::nullopt;
    const auto descriptor = SharedEventDescriptor::received(message.bytes).value();
    return import_event(device, descriptor).value();
}
// Empty where no memory is shared either.
Numbers hand_out_memory(Device& device, Channel& line) {
    Result<Numbers> made = Numbers::create(device, count);
    if (!made) {
        line.send(nothing, {}).value();
        return {};
    }
    const SharedMemoryDescriptor descriptor = export_memory(*made).value();
    line.send(memory, descriptor.bytes(), descriptor.fds()).value();
    return std::move(made).value();
}
Buffer<std::int32_t> take_in_memory(Device& device, Channel& line) {
    ChannelMessage message = line.receive().value();
    if (message.kind == nothing) return {};
    auto descriptor = SharedMemoryDescriptor::received(message.bytes, std::move(message.fds)).value();
    return isthmus::import_memory<std::int32_t>(device, std::move(descriptor)).value();
}
void pass(Channel& line) {
    line.send(your_turn, {}).value();
}
void await(Channel& line) {
    EXPECT_EQ(line.receive().value().kind, your_turn);
}
// keeps I2: the wait is the device's, given while the work is known to run
TEST(SharedEventProcesses, AStreamWaitsForWorkOfTheOtherProcess) {
    const auto exporter = [](Channel line) {
        Device& device = runtime().default_device();
        const std::optional<Event> mine = hand_out_event(device, line);
        if (!mine) return line.wait_received().value();
        Numbers data = hand_out_memory(device, line);
        Buffer<std::int32_t> work = pinned(device, 1, 0);
        Stream stream = device.create_stream().value();
        await(line);  // imported
        {
            Gate gate(device);
            (void)stream.launch(when_raised, 1, gate.words(), work, 1).value();
            if (data) (void)stream.launch(add_one, count, data).value();
            Event last = *mine;
            stream.record(last).value();
            EXPECT_EQ(mine->finished().value(), !gate.holds());
            pass(line);
            await(line);  // the other process's work waits
        }
        EXPECT_TRUE(worked(mine->synchronize()));
        await(line);
    };
    const auto importer = [](Channel line) {
        Device& device = runtime().default_device();
        const std::optional<Event> theirs = take_in_event(device, line);
        if (!theirs) return;
        EXPECT_TRUE(theirs->options().interprocess);
        EXPECT_TRUE(theirs->finished().value()) << "never recorded";
        EXPECT_TRUE(worked(theirs->synchronize(Wait::never())));
        Buffer<std::int32_t> data = take_in_memory(device, line);
        Buffer<std::int32_t> out = pinned(device, count, -1);
        Stream stream = device.create_stream().value();
        prepare(device, scale_into).value();  // loading code would wait for streams that wait for the other process
        pass(line);
        await(line);
        EXPECT_FALSE(theirs->finished().value());
        EXPECT_TRUE(refused_as(theirs->synchronize(Wait::never()), Code::not_ready));
        EXPECT_TRUE(refused_as(theirs->synchronize(Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
        stream.wait(*theirs).value();
        if (data) (void)stream.launch(scale_into, count, out, data, 5).value();
        EXPECT_FALSE(stream.finished().value());
        pass(line);
        EXPECT_TRUE(worked(theirs->synchronize()));
        if (data) expect_all(out, 5);
        stream.synchronize().value();
        pass(line);
        line.wait_received().value();
    };
    EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
}

// keeps I2, I7: neither host waits for work, and recording and waiting are a driver call each
TEST(SharedEventProcesses, BothTakeTurnsWithoutWaitingForWork) {
    constexpr int rounds = 20;
    const auto take_turns = [](Channel& line, TypedBuffer<std::int32_t>& data, Event& mine, const Event& theirs,
                               Stream& stream, bool begins) {
        for (int round = 0; round < rounds; ++round) {
            if (!begins || round > 0) {
                await(line);
                const long before = driver_calls();
                stream.wait(theirs).value();
                if (before >= 0) {
                    EXPECT_EQ(driver_calls() - before, 1);
                }
            }
            if (data) (void)stream.launch(add_one, count, data).value();
            const long before = driver_calls();
            stream.record(mine).value();
            if (before >= 0) {
                EXPECT_EQ(driver_calls() - before, 1);
            }
            pass(line);
        }
    };
    const auto exporter = [&](Channel line) {
        Device& device = runtime().default_device();
        std::optional<Event> mine = hand_out_event(device, line);
        if (!mine) return line.wait_received().value();
        const std::optional<Event> theirs = take_in_event(device, line);
        Numbers data = hand_out_memory(device, line);
        Buffer<std::int32_t> out = pinned(device, count, -1);
        Stream stream = device.create_stream().value();
        stream.wait(*mine).value();
        take_turns(line, data, *mine, *theirs, stream, true);
        await(line);
        stream.wait(*theirs).value();
        if (data) {
            (void)stream.launch(scale_into, count, out, data, 1).value();
            expect_all(out, 2 * rounds);
        }
        EXPECT_TRUE(worked(theirs->synchronize()));
        pass(line);
        line.wait_received().value();
    };
    const auto importer = [&](Channel line) {
        Device& device = runtime().default_device();
        const std::optional<Event> theirs = take_in_event(device, line);
        if (!theirs) return;
        std::optional<Event> mine = hand_out_event(device, line);
        Buffer<std::int32_t> data = take_in_memory(device, line);
        Stream stream = device.create_stream().value();
        stream.wait(*mine).value();
        take_turns(line, data, *mine, *theirs, stream, false);
        await(line);  // the exporters of both events end after the streams that wait for them
    };
    EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
}

// keeps I2: either may record it, and what this one recorded before says nothing of it any more
TEST(SharedEventProcesses, TheLastRecordIsWhoeversCameLast) {
    const auto exporter = [](Channel line) {
        Device& device = runtime().default_device();
        std::optional<Event> shared = hand_out_event(device, line);
        if (!shared) return line.wait_received().value();
        Stream stream = device.create_stream().value();
        stream.record(*shared).value();
        EXPECT_TRUE(worked(shared->synchronize()));
        pass(line);
        await(line);
        EXPECT_FALSE(shared->finished().value()) << "recorded over there";
        stream.wait(*shared).value();
        EXPECT_FALSE(stream.finished().value());
        pass(line);
        EXPECT_TRUE(worked(shared->synchronize()));
        stream.synchronize().value();
        pass(line);
        line.wait_received().value();
    };
    const auto importer = [](Channel line) {
        Device& device = runtime().default_device();
        std::optional<Event> shared = take_in_event(device, line);
        if (!shared) return;
        await(line);
        EXPECT_TRUE(shared->finished().value());
        Buffer<std::int32_t> work = pinned(device, 1, 0);
        Stream stream = device.create_stream().value();
        {
            Gate gate(device);
            (void)stream.launch(when_raised, 1, gate.words(), work, 1).value();
            stream.record(*shared).value();
            pass(line);
            await(line);
        }
        await(line);
        const auto refused = export_event(*shared);
        EXPECT_TRUE(refused_as(refused, Code::invalid_argument)) << "its exporter alone has its handle";
    };
    EXPECT_EQ(play(exporter, importer), 0) << "the exporter";
}

// keeps I6: what a process that was killed had recorded is never reached (observed). Hosts have deadlines; what does
// not wait for it goes on, and the runtime ends. On other drivers the record may count as reached.
TEST(SharedEventProcesses, AKilledProcessHoldsNoHostForLongerThanItsDeadline) {
    const auto exporter = [](Channel line) {
        Device& device = runtime().default_device();
        std::optional<Event> mine = hand_out_event(device, line);
        if (!mine) return line.wait_received().value();
        Buffer<std::int32_t> work = pinned(device, 1, 0);
        Stream stream = device.create_stream().value();
        await(line);
        Gate gate(device);
        (void)stream.launch(when_raised, 1, gate.words(), work, 1).value();
        stream.record(*mine).value();
        pass(line);
        await(line);
        (void)::raise(SIGKILL);
    };
    const auto importer = [](Channel line) {
        RuntimeOptions options;
        options.wait_timeout = std::chrono::milliseconds(100);  // also limits the wait when the runtime closes
        Runtime own_runtime = Runtime::open(options).value();
        Device& device = own_runtime.default_device();
        const std::optional<Event> theirs = take_in_event(device, line);
        if (!theirs) return;
        pass(line);
        await(line);
        pass(line);
        EXPECT_TRUE(refused_as(line.receive(), Code::peer_lost)) << "which tells more than the event";
        const Result<void> waited = theirs->synchronize(Wait::at_most(std::chrono::milliseconds(50)));
        if (!waited) {
            EXPECT_TRUE(refused_as(waited, Code::timed_out));
        }
        {
            Buffer<std::int32_t> own = device.allocate<std::int32_t>(count).value();
            device.stream().fill(own, 4).value();
            EXPECT_TRUE(worked(device.stream().synchronize(Wait::at_most(std::chrono::seconds(60)))));
        }
        Stream held = device.create_stream().value();
        held.wait(*theirs).value();
        if (!waited) {
            EXPECT_TRUE(refused_as(held.synchronize(Wait::at_most(std::chrono::milliseconds(1))), Code::timed_out));
        }
        EXPECT_TRUE(device.healthy());
    };
    const int status = play(exporter, importer);
    EXPECT_TRUE(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) << status;
}

}  // namespace
}  // namespace conformance
