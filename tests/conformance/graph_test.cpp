// SPDX-License-Identifier: Apache-2.0
// Captures and graphs with memory: what is recorded, what is refused, and what cannot invalidate an open capture.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <dlfcn.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 500;

// keeps S14, S15
TEST(Graphs, WhatACaptureRecordsRunsAtEachLaunchAndNotBefore) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 1);
        Capture capture = stream.begin_capture().value();
        const auto recorded = stream.launch(add_one, count, data).value();
        EXPECT_TRUE(unless_fault(recorded.position == 0));  // none: it was recorded, not run
        stream.launch(add_one, count, data).value();
        expect_all(data, 1);
        const Graph graph = capture.end().value();
        EXPECT_EQ(graph.size(), 2u);
        const GraphInstance instance = graph.instantiate().value();
        expect_all(data, 1);
        stream.launch(instance).value();
        stream.launch(instance).value();
        expect_all(data, 5);
    });
}

// keeps S15
TEST(Graphs, HoldTheirBuffersAndRefuseThatTheyAreReleased) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> result = shared_numbers(device, count, MemoryKind::pinned);
        Buffer<std::int32_t> named = device.allocate<std::int32_t>(count).value();
        auto graph = [&] {
            Buffer<std::int32_t> passing = device.allocate<std::int32_t>(count).value();
            stream.fill_bytes(passing, 1).value();
            stream.copy(named, passing).value();
            Capture capture = stream.begin_capture().value();
            stream.launch(scale_into, count, result, passing, 2).value();
            stream.copy(named, passing).value();
            return capture.end().value().instantiate().value();
        }();  // the buffer object is gone, its memory is not
        EXPECT_TRUE(refused_as(named.release(), Code::in_use));
        stream.launch(graph).value();
        expect_all(result, 2 * 0x01010101);
        graph = GraphInstance(nullptr);
        EXPECT_TRUE(worked(named.release()));
    });
}

// keeps G8, G9
TEST(Graphs, ALaunchClaimsTheBuffersAsAKernelDoes) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        {
            auto open = data.read_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(instance), Code::in_use));
        }
        stream.launch(instance).value();
        expect_all(data, 1);
    });
}

// keeps G12
TEST(Graphs, WhatTheHostWritesBetweenLaunchesIsSeenByTheNext) {
    on_every_device([](Device& device) {
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::device}) {  // in place, and staged
            SCOPED_TRACE(isthmus::name(kind));
            Stream stream = device.create_stream().value();
            Buffer<std::int32_t> in = shared_numbers(device, count, kind);
            Buffer<std::int32_t> out = shared_numbers(device, count, kind);
            set_all(in, 1);
            Capture capture = stream.begin_capture().value();
            stream.launch(scale_into, count, out, in, 3).value();
            const GraphInstance instance = capture.end().value().instantiate().value();
            for (std::int32_t round = 1; round < 4; ++round) {
                set_all(in, round);
                stream.launch(instance).value();
                expect_all(out, 3 * round);
            }
        }
    });
}

// keeps K14, K6
TEST(Graphs, ManagedMemoryAllocatedBeforeWorksInside) {
    on_every_device([](Device& device, Stream stream, Stream other) {
        if (!device.capabilities().has(Feature::managed)) return;
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::managed);
        Buffer<std::int32_t> copied = shared_numbers(device, count, MemoryKind::managed);
        set_all(data, 7);
        set_all(copied, 0);
        // Also where it was used on another stream before, and is used by launches between the replays.
        stream.launch(add_one, count, data).value();
        Capture capture = other.begin_capture().value();
        other.launch(add_one, count, data).value();
        ASSERT_TRUE(worked(other.launch(scale_into, count, copied, data, 2)));
        const GraphInstance instance = capture.end().value().instantiate().value();
        expect_all(data, 8);
        for (std::int32_t round = 1; round < 4; ++round) {
            set_all(data, 10 * round);
            stream.launch(instance).value();
            if (round == 1) {
                auto view = data.read_on_host(Wait::never());
                if (!view) {
                    EXPECT_TRUE(refused_while_it_lasts(view, Code::not_ready)) << "views wait";
                }
            }
            expect_all(copied, 20 * round + 2);
            expect_all(data, 10 * round + 1);
            stream.launch(instance).value();
            stream.launch(add_one, count, data).value();
            expect_all(data, 10 * round + 3);
            {
                auto view = data.read_on_host().value();
                const bool taken = device.capabilities().managed == ManagedModel::phase_guarded;
                const auto launched = other.launch(instance);
                EXPECT_TRUE(refused_as(launched, Code::in_use)) << (taken ? "one side at a time" : "it is written");
            }
            other.launch(instance).value();
            expect_all(data, 10 * round + 4);
        }
    });
}

