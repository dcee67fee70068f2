// SPDX-License-Identifier: Apache-2.0
// Work of other code on buffers in one call: what it is given, what it is refused, and who waits for it.
#include "scenario.hpp"
#include "gate.hpp"
#include "native_calls.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;
// Long enough to be staged where that pays.
constexpr std::size_t long_count = 1 << 18;

enum LibraryStatus { library_ok = 0, library_is_broken = 700 };

// keeps W1, W7
TEST(NativeWork, ReadsWhatTheHostWroteAndViewsSeeWhatItWrote) {
    on_every_device([](Device& device, Stream stream) {
        for (Buffer<std::int32_t>& in : of_every_kind(device, long_count)) {
            Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(long_count).value();
            for (std::int32_t round = 1; round <= 2; ++round) {
                set_all(in, 6 + round);
                const std::uint64_t uploaded = in.staged_bytes();
                int calls = 0;
                const std::thread::id here = std::this_thread::get_id();
                const std::uint64_t position =
                    stream
                        .enqueue_native(
                            "copy",
                            [&](void* cu_stream, const std::int32_t* from, std::int32_t* to) {
                                ++calls;
                                EXPECT_EQ(std::this_thread::get_id(), here);
                                EXPECT_EQ(cu_stream == nullptr, device.is_cpu());
                                return copy_numbers(cu_stream, to, from, long_count);
                            },
                            reads(in), writes(out))
                        .value();
                EXPECT_EQ(calls, 1);
                EXPECT_TRUE(!device.is_cpu() || stream.completed(position)) << "done at return";
                EXPECT_EQ(in.staged_bytes() - uploaded, in.path() == LaunchPath::stage ? in.size_bytes() : 0)
                    << "uploaded once, and only what is copied";
                expect_all(out, 6 + round);
                expect_all(in, 6 + round);
                // In place, then read by a part, by a launch, and on another stream.
                (void)stream
                    .enqueue_native(
                        "set", [&](void* s, std::int32_t* data) { return set_numbers(s, data, long_count, 40); },
                        updates(out))
                    .value();
                EXPECT_EQ(out.part(long_count / 2, 4).value().read_on_host().value()[3], 40);
                (void)stream.launch(add_one, long_count, out).value();
                Stream other = device.create_stream().value();
                EXPECT_TRUE(worked(other.wait_stream(stream)));
                (void)other
                    .enqueue_native(
                        "copy",
                        [](void* s, const std::int32_t* a, std::int32_t* b) {
                            return copy_numbers(s, b, a, long_count);
                        },
                        reads(out), writes(in))
                    .value();
                expect_all(in, 41);
            }
        }
    });
}

// keeps W1
TEST(NativeWork, TakesPartsAndDeviceMemoryAndBuffersOfNoElements) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> inside = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> nothing = device.allocate_shared<std::int32_t>(0).value();
        const auto half = data.part(count / 2, count / 2).value();
        (void)stream
            .enqueue_native(
                "half",
                [&](void* s, std::int32_t* upper, std::int32_t* device_memory, const std::int32_t* none) {
                    EXPECT_EQ(none, nullptr);
                    const int set = set_numbers(s, device_memory, count, 9);
                    return set != 0 ? set : copy_numbers(s, upper, device_memory, count / 2);
                },
                updates(half), writes(inside), reads(nothing))
            .value();
        const auto view = data.read_on_host().value();
        EXPECT_EQ(view[count / 2 - 1], 1);
        EXPECT_EQ(view[count / 2], 9);
        EXPECT_EQ(view[count - 1], 9);
    });
}

