// SPDX-License-Identifier: Apache-2.0
// Captures of several streams: how streams join and rejoin, what would invalidate the capture, and what is left after
// it.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace conformance {
namespace {

constexpr std::size_t count = 500;

// Runs the body with two GPUs of the runtime.
template <class Body>
void on_two_gpus(Body body) {
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU only";
    body(*runtime().device(0).value(), *runtime().device(1).value());
}

Buffer<std::int32_t> shared(Device& device, MemoryKind kind = MemoryKind::pinned) {
    return shared_numbers(device, count, kind);
}

std::int32_t churned(std::int32_t value, int rounds) {
    auto word = static_cast<std::uint32_t>(value);
    for (int round = 0; round < rounds; ++round) word = word * 1664525u + 1013904223u;
    return static_cast<std::int32_t>(word);
}

// keeps S14
TEST(Forks, AStreamThatWaitsForAnEventOfACaptureJoinsItAndItsWorkRunsAtEachLaunch) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> in = shared(device), left = shared(device), right = shared(device);
        for (auto* buffer : {&in, &left, &right}) set_all(*buffer, 1);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, in).value();
        const Event forked = stream.record().value();
        beside.wait(forked).value();
        const auto recorded = beside.launch(scale_into, count, right, in, 10).value();
        EXPECT_TRUE(unless_fault(recorded.position == 0));  // none: it was recorded, not run
        stream.launch(scale_into, count, left, in, 100).value();
        const Event joined = beside.record().value();
        stream.wait(joined).value();
        stream.launch(add_one, count, right).value();
        const Graph graph = capture.end().value();
        EXPECT_EQ(graph.size(), 4u);
        for (auto* buffer : {&in, &left, &right}) expect_all(*buffer, 1);
        const GraphInstance instance = graph.instantiate().value();
        stream.launch(instance).value();
        stream.launch(instance).value();
        expect_all(in, 3);
        expect_all(left, 300);
        expect_all(right, 31);
        beside.launch(add_one, count, right).value();  // and the stream runs new work again
        expect_all(right, 32);
    });
}

// keeps S14, S10
TEST(Forks, WaitStreamForksAndJoinsAndWhatFollowsComesBehind) {
    on_every_gpu([](Device& device) {
        constexpr int rounds = 300;
        Stream stream = device.create_stream().value();
        Stream first = device.create_stream().value();
        Stream second = device.create_stream().value();
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> result = shared(device);
        set_all(result, 0);
        Capture capture = stream.begin_capture().value();
        stream.fill(data, 7).value();
        first.wait_stream(stream).value();
        first.launch(churn, count, data, rounds).value();
        second.wait_stream(first).value();  // from a stream that had itself joined
        second.launch(churn, count, data, rounds).value();
        stream.wait_stream(second).value();
        stream.launch(scale_into, count, result, data, 1).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (int launch = 0; launch < 3; ++launch) {
            set_all(result, 0);
            stream.launch(instance).value();
            expect_all(result, churned(7, 2 * rounds));
        }
    });
}

// keeps S14, S2
TEST(Forks, AStreamOfAnotherDeviceTakesPart) {
    on_two_gpus([](Device& device, Device& other) {
        Stream stream = device.create_stream().value();
        Stream beside = other.create_stream().value();
        Buffer<std::int32_t> in = shared(device), out = shared(device);
        Buffer<std::int32_t> its_own = other.allocate<std::int32_t>(count).value();
        set_all(in, 1);
        set_all(out, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, in).value();
        beside.wait_stream(stream).value();
        beside.launch(scale_into, count, its_own, in, 5).value();
        beside.launch(add_one, count, its_own).value();
        beside.launch(scale_into, count, out, its_own, 2).value();
        stream.wait_stream(beside).value();
        stream.launch(add_one, count, out).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        expect_all(out, 0);
        stream.launch(instance).value();
        expect_all(out, 23);
        EXPECT_TRUE(refused_as(its_own.release(), Code::in_use));
        // Ordered with the other device's work outside the graph.
        beside.launch(add_one, count, out).value();
        beside.synchronize().value();
        stream.launch(instance).value();
        expect_all(in, 3);
        expect_all(out, 33);
        beside.launch(instance).value();  // on a stream of any participating device
        beside.synchronize().value();
        expect_all(in, 4);
        expect_all(out, 43);
    });
}

