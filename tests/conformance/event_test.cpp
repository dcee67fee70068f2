// SPDX-License-Identifier: Apache-2.0
// Events: the purpose of each kind, the cost of a record, which streams may record and wait, and what a wait proves.
#include "scenario.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;

// Work that keeps a GPU busy for a moment.
void work_on(Stream& stream, Buffer<std::int32_t>& data) {
    (void)stream.launch(churn, count, data, rounds(driver_calls() >= 0 ? 200 : 20000)).value();
}

// Every pair of devices, including the CPU and a device with itself.
template <class Body>
void on_every_pair(Body body) {
    on_every_device([&](Device& first) { on_every_device([&](Device& second) { body(first, second); }); });
}

TEST(Events, TimingAndInterprocessExcludeEachOther) {  // keeps S11
    on_every_device([](Device& device) {
        const long before = driver_calls();
        const auto made = device.create_event({.timing = true, .interprocess = true});
        EXPECT_TRUE(refused_as(made, Code::invalid_argument));
        EXPECT_FALSE(made.error().remedy().empty());
        EXPECT_TRUE(refused_as(device.stream().record({.timing = true, .interprocess = true}), Code::invalid_argument));
        EXPECT_TRUE(unless_fault(driver_calls() == before));
        EXPECT_TRUE(worked(device.create_event({.timing = true})));
    });
}

TEST(Events, InterprocessOnesAreThereWhereTheDeviceReportsThem) {  // keeps S11, D7
    NEEDS(ipc);
    on_every_device([](Device& device) {
        const long before = driver_calls();
        const auto made = device.create_event({.interprocess = true});
        const Capability& capability = device.capabilities().feature(Feature::ipc_events);
        if (!capability) {
            EXPECT_TRUE(refused_as(made, Code::unsupported));
            EXPECT_NE(made.error().message().find(capability.reason), std::string_view::npos) << "the fact is named";
            EXPECT_TRUE(refused_as(device.stream().record({.interprocess = true}), Code::unsupported));
            EXPECT_TRUE(unless_fault(driver_calls() == before));
            return;
        }
        Event event = made.value();
        EXPECT_TRUE(event.options().interprocess);
        EXPECT_FALSE(event.options().timing);
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        device.stream().fill_bytes(data, 0).value();
        device.stream().record(event).value();
        event.synchronize().value();
        EXPECT_TRUE(event.finished().value());
        EXPECT_TRUE(refused_as(Event::elapsed_ms(event, event), Code::invalid_argument));
    });
}

using Bytes = std::vector<std::byte>;

// In the format of export_event(), with a handle that names nothing.
Bytes made_up(const Uuid& device) {
    Bytes bytes(SharedEventDescriptor::size_bytes, std::byte{5});
    const char magic[] = "isthmevt\1\0\0\0\0\0\0";
    for (std::size_t at = 0; at < 16; ++at) bytes[at] = static_cast<std::byte>(magic[at]);
    bytes[12] = std::byte{device.mig};
    for (std::size_t at = 0; at < 16; ++at) bytes[16 + at] = static_cast<std::byte>(device.bytes[at]);
    return bytes;
}
Result<Event> import(const Device& device, const Bytes& bytes) {
    const auto received = SharedEventDescriptor::received(bytes);
    if (!received) return received.error();
    return import_event(device, *received);
}