// keeps W1
TEST(NativeWork, TakesGrowableMirroredAndExportableBuffers) {
    NEEDS(mapping);
    NEEDS(ipc);
    on_every_device([](Device& device, Stream stream) {
        const auto fill = [&](auto& buffer, std::size_t size) {
            Buffer<std::int32_t> out = pinned(device, size, 0);
            (void)stream
                .enqueue_native(
                    "fill", [&](void* s, std::int32_t* data) { return set_numbers(s, data, size, 5); }, writes(buffer))
                .value();
            (void)stream
                .enqueue_native(
                    "read",
                    [&](void* s, const std::int32_t* from, std::int32_t* to) {
                        return copy_numbers(s, to, from, size);
                    },
                    reads(buffer), writes(out))
                .value();
            expect_all(out, 5);
        };
        if (auto made = GrowableBuffer<std::int32_t>::create(device, 1 << 20)) {
            GrowableBuffer<std::int32_t> grown = std::move(made).value();
            EXPECT_TRUE(worked(grown.resize(count)));
            fill(grown, count);
            EXPECT_TRUE(worked(grown.resize(2 * count)));
            fill(grown, 2 * count);
        }
        if (auto made = MirroredBuffer<std::int32_t>::create(device, count)) {
            MirroredBuffer<std::int32_t> ring = std::move(made).value();
            fill(ring, ring.capacity());
        }
        for (const SeenBy seen : {SeenBy::cpus_and_gpus, SeenBy::gpus_only}) {
            auto made = ExportableBuffer<std::int32_t>::create(device, count, {.seen_by = seen});
            if (!made) continue;
            fill(*made, count);
            if (seen == SeenBy::gpus_only) continue;
            auto imported = import_memory<std::int32_t>(device, made->export_memory().value());
            if (imported) fill(*imported, count);
        }
    });
}

// keeps W1
TEST(NativeWork, RunsInTheDevicesContextAndRestoresTheCallers) {
    on_every_gpu([](Device& device, Stream stream) {
        const RetainedContext own(device);
        const auto context_within = [&] {
            void* within = nullptr;
            (void)stream
                .enqueue_native("look", [&](void*) { return driver_function<int(void**)>("cuCtxGetCurrent")(&within); })
                .value();
            return within;
        };
        void* const before = current_context();
        EXPECT_EQ(context_within(), own.get());
        EXPECT_TRUE(unless_fault(current_context() == before));
        {
            const ForeignContext current(device);
            EXPECT_EQ(context_within(), own.get());
            EXPECT_TRUE(unless_fault(current_context() == own.get()));
        }
        // Work that leaves another context current changes nothing for its caller.
        (void)stream
            .enqueue_native("change", [](void*) { return driver_function<int(void*)>("cuCtxSetCurrent")(nullptr); })
            .value();
        EXPECT_TRUE(unless_fault(current_context() == before));
    });
}

// keeps W2
TEST(NativeWork, AddsTheDriverCallsOfALaunchWithoutTheLaunch) {
    on_every_gpu([](Device& device, Stream stream) {
        if (!counts_calls(device)) GTEST_SKIP() << "driver calls are not counted";
        // Without those that make the context current and restore it.
        const auto counted = [] {
            return driver_calls() - driver_calls("cuCtxGetCurrent") - driver_calls("cuCtxPushCurrent_v2") -
                   driver_calls("cuCtxPopCurrent_v2");
        };
        const auto calls = [&](auto work) {
            const long before = counted();
            work();
            return counted() - before;
        };
        const auto of_context = [&](auto work) {
            const long before = driver_calls() - counted();
            work();
            return driver_calls() - counted() - before;
        };
        for (Buffer<std::int32_t>& data : of_every_kind(device, long_count)) {
            Buffer<std::int32_t> besides = pinned(device, count, 0);
            const auto empty = [&] {
                (void)stream
                    .enqueue_native(
                        "nothing", [](void*, std::int32_t*) {}, updates(data))
                    .value();
            };
            const auto launch = [&] { (void)stream.launch(add_one, long_count, data).value(); };
            launch();
            EXPECT_TRUE(unless_fault(of_context(empty) <= 3));
            {
                const ForeignContext current(device);
                EXPECT_TRUE(unless_fault(of_context(empty) <= 2)) << "it is current already";
            }
            EXPECT_TRUE(worked(stream.synchronize()));
            for (const bool host_wrote : {false, true}) {
                long needed[2] = {};
                for (int which = 0; which < 2; ++which) {
                    // The same history before each: another buffer's use owes a fence.
                    set_all(data, 1);
                    if (!host_wrote) launch();
                    (void)stream.launch(add_one, count, besides).value();
                    EXPECT_TRUE(worked(stream.synchronize()));
                    needed[which] = which == 0 ? calls(launch) : calls(empty);
                }
                EXPECT_TRUE(unless_fault(needed[1] == needed[0] - 1))
                    << name(data.path()) << ", host wrote: " << host_wrote << ": " << needed[1] << " beside "
                    << needed[0];
            }
        }
    });
}