// keeps S14, S15
TEST(Forks, AGraphOfTwoDevicesThatIsAppendedBringsBothAlong) {
    on_two_gpus([](Device& device, Device& other) {
        Stream stream = device.create_stream().value();
        Stream beside = other.create_stream().value();
        Buffer<std::int32_t> in = shared(device), out = shared(device);
        set_all(in, 1);
        set_all(out, 0);
        std::optional<Graph> inner;
        {
            Capture capture = stream.begin_capture().value();
            stream.launch(add_one, count, in).value();
            beside.wait_stream(stream).value();
            beside.launch(scale_into, count, out, in, 5).value();
            stream.wait_stream(beside).value();
            inner = capture.end().value();
        }
        Capture capture = stream.begin_capture().value();
        capture.append(*inner).value();
        stream.launch(add_one, count, out).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(out, 11);
        beside.launch(instance).value();  // the other device takes part, too
        beside.synchronize().value();
        expect_all(out, 16);
    });
}

// keeps K14
TEST(Forks, ManagedMemoryAllocatedBeforeIsUsedByTheOtherDeviceInsideTheGraph) {
    on_two_gpus([](Device& device, Device& other) {
        for (Device* const one : {&device, &other}) {
            if (one->capabilities().managed != ManagedModel::concurrent) GTEST_SKIP() << "no concurrent managed memory";
        }
        Stream stream = device.create_stream().value();
        Stream beside = other.create_stream().value();
        Buffer<std::int32_t> data = shared(device, MemoryKind::managed);
        set_all(data, 3);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, data).value();
        beside.wait_stream(stream).value();
        beside.launch(add_one, count, data).value();
        stream.wait_stream(beside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(data, 5);
    });
}

// keeps S14
TEST(Forks, AStreamThatDidNotComeBackIsNamedAndNothingStaysCaptured) {
    on_every_gpu([](Device& device, Stream stream, Stream back) {
        Stream away = device.create_stream().value();
        Buffer<std::int32_t> data = shared(device), other = shared(device), third = shared(device);
        for (auto* buffer : {&data, &other, &third}) set_all(*buffer, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, data).value();
        back.wait_stream(stream).value();
        away.wait_stream(stream).value();
        back.launch(add_one, count, other).value();
        away.launch(add_one, count, third).value();
        stream.wait_stream(back).value();
        const Result<Graph> graph = capture.end();
        ASSERT_TRUE(refused_as(graph, Code::capture_error));
        const std::string message(graph.error().message());
        if (!fault_happened()) {
            EXPECT_NE(message.find("stream " + std::to_string(away.id()) + " "), std::string::npos) << message;
            EXPECT_EQ(message.find(std::to_string(back.id())), std::string::npos) << message;
        }
        stream.launch(add_one, count, data).value();
        back.launch(add_one, count, other).value();
        away.launch(add_one, count, third).value();
        for (auto* buffer : {&data, &other, &third}) expect_all(*buffer, 1);
        EXPECT_TRUE(worked(away.synchronize()));
        EXPECT_TRUE(worked(away.begin_capture().value().end()));
    });
}

// keeps S14
TEST(Forks, StreamsThatDidNotComeBackAreAllNamed) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Stream away = device.create_stream().value();
        Buffer<std::int32_t> one = shared(device), other = shared(device);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, one).value();
        for (Stream* const joined : {&beside, &away}) {
            joined->wait_stream(stream).value();
            joined->launch(add_one, count, joined == &beside ? one : other).value();
        }
        const Result<Graph> graph = capture.end();
        ASSERT_TRUE(refused_as(graph, Code::capture_error));
        const std::string message(graph.error().message());
        const std::string both = "streams " + std::to_string(beside.id()) + " and " + std::to_string(away.id()) + " ";
        EXPECT_TRUE(unless_fault(message.rfind(both, 0) == 0)) << message;
    });
}

// keeps S14
TEST(Forks, WorkBehindTheReturnHasToComeBackToo) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> data = shared(device);
        set_all(data, 0);
        for (const bool again : {false, true}) {
            Capture capture = stream.begin_capture().value();
            beside.wait_stream(stream).value();
            beside.launch(add_one, count, data).value();
            stream.wait_stream(beside).value();
            beside.launch(add_one, count, data).value();
            if (again) stream.wait_stream(beside).value();
            const Result<Graph> graph = capture.end();
            if (!again) {
                EXPECT_TRUE(refused_as(graph, Code::capture_error));
                continue;
            }
            stream.launch(graph.value().instantiate().value()).value();
            expect_all(data, 2);
        }
    });
}

