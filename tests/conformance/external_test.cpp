// SPDX-License-Identifier: Apache-2.0
// Streams that other code made: used as own ones, never destroyed, and captured by other code without the runtime's
// knowledge.
#include "scenario.hpp"
#include "foreign_driver.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;

// keeps S5, S10, S9
TEST(External, AWrappedStreamWorksLikeAnOwnOneAndIsNotDestroyed) {
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> shared = device.allocate_shared<std::int32_t>(count).value();
        {
            Stream stream = device.wrap_stream(foreign.get()).value();
            EXPECT_TRUE(stream.external());
            EXPECT_EQ(stream.native_handle().value(), foreign.get());
            EXPECT_TRUE(worked(stream.fill(data, 3)));
            (void)stream.launch(add_one, count, data).value();
            EXPECT_TRUE(worked(stream.copy(shared, data)));
            Event done = stream.record().value();
            EXPECT_TRUE(worked(device.stream().wait(done)));
            EXPECT_TRUE(worked(stream.wait_stream(device.stream())));
            EXPECT_EQ(shared.read_on_host().value()[count - 1], 4);
            EXPECT_TRUE(worked(stream.synchronize()));
            EXPECT_TRUE(stream.finished().value());
            EXPECT_TRUE(worked(done.synchronize()));
        }
        driver_call(0, "cuStreamSynchronize", foreign.get());  // it still exists
    });
    EXPECT_TRUE(refused_as(runtime().cpu().wrap_stream(nullptr), Code::unsupported));
}

// keeps S17
TEST(External, TheSameStreamHasTheSameStateAndALaterOneAtItsAddressHasNot) {
    on_every_gpu([](Device& device) {
        std::uint64_t before = 0;
        {
            ForeignStream foreign(device);
            Stream first = device.wrap_stream(foreign.get()).value();
            Stream second = device.wrap_stream(foreign.get()).value();
            before = first.id();
            EXPECT_EQ(second.id(), before);
            ForeignStream beside(device);
            EXPECT_NE(device.wrap_stream(beside.get()).value().id(), before);
            (void)first.launch(add_one, count, pinned(device, count, 0)).value();
        }
        ForeignStream later(device);  // drivers reuse the handle at once
        EXPECT_GT(device.wrap_stream(later.get()).value().id(), before);

        Stream own = device.create_stream().value();
        Stream wrapped = device.wrap_stream(own.native_handle().value()).value();
        EXPECT_EQ(wrapped.id(), own.id());
        EXPECT_FALSE(wrapped.external());
    });
}

// keeps S17: a buffer remembers the stream while nobody holds it
TEST(External, AStreamThatIsWrappedAgainGoesOnWhereItWas) {
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Buffer<std::int32_t> data = pinned(device, count, 1);
        std::uint64_t id = 0;
        for (int round = 0; round < rounds(4); ++round) {
            Stream stream = device.wrap_stream(foreign.get()).value();
            EXPECT_TRUE(id == 0 || stream.id() == id);
            id = stream.id();
            (void)stream.launch(add_one, count, data).value();
        }
        EXPECT_EQ(data.read_on_host().value()[0], 1 + rounds(4));
    });
}

// keeps S18
TEST(External, StreamsOfOtherContextsAndThePerThreadOneAreRefused) {
    on_every_gpu([](Device& device) {
        EXPECT_TRUE(refused_as(device.wrap_stream(reinterpret_cast<void*>(std::uintptr_t{2})), Code::unsupported));
        for (Device& other : all_devices()) {
            if (other.is_cpu() || &other == &device) continue;
            ForeignStream foreign(other);
            EXPECT_TRUE(refused_as(device.wrap_stream(foreign.get()), Code::wrong_device));
        }
    });
}