// keeps W1: a view waits for the work, and for nothing after it
TEST(NativeWork, IsWaitedForByViewsAndReleasesAndByNothingElse) {
    on_every_gpu([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> later = pinned(device, count, 1);
        Buffer<std::int32_t> ahead = pinned(device, count, 1);
        Gate gate(device);
        const auto set = [&](void* s, std::int32_t* to) { return set_numbers(s, to, count, 7); };
        (void)stream.enqueue_native("first", set, updates(data)).value();
        (void)stream.launch(when_raised, 1, gate.words(), later, 1).value();
        expect_all(data, 7);  // the kernel behind it still waits

        (void)other.launch(when_raised, 1, gate.words(), ahead, 1).value();
        (void)other.enqueue_native("behind", set, updates(data)).value();
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(data.release(Wait::never()), Code::not_ready)) << "its memory is not given back";
        }
        gate.raise();
        expect_all(data, 7);
        EXPECT_TRUE(worked(data.release()));
    });
}

// keeps W1: the stream owes no fence, and uses the buffers in place, so that the short way is taken
TEST(NativeWork, IsWaitedForOnTheShortWayToo) {
    on_every_gpu([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> inside = device.allocate<std::int32_t>(count).value();
        Buffer<std::int32_t> ahead = pinned(device, count, 1);
        const auto set = [](void* s, std::int32_t* to, std::int32_t* through) {
            const int code = set_numbers(s, through, count, 7);
            return code != 0 ? code : copy_numbers(s, to, through, count);
        };
        (void)stream.enqueue_native("first", set, updates(data), writes(inside)).value();
        expect_all(data, 7);
        set_all(data, 2);
        Gate gate(device);
        (void)other.launch(when_raised, 1, gate.words(), ahead, 1).value();
        EXPECT_TRUE(worked(stream.wait_stream(other)));
        for (int round = 0; round < 3; ++round) {
            (void)stream.enqueue_native("again", set, updates(data), writes(inside)).value();
        }
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
            EXPECT_TRUE(refused_as(data.release(Wait::never()), Code::not_ready));
        }
        const auto view_open = [&] {
            bool called = false;
            const auto view = data.read_on_host().value();
            EXPECT_TRUE(refused_as(stream.enqueue_native(
                                       "refused", [&](void*, std::int32_t*, std::int32_t*) { called = true; },
                                       updates(data), writes(inside)),
                                   Code::in_use));
            EXPECT_FALSE(called);
        };
        gate.raise();
        view_open();
        expect_all(data, 7);
        EXPECT_TRUE(refused_as(
            stream.enqueue_native(
                "fails", [](void*, std::int32_t*, std::int32_t*) { return 2; }, updates(data), writes(inside)),
            Code::driver_error));
        EXPECT_TRUE(worked(stream.enqueue_native("after", set, updates(data), writes(inside))));
        expect_all(data, 7);
        EXPECT_TRUE(worked(inside.release()));
    });
}