TEST(Events, OnlyOnesForOtherProcessesAreExportedAndOnlyThoseProcessesImportThem) {  // keeps I2
    NEEDS(ipc);
    on_every_device([](Device& device) {
        EXPECT_TRUE(refused_as(export_event(device.create_event().value()), Code::invalid_argument));
        const Uuid own = device.facts().uuid;
        const Capability& capability = device.capabilities().feature(Feature::ipc_events);
        long before = driver_calls();
        EXPECT_TRUE(refused_as(import(device, Bytes(10)), Code::invalid_argument));
        if (!capability) {
            const auto refused = import(device, made_up(own));
            EXPECT_TRUE(refused_as(refused, Code::unsupported));
            if (!refused) {
                const std::string text = refused.error().text();
                EXPECT_TRUE(unless_fault(text.find(capability.reason) != std::string::npos)) << "the fact: " << text;
                EXPECT_TRUE(unless_fault(text.find("message") != std::string::npos)) << "what works: " << text;
            }
            EXPECT_TRUE(unless_fault(driver_calls() == before));
            return;
        }
        Uuid other = own;
        other.bytes[0] ^= 1;
        EXPECT_TRUE(refused_as(import(device, made_up(other)), Code::wrong_device));
        EXPECT_TRUE(unless_fault(driver_calls() == before));
        EXPECT_TRUE(refused_as(import(device, made_up(own)), Code::invalid_argument)) << "the driver's 205";
        const Event event = device.create_event({.interprocess = true}).value();
        before = driver_calls("cuIpcGetEventHandle");
        const auto sent = export_event(event).value();
        EXPECT_EQ(sent.facts().device, own);
        const auto again = export_event(event).value();
        EXPECT_TRUE(std::equal(again.bytes().begin(), again.bytes().end(), sent.bytes().begin()));
        EXPECT_TRUE(unless_fault(before < 0 || driver_calls("cuIpcGetEventHandle") == before + 2));
        const auto here = import(device, Bytes(sent.bytes().begin(), sent.bytes().end()));
        EXPECT_TRUE(refused_as(here, Code::invalid_argument));
        if (!here) {
            EXPECT_TRUE(unless_fault(here.error().remedy().find("itself") != std::string_view::npos))
                << here.error().text();
        }
        EXPECT_TRUE(unless_fault(device.healthy()));
    });
}

TEST(Events, ExportedOnesAreAskedForAndStayOutOfCaptures) {  // keeps I2, S14, S19
    NEEDS(graph);
    NEEDS(ipc);
    on_every_device([](Device& device) {
        if (!device.capabilities().has(Feature::ipc_events)) return;
        Event event = device.create_event({.interprocess = true}).value();
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        work_on(stream, data);
        stream.record(event).value();  // before it is exported
        (void)export_event(event).value();
        stream.wait(event).value();
        event.synchronize().value();
        work_on(stream, data);
        const auto cost = [](auto call) {
            const long before = driver_calls();
            call();
            return driver_calls() - before;
        };
        EXPECT_TRUE(unless_fault(cost([&] { stream.record(event).value(); }) == (counts_calls(device) ? 1 : 0)));
        EXPECT_TRUE(unless_fault(cost([&] { stream.wait(event).value(); }) == (counts_calls(device) ? 1 : 0)));
        event.synchronize().value();
        for (int time = 0; time < 2; ++time) {
            EXPECT_TRUE(
                unless_fault(cost([&] { EXPECT_TRUE(event.finished().value()); }) == (counts_calls(device) ? 1 : 0)))
                << "it may be recorded elsewhere";
        }
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(stream.record(event), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.wait(event), Code::capture_error));
        EXPECT_TRUE(event.finished().value()) << "beside a capture it can be asked";
        EXPECT_TRUE(worked(export_event(event)));
        work_on(stream, data);
        EXPECT_TRUE(worked(capture.end()));
        on_every_device([&](Device& other) {
            const bool may = other.is_cpu() || other.index() == device.index();
            const auto waited = other.stream().wait(event);
            EXPECT_TRUE(may ? worked(waited) : refused_as(waited, Code::wrong_device));
            if (may) return;
            EXPECT_TRUE(worked(stream.wait(event)));  // the alternative
            EXPECT_TRUE(worked(other.stream().wait(stream.record().value())));
        });
    });
}