// keeps S14, S19, L6
TEST(Forks, WhatWouldEndTheCaptureIsRefusedOnEveryStreamThatTakesPart) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Stream outside = device.create_stream().value();
        Buffer<std::int32_t> data = shared(device), before = shared(device);
        set_all(data, 0);
        set_all(before, 0);
        const Event elsewhere = outside.record().value();
        elsewhere.synchronize().value();
        beside.launch(add_one, count, before).value();  // runs, with its fence recorded before the stream joins
        Capture capture = stream.begin_capture().value();
        Event inside = stream.record({.timing = true}).value();
        beside.wait(inside).value();
        beside.launch(add_one, count, data).value();
        const Event last = beside.record({.timing = true}).value();
        const long calls = driver_calls();
        for (Stream* const captured : {&stream, &beside}) {
            EXPECT_TRUE(refused_as(captured->synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(captured->finished(), Code::capture_error));
            EXPECT_TRUE(refused_as(captured->wait(elsewhere), Code::capture_error));  // the driver answers 905
            EXPECT_TRUE(refused_as(captured->begin_capture(), Code::capture_error));
        }
        for (const Event* const event : {&std::as_const(inside), &last}) {  // the driver answers 907
            EXPECT_TRUE(refused_as(event->finished(), Code::capture_error));
            EXPECT_TRUE(refused_as(event->synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(event->synchronize(Wait::never()), Code::capture_error));
        }
        EXPECT_TRUE(refused_as(Event::elapsed_ms(inside, last), Code::capture_error));
        EXPECT_TRUE(unless_fault(driver_calls() == calls)) << "the driver was asked";
        EXPECT_TRUE(refused_as(stream.wait_stream(outside), Code::capture_error));
        expect_all(before, 1);  // work that ran before can be waited for
        stream.wait_stream(beside).value();
        stream.launch(capture.end().value().instantiate().value()).value();
        expect_all(data, 1);
        // The events still belong to the capture: no executed work precedes them until they are recorded again.
        EXPECT_TRUE(refused_as(inside.finished(), Code::capture_error));
        EXPECT_TRUE(refused_as(outside.wait(inside), Code::capture_error));
        stream.record(inside).value();
        EXPECT_TRUE(worked(inside.synchronize()));
        EXPECT_TRUE(worked(outside.wait(inside)));
    });
}

// keeps S19, S14
TEST(Forks, OtherThreadsGiveWorkToAJoinedStreamAndCannotEndTheCapture) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Stream outside = device.create_stream().value();
        Buffer<std::int32_t> data = shared(device);
        set_all(data, 0);
        const Event elsewhere = outside.record().value();
        Capture capture = stream.begin_capture().value();
        const Event inside = stream.record().value();
        Thread other([&] {
            beside.wait(inside).value();  // joins from here
            beside.launch(add_one, count, data).value();
            EXPECT_TRUE(refused_as(beside.synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.finished(), Code::capture_error));
            EXPECT_TRUE(refused_as(inside.finished(), Code::capture_error));
            EXPECT_TRUE(refused_as(inside.synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(beside.wait(elsewhere), Code::capture_error));
            EXPECT_TRUE(refused_as(beside.begin_capture(), Code::capture_error));
            EXPECT_TRUE(refused_as(capture.end(), Code::capture_error));
            stream.wait_stream(beside).value();
            device.synchronize().value();
        });
        other.join();
        stream.launch(add_one, count, data).value();
        stream.launch(capture.end().value().instantiate().value()).value();
        expect_all(data, 2);
    });
}

// keeps S14
TEST(Forks, TwoCapturesCannotBecomeOneAndBothGoOn) {
    on_every_gpu([](Device& device, Stream first, Stream second) {
        Buffer<std::int32_t> one = shared(device), two = shared(device);
        set_all(one, 0);
        set_all(two, 0);
        Capture capture = first.begin_capture().value();
        Capture another = second.begin_capture().value();
        first.launch(add_one, count, one).value();
        second.launch(add_one, count, two).value();
        const Event of_first = first.record().value();
        EXPECT_TRUE(refused_as(second.wait(of_first), Code::capture_error));
        EXPECT_TRUE(refused_as(first.wait_stream(second), Code::capture_error));
        first.launch(capture.end().value().instantiate().value()).value();
        expect_all(one, 1);
        EXPECT_TRUE(refused_as(second.wait(of_first), Code::capture_error));  // its capture has ended
        second.launch(another.end().value().instantiate().value()).value();
        expect_all(two, 1);
    });
}

