// SPDX-License-Identifier: Apache-2.0
// What is current on a thread: the device, its streams, and calls that name neither.
#include "scenario.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;

// keeps S4
TEST(Current, ThereIsADeviceAndAStreamWithoutAnyScope) {
    EXPECT_EQ(&runtime().current_device(), &runtime().default_device());
    on_every_device([](Device& device) { EXPECT_EQ(device.current_stream().id(), device.stream().id()); });
}

// keeps S4, S6
TEST(Current, AScopedStreamCarriesItsDeviceAndRestoresWhatWas) {
    on_every_device([](Device& device) {
        Device& before = runtime().current_device();
        Stream outer = device.create_stream().value();
        Stream inner = device.create_stream().value();
        {
            const ScopedStream first = ScopedStream::enter(outer).value();
            EXPECT_EQ(&runtime().current_device(), &device);
            EXPECT_EQ(device.current_stream().id(), outer.id());
            {
                const ScopedStream second = ScopedStream::enter(inner).value();
                EXPECT_EQ(device.current_stream().id(), inner.id());
            }
            EXPECT_EQ(device.current_stream().id(), outer.id());
        }
        EXPECT_EQ(device.current_stream().id(), device.stream().id());
        EXPECT_EQ(&runtime().current_device(), &before);
    });
}

// keeps S4: a scope says nothing about other devices' streams, nor about other threads
TEST(Current, ScopesConcernOneDeviceAndOneThread) {
    on_every_device([](Device& device, const Stream& mine) {
        const ScopedStream scope = ScopedStream::enter(mine).value();
        for (Device& other : all_devices()) {
            if (&other == &device) continue;
            EXPECT_EQ(other.current_stream().id(), other.stream().id());
            const ScopedDevice chosen(other);
            EXPECT_EQ(&runtime().current_device(), &other);
            EXPECT_EQ(device.current_stream().id(), mine.id());
        }
        EXPECT_EQ(&runtime().current_device(), &device);
        Thread([&] {
            EXPECT_EQ(&runtime().current_device(), &runtime().default_device());
            EXPECT_EQ(device.current_stream().id(), device.stream().id());
        }).join();
    });
}

struct Left {};

// keeps S6
TEST(Current, EveryWayOutOfAScopeRestores) {
    on_every_device([](Device& device, const Stream& stream, const Stream& other) {
        try {
            const ScopedStream scope = ScopedStream::enter(stream).value();
            throw Left{};
        } catch (const Left&) {
            EXPECT_EQ(device.current_stream().id(), device.stream().id());
        }
        // Scopes that are moved, ended in another order than begun, and ended by another thread.
        std::optional<ScopedStream> first = ScopedStream::enter(stream).value();
        std::optional<ScopedStream> second = ScopedStream::enter(other).value();
        first.reset();
        EXPECT_EQ(device.current_stream().id(), other.id());
        first = std::move(second);
        second.reset();  // NOLINT(bugprone-use-after-move): it is empty
        EXPECT_EQ(device.current_stream().id(), other.id());
        Thread([&] { first.reset(); }).join();
        EXPECT_EQ(device.current_stream().id(), device.stream().id());
    });
}

// keeps S6: what is given to the new stream comes behind what the previous one was given
TEST(Current, AScopedStreamWaitsForTheOneThatWasCurrent) {
    on_every_device([](Device& device) {
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> seen = device.allocate_shared<std::int32_t>(count).value();
        Stream outer = device.create_stream().value();
        Stream inner = device.create_stream().value();
        for (std::int32_t round = 1; round <= rounds(5); ++round) {
            const ScopedStream first = ScopedStream::enter(outer).value();
            (void)device.launch(churn, count, data, 200).value();
            EXPECT_TRUE(worked(device.fill(data, round)));
            {
                const ScopedStream second = ScopedStream::enter(inner).value();
                EXPECT_TRUE(worked(device.copy(seen, data)));
            }
            EXPECT_TRUE(worked(outer.wait_stream(inner)));
            ASSERT_EQ(seen.read_on_host().value()[count - 1], round);
        }
    });
}