// keeps K6
TEST(Graphs, MemoryOfOneSideAtATimeIsAttachedAroundEachReplay) {
    on_every_gpu([](Device& device, Stream stream) {
        if (device.capabilities().managed != ManagedModel::phase_guarded) return;
        Buffer<std::int32_t> first = shared_numbers(device, count, MemoryKind::managed);
        Buffer<std::int32_t> second = shared_numbers(device, count, MemoryKind::managed);
        set_all(first, 1);
        set_all(second, 0);
        const long recording = driver_calls("cuStreamAttachMemAsync");
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, first).value();
        stream.launch(scale_into, count, second, first, 3).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        const bool counted = counts_calls(device);
        if (counted) {
            EXPECT_TRUE(unless_fault(driver_calls("cuStreamAttachMemAsync") == recording));
        }
        for (const int replays : {1, 3}) {
            const long before = driver_calls("cuStreamAttachMemAsync");
            for (int at = 0; at < replays; ++at) stream.launch(instance).value();
            { (void)second.read_on_host().value(); }
            { (void)first.read_on_host().value(); }
            // Once there and back for each buffer, however often it is launched in between.
            if (counted) {
                EXPECT_TRUE(unless_fault(driver_calls("cuStreamAttachMemAsync") == before + 4)) << replays;
            }
        }
        expect_all(first, 5);
        expect_all(second, 15);
        EXPECT_TRUE(refused_as(first.release(), Code::in_use));
    });
}

// keeps K6, K14
TEST(Graphs, MemoryOfOneSideAtATimeIsAttachedOnItsOwnDevice) {
    for (Device& owner : all_devices()) {
        if (owner.is_cpu() || owner.capabilities().managed != ManagedModel::phase_guarded) continue;
        for (Device& other : all_devices()) {
            if (other.is_cpu() || &other == &owner) continue;
            Stream here = owner.create_stream().value();
            Stream there = other.create_stream().value();
            Buffer<std::int32_t> data = shared_numbers(owner, count, MemoryKind::managed);
            set_all(data, 1);
            Buffer<std::int32_t> beside = pinned(other, count, 0);
            Capture capture = here.begin_capture().value();
            there.wait_stream(here).value();
            there.launch(add_one, count, beside).value();
            here.wait_stream(there).value();
            here.launch(add_one, count, data).value();
            const GraphInstance instance = capture.end().value().instantiate().value();
            EXPECT_TRUE(refused_as(there.launch(instance), Code::wrong_device));
            here.launch(instance).value();
            expect_all(data, 2);
            expect_all(beside, 1);
        }
    }
}

// keeps S14
TEST(Graphs, WhatCannotBeRecordedIsRefusedAndTheCaptureGoesOn) {
    on_every_device([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        Event elsewhere = other.record().value();
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(stream.synchronize(), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.finished(), Code::capture_error));
        if (device.is_cpu()) {
            EXPECT_TRUE(worked(stream.wait(elsewhere)));  // always complete
        } else {
            // The driver answers 905, which ends the capture.
            EXPECT_TRUE(refused_as(stream.wait(elsewhere), Code::capture_error));
        }
        EXPECT_TRUE(refused_as(stream.begin_capture(), Code::capture_error));
        stream.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(data, 1);
        EXPECT_TRUE(refused_as(capture.end(), Code::invalid_handle));
    });
}

// Memory operations of a program during a capture. None may affect the capture.
void use_every_kind(Device& device) {
    for (const MemoryKind kind :
         {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed, MemoryKind::registered, MemoryKind::pool}) {
        Result<Buffer<std::int32_t>> buffer = device.allocate<std::int32_t>(count, kind);
        if (!buffer) {
            EXPECT_TRUE(refused_as(buffer, Code::unsupported));
            continue;
        }
        Stream stream = device.create_stream().value();
        stream.fill_bytes(*buffer, 1).value();
        EXPECT_TRUE(worked(stream.finished()));
        stream.synchronize().value();
    }
    device.synchronize().value();
}