// keeps S5: the legacy default stream is another one in each context, whichever is current
TEST(External, TheLegacyDefaultStreamIsThatOfTheDevice) {
    on_every_gpu([](Device& device) {
        void* before = nullptr;
        driver_call(0, "cuCtxGetCurrent", &before);
        Buffer<std::int32_t> data = pinned(device, count, 5);
        {
            Stream legacy = device.wrap_stream(nullptr).value();
            EXPECT_EQ(device.wrap_stream(reinterpret_cast<void*>(std::uintptr_t{1})).value().id(), legacy.id());
            (void)legacy.launch(add_one, count, data).value();
            for (Device& other : all_devices()) {
                if (other.is_cpu()) continue;
                std::optional<ForeignContext> current(other);
                if (&other != &device) {
                    EXPECT_NE(other.wrap_stream(nullptr).value().id(), legacy.id());
                }
                (void)legacy.launch(add_one, count, data).value();
                EXPECT_TRUE(worked(legacy.synchronize()));
            }
        }
        void* behind = nullptr;
        driver_call(0, "cuCtxGetCurrent", &behind);
        EXPECT_TRUE(unless_fault(behind == before));
        EXPECT_GT(data.read_on_host().value()[count - 1], 6);
    });
}

// keeps S5, G8, S18: what was given to it is waited for by events that are there already
TEST(External, ViewsAndReleasesWaitForAStreamThatItsOwnerDestroyed) {
    on_every_gpu([](Device& device) {
        for (int round = 0; round < rounds(10); ++round) {
            ForeignStream foreign(device);
            Buffer<std::int32_t> viewed = pinned(device, count, 0);
            Buffer<std::int32_t> released = device.allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> dropped = device.allocate<std::int32_t>(count).value();
            std::optional<Stream> stream = device.wrap_stream(foreign.get()).value();
            (void)stream->launch(churn, count, released, 500).value();
            (void)stream->launch(churn, count, dropped, 500).value();
            (void)stream->launch(add_one, count, viewed).value();
            Event event = stream->record().value();
            stream.reset();
            foreign.destroy();
            EXPECT_EQ(viewed.read_on_host().value()[count - 1], 1);
            EXPECT_TRUE(worked(event.synchronize()));
            EXPECT_TRUE(worked(released.release()));
            EXPECT_TRUE(worked(device.synchronize()));
        }
    });
}

// keeps S5, S3: freed in order, on a stream that is still there
TEST(External, PoolMemoryOutlivesTheStreamThatAllocatedIt) {
    on_every_gpu([](Device& device) {
        if (!device.capabilities().has(Feature::pools)) return;
        for (int round = 0; round < rounds(10); ++round) {
            ForeignStream foreign(device);
            std::optional<Stream> stream = device.wrap_stream(foreign.get()).value();
            Buffer<std::int32_t> a = stream->allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> b = stream->allocate<std::int32_t>(count).value();
            Buffer<std::int32_t> seen = pinned(device, count, 0);
            EXPECT_TRUE(worked(stream->fill(a, round)));
            (void)stream->launch(churn, count, b, 500).value();
            EXPECT_TRUE(worked(device.stream().wait_stream(*stream)));
            stream.reset();
            foreign.destroy();
            EXPECT_TRUE(worked(device.stream().copy(seen, a)));
            EXPECT_EQ(seen.read_on_host().value()[count - 1], round);
            EXPECT_TRUE(worked(a.release()));
        }
    });
}