// keeps W4
TEST(NativeWork, IsRefusedBesideAViewWithoutBeingCalled) {
    on_every_device([](Device& device, Stream stream) {
        for (Buffer<std::int32_t>& data : of_every_kind(device, count)) {
            Buffer<std::int32_t> out = pinned(device, count, 3);
            set_all(data, 1);
            bool called = false;
            const auto work = [&](void*, std::int32_t*, std::int32_t*) { called = true; };
            {
                auto view = data.write_on_host().value();
                const auto refused = stream.enqueue_native("blur", work, updates(out), updates(data));
                ASSERT_TRUE(refused_as(refused, Code::in_use));
                EXPECT_TRUE(unless_fault(refused.error().message().find("blur") != std::string_view::npos));
                for (std::int32_t& one : view) one = 2;
            }
            EXPECT_FALSE(called);
            expect_all(data, 2);
            expect_all(out, 3);
            Buffer<std::int32_t> empty;
            EXPECT_TRUE(
                refused_as(stream.enqueue_native("blur", work, updates(out), updates(empty)), Code::invalid_handle));
            EXPECT_FALSE(called);
            EXPECT_TRUE(worked(stream.enqueue_native("blur", work, updates(out), updates(data))));
            EXPECT_TRUE(called);
            expect_all(data, 2);
        }
    });
}

// keeps W4
TEST(NativeWork, ThatFailsIsATypedErrorWithItsName) {
    on_every_device([](Device& device, Stream stream) {
        for (Buffer<std::int32_t>& data : of_every_kind(device, count)) {
            set_all(data, 5);
            const auto failing = [&](auto answer) {
                return stream.enqueue_native(
                    "broken", [answer](void*, std::int32_t*) { return answer(); }, updates(data));
            };
            const auto by_code = failing([] { return 1; });
            ASSERT_TRUE(refused_as(by_code, Code::driver_error));
            EXPECT_TRUE(unless_fault(by_code.error().driver_code() == 1));
            EXPECT_TRUE(unless_fault(by_code.error().message().find("broken") != std::string_view::npos));
            // The same number of another library does not concern the device.
            const auto by_library = failing([] { return library_is_broken; });
            EXPECT_TRUE(refused_as(by_library, Code::driver_error));
            const auto by_result =
                failing([] { return Result<void>(Error(Code::unsupported, "no such filter", "take another")); });
            ASSERT_TRUE(refused_as(by_result, Code::unsupported));
            EXPECT_TRUE(unless_fault(by_result.error().message().find("no such filter") != std::string_view::npos));
            struct Thrown {};
            try {
                const auto thrown = stream.enqueue_native(
                    "throws", [](void*, std::int32_t*) { throw Thrown{}; }, updates(data));
                EXPECT_TRUE(worked(thrown));  // a planned fault came first, and ends the scenario
                ADD_FAILURE() << "the exception did not arrive";
            } catch (const Thrown&) {
            }
            EXPECT_TRUE(unless_fault(device.healthy()));
            expect_all(data, 5);
            (void)stream.launch(add_one, count, data).value();
            expect_all(data, 6);
        }
    });
}

// keeps W4: what failed work gave the stream before it failed still runs, and is waited for
TEST(NativeWork, ThatFailsHalfwayIsStillWaitedFor) {
    on_every_gpu([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> ahead = pinned(device, count, 1);
        Buffer<std::int32_t> copied = device.allocate_shared<std::int32_t>(long_count).value();
        set_all(copied, 4);
        Gate gate(device);
        (void)stream.launch(when_raised, 1, gate.words(), ahead, 1).value();
        bool given = false;  // not if a planned fault comes first
        const auto half = [&given](std::size_t size) {
            return [size, &given](void* s, std::int32_t* to) {
                const int set = set_numbers(s, to, size, 8);
                given = set == 0;
                return set != 0 ? set : 1;
            };
        };
        EXPECT_TRUE(refused_as(stream.enqueue_native("half", half(count), updates(data)), Code::driver_error));
        const bool data_set = std::exchange(given, false);
        EXPECT_TRUE(refused_as(stream.enqueue_native("half", half(long_count), writes(copied)), Code::driver_error));
        const bool copied_set = given;
        EXPECT_TRUE(unless_fault(data_set && copied_set));
        if (gate.holds()) {
            EXPECT_TRUE(refused_as(data.read_on_host(Wait::never()), Code::not_ready));
        }
        // Its device's side is still to be written: an upload on another stream comes behind that.
        const bool stays = copied.path() == LaunchPath::stage;
        const bool checked = std::getenv("ISTHMUS_TEST_ORDER") != nullptr;  // which wants the order said
        if (stays || !gate.holds()) {
            if (checked || !stays) {
                EXPECT_TRUE(worked(other.wait_stream(stream)));
            }
            (void)other.launch(add_one, long_count, copied).value();
            gate.raise();
            expect_all(copied, stays ? 5 : 9);
        }
        gate.raise();
        expect_all(data, 8);
    });
}

