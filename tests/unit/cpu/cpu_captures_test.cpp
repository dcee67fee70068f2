// SPDX-License-Identifier: Apache-2.0
// Captures and graphs of the CPU device, through the interface that the runtime uses.
#include "cpu/cpu_driver.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace isthmus::platform::cpu {
namespace {

// out[i] = out[i] * factor + 1, so that the order of two launches shows.
struct StepPack {
    int* out;
    std::uint64_t size;
    int factor;
};
void step_twin(const Extent&, std::uint64_t first, std::uint64_t last, const void* erased) {
    const auto& pack = *static_cast<const StepPack*>(erased);
    for (std::uint64_t i = first; i < last; ++i) pack.out[i] = pack.out[i] * pack.factor + 1;
}
KernelInfo step_kernel() {
    KernelInfo kernel{};
    kernel.name = "step";
    kernel.pack_bytes = sizeof(StepPack);
    kernel.rank = 1;
    kernel.twin = step_twin;
    return kernel;
}

std::uint64_t address(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data);
}

class CpuCapture : public testing::Test {
protected:
    std::unique_ptr<Driver> driver = open_device(MachineFacts{});
    Execution& execution = driver->execution();
    Captures& captures = *driver->captures();
    const KernelInfo kernel = step_kernel();
    std::array<int, 4> data{1, 1, 1, 1};

    StreamHandle new_stream() {
        StreamHandle stream = StreamHandle::none;
        EXPECT_TRUE(execution.create_stream(0, stream).ok());
        return stream;
    }
    EventHandle recorded_on(StreamHandle stream) {
        EventHandle event = EventHandle::none;
        EXPECT_TRUE(execution.create_event(EventKind::plain, event).ok());
        EXPECT_TRUE(execution.record_event(event, stream).ok());
        return event;
    }
    void launch(StreamHandle stream, int factor) {
        const StepPack pack{data.data(), data.size(), factor};  // destroyed when the launch has returned
        EXPECT_TRUE(execution.launch({&kernel, FunctionHandle::none, {data.size()}, &pack, stream}).ok());
    }
    GraphInstanceHandle ended(StreamHandle stream) {
        GraphHandle graph = GraphHandle::none;
        EXPECT_TRUE(captures.end(stream, graph).ok());
        GraphInstanceHandle instance = GraphInstanceHandle::none;
        EXPECT_TRUE(captures.instantiate(graph, instance).ok());
        EXPECT_TRUE(captures.destroy(graph).ok());  // the instance no longer needs it
        return instance;
    }
    CaptureState state(StreamHandle stream) {
        CaptureState state = CaptureState::lost;
        EXPECT_TRUE(captures.state(stream, state).ok());
        return state;
    }
};

// keeps S14, S15
TEST_F(CpuCapture, KeepsLaunchesAndRunsThemAtEachLaunchOfTheGraph) {
    const StreamHandle stream = new_stream();
    EXPECT_EQ(state(stream), CaptureState::none);
    ASSERT_TRUE(captures.begin(stream).ok());
    EXPECT_EQ(state(stream), CaptureState::open);
    launch(stream, 2);
    launch(stream, 3);
    EXPECT_EQ(data[0], 1);
    const GraphInstanceHandle instance = ended(stream);
    EXPECT_EQ(state(stream), CaptureState::none);
    EXPECT_EQ(data[3], 1);
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[3], 10);  // (1·2 + 1)·3 + 1: in their order
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[0], 64);
    EXPECT_TRUE(captures.destroy(instance).ok());
}