TEST(Events, AFreshRecordCostsOneDriverCall) {  // keeps S10
    on_every_device([](Device& device) {
        if (!counts_calls(device)) return;
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Event last = stream.record().value();  // makes the first events
        for (int round = 0; round < rounds(100); ++round) {
            work_on(stream, data);
            const long before = driver_calls();
            last = stream.record().value();
            EXPECT_TRUE(unless_fault(driver_calls() - before == 1 || round == 0)) << "in round " << round;
        }
        const long before = driver_calls("cuEventCreate");
        for (int round = 0; round < rounds(100); ++round) (void)stream.record().value();
        EXPECT_TRUE(unless_fault(driver_calls("cuEventCreate") == before));
    });
}

TEST(Events, ARecordOnAnotherDevicesStreamIsRefusedAndAWaitMayCross) {  // keeps S10
    on_every_pair([](Device& first, Device& second) {
        Stream stream = second.create_stream().value();
        Event foreign = first.create_event().value();
        if (first.index() != second.index()) {
            const long before = driver_calls();
            EXPECT_TRUE(refused_as(stream.record(foreign), Code::wrong_device));
            EXPECT_TRUE(unless_fault(driver_calls() == before));
        }
        // Work of the second device after the wait shows that the first device's work had ended.
        Buffer<std::int32_t> data = first.allocate<std::int32_t>(count).value();
        Stream working = first.create_stream().value();
        working.fill_bytes(data, 0).value();
        work_on(working, data);
        working.record(foreign).value();
        stream.wait(foreign).value();
        stream.record().value().synchronize().value();
        EXPECT_TRUE(foreign.finished().value());
    });
}

TEST(Events, WaitStreamIsARecordThereAndAWaitHere) {  // keeps S10
    on_every_pair([](Device& first, Device& second) {
        Stream there = first.create_stream().value();
        Stream here = second.create_stream().value();
        Buffer<std::int32_t> data = first.allocate<std::int32_t>(count).value();
        there.fill_bytes(data, 0).value();
        (void)there.record().value();  // leaves an event in the pool
        work_on(there, data);
        const long calls = driver_calls(), records = driver_calls("cuEventRecord");
        const long waits = driver_calls("cuStreamWaitEvent");
        here.wait_stream(there).value();
        if (counts_calls(first) && counts_calls(second)) {
            EXPECT_TRUE(unless_fault(driver_calls() - calls == 2));
            EXPECT_TRUE(unless_fault(driver_calls("cuEventRecord") - records == 1));
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamWaitEvent") - waits == 1));
        }
        here.synchronize().value();
        EXPECT_TRUE(there.finished().value());
    });
}