// keeps S19
TEST(Graphs, NothingThatAnotherThreadDoesThroughTheRuntimeEndsACapture) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, data).value();
        Thread other([&] { use_every_kind(device); });
        other.join();
        stream.launch(add_one, count, data).value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(data, 2);
    });
}

// keeps S19
TEST(Graphs, ViewsAndOtherStreamsOfTheCapturingThreadDoNotEndACapture) {
    on_every_device([](Device& device, Stream stream, Stream beside) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        Buffer<std::int32_t> busy = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        set_all(busy, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, data).value();
        beside.launch(add_one, count, busy).value();
        expect_all(busy, 1);  // queries a fresh event on this thread
        beside.synchronize().value();
        EXPECT_TRUE(worked(beside.record()));
        device.synchronize().value();
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(data, 1);
    });
}

// keeps S14
TEST(Graphs, AnotherThreadCannotEndACapture) {
    on_every_device([](Device&, Stream stream) {
        Capture capture = stream.begin_capture().value();
        Thread other([&] { EXPECT_TRUE(refused_as(capture.end(), Code::capture_error)); });
        other.join();
        EXPECT_EQ(capture.end().value().size(), 0u);
    });
}

// keeps S14
TEST(Graphs, ACaptureThatIsGivenUpLeavesTheStreamUsable) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        {
            const Capture capture = stream.begin_capture().value();
            stream.launch(add_one, count, data).value();
        }
        stream.launch(add_one, count, data).value();
        expect_all(data, 1);
    });
}

// keeps S14, S19, K10
TEST(Graphs, ACaptureThatAnotherThreadDropsIsEndedByItsOwn) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 0);
        {
            std::optional<Capture> capture = stream.begin_capture().value();
            stream.launch(add_one, count, data).value();
            Thread other([&] {
                capture.reset();
                EXPECT_TRUE(refused_as(stream.launch(add_one, count, data), Code::capture_error));
            });
            other.join();
        }
        stream.launch(add_one, count, data).value();
        expect_all(data, 1);
    });
}

// A stream that other code makes through the driver itself.
class ForeignStream {
public:
    explicit ForeignStream(int ordinal) : ordinal_(ordinal) {
        void* context = nullptr;
        retained_ = call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, ordinal) == 0;
        if (retained_ && call<int(void*)>("cuCtxSetCurrent")(context) == 0) {
            (void)call<int(void**, unsigned)>("cuStreamCreate")(&stream_, 1);
        }
    }
    ForeignStream(const ForeignStream&) = delete;
    ForeignStream& operator=(const ForeignStream&) = delete;
    ~ForeignStream() {
        // A planned fault may make the destruction fail, which would leak: it is tried again.
        for (int tries = 0; stream_ != nullptr && tries < 3; ++tries) {
            if (call<int(void*)>("cuStreamDestroy_v2")(stream_) == 0) break;
        }
        (void)call<int(void*)>("cuCtxSetCurrent")(nullptr);
        for (int tries = 0; retained_ && tries < 3; ++tries) {
            if (call<int(int)>("cuDevicePrimaryCtxRelease_v2")(ordinal_) == 0) break;
        }
    }
    int synchronize() const { return stream_ == nullptr ? -1 : call<int(void*)>("cuStreamSynchronize")(stream_); }

private:
    template <class Signature>
    static Signature* call(const char* name) {
        static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return reinterpret_cast<Signature*>(dlsym(library, name));
    }
    int ordinal_;
    bool retained_ = false;
    void* stream_ = nullptr;
};

// keeps S19, R7
TEST(Graphs, ACaptureThatForeignCodeEndedSaysSoAndTheStreamWorksAgain) {
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;  // its streams exist in the runtime only
        Stream stream = device.create_stream().value();
        Buffer<std::int32_t> data = shared_numbers(device, count, MemoryKind::pinned);
        set_all(data, 4);
        {
            const ForeignStream foreign(device.facts().ordinal);
            Capture capture = stream.begin_capture().value();
            // Unsafe on the capturing thread, and not a call of the runtime.
            const bool ended = foreign.synchronize() == 900;
            EXPECT_TRUE(unless_fault(ended));
            Result<Graph> lost = capture.end();
            if (ended) {
                EXPECT_TRUE(refused_as(lost, Code::capture_error));
            }
        }
        stream.launch(add_one, count, data).value();
        expect_all(data, 5);
    });
}