TEST_F(CpuCapture, KeepsCopiesAndFillsOfEveryShape) {
    const StreamHandle stream = new_stream();
    std::array<int, 4> copy{};
    std::array<std::uint8_t, 8> rows{};
    ASSERT_TRUE(captures.begin(stream).ok());
    ASSERT_TRUE(driver->memory()
                    .copy(address(copy.data()), address(data.data()), sizeof(copy), CopyDirection::host_to_host, stream)
                    .ok());
    ASSERT_TRUE(driver->memory().fill(address(data.data()), 0, sizeof(data), stream).ok());
    ASSERT_TRUE(driver->transfers()->fill_elements(address(data.data()), 7, 4, 2, stream).ok());
    ASSERT_TRUE(driver->transfers()->fill_shaped({address(rows.data()), true, 4, 2}, 9, 1, {2, 2, 1}, stream).ok());
    ASSERT_TRUE(
        driver->transfers()
            ->copy_shaped({address(rows.data() + 2), true, 4, 2}, {address(rows.data()), true, 4, 2}, {1, 2, 1}, stream)
            .ok());
    EXPECT_EQ(copy, (std::array<int, 4>{}));
    EXPECT_EQ(data[0], 1);
    const GraphInstanceHandle instance = ended(stream);
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(copy, (std::array<int, 4>{1, 1, 1, 1}));
    EXPECT_EQ(data, (std::array<int, 4>{7, 7, 0, 0}));
    EXPECT_EQ(rows, (std::array<std::uint8_t, 8>{9, 9, 9, 0, 9, 9, 9, 0}));
}

TEST_F(CpuCapture, LeavesOtherStreamsAlone) {
    const StreamHandle captured = new_stream();
    const StreamHandle other = new_stream();
    ASSERT_TRUE(captures.begin(captured).ok());
    launch(other, 2);
    EXPECT_EQ(data[0], 3);
    EXPECT_TRUE(execution.query_event(recorded_on(other)).ok());
    (void)ended(captured);
    launch(captured, 2);
    EXPECT_EQ(data[0], 7);
}

// keeps S14
TEST_F(CpuCapture, StreamsJoinByEventsAndComeBack) {
    const StreamHandle first = new_stream();
    const StreamHandle second = new_stream();
    ASSERT_TRUE(captures.begin(first).ok());
    launch(first, 2);
    ASSERT_TRUE(execution.wait_event(second, recorded_on(first)).ok());
    EXPECT_EQ(state(second), CaptureState::open);
    launch(second, 3);
    GraphHandle none = GraphHandle::none;
    EXPECT_EQ(captures.end(second, none).code, Code::capture_error);  // it began on another stream
    ASSERT_TRUE(execution.wait_event(first, recorded_on(second)).ok());
    launch(first, 4);
    const GraphInstanceHandle instance = ended(first);
    EXPECT_EQ(state(second), CaptureState::none);
    ASSERT_TRUE(captures.launch(instance, second).ok());
    EXPECT_EQ(data[0], 41);
}

// keeps S14
TEST_F(CpuCapture, AStreamThatDoesNotComeBackIsTheEndOfTheCapture) {
    const StreamHandle first = new_stream();
    const StreamHandle second = new_stream();
    ASSERT_TRUE(captures.begin(first).ok());
    ASSERT_TRUE(execution.wait_event(second, recorded_on(first)).ok());
    launch(second, 3);
    ASSERT_TRUE(execution.wait_event(first, recorded_on(second)).ok());
    launch(second, 3);  // after it had rejoined
    GraphHandle graph = GraphHandle::none;
    const Status status = captures.end(first, graph);
    EXPECT_EQ(status.code, Code::capture_error);
    EXPECT_EQ(graph, GraphHandle::none);
    EXPECT_NE(driver->explain(status, "ending").text().find("not come back"), std::string::npos);
    EXPECT_EQ(state(first), CaptureState::none);
    EXPECT_EQ(state(second), CaptureState::none);
    launch(second, 2);
    EXPECT_EQ(data[0], 3);
}

// keeps S14
TEST_F(CpuCapture, AStreamThatOnlyWaitedHasNothingToBringBack) {
    const StreamHandle first = new_stream();
    const StreamHandle second = new_stream();
    ASSERT_TRUE(captures.begin(first).ok());
    launch(first, 2);
    ASSERT_TRUE(execution.wait_event(second, recorded_on(first)).ok());
    (void)ended(first);
    EXPECT_EQ(state(second), CaptureState::none);
}