TEST(Events, RecordsAndWaitsNeverBlockTheHost) {  // keeps S10
    on_every_pair([](Device& first, Device& second) {
        if (!counts_calls(first) || !counts_calls(second)) return;  // the CPU device's work runs on the calling thread
        Stream there = first.create_stream().value();
        Stream here = second.create_stream().value();
        Buffer<std::int32_t> data = first.allocate<std::int32_t>(count).value();
        there.fill_bytes(data, 0).value();
        work_on(there, data);
        const auto waits = [] {
            long all = 0;
            for (const char* call :
                 {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuEventQuery", "cuStreamQuery"}) {
                all += driver_calls(call);
            }
            return all;
        };
        const long before = waits();
        Event event = there.record().value();
        here.wait(event).value();
        there.record(event).value();
        here.wait_stream(there).value();
        EXPECT_TRUE(unless_fault(waits() == before));
        here.synchronize().value();
    });
}

TEST(Events, OneThatOthersWaitForMayGoAndIsUsedAgain) {  // keeps S10
    on_every_device([](Device& device, Stream producer, Stream consumer) {
        Stream third = device.create_stream().value();
        Buffer<std::int32_t> a = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> b = device.allocate<std::int32_t>(count).value();
        for (std::int32_t round = 1; round <= rounds(20); ++round) {
            producer.fill_bytes(a, 0).value();
            work_on(producer, a);
            producer.fill_bytes(a, static_cast<std::uint8_t>(round)).value();
            consumer.wait(producer.record().value()).value();
            (void)third.record().value();  // the same driver's event, at once
            (void)consumer.launch(scale_into, count, b, a, 1).value();
            ASSERT_EQ(isthmus::read_back(b).value()[count - 1], 0x01010101 * round);
            producer.wait_stream(consumer).value();
        }
    });
}

TEST(Events, SeenCompleteTheyCostNoDriverCallAndTheirStreamKnows) {  // keeps S9
    on_every_device([](Device& device, Stream stream) {
        SharedUse use;
        if (!device.is_cpu()) use.kind = MemoryKind::pinned;
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count, use).value();
        { (void)data.write_on_host().value(); }
        const auto launched = stream.launch(churn, count, data, rounds(10)).value();
        Event event = stream.record().value();
        event.synchronize().value();
        const long before = driver_calls();
        EXPECT_TRUE(event.finished().value());
        EXPECT_TRUE(worked(event.synchronize(Wait::never())));
        EXPECT_TRUE(stream.completed(launched.position));
        EXPECT_TRUE(worked(data.read_on_host(Wait::never())));
        EXPECT_TRUE(unless_fault(driver_calls() == before));
        (void)stream.launch(churn, count, data, rounds(10)).value();
        stream.record(event).value();
        event.synchronize().value();
        EXPECT_TRUE(event.finished().value());
    });
}

TEST(Events, TimeIsMeasuredBetweenTimingEventsOnly) {  // keeps S11
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        stream.fill_bytes(data, 0).value();
        Event begin = stream.record({.timing = true}).value();
        EXPECT_TRUE(begin.options().timing);
        work_on(stream, data);
        const Event plain = stream.record().value();
        const Event end = stream.record({.timing = true}).value();
        end.synchronize().value();
        EXPECT_GE(Event::elapsed_ms(begin, end).value(), 0.0F);
        EXPECT_TRUE(refused_as(Event::elapsed_ms(begin, plain), Code::invalid_argument));
        EXPECT_TRUE(refused_as(Event::elapsed_ms(plain, end), Code::invalid_argument));
        const Event never = device.create_event({.timing = true}).value();
        EXPECT_TRUE(refused_as(Event::elapsed_ms(begin, never), Code::invalid_argument));
        if (!device.is_cpu()) {
            const Event elsewhere = runtime().cpu().stream().record({.timing = true}).value();
            EXPECT_TRUE(refused_as(Event::elapsed_ms(begin, elsewhere), Code::wrong_device));
        }
    });
}

TEST(Events, NeitherLaunchesNorEventsSwitchContexts) {  // keeps L7, R7
    on_every_device([](Device& device) {
        if (!counts_calls(device)) return;
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> pinned = shared_numbers(device, count, MemoryKind::pinned);
        const auto all_of_it = [&] {
            (void)stream.launch(add_one, count, data).value();
            (void)stream.launch(add_one, count, pinned).value();
            Event event = stream.record().value();
            stream.wait(event).value();
            stream.record(event).value();
            (void)stream.mark().value();
            (void)stream.poll().value();
            event.synchronize().value();
            stream.synchronize().value();
        };
        {  // enough idle events for every round, however long its work takes
            std::vector<Event> spare;
            for (int event = 0; event < 16; ++event) spare.push_back(device.create_event().value());
        }
        for (int warm = 0; warm < 3; ++warm) all_of_it();
        const auto switches = [] {
            return driver_calls("cuCtxPushCurrent") + driver_calls("cuCtxPopCurrent") + driver_calls("cuCtxSetCurrent");
        };
        const long before = switches();
        for (int round = 0; round < rounds(10); ++round) all_of_it();
        EXPECT_TRUE(unless_fault(switches() == before));
        (void)device.create_stream().value();
        EXPECT_TRUE(unless_fault(switches() > before)) << "the count counts";
    });
}

