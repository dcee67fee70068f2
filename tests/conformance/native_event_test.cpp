// SPDX-License-Identifier: Apache-2.0
// Events of other code that streams wait for, and events of the runtime that other code waits for.
#include "scenario.hpp"
#include "gate.hpp"
#include "native_calls.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;

// keeps W6
TEST(NativeWork, WaitsForEventsOfOtherCode) {
    on_every_gpu([](Device& device, Stream stream, Stream ahead) {
        ForeignEvent event(device);
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> held = pinned(device, count, 1);
        Gate gate(device);
        (void)ahead.launch(when_raised, 1, gate.words(), held, 1).value();
        driver_call(0, "cuEventRecord", event.get(), ahead.native_handle().value());
        EXPECT_TRUE(worked(stream.fill(data, 2)));
        EXPECT_TRUE(worked(stream.wait_native(event.get())));
        expect_all(data, 2);  // work before the wait is not held up
        (void)stream.launch(add_one, count, data).value();
        for (int asked = 0; asked < 1000 && gate.holds(); ++asked) {
            ASSERT_FALSE(stream.finished().value()) << "asked " << asked << " times";
        }
        gate.raise();
        expect_all(data, 3);
        EXPECT_TRUE(refused_as(stream.wait_native(nullptr), Code::invalid_handle));
        EXPECT_TRUE(worked(runtime().cpu().stream().wait_native(event.get()))) << "the host waits";
    });
    EXPECT_TRUE(worked(runtime().cpu().stream().wait_native(nullptr)));
    if (runtime().device_count() > 1) return;
    int nobodys = 0;
    EXPECT_TRUE(refused_as(runtime().cpu().stream().wait_native(&nobodys), Code::unsupported));
}

// keeps W6, S9
TEST(NativeWork, DoesNotWaitForEverForEventsOfOtherCode) {
    on_every_gpu([](Device& device, Stream ahead) {
        ForeignEvent event(device);
        Buffer<std::int32_t> held = pinned(device, count, 1);
        RuntimeOptions impatient;
        impatient.wait_timeout = std::chrono::milliseconds(5);
        Runtime another = Runtime::open(impatient).value();
        Gate gate(device);
        (void)ahead.launch(when_raised, 1, gate.words(), held, 1).value();
        driver_call(0, "cuEventRecord", event.get(), ahead.native_handle().value());
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(another.cpu().stream().wait_native(event.get()), Code::timed_out));
        }
        Device& same = *another.device(device.index()).value();
        EXPECT_TRUE(unless_fault(!same.is_cpu()));
        Stream verified = same.create_stream().value();
        Buffer<std::int32_t> data = pinned(same, count, 1);
        EXPECT_TRUE(worked(verified.wait_native(event.get())));
        verified.set_launch_mode(LaunchMode::verify);
        if (gate.holds()) {
            const auto late = verified.enqueue_native(
                "late", [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 5); }, updates(data));
            ASSERT_TRUE(refused_as(late, Code::timed_out));
            EXPECT_TRUE(unless_fault(late.error().message().find("late") != std::string_view::npos));
        }
        gate.raise();
        EXPECT_TRUE(worked(ahead.synchronize()));
        EXPECT_TRUE(worked(verified.synchronize(Wait::at_most(std::chrono::seconds(20)))));
        EXPECT_TRUE(worked(another.cpu().stream().wait_native(event.get())));
    });
}

// keeps W6, W7
TEST(NativeWork, ItsEventsAreForOtherCodeToWaitFor) {
    on_every_gpu([](Device& device, Stream stream) {
        for (const bool timing : {false, true}) {
            ForeignStream foreign(device);
            Buffer<std::int32_t> data = pinned(device, count, 1);
            Buffer<std::int32_t> copied = pinned(device, count, 0);
            Gate gate(device);
            Event event = device.create_event({.timing = timing}).value();
            EXPECT_TRUE(refused_as(event.native_handle(), Code::invalid_argument)) << "never recorded";
            (void)stream.launch(when_raised, 1, gate.words(), data, 4).value();
            EXPECT_TRUE(worked(stream.record(event)));
            driver_call(0, "cuStreamWaitEvent", foreign.get(), event.native_handle().value(), 0u);
            constexpr int not_ready = 600;
            if (gate.holds()) driver_call(not_ready, "cuStreamQuery", foreign.get());
            gate.raise();
            driver_call(0, "cuStreamSynchronize", foreign.get());
            EXPECT_EQ(data.read_on_host().value()[0], 5);
            EXPECT_TRUE(event.finished().value());
        }
    });
    Stream stream = runtime().cpu().create_stream().value();
    EXPECT_EQ(stream.record().value().native_handle().value(), nullptr);
}

// keeps W6
TEST(NativeWork, DoesNotWaitForForeignEventsInACapture) {
    NEEDS(graph);
    on_every_gpu([](Device& device, Stream stream) {
        ForeignEvent event(device);
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(stream.wait_native(event.get()), Code::capture_error));
        (void)stream.launch(add_one, count, data).value();
        EXPECT_EQ(capture.end().value().size(), 1u);
    });
}

}  // namespace
}  // namespace conformance