// keeps S14
TEST_F(CpuCapture, WhatWouldEndACaptureIsRefusedAndItGoesOn) {
    const StreamHandle stream = new_stream();
    const StreamHandle other = new_stream();
    const EventHandle outside = recorded_on(other);
    ASSERT_TRUE(captures.begin(stream).ok());
    EXPECT_EQ(captures.begin(stream).code, Code::capture_error);
    EXPECT_EQ(execution.wait_event(stream, outside).code, Code::capture_error);
    const EventHandle inside = recorded_on(stream);
    EXPECT_EQ(execution.query_event(inside).code, Code::capture_error);
    ASSERT_TRUE(captures.begin(other).ok());
    EXPECT_EQ(execution.wait_event(other, inside).code, Code::capture_error);  // of another capture
    GraphHandle graph = GraphHandle::none;
    std::thread([&] { EXPECT_EQ(captures.end(stream, graph).code, Code::capture_error); }).join();
    launch(stream, 2);
    ASSERT_TRUE(captures.launch(ended(stream), stream).ok());
    EXPECT_EQ(data[0], 3);
    EXPECT_TRUE(execution.query_event(inside).ok()) << "over with its capture";
    (void)ended(other);
    EXPECT_EQ(captures.end(stream, graph).code, Code::capture_error);  // no capture is open
}

TEST_F(CpuCapture, AStreamDestroyedWhileCapturedStillHasToHaveComeBack) {
    const StreamHandle first = new_stream();
    for (const bool works : {false, true}) {
        const StreamHandle second = new_stream();
        ASSERT_TRUE(captures.begin(first).ok());
        ASSERT_TRUE(execution.wait_event(second, recorded_on(first)).ok());
        if (works) launch(second, 2);
        ASSERT_TRUE(execution.destroy_stream(second).ok());
        EXPECT_EQ(state(first), CaptureState::open);
        GraphHandle graph = GraphHandle::none;
        EXPECT_EQ(captures.end(first, graph).code, works ? Code::capture_error : Code::ok);
        EXPECT_EQ(state(first), CaptureState::none);
    }
    ASSERT_TRUE(captures.begin(first).ok());
    ASSERT_TRUE(execution.destroy_stream(first).ok());
    EXPECT_EQ(state(first), CaptureState::none);
}

// keeps S16
TEST_F(CpuCapture, AKernelOfAnInstanceTakesOtherArguments) {
    const StreamHandle stream = new_stream();
    ASSERT_TRUE(captures.begin(stream).ok());
    launch(stream, 2);
    NodeHandle node = NodeHandle::none;
    ASSERT_TRUE(captures.last_node(stream, node).ok());
    EXPECT_NE(node, NodeHandle::none);
    ASSERT_TRUE(driver->memory().fill(address(&data[3]), 0, sizeof(int), stream).ok());
    NodeHandle fill = NodeHandle::none;
    ASSERT_TRUE(captures.last_node(stream, fill).ok());
    EXPECT_NE(fill, node);
    const GraphInstanceHandle instance = ended(stream);
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data, (std::array<int, 4>{3, 3, 3, 0}));
    const StepPack pack{data.data(), 2, 10};
    const LaunchRequest other{&kernel, FunctionHandle::none, {2}, &pack, StreamHandle::none};
    ASSERT_TRUE(captures.set_kernel_arguments(instance, node, other).ok());
    EXPECT_EQ(data[0], 3);
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data, (std::array<int, 4>{31, 31, 3, 0}));
    EXPECT_EQ(captures.set_kernel_arguments(instance, fill, other).code, Code::invalid_handle);
    LaunchRequest empty = other;
    empty.extent.x = 0;
    EXPECT_EQ(captures.set_kernel_arguments(instance, node, empty).code, Code::invalid_argument);
}