// What rests in the order of a stream that ends takes the place of what is kept behind another one. Calls
// scenario(device, last, next, lines) for each GPU with pools, where `last` has such memory, `next` is the other
// stream, and `lines` is the log.
template <class Scenario>
void with_memory_behind_two_streams(Scenario scenario) {
    std::vector<std::string> lines;
    RuntimeOptions options;
    options.cache_bytes = std::uint64_t{256} << 20;
    options.wait_timeout = std::chrono::seconds(10);  // work ends before it on a slow machine, too
    options.log = [&](Severity, std::string_view line) { lines.emplace_back(line); };
    Runtime own = Runtime::open(options).value();
    for (std::size_t at = 0; at < own.device_count(); ++at) {
        Device& device = *own.device(at).value();
        SCOPED_TRACE(device.name());
        if (device.is_cpu() || !device.capabilities().has(Feature::pools)) continue;
        const Allocator allocator = device.allocator(MemoryKind::pool);
        std::optional<Stream> last = device.create_stream().value();
        Stream next = device.create_stream().value();
        const auto block_of = [&](Stream& stream) {
            AllocationRequest request;
            request.bytes = std::size_t{512} << 10;
            request.stream = &stream;
            return allocator.allocate(request);
        };
        const Result<MemoryBlock> of_last = block_of(*last), of_next = block_of(next);
        if (!worked(of_last) || !worked(of_next)) continue;
        EXPECT_TRUE(worked(allocator.release(*of_next, &next)));
        EXPECT_TRUE(worked(device.trim_cache(options.cache_bytes.value())));  // out of the lane
        EXPECT_TRUE(worked(allocator.release(*of_last, &*last)));
        scenario(device, last, next, lines);
    }
}

// keeps M3: a buffer forgets streams that have ended while another stream uses it, whose lock the launch holds: what is
// kept behind that one stays until the lock is free.
TEST(Streams, ThatEndInALaunchOfAnotherLetNothingGoBehindThat) {
    with_memory_behind_two_streams(
        [](Device& device, std::optional<Stream>& last, Stream& next, std::vector<std::string>& lines) {
            auto data = device.allocate<std::int32_t>(64, MemoryKind::pinned).value();
            set_all(data, 0);
            EXPECT_TRUE(worked(last->launch(add_one, 64, data)));
            EXPECT_TRUE(worked(last->synchronize()));
            last.reset();  // the buffer holds it
            lines.clear();
            const long ended = driver_calls("cuStreamDestroy_v2");
            EXPECT_TRUE(worked(next.launch(add_one, 64, data)));
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamDestroy_v2") != ended || ended < 0));
            EXPECT_TRUE(unless_fault(lines.empty())) << lines.front();
            EXPECT_TRUE(worked(next.synchronize()));
            expect_all(data, 2);
            EXPECT_TRUE(worked(device.trim_cache(0)));
        });
}

// keeps M3: the stream of the last record ends with the next record, on another stream. What is kept behind that one
// goes back behind it: its lock must be free.
TEST(Events, LetTheirLastStreamGoWithoutTheLockOfTheNext) {
    with_memory_behind_two_streams(
        [](Device&, std::optional<Stream>& last, Stream& next, std::vector<std::string>& lines) {
            Result<Event> event = last->record();
            if (!worked(event)) return;
            last.reset();
            lines.clear();
            const long given_back = driver_calls("cuMemFreeAsync");
            EXPECT_TRUE(worked(next.record(*event)));
            EXPECT_TRUE(unless_fault(driver_calls("cuMemFreeAsync") != given_back || given_back < 0));
            EXPECT_TRUE(unless_fault(lines.empty())) << lines.front();
            EXPECT_TRUE(worked(next.synchronize()));
        });
}

}  // namespace
}  // namespace conformance
