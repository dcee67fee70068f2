// SPDX-License-Identifier: Apache-2.0
// Work of other code in captures: its calls become nodes, and a failure spoils the graph.
#include "scenario.hpp"
#include "native_calls.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 1 << 10;
constexpr std::size_t long_count = 1 << 18;  // staged where that pays

// keeps W4, G12
TEST(NativeWork, BecomesNodesWhoseReplaysFollowTheHostsData) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        for (Buffer<std::int32_t>& in : of_every_kind(device, long_count)) {
            if (in.path() == LaunchPath::attach && !device.is_cpu()) continue;  // refused in graphs
            Buffer<std::int32_t> out = pinned(device, long_count, 0);
            set_all(in, 1);
            int calls = 0;
            const auto copy = [&calls](void* s, const std::int32_t* from, std::int32_t* to) {
                ++calls;
                return copy_numbers(s, to, from, long_count);
            };
            Capture capture = stream.begin_capture().value();
            (void)stream.enqueue_native("copy", copy, reads(in), writes(out)).value();
            (void)stream.launch(add_one, long_count, out).value();
            Graph graph = capture.end().value();
            EXPECT_EQ(graph.size(), 2u);
            EXPECT_EQ(calls, device.is_cpu() ? 0 : 1);
            expect_all(out, 0);
            GraphInstance instance = graph.instantiate().value();
            for (std::int32_t round = 1; round <= 2; ++round) {
                set_all(in, round * 10);
                EXPECT_TRUE(worked(stream.launch(instance)));
                expect_all(out, round * 10 + 1);
            }
            EXPECT_EQ(calls, device.is_cpu() ? 2 : 1) << "the CPU device's graphs call it at each launch";
        }
    });
}

// keeps W7: the CPU device's graphs call a copy of the work
TEST(NativeWork, ThatCannotBeCopiedIsNotCapturedOnTheCpuDevice) {
    NEEDS(graph);
    Device& device = runtime().cpu();
    Stream stream = device.create_stream().value();
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
    const auto once = [only = std::make_unique<int>(4)](void* s, std::int32_t* to) {
        return set_numbers(s, to, count, *only);
    };
    Capture capture = stream.begin_capture().value();
    EXPECT_TRUE(refused_as(stream.enqueue_native("once", once, updates(data)), Code::capture_error));
    EXPECT_EQ(capture.end().value().size(), 0u);
    EXPECT_TRUE(worked(stream.enqueue_native("once", once, updates(data))));
    expect_all(data, 4);
}

// keeps W4: its nodes may exist already, so that no graph may come of the capture
TEST(NativeWork, ThatFailsInACaptureEndsItWithoutAGraph) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Capture capture = stream.begin_capture().value();
        const auto half = [&](void* s, std::int32_t* to) {
            const int set = set_numbers(s, to, count, 8);
            return set != 0 ? set : 1;
        };
        if (device.is_cpu()) {  // it is called, and fails, at the launch
            (void)stream.enqueue_native("half", half, updates(data)).value();
            GraphInstance instance = capture.end().value().instantiate().value();
            EXPECT_TRUE(refused_as(stream.launch(instance), Code::driver_error));
        } else {
            const auto failed = stream.enqueue_native("half", half, updates(data));
            ASSERT_TRUE(refused_as(failed, Code::capture_error));
            EXPECT_TRUE(unless_fault(failed.error().message().find("half") != std::string_view::npos));
            const auto ended = capture.end();
            ASSERT_TRUE(refused_as(ended, Code::capture_error));
            EXPECT_TRUE(unless_fault(ended.error().message().find("half") != std::string_view::npos));
            expect_all(data, 1);
        }
        (void)stream.launch(add_one, count, data).value();
        EXPECT_TRUE(worked(stream.synchronize()));
        // A refusal before the work is called leaves the capture as it was (S19).
        Capture again = stream.begin_capture().value();
        Buffer<std::int32_t> empty;
        EXPECT_TRUE(refused_as(stream.enqueue_native("none", half, updates(empty)), Code::invalid_handle));
        (void)stream.launch(add_one, count, data).value();
        EXPECT_EQ(again.end().value().size(), 1u);
    });
}

// keeps W4: what would free memory that the graph uses is refused by the driver, and no graph comes of it
TEST(NativeWork, IsCapturedInTheCallersOwnMode) {
    NEEDS(graph);
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Capture capture = stream.begin_capture().value();
        std::uint64_t made = 0;
        const auto allocates = [&](void*, std::int32_t*) {
            return driver_function<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&made, 1024);
        };
        EXPECT_TRUE(refused_as(stream.enqueue_native("allocates", allocates, updates(data)), Code::capture_error));
        EXPECT_EQ(made, 0u);
        EXPECT_TRUE(refused_as(capture.end(), Code::capture_error));
        EXPECT_TRUE(worked(stream.enqueue_native(
            "sets", [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 4); }, updates(data))));
        expect_all(data, 4);
    });
}

// keeps W4: as far as launches work in captures that other code opened
TEST(NativeWork, WorksInCapturesOfOtherCode) {
    on_every_gpu([](Device& device) {
        ForeignStream foreign(device);
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::int32_t> staged = device.allocate_shared<std::int32_t>(long_count).value();
        Stream stream = device.wrap_stream(foreign.get()).value();
        const auto set = [](void* s, std::int32_t* to) { return set_numbers(s, to, count, 6); };
        (void)stream.enqueue_native("outside", set, updates(data)).value();
        expect_all(data, 6);
        set_all(data, 1);
        constexpr int relaxed = 2;
        driver_call(0, "cuStreamBeginCapture_v2", foreign.get(), relaxed);
        (void)stream.enqueue_native("inside", set, updates(data)).value();
        if (staged.path() == LaunchPath::stage) {
            EXPECT_TRUE(refused_as(stream.enqueue_native("staged", set, updates(staged)), Code::capture_error));
        }
        EXPECT_TRUE(refused_as(stream.open_native_scope("scope", updates(data)), Code::capture_error));
        EXPECT_TRUE(refused_as(stream.wait_native(foreign.get()), Code::capture_error));
        struct ForeignGraph {
            void* handle = nullptr;
            ~ForeignGraph() {
                if (handle != nullptr) (void)driver_function<int(void*)>("cuGraphDestroy")(handle);
            }
        } graph;
        driver_call(0, "cuStreamEndCapture", foreign.get(), &graph.handle);
        expect_all(data, 1);
        std::size_t nodes = 0;
        driver_call(0, "cuGraphGetNodes", graph.handle, static_cast<void**>(nullptr), &nodes);
        EXPECT_EQ(nodes, 1u);
    });
}

// keeps L11
TEST(NativeWork, IsNotVerifiedInACapture) {
    NEEDS(graph);
    on_every_gpu([](Device& device, Stream stream) {
        Buffer<std::int32_t> own = pinned(device, count, 1);
        stream.set_launch_mode(LaunchMode::verify);
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(stream.enqueue_native(
                                   "verified", [](void*, std::int32_t*) {}, updates(own)),
                               Code::capture_error));
        EXPECT_EQ(capture.end().value().size(), 0u);
    });
}

}  // namespace
}  // namespace conformance
