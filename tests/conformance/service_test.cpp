// SPDX-License-Identifier: Apache-2.0
// Services: kernels that answer until they are stopped, and what is refused meanwhile.
#include "scenario.hpp"
#include "native_calls.hpp"
#include "mailbox_kernels.hpp"

#include <isthmus/concurrent/service.hpp>
#include <isthmus/graph.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <thread>

namespace conformance {
namespace {

using Answering = Service<Question, Answer>;
using Mail = Mailbox<Question, Answer>;

Wait soon() {
    return Wait::at_most(std::chrono::seconds(20));
}
template <class T>
bool names_the_kernel(const Result<T>& result, std::string_view kernel) {
    return !result && std::string_view(result.error().message()).find(kernel) != std::string_view::npos;
}

// Runs the body on devices where a kernel may run until it is told to stop.
template <class Body>
void on_every_server(Body body) {
    on_every_device([&](Device& device) {
        if (!device.is_cpu() && !device.capabilities().has(Feature::kernel_timeout)) body(device);
    });
}

// Ends hang_until on every exit.
struct Raise {
    std::uint32_t* flag;
    ~Raise() { protocol::SystemAtomics{}.store_release(flag, 1); }
};

// Declare after a runtime: marks that the runtime is closing, so that its callbacks do nothing.
struct Closing {
    bool& over;
    ~Closing() { over = true; }
};

class Services : public testing::Test {
protected:
    void SetUp() override {
        if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    }
};

// keeps G10
TEST_F(Services, CallsAreAnsweredUntilTheServiceStops) {
    on_every_server([](Device& device) {
        Answering service = Answering::start(device, answer_until_stopped).value();
        for (std::uint32_t number = 0; number < 100; ++number) {
            const Answer answer = service.call(question_of(number), soon()).value();
            EXPECT_EQ(answer.number, number);
            EXPECT_EQ(answer.square, std::uint64_t{number} * number);
        }
        EXPECT_TRUE(service.running());
        EXPECT_TRUE(worked(service.stop(soon())));
        EXPECT_TRUE(unless_fault(!service.running()));
        EXPECT_TRUE(worked(service.stop()));
        EXPECT_TRUE(refused_as(service.call(question_of(1), soon()), Code::invalid_handle));
    });
}

// keeps G10
TEST_F(Services, ManyRequestsTakenAtOnceAreAnsweredInOrderUntilTheServiceStops) {
    on_every_server([](Device& device) {
        for (const std::uint32_t capacity : {2u, 64u}) {  // fewer and more than the kernel asks for at once
            auto mailbox = Mailbox<Question, Answer>::create(device, capacity).value();
            Answering service = Answering::start(device, std::move(mailbox), answer_some_at_once_until_stopped).value();
            std::uint32_t sent = 0;
            for (std::uint32_t number = 0; number < 150; ++number) {
                while (sent < 150 && sent - number < capacity) {
                    EXPECT_TRUE(worked(service.mailbox().send(question_of(sent++), soon())));
                }
                const Answer answer = service.mailbox().receive(soon()).value();
                ASSERT_EQ(answer.number, number);
                ASSERT_EQ(answer.square, std::uint64_t{number} * number);
            }
            EXPECT_TRUE(worked(service.stop(soon())));
        }
    });
}

// keeps G10
TEST_F(Services, WhatWasSentBeforeTheStopIsAnsweredAndWhatItWroteIsThereBehindIt) {
    on_every_server([](Device& device) {
        auto sum = device.allocate_shared<std::uint64_t>(1).value();
        sum.write_on_host().value()[0] = 0;
        Answering service = Answering::start(device, answer_and_sum, sum).value();
        for (std::uint32_t number = 1; number <= 16; ++number) {
            EXPECT_TRUE(worked(service.mailbox().send(question_of(number), soon())));
        }
        EXPECT_TRUE(refused_as(sum.read_on_host(), Code::in_use));
        EXPECT_TRUE(worked(service.stop(soon())));
        EXPECT_EQ(sum.read_on_host().value()[0], 136u);
    });
}

// keeps G10
TEST_F(Services, AServiceIsRefusedWhereNoKernelMayRunForLong) {
    on_every_device([](Device& device) {
        const bool possible = !device.is_cpu() && !device.capabilities().has(Feature::kernel_timeout);
        Result<Answering> service = Answering::start(device, answer_until_stopped);
        if (possible) {
            EXPECT_TRUE(worked(service));
        } else {
            EXPECT_TRUE(refused_as(service, Code::unsupported));
            EXPECT_TRUE(names_the_kernel(service, "answer_until_stopped"));
        }
    });
}

// keeps G10, V10
TEST_F(Services, NothingIsMappedOrUnmappedBesideOneAndWhatGoesMeanwhileGoesWhenItStops) {
    on_every_server([](Device& device) {
        if (!device.capabilities().has(Feature::virtual_memory)) return;
        const std::size_t granule = memory_granularity(device).value().minimum_bytes;
        auto grown = GrowableBuffer<std::byte>::create(device, 4 * granule).value();
        grown.resize(granule).value();
        grown.resize(2 * granule).value();
        grown.resize(granule).value();
        auto dropped = GrowableBuffer<std::byte>::create(device, granule).value();
        dropped.resize(granule).value();
        Answering service = Answering::start(device, answer_until_stopped).value();
        const auto refused = [&](const auto& result) {
            EXPECT_TRUE(refused_while_it_lasts(result, Code::in_use));
            if (result.code() == Code::in_use) {
                EXPECT_TRUE(names_the_kernel(result, "answer_until_stopped")) << result.error().text();
            }
        };
        refused(grown.resize(3 * granule));
        refused(grown.trim());
        refused(grown.release());
        EXPECT_EQ(grown.capacity(), 2 * granule);
        const long before = driver_calls("cuMemUnmap");
        { const auto gone = std::move(dropped); }
        EXPECT_TRUE(before < 0 || unless_fault(driver_calls("cuMemUnmap") == before));
        EXPECT_EQ(service.call(question_of(3), soon()).value().square, 9u);
        EXPECT_TRUE(worked(service.stop(soon())));
        EXPECT_TRUE(before < 0 || unless_fault(driver_calls("cuMemUnmap") == before + 1));
        EXPECT_TRUE(worked(grown.trim()));
        EXPECT_EQ(grown.capacity(), granule);
    });
}

// keeps G10
TEST_F(Services, CallsThatWouldWaitForTheServiceAreRefusedAndNameIt) {
    on_every_server([](Device& device) {
        auto device_memory = device.allocate<std::int32_t>(64, MemoryKind::device).value();
        auto pinned = device.allocate<std::int32_t>(64, MemoryKind::pinned).value();
        auto shared = device.allocate_shared<std::uint64_t>(1).value();
        shared.write_on_host().value()[0] = 0;
        Answering service = Answering::start(device, answer_and_sum, shared).value();
        const auto refused = [&](const auto& result) {
            EXPECT_TRUE(refused_while_it_lasts(result, Code::in_use));
            if (result.code() == Code::in_use) {
                EXPECT_TRUE(names_the_kernel(result, "answer_and_sum")) << result.error().text();
            }
        };
        refused(device_memory.release());
        refused(pinned.release());
        refused(device.synchronize());
        refused(runtime().synchronize());
        refused(shared.read_on_host());
        // It still answers, and afterwards all of it works.
        EXPECT_EQ(service.call(question_of(3), soon()).value().square, 9u);
        EXPECT_TRUE(worked(service.stop(soon())));
        EXPECT_TRUE(worked(device_memory.release()));
        EXPECT_TRUE(worked(pinned.release()));
        EXPECT_TRUE(worked(device.synchronize()));
        EXPECT_EQ(shared.read_on_host().value()[0], 3u);
        EXPECT_TRUE(worked(device.allocate<std::int32_t>(64, MemoryKind::pinned)));
    });
}

// keeps G10, V10: the driver waits for whoever was let in, too
TEST_F(Services, NothingIsMappedOrUnmappedBesideOneOfADeviceThatWasLetIn) {
    on_every_server([](Device& device) {
        if (!device.capabilities().has(Feature::virtual_memory)) return;
        on_every_server([&](Device& other) {
            const std::size_t granule = memory_granularity(device).value().minimum_bytes;
            auto made = GrowableBuffer<std::byte>::create(device, 4 * granule, {.also = {&other}});
            if (other.index() == device.index() || made.code() == Code::unsupported) return;
            auto grown = std::move(made).value();
            grown.resize(granule).value();
            grown.resize(2 * granule).value();
            grown.resize(granule).value();
            auto dropped = GrowableBuffer<std::byte>::create(device, granule, {.also = {&other}}).value();
            dropped.resize(granule).value();
            const PhysicalMemory memory = PhysicalMemory::create(device, granule).value();
            AddressReservation addresses = AddressReservation::reserve(device, granule).value();
            std::optional<Mapping> mapping = addresses.map(0, memory).value();
            mapping->set_access({&device, &other, &other}).value();

            Answering service = Answering::start(other, answer_until_stopped).value();
            EXPECT_TRUE(refused_while_it_lasts(grown.resize(3 * granule), Code::in_use));
            EXPECT_TRUE(refused_while_it_lasts(grown.trim(), Code::in_use));
            EXPECT_TRUE(refused_while_it_lasts(mapping->unmap(), Code::in_use));
            EXPECT_TRUE(refused_while_it_lasts(mapping->set_access({&device}), Code::in_use));
            const long before = driver_calls("cuMemUnmap");
            { const auto gone = std::move(dropped); }
            mapping.reset();
            EXPECT_TRUE(before < 0 || unless_fault(driver_calls("cuMemUnmap") == before));
            EXPECT_EQ(service.call(question_of(3), soon()).value().square, 9u);
            EXPECT_TRUE(worked(service.stop(soon())));
            EXPECT_TRUE(before < 0 || unless_fault(driver_calls("cuMemUnmap") == before + 2));
            EXPECT_TRUE(worked(grown.trim()));
            EXPECT_TRUE(worked(addresses.release()));
        });
    });
}

// keeps G10
TEST_F(Services, OtherStreamsWorkWhileAServiceRuns) {
    on_every_server([](Device& device) {
        if (!device.capabilities().has(Feature::concurrent_kernels)) return;
        auto data = device.allocate_shared<std::int32_t>(64).value();
        for (std::int32_t& each : data.write_on_host().value()) each = 1;
        EXPECT_TRUE(worked(prepare(device, add_one)));
        Answering service = Answering::start(device, answer_until_stopped).value();
        device.stream().launch(add_one, 64, data).value();
        EXPECT_EQ(data.read_on_host(soon()).value()[7], 2);
        EXPECT_TRUE(worked(device.stream().synchronize(soon())));
        {
            auto more = device.allocate<std::int32_t>(64, MemoryKind::device);
            EXPECT_TRUE(worked(more));
            auto locked = device.allocate<std::int32_t>(64, MemoryKind::pinned);
            EXPECT_TRUE(worked(locked));
            if (device.capabilities().has(Feature::managed)) {
                EXPECT_TRUE(worked(device.allocate<std::int32_t>(64, MemoryKind::managed)));
            }
            Result<Buffer<std::int32_t>> pooled = device.stream().allocate<std::int32_t>(64);
            if (device.capabilities().has(Feature::pools)) {
                if (pooled) {
                    EXPECT_TRUE(worked(pooled->release()));
                }
            }
        }  // objects that end here are freed when the service stops
        EXPECT_EQ(service.call(question_of(5), soon()).value().square, 25u);
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, CodeIsLoadedBeforeAServiceAndNotBesideIt) {
    on_every_server([](Device& device) {
        Runtime own = Runtime::open().value();  // no kernel is loaded there yet
        Device& fresh = *own.device(device.index()).value();
        auto data = fresh.allocate_shared<std::int32_t>(4).value();
        for (std::int32_t& each : data.write_on_host().value()) each = 1;
        {
            Answering service = Answering::start(fresh, answer_until_stopped).value();
            EXPECT_TRUE(refused_as(fresh.stream().launch(add_one, 4, data), Code::in_use));
            EXPECT_TRUE(refused_as(prepare(fresh, add_one), Code::in_use));
            EXPECT_TRUE(worked(prepare(fresh, answer_until_stopped)));
            EXPECT_TRUE(worked(service.stop(soon())));
        }
        EXPECT_TRUE(worked(prepare(fresh, add_one)));
        EXPECT_TRUE(worked(fresh.stream().launch(add_one, 4, data)));
        EXPECT_EQ(data.read_on_host().value()[0], 2);
    });
}

// keeps G10, S16
TEST_F(Services, ANodeOfAGraphIsChangedBesideAServiceWhereItsCodeIsThere) {
    on_every_server([](Device& device) {
        Runtime own = Runtime::open().value();  // no kernel is loaded there yet
        Device& fresh = *own.device(device.index()).value();
        auto data = fresh.allocate<std::int32_t>(4, MemoryKind::pinned).value();
        auto other = fresh.allocate<std::int32_t>(4, MemoryKind::pinned).value();
        Stream stream = fresh.create_stream().value();
        Capture capture = stream.begin_capture().value();
        const auto node = capture.launch(add_one, 4, data).value();
        Graph graph = capture.end().value();
        GraphInstance instance = graph.instantiate().value();
        {
            Answering service = Answering::start(fresh, answer_until_stopped).value();
            const auto early = instance.set_arguments(node, 4, other);
            EXPECT_TRUE(refused_as(early, Code::in_use));
            if (early.code() == Code::in_use) {
                EXPECT_TRUE(names_the_kernel(early, "answer_until_stopped")) << early.error().text();
            }
            EXPECT_TRUE(worked(service.stop(soon())));
        }
        EXPECT_TRUE(worked(instance.set_arguments(node, 4, other)));
        Answering service = Answering::start(fresh, answer_until_stopped).value();
        EXPECT_TRUE(worked(instance.set_arguments(node, 4, data)));
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10, R5
TEST_F(Services, AKernelThatDoesNotAnswerIsNamedAndTheServiceStopsAllTheSame) {
    on_every_server([](Device& device) {
        Answering service = Answering::start(device, answer_never).value();
        const Result<Answer> none = service.call(question_of(1), Wait::at_most(std::chrono::milliseconds(5)));
        EXPECT_TRUE(refused_as(none, Code::timed_out));
        if (none.code() == Code::timed_out) {
            EXPECT_TRUE(names_the_kernel(none, "answer_never"));
        }
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, ACallBehindOneThatRanOutGetsItsOwnReply) {
    on_every_server([](Device& device) {
        auto flag = device.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
        auto raised = flag.concurrent_on_host().value();
        protocol::SystemAtomics{}.store_release(raised.data(), 0);
        Answering service = Answering::start(device, answer_when_raised, flag).value();
        {
            const Raise raise{raised.data()};
            EXPECT_TRUE(
                refused_as(service.call(question_of(1), Wait::at_most(std::chrono::milliseconds(2))), Code::timed_out));
            EXPECT_TRUE(refused_as(service.call(question_of(2), Wait::never()), Code::not_ready));
        }
        EXPECT_EQ(service.call(question_of(3), soon()).value().number, 3u);
        EXPECT_EQ(service.call(question_of(4), soon()).value().number, 4u);
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, WhatTheServiceUsesAndGoesOutOfScopeIsFreedWhenItStops) {
    on_every_server([](Device& device) {
        alignas(4096) static std::uint64_t memory[512];
        memory[0] = 0;
        bool told = false;
        AdoptOptions options;
        options.release = [&](void*, std::size_t) { told = true; };
        auto sum = device.adopt<std::uint64_t>(memory, 512, std::move(options)).value();
        Answering service = Answering::start(device, answer_and_sum, sum).value();
        { const auto ended = std::move(sum); }
        // A lost device runs no service any more.
        const auto too_early = [&] { return told && device.healthy(); };
        EXPECT_FALSE(too_early());
        EXPECT_EQ(service.call(question_of(3), soon()).value().square, 9u);
        EXPECT_FALSE(too_early()) << "the service still uses it";
        EXPECT_TRUE(worked(service.stop(soon())));
        EXPECT_TRUE(unless_fault(told));
    });
}

// keeps G10
TEST_F(Services, AMachineThatPinsMakesRoomForMemoryOfSomebodyElseOnlyWithoutAService) {
    on_every_server([](Device& device) {
        alignas(4096) static std::uint64_t memory[512];
        bool told = false;
        const auto options = [&] {
            AdoptOptions made;
            made.release = [&](void*, std::size_t) { told = true; };
            return made;
        };
        Answering service = Answering::start(device, answer_until_stopped).value();
        auto beside = device.adopt<std::uint64_t>(memory, 512, options());
        if (!beside) {  // pages that would have to be pinned, or copied through pinned memory
            EXPECT_TRUE(refused_as(beside, Code::in_use));
            EXPECT_FALSE(told) << "it was never taken";
        } else if (!beside->staged_bytes() && beside->kind() == MemoryKind::host) {
            EXPECT_TRUE(worked(beside->release()));
            EXPECT_TRUE(unless_fault(told)) << "its owner does not wait for the service";
        }
        EXPECT_TRUE(worked(service.stop(soon())));
        beside = Error(Code::not_ready, "", "");
        EXPECT_TRUE(worked(device.adopt<std::uint64_t>(memory, 512, options())));
    });
}

// keeps G10, R5
TEST_F(Services, AKernelThatDoesNotEndIsNamedAndStoppedWhenItDoes) {
    on_every_server([](Device& device) {
        auto flag = device.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
        auto raised = flag.concurrent_on_host().value();
        const protocol::SystemAtomics atomics{};
        atomics.store_release(raised.data(), 0);
        Answering service = Answering::start(device, hang_until, flag).value();
        {
            const Raise raise{raised.data()};
            EXPECT_TRUE(refused_as(service.stop(Wait::never()), Code::not_ready));
            const Result<void> stopped = service.stop(Wait::at_most(std::chrono::milliseconds(5)));
            EXPECT_TRUE(refused_as(stopped, Code::timed_out));
            if (stopped.code() == Code::timed_out) {
                EXPECT_TRUE(names_the_kernel(stopped, "hang_until"));
            }
            EXPECT_TRUE(service.running());
        }
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10, R5
TEST_F(Services, AKernelThatIsGivenUpCountsUntilItHasEndedAndThenWhatWaitedIsFreed) {
    on_every_server([](Device& device) {
        RuntimeOptions impatient;
        impatient.wait_timeout = std::chrono::milliseconds(20);
        Runtime own = Runtime::open(impatient).value();
        Device& fresh = *own.device(device.index()).value();
        auto flag = fresh.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
        auto raised = flag.concurrent_on_host().value();
        protocol::SystemAtomics{}.store_release(raised.data(), 0);
        Code allocated = Code::ok;
        {
            const Raise raise{raised.data()};
            { Answering service = Answering::start(fresh, hang_until, flag).value(); }  // is told to end, and does not
            const Result<void> waited = fresh.synchronize(soon());
            EXPECT_TRUE(refused_as(waited, Code::in_use));
            if (waited.code() == Code::in_use) {
                EXPECT_TRUE(names_the_kernel(waited, "hang_until"));
            }
            // If this allocation fails, the end is still waited for below: a runtime waits only briefly for a kernel
            // that it abandoned.
            const auto unordered = fresh.allocate<std::int32_t>(64, MemoryKind::device);
            allocated = unordered.code();
        }  // freed once the kernel has ended
        Result<void> waited = fresh.synchronize(soon());
        const auto begin = std::chrono::steady_clock::now();
        while (waited.code() == Code::in_use && std::chrono::steady_clock::now() - begin < patience()) {
            std::this_thread::yield();
            waited = fresh.synchronize(soon());
        }
        EXPECT_TRUE(worked(waited));
        EXPECT_TRUE(unless_fault(allocated == Code::ok));
    });
}

// keeps G10, S20
TEST_F(Services, WhatEndsWithinASynchronisationMayStartOne) {
    on_every_server([](Device& device) {
        bool over = false;
        std::optional<Result<void>> served;
        RuntimeOptions impatient;
        impatient.wait_timeout = std::chrono::seconds(10);  // below the deadline of a planned fault
        Runtime own = Runtime::open(impatient).value();
        const Closing closing{over};
        Device& fresh = *own.device(device.index()).value();
        const auto serve = [&](Device* on) {
            if (over) return;
            Result<Answering> service = Answering::start(*on, answer_until_stopped);
            served = service ? service->stop(soon()) : Result<void>(service.error());
        };
        EXPECT_TRUE(worked(fresh.stream().call_on_host([held = std::shared_ptr<Device>(&fresh, serve)]() noexcept {})));
        EXPECT_TRUE(worked(fresh.synchronize(soon())));
        ASSERT_TRUE(unless_fault(served.has_value())) << "the closure has not ended";
        EXPECT_TRUE(worked(*served)) << "the synchronisation's own thread started it";
    });
}

// keeps G10, A15
TEST_F(Services, WhatWaitedForAnEndedOneIsDoneBeforeAccessIsSwitchedAndMayStartOneAndSwitchIt) {
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU, or none";
    bool over = false;
    std::optional<Result<void>> served;
    RuntimeOptions impatient;
    impatient.wait_timeout = std::chrono::milliseconds(100);
    Runtime own = Runtime::open(impatient).value();
    const Closing closing{over};
    Device& here = *own.device(0).value();
    Device& there = *own.device(1).value();
    for (const Device* each : {&here, &there}) {
        if (each->capabilities().has(Feature::kernel_timeout)) GTEST_SKIP() << "no kernel may run for long";
    }
    alignas(4096) static std::uint64_t memory[512];
    AdoptOptions options;
    options.release = [&](void*, std::size_t) {
        if (over) return;
        Result<Answering> service = Answering::start(here, answer_until_stopped);
        served = service ? service->stop(soon()) : Result<void>(service.error());
        (void)here.enable_peer_access(there);
    };
    auto adopted = there.adopt<std::uint64_t>(memory, 512, std::move(options)).value();
    auto flag = there.allocate<std::uint32_t>(1, MemoryKind::pinned).value();
    auto raised = flag.concurrent_on_host().value();
    protocol::SystemAtomics{}.store_release(raised.data(), 0);
    {
        const Raise raise{raised.data()};
        { Answering service = Answering::start(there, hang_until, flag).value(); }  // abandoned
        EXPECT_TRUE(refused_while_it_lasts(here.enable_peer_access(there), Code::in_use));
        { const auto gone = std::move(adopted); }  // waits for the kernel, where its pages were pinned
    }
    Result<void> switched = here.enable_peer_access(there);
    const auto begin = std::chrono::steady_clock::now();
    while (switched.code() == Code::in_use && std::chrono::steady_clock::now() - begin < patience()) {
        std::this_thread::yield();
        switched = here.enable_peer_access(there);
    }
    if (switched.code() != Code::unsupported) {  // no link between them
        EXPECT_TRUE(worked(switched));
    }
    // Memory that the driver never unregisters stays with the runtime: its owner gets no callback.
    ASSERT_TRUE(unless_fault(served.has_value())) << "the memory was not let go of";
    EXPECT_TRUE(worked(*served)) << "no call of this thread is in the driver while what waited is done";
    if (switched) {
        EXPECT_TRUE(worked(here.disable_peer_access(there)));
    }
}

// keeps G10
TEST_F(Services, AKernelThatReturnsOfItsOwnAccordEndsTheService) {
    on_every_server([](Device& device) {
        Answering service = Answering::start(device, leave_at_once).value();
        EXPECT_TRUE(refused_as(service.call(question_of(1), soon()), Code::invalid_handle));
        auto memory = device.allocate<std::int32_t>(64, MemoryKind::device).value();
        EXPECT_TRUE(worked(memory.release())) << "nothing waits for what has ended";
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, AKernelThatFindsNonsenseEndsAndStoppingSaysSo) {
    on_every_server([](Device& device) {
        Answering service = Answering::start(device, answer_until_stopped).value();
        service.mailbox().core().protocol().requests().publish(0x40000000u);
        service.mailbox().core().protocol().requests().write(0, 0, 1);  // with an impossible stamp
        EXPECT_TRUE(refused_as(service.stop(soon()), Code::invalid_handle));
        EXPECT_TRUE(unless_fault(!service.running()));
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, AMailboxThatServedBeforeServesAgain) {
    on_every_server([](Device& device) {
        Mail mailbox = Mail::create(device, 2).value();
        for (std::uint32_t round = 0; round < 3; ++round) {
            Answering service = Answering::start(device, std::move(mailbox), answer_until_stopped).value();
            for (std::uint32_t number = 1; number <= 2; ++number) {
                EXPECT_TRUE(worked(service.mailbox().send(question_of(number), soon())));
            }
            EXPECT_TRUE(worked(service.stop(soon()))) << round;
            EXPECT_EQ(service.mailbox().state(), protocol::ServiceState::ended);
            mailbox = std::move(service.mailbox());
        }
    });
}

// keeps G10
TEST_F(Services, AMailboxOfAnotherDeviceIsRefusedAndLeavesRoomForItsOwn) {
    on_every_server([](Device& device) {
        Mail others = Mail::create(runtime().cpu(), 2).value();
        const auto refused = Answering::start(device, std::move(others), answer_until_stopped);
        ASSERT_TRUE(refused_as(refused, Code::wrong_device));
        EXPECT_TRUE(unless_fault(refused.error().id() == "Q014"));
        Answering service = Answering::start(device, answer_until_stopped).value();
        EXPECT_TRUE(worked(service.call(question_of(1), soon())));
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, NonsenseInTheMailboxIsAnErrorAndTheServiceStops) {
    on_every_server([](Device& device) {
        Answering service = Answering::start(device, answer_nonsense).value();
        EXPECT_TRUE(refused_as(service.call(question_of(1), soon()), Code::invalid_handle));
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

// keeps G10
TEST_F(Services, AServiceThatGoesOutOfScopeIsStoppedAndLeavesRoomForTheNext) {
    on_every_server([](Device& device) {
        for (int round = 0; round < rounds(5); ++round) {
            Answering service = Answering::start(device, answer_until_stopped).value();
            EXPECT_EQ(service.call(question_of(7), soon()).value().square, 49u);
        }
        EXPECT_TRUE(worked(device.synchronize(soon())));
    });
}

// keeps W1: as a launch whose code is loaded; what the work waits for is its own concern
TEST_F(Services, WorkOfOtherCodeIsGivenBesideOne) {
    on_every_server([](Device& device) {
        Buffer<std::int32_t> data = pinned(device, 64, 1);
        Stream stream = device.create_stream().value();
        Answering service = Answering::start(device, answer_until_stopped).value();
        (void)stream
            .enqueue_native(
                "set", [](void* s, std::int32_t* to) { return set_numbers(s, to, 64, 7); }, updates(data))
            .value();
        expect_all(data, 7);
        auto scope = stream.open_native_scope("inference", updates(data)).value();
        gave(set_numbers(scope.stream(), scope.get<0>(), 64, 8));
        EXPECT_TRUE(worked(scope.close()));
        expect_all(data, 8);
        EXPECT_TRUE(worked(service.call(question_of(1), soon())));
        EXPECT_TRUE(worked(service.stop(soon())));
    });
}

}  // namespace
}  // namespace conformance