// keeps S14, S18
TEST(Forks, AStreamThatIsDestroyedWhileItTakesPartStaysUntilTheEnd) {
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared(device);
        Buffer<std::int32_t> apart = shared(device);
        Buffer<std::int32_t> beside = shared(device);
        set_all(data, 0);
        for (const bool comes_back : {true, false}) {
            Capture capture = stream.begin_capture().value();
            std::uint64_t id = 0;
            {
                Stream brief = device.create_stream().value();
                id = brief.id();
                brief.wait_stream(stream).value();
                brief.launch(add_one, count, comes_back ? data : beside).value();
                if (comes_back) stream.wait_stream(brief).value();
            }
            stream.launch(add_one, count, comes_back ? data : apart).value();
            const Result<Graph> graph = capture.end();
            if (comes_back) {
                stream.launch(graph.value().instantiate().value()).value();
                expect_all(data, 2);
                continue;
            }
            ASSERT_TRUE(refused_as(graph, Code::capture_error));
            EXPECT_TRUE(unless_fault(graph.error().message().find(std::to_string(id)) != std::string_view::npos));
        }
    });
}

// keeps S14, S19, K10
TEST(Forks, ACaptureThatAnotherThreadDropsIsEndedOnAllItsStreamsByItsOwn) {
    on_every_gpu([](Device& device) {
        for (const bool by_the_origin : {true, false}) {
            Stream stream = device.create_stream().value();
            Stream beside = device.create_stream().value();
            Buffer<std::int32_t> data = shared(device);
            set_all(data, 0);
            std::optional<Capture> capture = stream.begin_capture().value();
            const Event inside = stream.record().value();
            beside.wait(inside).value();
            beside.launch(add_one, count, data).value();
            Thread other([&] {
                capture.reset();
                EXPECT_TRUE(refused_as(stream.launch(add_one, count, data), Code::capture_error));
                EXPECT_TRUE(refused_as(beside.launch(add_one, count, data), Code::capture_error));
                EXPECT_TRUE(refused_as(beside.synchronize(), Code::capture_error));
            });
            other.join();
            Stream& next = by_the_origin ? stream : beside;
            Stream& then = by_the_origin ? beside : stream;
            next.launch(add_one, count, data).value();
            then.wait_stream(next).value();
            then.launch(add_one, count, data).value();
            expect_all(data, 2);
            EXPECT_TRUE(refused_as(beside.wait(inside), Code::capture_error));
        }
    });
}

// keeps S14
TEST(Forks, ACaptureThatIsGivenUpLetsAllItsStreamsGo) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> data = shared(device);
        set_all(data, 0);
        {
            const Capture capture = stream.begin_capture().value();
            beside.wait_stream(stream).value();
            beside.launch(add_one, count, data).value();
        }
        beside.launch(add_one, count, data).value();
        beside.synchronize().value();
        stream.launch(add_one, count, data).value();
        expect_all(data, 2);
    });
}

// keeps G8, G9, S15
TEST(Forks, ALaunchClaimsWhatEveryStreamUses) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> here = shared(device), there = shared(device);
        set_all(here, 0);
        set_all(there, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, here).value();
        beside.wait_stream(stream).value();
        beside.launch(add_one, count, there).value();
        stream.wait_stream(beside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (auto* buffer : {&here, &there}) {
            auto open = buffer->write_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(instance), Code::in_use));
        }
        set_all(here, 0);
        set_all(there, 4);
        stream.launch(instance).value();
        expect_all(there, 5);
        EXPECT_TRUE(refused_as(there.release(), Code::in_use));
    });
}

// keeps G12
TEST(Forks, WhatTheHostWritesBetweenLaunchesIsSeenOnEveryStream) {
    on_every_gpu([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::device}) {  // in place, and staged
            Stream stream = device.create_stream().value();
            Stream beside = device.create_stream().value();
            Buffer<std::int32_t> in = shared(device, kind), out = shared(device, kind);
            set_all(in, 1);
            Capture capture = stream.begin_capture().value();
            beside.wait_stream(stream).value();
            beside.launch(scale_into, count, out, in, 3).value();
            stream.wait_stream(beside).value();
            const GraphInstance instance = capture.end().value().instantiate().value();
            for (std::int32_t round = 1; round < 4; ++round) {
                set_all(in, round);
                stream.launch(instance).value();
                expect_all(out, 3 * round);
            }
        }
    });
}