// A capture that other code begins on its own stream, and the graph that results.
class ForeignCapture {
public:
    explicit ForeignCapture(ForeignStream& stream) : stream_(stream) {
        driver_call(0, "cuStreamBeginCapture_v2", stream_.get(), 1);  // THREAD_LOCAL
        open_ = true;
    }
    ForeignCapture(const ForeignCapture&) = delete;
    ForeignCapture& operator=(const ForeignCapture&) = delete;
    ~ForeignCapture() {
        if (open_) (void)driver_function<int(void*, void**)>("cuStreamEndCapture")(stream_.get(), &graph_);
        // The launched graph allocated it; no other code frees it.
        if (memory_ != 0) {
            (void)driver_function<int(unsigned long long, void*)>("cuMemFreeAsync")(memory_, stream_.get());
        }
        if (instance_ != nullptr) (void)driver_function<int(void*)>("cuGraphExecDestroy")(instance_);
        if (graph_ != nullptr) (void)driver_function<int(void*)>("cuGraphDestroy")(graph_);
    }
    void end() {
        open_ = false;
        driver_call(0, "cuStreamEndCapture", stream_.get(), &graph_);
        const ForeignContext context(device_of());
        driver_call(0, "cuGraphInstantiateWithFlags", &instance_, graph_, 1ULL);  // AUTO_FREE_ON_LAUNCH
    }
    void launch_and_wait(std::uint64_t memory_of_the_graph = 0) {
        driver_call(0, "cuGraphLaunch", instance_, stream_.get());
        memory_ = memory_of_the_graph;
        driver_call(0, "cuStreamSynchronize", stream_.get());
    }

private:
    static Device& device_of() { return runtime().default_device(); }
    ForeignStream& stream_;
    bool open_ = false;
    unsigned long long memory_ = 0;
    void* graph_ = nullptr;
    void* instance_ = nullptr;
};

// keeps S5, K13
TEST(External, WhatItIsGivenInACaptureOfOthersIsRecordedAndNothingElse) {
    NEEDS(graph);
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Stream stream = device.wrap_stream(foreign.get()).value();
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> copied = pinned(device, count, 0);
        Capture own = device.stream().begin_capture().value();
        (void)device.stream().launch(add_one, count, copied).value();
        const GraphInstance instance = own.end().value().instantiate().value();
        (void)stream.launch(add_one, count, data).value();  // before the capture: runs, and can be waited for
        {
            ForeignCapture capture(foreign);
            EXPECT_EQ(data.read_on_host().value()[0], 2);
            const auto recorded = stream.launch(add_one, count, data).value();
            EXPECT_TRUE(unless_fault(recorded.position == 0));
            EXPECT_TRUE(worked(stream.copy(copied, data)));
            EXPECT_EQ(data.write_on_host(Wait::never()).value()[0], 2) << "nothing runs, and nothing is held";
            // Each of these calls would invalidate the capture.
            EXPECT_TRUE(refused_as(stream.synchronize(), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.record(), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.wait_stream(device.stream()), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.call_on_host([]() noexcept {}), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.begin_capture(), Code::capture_error));
            EXPECT_TRUE(refused_as(stream.launch(instance), Code::capture_error));
            EXPECT_TRUE(worked(device.synchronize()));
            capture.end();
            EXPECT_EQ(data.read_on_host().value()[0], 2);
            capture.launch_and_wait();
            capture.launch_and_wait();
        }
        EXPECT_EQ(data.read_on_host().value()[count - 1], 4);
        EXPECT_EQ(copied.read_on_host().value()[count - 1], 4);
        (void)stream.launch(add_one, count, data).value();
        EXPECT_EQ(data.read_on_host().value()[count - 1], 5);
    });
}

// keeps S5: nobody could copy around each launch of a graph that the runtime does not see
TEST(External, MemoryThatNeedsCareAroundALaunchIsRefusedInACaptureOfOthers) {
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Stream stream = device.wrap_stream(foreign.get()).value();
        Buffer<std::int32_t> plain = pinned(device, count, 1);
        SharedUse two_sides;
        two_sides.kind = MemoryKind::device;
        Buffer<std::int32_t> shared = device.allocate_shared<std::int32_t>(count, two_sides).value();
        const bool needs_care = shared.path() == LaunchPath::stage || shared.path() == LaunchPath::attach;
        ForeignCapture capture(foreign);
        if (needs_care) {
            EXPECT_TRUE(refused_as(stream.launch(add_one, count, shared), Code::capture_error));
        }
        (void)stream.launch(add_one, count, plain).value();
        capture.end();
        capture.launch_and_wait();
        EXPECT_EQ(plain.read_on_host().value()[0], 2);
    });
}