// keeps S16
TEST_F(CpuCapture, ARunKeepsItsArgumentsWhileTheyAreReplacedAgainAndAgain) {
    struct Calling {
        std::function<void()>* call;
    };
    KernelInfo calling{};
    calling.name = "calling";
    calling.pack_bytes = sizeof(Calling);
    calling.rank = 1;
    calling.twin = [](const Extent&, std::uint64_t, std::uint64_t, const void* pack) {
        (*static_cast<const Calling*>(pack)->call)();
    };
    std::function<void()> meanwhile = [] {};
    const Calling given{&meanwhile};
    const StreamHandle stream = new_stream();
    ASSERT_TRUE(captures.begin(stream).ok());
    ASSERT_TRUE(execution.launch({&calling, FunctionHandle::none, {1}, &given, stream}).ok());
    launch(stream, 2);
    NodeHandle node = NodeHandle::none;
    ASSERT_TRUE(captures.last_node(stream, node).ok());
    const GraphInstanceHandle instance = ended(stream);
    const auto replace = [&](int factor) {
        const StepPack pack{data.data(), data.size(), factor};
        const LaunchRequest other{&kernel, FunctionHandle::none, {data.size()}, &pack, StreamHandle::none};
        EXPECT_TRUE(captures.set_kernel_arguments(instance, node, other).ok());
    };
    replace(5);
    meanwhile = [&] {
        for (const int factor : {7, 8, 9}) replace(factor);
    };
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[0], 6);  // 1·5 + 1
    meanwhile = [] {};
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[0], 55);  // 6·9 + 1
}

// keeps S16
TEST_F(CpuCapture, AnInstanceIsUpdatedFromAGraphOfItsShapeAlone) {
    const StreamHandle stream = new_stream();
    const auto graph_of = [&](auto work) {
        EXPECT_TRUE(captures.begin(stream).ok());
        work();
        GraphHandle graph = GraphHandle::none;
        EXPECT_TRUE(captures.end(stream, graph).ok());
        return graph;
    };
    NodeHandle node = NodeHandle::none;
    const GraphHandle first = graph_of([&] {
        launch(stream, 2);
        EXPECT_TRUE(captures.last_node(stream, node).ok());
    });
    GraphInstanceHandle instance = GraphInstanceHandle::none;
    ASSERT_TRUE(captures.instantiate(first, instance).ok());
    const char* why = nullptr;
    const GraphHandle longer = graph_of([&] { launch(stream, 2), launch(stream, 2); });
    EXPECT_EQ(captures.update(instance, longer, why).code, Code::invalid_argument);
    EXPECT_NE(std::string_view(why), "");
    const GraphHandle another =
        graph_of([&] { EXPECT_TRUE(driver->memory().fill(address(data.data()), 0, 4, stream).ok()); });
    EXPECT_EQ(captures.update(instance, another, why).code, Code::invalid_argument);
    EXPECT_NE(std::string_view(why), "");
    ASSERT_TRUE(captures.update(instance, graph_of([&] { launch(stream, 5); }), why).ok());
    EXPECT_EQ(std::string_view(why), "");
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[0], 6);
    const StepPack pack{data.data(), 4, 0};
    const LaunchRequest other{&kernel, FunctionHandle::none, {4}, &pack, StreamHandle::none};
    ASSERT_TRUE(captures.set_kernel_arguments(instance, node, other).ok()) << "nodes stay those of the first graph";
    ASSERT_TRUE(captures.launch(instance, stream).ok());
    EXPECT_EQ(data[0], 1);
}