// keeps S8
TEST(Current, AStreamThatIsNamedWinsOverTheCurrentDevice) {
    on_every_device([](Device& device) {
        const ScopedDevice elsewhere(runtime().cpu());
        Stream named = device.create_stream().value();
        Stream scoped = device.create_stream().value();
        const ScopedStream scope = ScopedStream::enter(scoped).value();
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
        Buffer<std::int32_t> copied = device.allocate_shared<std::int32_t>(count).value();
        EXPECT_TRUE(worked(named.fill(data, 4)));
        (void)named.launch(add_one, count, data).value();
        EXPECT_TRUE(worked(isthmus::copy(copied, data, named)));
        EXPECT_TRUE(worked(named.synchronize()));
        EXPECT_TRUE(scoped.finished().value()) << "nothing was given to it";
        EXPECT_EQ(copied.read_on_host().value()[count - 1], 5);
        if (device.is_cpu()) return;  // its copies end at once, on every stream
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> to = device.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(worked(named.fill_bytes(from, 0)));
        const std::uint64_t before = named.launch(add_one, count, from).value().position;
        EXPECT_TRUE(worked(isthmus::copy(to, from, named)));
        const std::uint64_t behind = named.launch(add_one, count, from).value().position;
        EXPECT_TRUE(unless_fault(behind == before + 2)) << before << " and " << behind;
        EXPECT_TRUE(worked(named.synchronize()));
    });
}

