// SPDX-License-Identifier: Apache-2.0
// Host functions that a device calls: in order, without access to the runtime, and destroyed in every case.
#include "scenario.hpp"
#include "foreign_driver.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;

// keeps S20
TEST(HostFunctions, AreCalledInTheOrderOfTheirStream) {
    on_every_device([](Device& device) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        const std::int32_t* const last = data.read_on_host().value().data() + count - 1;
        Stream stream = device.create_stream().value();
        auto seen = std::make_shared<std::vector<std::int32_t>>();
        for (int round = 0; round < 3; ++round) {
            (void)stream.launch(churn, count, data, 100).value();
            EXPECT_TRUE(worked(stream.fill(data, round)));
            EXPECT_TRUE(worked(stream.call_on_host([seen, last]() noexcept { seen->push_back(*last); })));
        }
        EXPECT_TRUE(worked(stream.synchronize()));
        EXPECT_EQ(*seen, (std::vector<std::int32_t>{0, 1, 2}));
    });
}

// keeps S20
TEST(HostFunctions, AreRefusedTheRuntime) {
    NEEDS(graph);
    on_every_device([](Device& device) {
        auto data = std::make_shared<Buffer<std::int32_t>>(pinned(device, count, 1));
        Stream stream = device.create_stream().value();
        Event event = stream.record().value();
        auto answers = std::make_shared<std::vector<Code>>();
        EXPECT_TRUE(worked(stream.call_on_host([=, &device]() mutable noexcept {
            answers->push_back(stream.launch(add_one, count, *data).code());
            answers->push_back(stream.synchronize().code());
            answers->push_back(stream.record().code());
            answers->push_back(stream.wait(event).code());
            answers->push_back(stream.call_on_host([]() noexcept {}).code());
            answers->push_back(device.allocate<std::int32_t>(4).code());
            answers->push_back(device.create_stream().code());
            answers->push_back(device.synchronize().code());
            answers->push_back(stream.begin_capture().code());
            answers->push_back(data->read_on_host().code());
            answers->push_back(data->release().code());
        })));
        EXPECT_TRUE(worked(stream.synchronize()));
        for (const Code code : *answers) EXPECT_EQ(code, Code::not_permitted) << isthmus::name(code);
        EXPECT_EQ(answers->size(), 11u);
        EXPECT_TRUE(unless_fault(device.healthy()));
        EXPECT_TRUE(worked(stream.launch(add_one, count, *data)));
        EXPECT_EQ(data->read_on_host().value()[0], 2);
    });
}

// keeps S20
TEST(HostFunctions, EndWhenTheyHaveRunAndSomebodyWaited) {
    on_every_device([](Device&, Stream stream) {
        auto held = std::make_shared<int>(7);
        const std::weak_ptr<int> watched = held;
        EXPECT_TRUE(worked(stream.call_on_host([held]() noexcept { ++*held; })));
        held.reset();
        EXPECT_TRUE(worked(stream.synchronize()));
        EXPECT_TRUE(worked(stream.call_on_host([]() noexcept {})));
        EXPECT_TRUE(unless_fault(watched.expired()));
    });
}

// keeps S20, R4: what holds itself in a circle through a stream
TEST(HostFunctions, MayHoldTheStreamAndTheBuffersThatTheyFollow) {
    std::weak_ptr<int> watched;
    std::atomic<int> ran{0};
    {
        Runtime runtime = Runtime::open().value();
        for (std::size_t at = 0; at < runtime.device_count(); ++at) {
            Device& device = *runtime.device(at).value();
            Stream stream = device.create_stream().value();
            auto data = std::make_shared<Buffer<std::int32_t>>(pinned(device, count, 1));
            (void)stream.launch(churn, count, *data, 100).value();
            auto held = std::make_shared<int>(1);
            watched = held;
            EXPECT_TRUE(worked(stream.call_on_host([stream, data, held, &ran]() noexcept { ++ran; })));
        }
    }
    EXPECT_TRUE(unless_fault(watched.expired()));
    EXPECT_TRUE(unless_fault(ran.load() > 0));
}