// keeps K13
TEST(External, AnUnwarmedPoolIsRefusedInACaptureOfOthersAndAWarmOneIsCaptured) {
    Runtime fresh = Runtime::open().value();  // with unused pools
    Device& device = fresh.default_device();
    if (device.is_cpu() || !device.capabilities().has(Feature::pools)) GTEST_SKIP() << "no pools";
    ForeignStream foreign(device);
    Stream stream = device.wrap_stream(foreign.get()).value();
    Buffer<std::int32_t> out = pinned(device, count, 0);
    ForeignCapture capture(foreign);
    const auto cold = stream.allocate<std::int32_t>(count);
    EXPECT_TRUE(refused_as(cold, Code::capture_error));
    Thread([&] { EXPECT_TRUE(worked(device.pool())); }).join();
    std::uint64_t address = 0;
    {
        Buffer<std::int32_t> of_the_graph = stream.allocate<std::int32_t>(count).value();
        EXPECT_EQ(of_the_graph.kind(), MemoryKind::graph);
        address = of_the_graph.device_address();
        EXPECT_TRUE(worked(stream.fill(of_the_graph, 9)));
        EXPECT_TRUE(worked(stream.copy(out, of_the_graph)));
        EXPECT_TRUE(refused_as(device.stream().fill(of_the_graph, 1), Code::not_accessible));
    }
    capture.end();
    capture.launch_and_wait(address);
    EXPECT_EQ(out.read_on_host().value()[count - 1], 9);
}

// keeps S14: the runtime's own captures work on it, too
TEST(External, TheRuntimeCapturesAnExternalStream) {
    NEEDS(graph);
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Stream stream = device.wrap_stream(foreign.get()).value();
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        EXPECT_TRUE(worked(stream.launch(instance)));
        EXPECT_TRUE(worked(stream.launch(instance)));
        EXPECT_EQ(data.read_on_host().value()[count - 1], 3);
    });
}

// Work that other code adds to a stream, and that runs until it is told to end.
class ForeignWork {
public:
    explicit ForeignWork(void* stream) {
        auto given = std::make_unique<Told>(told_);
        driver_call(0, "cuLaunchHostFunc", stream, &wait_until_told, static_cast<void*>(given.get()));
        (void)given.release();
    }
    ForeignWork(const ForeignWork&) = delete;
    ForeignWork& operator=(const ForeignWork&) = delete;
    ~ForeignWork() { end(); }
    void end() noexcept { told_->store(true); }

private:
    using Told = std::shared_ptr<std::atomic<bool>>;
    static void wait_until_told(void* given) {
        const std::unique_ptr<Told> told(static_cast<Told*>(given));
        while (!(*told)->load()) std::this_thread::yield();
    }
    const Told told_ = std::make_shared<std::atomic<bool>>(false);
};

// keeps S5, S9, S10: it has no position, and all that is asked of a stream as a whole is about it, too
TEST(External, WorkThatOtherCodeGivesAStreamIsWaitedFor) {
    if (!work_runs_by_itself()) GTEST_SKIP() << "a host function waits for the host";
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Stream wrapped = device.wrap_stream(foreign.get()).value();
        Stream own = device.create_stream().value();
        Stream later = device.create_stream().value();
        for (Stream* const stream : {&wrapped, &own}) {
            EXPECT_TRUE(worked(stream->synchronize()));
            ForeignWork work(stream->native_handle().value());
            Event behind = stream->record().value();
            EXPECT_FALSE(behind.finished().value());
            EXPECT_FALSE(stream->finished().value());
            EXPECT_TRUE(refused_as(behind.synchronize(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(stream->synchronize(Wait::at_most(std::chrono::microseconds(1))), Code::timed_out));
            EXPECT_TRUE(worked(later.wait_stream(*stream)));
            EXPECT_FALSE(later.finished().value());
            work.end();
            EXPECT_TRUE(worked(stream->synchronize()));
            EXPECT_TRUE(stream->finished().value());
            EXPECT_TRUE(behind.finished().value());
            EXPECT_TRUE(worked(later.synchronize()));
        }
    });
}

}  // namespace
}  // namespace conformance
