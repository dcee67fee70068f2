// SPDX-License-Identifier: Apache-2.0
// Waits for everything, for a device including the work of other code, and for streams; priorities; streams destroyed
// with work left.
#include "scenario.hpp"
#include "foreign_driver.hpp"
#include "gate.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 12;

// keeps S9
TEST(Synchronize, TheRuntimeWaitsForEveryDevice) {
    std::vector<Stream> streams;
    std::vector<Buffer<std::int32_t>> buffers;
    on_every_device([&](Device& device) {
        for (int each = 0; each < 2; ++each) {
            streams.push_back(device.create_stream().value());
            buffers.push_back(device.allocate<std::int32_t>(count).value());
            (void)streams.back().launch(churn, count, buffers.back(), 200).value();
        }
    });
    EXPECT_TRUE(worked(runtime().synchronize()));
    for (Stream& stream : streams) EXPECT_TRUE(stream.finished().value());
}

// keeps S9: work that the runtime never saw, on a stream that it does not know
TEST(Synchronize, ADeviceWaitsForWorkThatOtherCodeGaveIt) {
    on_every_gpu([](Device& device) {
        constexpr std::size_t bytes = std::size_t{4} << 20;
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(bytes / 4).value();
        ForeignStream foreign(device);
        for (int round = 0; round < rounds(20); ++round) {
            driver_call(0, "cuMemsetD8Async", static_cast<unsigned long long>(data.device_address()),
                        static_cast<unsigned char>(round), bytes, foreign.get());
        }
        EXPECT_TRUE(worked(device.synchronize()));
        driver_call(0, "cuStreamQuery", foreign.get());
    });
}

// keeps S9, R5: one deadline for all of it
TEST(Synchronize, EveryWaitHasADeadline) {
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Gate gate(device);
        (void)stream.launch(when_raised, 1, gate.words(), data, 1).value();
        if (gate.holds()) {
            EXPECT_TRUE(refused_while_it_lasts(device.synchronize(Wait::never()), Code::not_ready));
            const Wait briefly = Wait::at_most(std::chrono::microseconds(1));
            EXPECT_TRUE(refused_while_it_lasts(runtime().synchronize(briefly), Code::timed_out));
        }
        gate.raise();
        EXPECT_TRUE(worked(runtime().synchronize()));
        EXPECT_TRUE(worked(device.synchronize(Wait::never())));
    });
}

// keeps S19: what would end the capture is left out
TEST(Synchronize, OfDevicesLeavesCapturesAlone) {
    NEEDS(graph);
    on_every_gpu([](Device& device, Stream captured, Stream other) {
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
        for (std::int32_t& one : data.write_on_host().value()) one = 0;
        Buffer<std::int32_t> busy = device.allocate<std::int32_t>(count).value();
        Capture capture = captured.begin_capture().value();
        (void)captured.launch(add_one, count, data).value();
        (void)other.launch(churn, count, busy, 200).value();
        EXPECT_TRUE(worked(device.synchronize()));
        EXPECT_TRUE(other.finished().value());
        Thread([] { EXPECT_TRUE(worked(runtime().synchronize())); }).join();
        // Another runtime of the process sees it, too.
        Runtime another = Runtime::open().value();
        EXPECT_TRUE(worked(another.synchronize()));
        const auto instance = capture.end().value().instantiate().value();
        EXPECT_TRUE(worked(captured.launch(instance)));
        EXPECT_EQ(data.read_on_host().value()[count - 1], 1);
    });
}

// keeps S9
TEST(Synchronize, EveryWaitPolicyWaits) {
    for (const WaitPolicy policy : {WaitPolicy::adaptive, WaitPolicy::spin, WaitPolicy::sleep}) {
        RuntimeOptions options;
        options.wait_policy = policy;
        Runtime runtime = Runtime::open(options).value();
        Device& device = runtime.default_device();
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
        for (std::int32_t& one : data.write_on_host().value()) one = 1;
        (void)device.launch(churn, count, data, 100).value();
        EXPECT_TRUE(worked(device.fill(data, 6)));
        EXPECT_EQ(data.read_on_host().value()[0], 6);
        EXPECT_TRUE(worked(runtime.synchronize()));
    }
}

// keeps S13: -1 is high and 0 low, what lies outside is clamped, and a device without priorities reads back 0
TEST(Priorities, AreClampedAndReadBack) {
    constexpr int stream_priorities_supported = 78;
    on_every_device([](Device& device) {
        const bool supported = device.facts().attribute(stream_priorities_supported).value_or(0) == 1;
        if (!supported && fault_happened()) {
            EXPECT_TRUE(unless_fault(false)) << "the attribute may not have been answered";
        }
        const int high = supported ? -1 : 0;
        const auto read_back = [&](int asked) {
            return device.create_stream({.priority = asked}).value().priority().value();
        };
        EXPECT_EQ(read_back(0), 0);
        EXPECT_EQ(read_back(-1), high);
        EXPECT_EQ(read_back(-2), high) << "drivers have up to six priorities, and the runtime two";
        EXPECT_EQ(read_back(std::numeric_limits<int>::min()), high);
        EXPECT_EQ(read_back(1), 0);
        EXPECT_EQ(read_back(std::numeric_limits<int>::max()), 0);
        EXPECT_EQ(device.stream().priority().value(), 0) << "a device's first stream";
        EXPECT_TRUE(!device.is_cpu() || !supported);
        // An external stream keeps the priority that other code gave it.
        if (supported) {
            const ForeignStream other(device, -3);
            EXPECT_EQ(device.wrap_stream(other.get()).value().priority().value(), -3);
        }
    });
}

// keeps S18
TEST(Streams, HaveANativeHandleWhereThereIsADriver) {
    on_every_device([](Device& device, const Stream& stream) {
        const auto native = stream.native_handle();
        if (device.is_cpu()) {
            EXPECT_TRUE(refused_as(native, Code::unsupported));
            return;
        }
        EXPECT_TRUE(worked(native));
        driver_call(0, "cuStreamQuery", native.value());
    });
}

// keeps S18, S3, K10: frees behind the work of streams that are destroyed, also those that a capture puts off
TEST(Streams, MayBeDestroyedWithWorkAndFreesBehindThem) {
    NEEDS(graph);
    on_every_device([](Device& device) {
        for (int round = 0; round < rounds(10); ++round) {
            Stream behind = device.create_stream().value();
            std::vector<Buffer<std::int32_t>> kept;
            {
                Stream stream = device.create_stream().value();
                for (int each = 0; each < 3; ++each) {
                    const bool pooled = device.capabilities().has(Feature::pools);
                    Buffer<std::int32_t> data = pooled ? stream.allocate<std::int32_t>(count).value()
                                                       : device.allocate<std::int32_t>(count).value();
                    (void)stream.launch(churn, count, data, 200).value();
                    if (each == 0) kept.push_back(std::move(data));
                }
            }
            if (device.is_cpu()) continue;
            Stream captured = device.create_stream().value();
            Capture capture = captured.begin_capture().value();
            kept.clear();  // postponed until the capture has ended, after work of a stream that is gone
            (void)capture.end().value();
        }
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

}  // namespace
}  // namespace conformance