// keeps S20, S18: the driver refuses what their ends need, so that they end later
TEST(HostFunctions, MayLetGoOfBuffersAndStreams) {
    on_every_device([](Device& device, Stream stream) {
        {
            auto data = std::make_shared<std::optional<Buffer<std::int32_t>>>(pinned(device, count, 1));
            auto other = std::make_shared<std::optional<Stream>>(device.create_stream().value());
            (void)(*other)->launch(churn, count, **data, 100).value();
            EXPECT_TRUE(worked(stream.call_on_host([data, other]() noexcept {
                other->reset();
                data->reset();
            })));
        }
        EXPECT_TRUE(worked(stream.synchronize()));
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

// keeps S20, S18
TEST(HostFunctions, RunAlsoWhereTheirStreamWasDestroyedBefore) {
    on_every_device([](Device& device) {
        auto ran = std::make_shared<std::atomic<int>>(0);
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        {
            Stream stream = device.create_stream().value();
            (void)stream.launch(churn, count, data, 500).value();
            EXPECT_TRUE(worked(stream.call_on_host([ran]() noexcept { ++*ran; })));
        }
        EXPECT_TRUE(worked(data.release()));
        EXPECT_TRUE(worked(device.synchronize()));
        EXPECT_EQ(ran->load(), 1);
    });
}

// keeps S20
TEST(HostFunctions, MayLetGoOfGraphsAndInstances) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        {
            Capture capture = stream.begin_capture().value();
            EXPECT_TRUE(worked(stream.launch(add_one, count, data)));
            auto graph = std::make_shared<std::optional<Graph>>(capture.end().value());
            auto instance = std::make_shared<std::optional<GraphInstance>>((*graph)->instantiate().value());
            EXPECT_TRUE(worked(stream.launch(**instance)));
            EXPECT_TRUE(worked(stream.call_on_host([graph, instance]() noexcept {
                graph->reset();
                instance->reset();
            })));
        }
        EXPECT_TRUE(worked(stream.synchronize()));
        EXPECT_TRUE(worked(device.synchronize()));
        EXPECT_TRUE(worked(data.release()));  // the instance has ended and no longer holds it
    });
}

// keeps S20, S15
TEST(HostFunctions, OfACaptureRunAtEveryLaunchAndEndWithTheGraph) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        auto held = std::make_shared<std::atomic<int>>(0);
        const std::weak_ptr<std::atomic<int>> watched = held;
        Buffer<std::int32_t> data = pinned(device, count, 0);
        {
            std::optional<Capture> capture = stream.begin_capture().value();
            (void)stream.launch(add_one, count, data).value();
            EXPECT_TRUE(worked(stream.call_on_host([held]() noexcept { ++*held; })));
            (void)stream.launch(add_one, count, data).value();
            EXPECT_EQ(held->load(), 0);
            const GraphInstance instance = capture->end().value().instantiate().value();
            capture.reset();
            for (int round = 1; round <= 3; ++round) {
                EXPECT_TRUE(worked(stream.launch(instance)));
                EXPECT_TRUE(worked(stream.synchronize()));
                EXPECT_EQ(held->load(), round);
            }
        }
        held.reset();
        EXPECT_TRUE(watched.expired());
        EXPECT_EQ(data.read_on_host().value()[0], 6);
        // A discarded capture destroys its functions without calling them.
        auto never = std::make_shared<std::atomic<int>>(0);
        {
            Capture capture = stream.begin_capture().value();
            EXPECT_TRUE(worked(stream.call_on_host([never]() noexcept { ++*never; })));
        }
        EXPECT_EQ(never.use_count(), 1);
        EXPECT_EQ(never->load(), 0);
    });
}

}  // namespace
}  // namespace conformance