// keeps W5
TEST(NativeWork, IsRefusedTheRuntime) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        auto dropped = std::make_unique<Buffer<std::int32_t>>(pinned(device, count, 2));
        Event event = stream.record().value();
        std::optional<Stream> last(device.create_stream().value());
        std::optional<Capture> capture;
        std::vector<Code> codes;
        const auto work = [&](void* cu_stream, std::int32_t* to) {
            codes.push_back(stream.launch(add_one, count, data).code());
            codes.push_back(stream.synchronize().code());
            codes.push_back(stream.record().code());
            codes.push_back(stream.wait(event).code());
            codes.push_back(stream.native_handle().code());
            codes.push_back(stream.enqueue_native("inner", [](void*) {}).code());
            codes.push_back(stream.open_native_scope("inner", updates(data)).code());
            codes.push_back(data.read_on_host().code());
            codes.push_back(device.allocate<std::int32_t>(4).code());
            codes.push_back(device.create_stream().code());
            codes.push_back(device.synchronize().code());
            codes.push_back(stream.fill(data, 1).code());
            if (capture) codes.push_back(capture->end().code());
            dropped.reset();  // released later
            last.reset();
            return set_numbers(cu_stream, to, count, 3);
        };
        (void)stream.enqueue_native("outer", work, updates(data)).value();
        EXPECT_EQ(codes, std::vector<Code>(codes.size(), Code::not_permitted));
        EXPECT_EQ(codes.size(), 12u);
        expect_all(data, 3);
        if (device.is_cpu()) return;
        capture.emplace(stream.begin_capture().value());
        codes.clear();
        (void)stream.enqueue_native("captured", work, updates(data)).value();
        EXPECT_EQ(codes, std::vector<Code>(13, Code::not_permitted));
        EXPECT_EQ(capture->end().value().size(), 1u) << "the capture was still open";
    });
}

// keeps W1, S18
TEST(NativeWork, IsSeenByTheOrderChecker) {
    on_every_gpu([](Device& same) {
        for (const bool mended : {true, false}) {
            RuntimeOptions options;
            options.order_check = OrderCheck::refuse;
            Runtime checked = Runtime::open(options).value();
            Device& device = *checked.device(same.index()).value();
            EXPECT_TRUE(unless_fault(!device.is_cpu()));  // a runtime without a driver has the CPU device alone
            Stream stream = device.create_stream().value();
            Stream other = device.create_stream().value();
            Buffer<std::int32_t> data = device.allocate<std::int32_t>(count).value();
            const auto set = [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 1); };
            (void)stream.enqueue_native("producer", set, updates(data)).value();
            if (mended) {
                EXPECT_TRUE(worked(other.wait_stream(stream)));
            }
            bool called = false;
            const auto second = other.enqueue_native(
                "consumer", [&](void*, const std::int32_t*) { called = true; }, reads(data));
            if (mended) {
                EXPECT_TRUE(worked(second));
            } else {
                ASSERT_TRUE(refused_as(second, Code::not_ordered));
                EXPECT_FALSE(called);
                EXPECT_TRUE(unless_fault(second.error().message().find("producer") != std::string_view::npos));
                EXPECT_TRUE(unless_fault(second.error().message().find("consumer") != std::string_view::npos));
            }
            EXPECT_TRUE(worked(device.synchronize()));
        }
    });
}