// keeps K13
TEST(Forks, MemoryAllocatedOnAJoinedStreamIsTheGraphs) {
    on_every_gpu([](Device& device) {
        if (!device.capabilities().has(Feature::pools)) return;
        Stream stream = device.create_stream().value();
        Stream beside = device.create_stream().value();
        Buffer<std::int32_t> result = shared(device);
        set_all(result, 0);
        Capture capture = stream.begin_capture().value();
        beside.wait_stream(stream).value();
        EXPECT_TRUE(refused_as(device.allocate<std::int32_t>(count), Code::capture_error));
        Buffer<std::int32_t> scratch = beside.allocate<std::int32_t>(count).value();
        EXPECT_EQ(scratch.kind(), MemoryKind::graph);
        beside.fill_bytes(scratch, 1).value();
        stream.wait_stream(beside).value();
        stream.launch(scale_into, count, result, scratch, 2).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (int round = 0; round < 3; ++round) {
            set_all(result, 0);
            stream.launch(instance).value();
            expect_all(result, 2 * 0x01010101);
        }
        EXPECT_TRUE(refused_as(beside.launch(add_one, count, scratch), Code::not_accessible));
    });
}

// keeps K13
TEST(Forks, MemoryOfAnotherDevicesPoolIsTheGraphsToo) {
    on_two_gpus([](Device& device, Device& other) {
        if (!other.capabilities().has(Feature::pools)) GTEST_SKIP() << "no pools";
        Stream stream = device.create_stream().value();
        Stream beside = other.create_stream().value();
        Buffer<std::int32_t> result = shared(device);
        Capture capture = stream.begin_capture().value();
        beside.wait_stream(stream).value();
        Buffer<std::int32_t> scratch = beside.allocate<std::int32_t>(count).value();
        EXPECT_EQ(scratch.kind(), MemoryKind::graph);
        beside.fill_bytes(scratch, 1).value();
        beside.launch(scale_into, count, result, scratch, 3).value();
        stream.wait_stream(beside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (int round = 0; round < 3; ++round) {
            set_all(result, 0);
            stream.launch(instance).value();
            expect_all(result, 3 * 0x01010101);
        }
    });
}

// keeps G12, S14
TEST(Forks, AStagedBufferOfAnotherDeviceIsBroughtUpToDateForTheGraph) {
    on_two_gpus([](Device& device, Device& other) {
        Stream stream = device.create_stream().value();
        Stream beside = other.create_stream().value();
        Buffer<std::int32_t> in = shared(other, MemoryKind::device);
        Buffer<std::int32_t> out = shared(other, MemoryKind::device);
        set_all(in, 1);
        Capture capture = stream.begin_capture().value();
        beside.wait_stream(stream).value();
        beside.launch(scale_into, count, out, in, 3).value();
        stream.wait_stream(beside).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        for (std::int32_t round = 1; round < 4; ++round) {
            set_all(in, round);
            stream.launch(instance).value();
            expect_all(out, 3 * round);
        }
    });
}

// keeps K10
TEST(Forks, WhatIsFreedWhileAStreamTakesPartIsFreedBehindTheCapture) {
    on_every_gpu([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> used = device.allocate<std::int32_t>(count).value();
        beside.fill_bytes(used, 1).value();
        Capture capture = stream.begin_capture().value();
        beside.wait_stream(stream).value();
        const long before = driver_calls();
        EXPECT_TRUE(worked(used.release()));
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
        stream.wait_stream(beside).value();
        EXPECT_EQ(capture.end().value().size(), 0u);
    });
}

// keeps S14, D2
TEST(Forks, AStreamOfTheCpuTakesNoPartInACaptureOfAGpu) {
    on_every_gpu([](Device&, Stream stream) {
        Stream& cpu = runtime().cpu().stream();
        Capture capture = stream.begin_capture().value();
        const Event inside = stream.record().value();
        EXPECT_TRUE(refused_as(cpu.wait(inside), Code::capture_error));
        EXPECT_TRUE(worked(stream.wait_stream(cpu)));  // always complete
        EXPECT_TRUE(worked(capture.end()));
    });
}

}  // namespace
}  // namespace conformance