TEST_F(CpuCapture, TheLastNodeAfterAJoinIsNotOneOfThem) {
    const StreamHandle first = new_stream();
    const StreamHandle second = new_stream();
    const auto last = [&](StreamHandle stream) {
        NodeHandle node = NodeHandle::none;
        EXPECT_TRUE(captures.last_node(stream, node).ok());
        return node;
    };
    std::uint64_t id = 1;
    CaptureState now = CaptureState::lost;
    ASSERT_TRUE(captures.info(first, now, id).ok());
    EXPECT_EQ(id, 0u);
    ASSERT_TRUE(captures.begin(first).ok());
    EXPECT_EQ(last(first), NodeHandle::none);
    launch(first, 2);
    const EventHandle forked = recorded_on(first);
    ASSERT_TRUE(execution.wait_event(second, forked).ok());
    EXPECT_EQ(last(second), last(first));
    launch(second, 2);
    ASSERT_TRUE(execution.wait_event(second, forked).ok());
    EXPECT_NE(last(second), NodeHandle::none) << "it stood behind that already";
    EXPECT_NE(last(second), last(first));
    launch(first, 2);
    ASSERT_TRUE(execution.wait_event(first, recorded_on(second)).ok());
    EXPECT_EQ(last(first), NodeHandle::none);
    std::uint64_t ids[2] = {};
    ASSERT_TRUE(captures.info(first, now, ids[0]).ok());
    ASSERT_TRUE(captures.info(second, now, ids[1]).ok());
    EXPECT_NE(ids[0], 0u);
    EXPECT_EQ(ids[0], ids[1]);
    (void)ended(first);
}

TEST_F(CpuCapture, AGraphBecomesOneStepOfAnother) {
    const StreamHandle stream = new_stream();
    ASSERT_TRUE(captures.begin(stream).ok());
    launch(stream, 2);
    launch(stream, 2);
    GraphHandle child = GraphHandle::none;
    ASSERT_TRUE(captures.end(stream, child).ok());
    EXPECT_EQ(captures.append(stream, child).code, Code::capture_error);  // it is not captured
    ASSERT_TRUE(captures.begin(stream).ok());
    ASSERT_TRUE(captures.append(stream, child).ok());
    launch(stream, 3);
    ASSERT_TRUE(captures.append(stream, child).ok());
    NodeHandle node = NodeHandle::none;
    ASSERT_TRUE(captures.last_node(stream, node).ok());
    EXPECT_NE(node, NodeHandle::none);
    ASSERT_TRUE(captures.destroy(child).ok());  // the graph holds a copy of it
    EXPECT_EQ(captures.append(stream, child).code, Code::invalid_handle);
    EXPECT_EQ(data[0], 1);
    ASSERT_TRUE(captures.launch(ended(stream), stream).ok());
    EXPECT_EQ(data[0], 91);  // 1 → 3 → 7 → 22 → 45 → 91
}

TEST_F(CpuCapture, AnInstanceIsNotLaunchedOnACapturedStream) {
    const StreamHandle stream = new_stream();
    ASSERT_TRUE(captures.begin(stream).ok());
    launch(stream, 2);
    const GraphInstanceHandle instance = ended(stream);
    ASSERT_TRUE(captures.begin(stream).ok());
    const Status refused = captures.launch(instance, stream);
    EXPECT_EQ(refused.code, Code::capture_error);
    EXPECT_NE(driver->explain(refused, "launching").message().find("end of the capture"), std::string_view::npos);
    EXPECT_EQ(data[0], 1);
    (void)ended(stream);
}

// keeps S18
TEST_F(CpuCapture, StaleAndForeignHandlesAreRecognised) {
    const StreamHandle stream = new_stream();
    ASSERT_TRUE(captures.begin(stream).ok());
    GraphHandle graph = GraphHandle::none;
    ASSERT_TRUE(captures.end(stream, graph).ok());
    GraphInstanceHandle instance = GraphInstanceHandle::none;
    ASSERT_TRUE(captures.instantiate(graph, instance).ok());
    ASSERT_TRUE(captures.destroy(graph).ok());
    ASSERT_TRUE(captures.destroy(instance).ok());
    EXPECT_EQ(captures.destroy(graph).code, Code::invalid_handle);
    EXPECT_EQ(captures.destroy(instance).code, Code::invalid_handle);
    EXPECT_EQ(captures.instantiate(graph, instance).code, Code::invalid_handle);
    EXPECT_EQ(captures.launch(instance, stream).code, Code::invalid_handle);
}

}  // namespace
}  // namespace isthmus::platform::cpu