// keeps W1, L2, L4, L11
TEST(NativeWork, IsJudgedByTheLaunchModeOfItsStream) {
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> of_host = runtime().cpu().allocate_shared<std::int32_t>(count).value();
        set_all(of_host, 1);
        const auto add = [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 9); };
        stream.set_launch_mode(LaunchMode::strict);
        EXPECT_TRUE(refused_as(stream.enqueue_native("foreign", add, updates(of_host)), Code::wrong_device));
        stream.set_launch_mode(LaunchMode::checked);
        const bool reached = device.can_access(of_host).verdict == Verdict::yes;
        const auto checked = stream.enqueue_native("foreign", add, updates(of_host));
        if (reached) {
            EXPECT_TRUE(worked(checked));
        } else {
            EXPECT_TRUE(refused_as(checked, Code::not_accessible));
            expect_all(of_host, 1);
            stream.set_launch_mode(LaunchMode::staged);
            EXPECT_TRUE(refused_as(stream.open_native_scope("foreign", updates(of_host)), Code::unsupported));
            EXPECT_TRUE(worked(stream.enqueue_native("foreign", add, updates(of_host)))) << "copied around it";
            EXPECT_TRUE(refused_as(stream.enqueue_native(
                                       "fails", [](void*, std::int32_t*) { return 1; }, updates(of_host)),
                                   Code::driver_error));
        }
        expect_all(of_host, 9);
        stream.set_launch_mode(LaunchMode::verify);
        Buffer<std::int32_t> own = pinned(device, count, 1);
        const std::uint64_t position = stream.enqueue_native("verified", add, updates(own)).value();
        EXPECT_TRUE(stream.completed(position));
    });
}

// keeps W1: a buffer of another device is judged as a launch's argument is
TEST(NativeWork, UsesMemoryOfOtherDevicesAsALaunchDoes) {
    on_every_device([](Device& owner, const Stream&) {
        Buffer<std::int32_t> data = pinned(owner, count, 1);
        for (Device& device : all_devices()) {
            Stream stream = device.create_stream().value();
            const auto launched = stream.launch(add_one, count, data);
            const auto given = stream.enqueue_native(
                "other", [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 2); }, updates(data));
            EXPECT_TRUE(unless_fault(launched.code() == given.code()));
            if (given) expect_all(data, 2);
        }
    });
}

// keeps W1
TEST(NativeWork, MayBeGivenByManyThreads) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> shared = pinned(device, count, 0);
        std::atomic<int> inside{0};
        const auto body = [&] {
            Buffer<std::int32_t> own = pinned(device, count, 1);
            // On the CPU device, two threads have one buffer open at the same time: in_use, as with launches.
            Buffer<std::int32_t> alone = pinned(device, count, 0);
            Buffer<std::int32_t>& out = device.is_cpu() ? alone : shared;
            for (int round = 0; round < rounds(20); ++round) {
                (void)stream
                    .enqueue_native(
                        "copy",
                        [&](void* s, const std::int32_t* from, std::int32_t* to) {
                            EXPECT_EQ(inside.fetch_add(1), 0) << "one at a time on a stream";
                            const int code = copy_numbers(s, to, from, count);
                            inside.fetch_sub(1);
                            return code;
                        },
                        reads(own), updates(out))
                    .value();
            }
            if (device.is_cpu()) expect_all(out, 1);
        };
        Thread first(body);
        Thread second(body);
        first.join();
        second.join();
        if (!device.is_cpu()) expect_all(shared, 1);
    });
}

}  // namespace
}  // namespace conformance