// keeps K22, S8: launches have positions on their stream, and so has what lies between them
TEST(Current, ACopyWithoutAStreamGoesToTheDestinationDevicesCurrentOne) {
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;  // its copies end at once, on every stream
        Stream stream = device.create_stream().value();
        const ScopedStream scope = ScopedStream::enter(stream).value();
        const ScopedDevice elsewhere(runtime().cpu());
        Buffer<std::int32_t> from = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> to = device.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(worked(stream.fill_bytes(from, 0)));
        EXPECT_TRUE(worked(stream.fill_bytes(to, 0)));
        const std::uint64_t before = device.launch(add_one, count, from).value().position;
        EXPECT_TRUE(worked(isthmus::copy(to, from)));
        const std::uint64_t behind = stream.launch(add_one, count, from).value().position;
        EXPECT_TRUE(unless_fault(behind == before + 2)) << before << " and " << behind;
        Buffer<std::int32_t> beside = device.allocate<std::int32_t>(count).value();
        EXPECT_TRUE(worked(device.stream().fill_bytes(beside, 0)));
        const std::uint64_t first = device.stream().launch(add_one, count, beside).value().position;
        EXPECT_TRUE(worked(device.stream().synchronize()));
        EXPECT_TRUE(worked(isthmus::copy(to, from)));
        const std::uint64_t next = device.stream().launch(add_one, count, beside).value().position;
        EXPECT_TRUE(unless_fault(next == first + 1)) << first << " and " << next;
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

// keeps S4, R4
TEST(Current, AScopeMayOutliveItsRuntimeAndItsThread) {
    std::optional<Runtime> another = Runtime::open().value();
    std::optional<ScopedStream> stream;
    std::optional<ScopedDevice> device;
    Thread([&] {
        stream = ScopedStream::enter(another->default_device().create_stream().value()).value();
        device.emplace(another->default_device());
    }).join();
    const ScopedStream here = ScopedStream::enter(another->default_device().stream()).value();
    const ScopedDevice chosen(another->cpu());
    EXPECT_EQ(&another->current_device(), &another->cpu());
    EXPECT_EQ(&runtime().current_device(), &runtime().default_device()) << "each runtime has its own";
    another.reset();
    EXPECT_EQ(&runtime().current_device(), &runtime().default_device());
    on_every_device([](Device& each) { EXPECT_EQ(each.current_stream().id(), each.stream().id()); });
}

// Restores the thread for later scenarios.
struct Restored {
    Device& device;
    ~Restored() {
        for (int attempt = 0; attempt < 3 && !device.set_current_stream(device.stream()); ++attempt) {
        }
    }
};

// keeps S23
TEST(Current, AStreamThatIsSetStaysCurrentUntilAnotherIsSet) {
    on_every_device([](Device& device, const Stream& stream) {
        Device& before = runtime().current_device();
        const Restored afterwards{device};
        EXPECT_TRUE(worked(device.set_current_stream(stream)));
        EXPECT_EQ(device.current_stream().id(), stream.id());
        EXPECT_EQ(&runtime().current_device(), &before) << "it says nothing about the device";
        std::optional<Stream> own = device.create_stream().value();
        const std::uint64_t id = own->id();
        EXPECT_TRUE(worked(device.set_current_stream(*own)));
        own.reset();
        EXPECT_EQ(device.current_stream().id(), id) << "held, although nobody else holds it";
        Thread([&] { EXPECT_EQ(device.current_stream().id(), device.stream().id()); }).join();
        for (Device& beside : all_devices()) {
            if (&beside == &device) continue;
            EXPECT_EQ(beside.current_stream().id(), beside.stream().id());
            EXPECT_TRUE(refused_as(beside.set_current_stream(stream), Code::wrong_device));
            EXPECT_EQ(beside.current_stream().id(), beside.stream().id());
        }
        EXPECT_TRUE(worked(device.set_current_stream(device.stream())));
        EXPECT_EQ(device.current_stream().id(), device.stream().id());
    });
}

// keeps S23, S6
TEST(Current, AScopeRestoresWhatWasCurrentBeforeIt) {
    on_every_device([](Device& device, const Stream& stream, const Stream& other) {
        const Restored afterwards{device};
        Stream third = device.create_stream().value();
        device.set_current_stream(stream).value();
        {
            const ScopedDevice same(device);
            const ScopedStream scope = ScopedStream::enter(other).value();
            EXPECT_EQ(device.current_stream().id(), other.id());
            device.set_current_stream(third).value();
            EXPECT_EQ(device.current_stream().id(), third.id());
            {
                const ScopedStream inner = ScopedStream::enter(other).value();
                EXPECT_EQ(device.current_stream().id(), other.id());
            }
            EXPECT_EQ(device.current_stream().id(), third.id());
        }
        EXPECT_EQ(device.current_stream().id(), stream.id());
        {
            const ScopedDevice same(device);
            device.set_current_stream(third).value();
        }
        EXPECT_EQ(device.current_stream().id(), third.id()) << "a scope of a device restores no stream";
    });
}

// keeps S23, S6
TEST(Current, AStreamThatIsSetComesBehindTheOneBefore) {
    on_every_device([](Device& device, const Stream& stream, const Stream& other) {
        const Restored afterwards{device};
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> seen = device.allocate_shared<std::int32_t>(count).value();
        for (std::int32_t round = 1; round <= rounds(5); ++round) {
            device.set_current_stream(stream).value();
            (void)device.launch(churn, count, data, 200).value();
            EXPECT_TRUE(worked(device.fill(data, round)));
            device.set_current_stream(other).value();
            EXPECT_TRUE(worked(device.copy(seen, data)));
            ASSERT_EQ(seen.read_on_host().value()[count - 1], round);
        }
    });
}

// keeps S10, S23
TEST(Current, EventsAndWaitsWithoutAStreamConcernTheCurrentOne) {
    on_every_device([](Device& device, const Stream& stream, Stream other) {
        const Restored afterwards{device};
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> seen = device.allocate_shared<std::int32_t>(count).value();
        Event again = device.create_event().value();
        device.set_current_stream(stream).value();
        for (std::int32_t round = 1; round <= rounds(5); ++round) {
            (void)other.launch(churn, count, data, 200).value();
            other.fill(data, round).value();
            if (round % 2 == 1) {
                device.wait(other.record().value()).value();
            } else {
                device.wait_stream(other).value();
            }
            EXPECT_TRUE(worked(device.copy(seen, data)));
            ASSERT_EQ(seen.read_on_host().value()[count - 1], round);
            device.record(again).value();
            other.wait(again).value();
        }
        EXPECT_TRUE(worked(device.record({.timing = true})));
        EXPECT_TRUE(worked(device.synchronize()));
    });
}

// keeps S23, R4
TEST(Current, AStreamThatIsSetEndsWithItsThreadAndWithItsRuntime) {
    on_every_device([](Device& device) {
        const long before = driver_calls("cuStreamDestroy_v2");
        Thread([&] {
            device.set_current_stream(device.create_stream().value()).value();
            EXPECT_NE(device.current_stream().id(), device.stream().id());
        }).join();
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamDestroy_v2") == before + 1)) << "the thread holds it";
        }
    });
    std::optional<Runtime> another = Runtime::open().value();
    another->default_device().set_current_stream(another->default_device().create_stream().value()).value();
    another.reset();
    on_every_device([](Device& each) { EXPECT_EQ(each.current_stream().id(), each.stream().id()); });
}

// Its destructor runs after that of what the library keeps for the thread, because it was constructed before.
struct AtTheEnd {
    Device* device = nullptr;
    std::optional<Result<void>>* answer = nullptr;
    ~AtTheEnd() {
        if (device != nullptr) *answer = device->set_current_stream(device->stream());
    }
};

// keeps S23
TEST(Current, LastDestructorsOfAThreadSetNoStream) {
    on_every_device([](Device& device, Stream stream) {
        std::optional<Result<void>> answer;
        Thread([&] {
            thread_local AtTheEnd last;
            last.device = &device;
            last.answer = &answer;
            device.set_current_stream(stream).value();
        }).join();
        if (answer) {
            EXPECT_TRUE(refused_as(*answer, Code::not_permitted));
        }
    });
}

}  // namespace
}  // namespace conformance