// keeps S15
TEST(Graphs, BelongToTheDeviceThatRecordedThem) {
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU only";
    Device& first = *runtime().device(0).value();
    Device& second = *runtime().device(1).value();
    Stream stream = first.create_stream().value();
    Capture capture = stream.begin_capture().value();
    const GraphInstance instance = capture.end().value().instantiate().value();
    EXPECT_TRUE(refused_as(second.stream().launch(instance), Code::wrong_device));
    EXPECT_TRUE(worked(stream.launch(instance)));
}

// keeps S15
TEST(Graphs, ArePartsOfGraphsOfTheirDevice) {
    if (runtime().device_count() < 2) GTEST_SKIP() << "no GPU";
    Stream cpu = runtime().cpu().create_stream().value();
    Capture recorded = cpu.begin_capture().value();
    const Graph graph = recorded.end().value();
    on_every_device([&](Device& device, Stream stream) {
        Capture capture = stream.begin_capture().value();
        const auto appended = capture.append(graph);
        EXPECT_TRUE(device.is_cpu() ? worked(appended) : refused_as(appended, Code::wrong_device));
        EXPECT_TRUE(worked(capture.end()));
    });
}

// keeps K13
TEST(Graphs, AllocationInACaptureIsTheGraphsOrRefusedAndTheCaptureGoesOn) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> result = shared_numbers(device, count, MemoryKind::pinned);
        set_all(result, 0);
        Capture capture = stream.begin_capture().value();
        const long before = driver_calls();
        for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed}) {
            const auto refused = device.allocate<std::int32_t>(count, kind);
            if (device.is_cpu()) {
                EXPECT_TRUE(worked(refused));  // all memory is the system's
                continue;
            }
            if (kind == MemoryKind::managed && !device.capabilities().has(Feature::managed)) continue;
            EXPECT_TRUE(refused_as(refused, Code::capture_error));
        }
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
        Buffer<std::int32_t> scratch;
        if (device.capabilities().has(Feature::pools)) {
            scratch = stream.allocate<std::int32_t>(count).value();
            EXPECT_EQ(scratch.kind(), MemoryKind::graph);
            stream.fill_bytes(scratch, 1).value();
            stream.launch(add_one, count, scratch).value();
            stream.launch(scale_into, count, result, scratch, 2).value();
        }
        const Graph graph = capture.end().value();
        if (!scratch) {
            EXPECT_EQ(graph.size(), 0u);
            return;
        }
        // Outside the capture the memory does not exist.
        EXPECT_TRUE(refused_as(stream.launch(add_one, count, scratch), Code::not_accessible));
        EXPECT_TRUE(refused_as(scratch.read_on_host(), Code::not_accessible));
        {
            const GraphInstance instance = graph.instantiate().value();
            EXPECT_TRUE(refused_as(graph.instantiate(), Code::in_use));
            for (int round = 0; round < 3; ++round) {
                set_all(result, 0);
                stream.launch(instance).value();
                expect_all(result, 2 * 0x01010102);
            }
        }
        EXPECT_TRUE(worked(graph.instantiate()));
        EXPECT_TRUE(worked(scratch.release()));
    });
}

// keeps K10
TEST(Graphs, WhatIsFreedWhileACaptureIsOpenIsFreedWhenItEnds) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> released = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> elsewhere = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> result = shared_numbers(device, count, MemoryKind::pinned);
        set_all(result, 0);
        Capture capture = stream.begin_capture().value();
        stream.launch(add_one, count, result).value();
        const long before = driver_calls();
        EXPECT_TRUE(worked(released.release()));
        { Buffer<std::int32_t> passing = std::move(released); }
        // Also on another thread: a graph may be about to use it.
        Thread([&] { EXPECT_TRUE(worked(elsewhere.release())); }).join();
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "the driver was asked";
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        expect_all(result, 1);
    });
}

}  // namespace
}  // namespace conformance
