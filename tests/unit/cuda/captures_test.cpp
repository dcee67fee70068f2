// SPDX-License-Identifier: Apache-2.0
// The captures facet, and the precautions of every other call while a capture is open.
#include "cuda_calls.hpp"

namespace isthmus::platform::cuda {
namespace {

class CudaCaptureCalls : public CudaCalls {
protected:
    void SetUp() override {
        CudaCalls::SetUp();
        stream = make_stream();
        other = make_stream();
    }
    Captures& captures() { return *device().captures(); }
    void begin() {
        EXPECT_TRUE(captures().begin(stream).ok());
        fake().clear();
    }
    std::string calls() {
        std::string made = fake().calls();
        fake().clear();
        return made;
    }
    StreamHandle stream{}, other{};
};
const std::string exchange = "cuThreadExchangeStreamCaptureMode ";

// keeps S14, S15
TEST_F(CudaCaptureCalls, ACaptureBecomesAGraphThatIsInstantiatedAndLaunched) {
    EXPECT_TRUE(captures().begin(stream).ok());
    EXPECT_EQ(fake().flags(), unsigned{capture_mode::thread_local_});
    GraphHandle graph{};
    EXPECT_TRUE(captures().end(stream, graph).ok());
    EXPECT_NE(graph, GraphHandle::none);
    EXPECT_EQ(calls(), "cuStreamBeginCapture_v2 cuStreamEndCapture ");
    GraphInstanceHandle instance{};
    EXPECT_TRUE(captures().instantiate(graph, instance).ok());
    EXPECT_NE(instance, GraphInstanceHandle::none);
    EXPECT_EQ(fake().flags(), 0u);
    EXPECT_EQ(calls(), "cuCtxPushCurrent_v2 cuCtxGetId cuGraphInstantiateWithFlags cuCtxPopCurrent_v2 ");
    EXPECT_TRUE(captures().launch(instance, other).ok());
    EXPECT_EQ(calls(), "cuGraphLaunch ");
    EXPECT_TRUE(captures().destroy(instance).ok());
    EXPECT_TRUE(captures().destroy(graph).ok());
    EXPECT_EQ(calls(), "cuCtxGetId cuGraphExecDestroy cuCtxGetId cuGraphDestroy ");
}

TEST_F(CudaCaptureCalls, TheStateOfACaptureIsToldInOurWords) {
    const std::pair<int, CaptureState> answers[] = {{capture_status::none, CaptureState::none},
                                                    {capture_status::active, CaptureState::open},
                                                    {capture_status::invalidated, CaptureState::lost}};
    for (const auto& [number, state] : answers) {
        fake().set_capture_status(number);
        CaptureState told{};
        EXPECT_TRUE(captures().state(stream, told).ok());
        EXPECT_EQ(told, state) << number;
    }
    EXPECT_EQ(calls(), "cuStreamIsCapturing cuStreamIsCapturing cuStreamIsCapturing ");
}

// keeps S17: of two captures one after the other, which one it is
TEST_F(CudaCaptureCalls, AnOpenCaptureHasANumberAndOthersHaveNone) {
    CaptureState told{};
    std::uint64_t id = 5;
    fake().set_capture_status(capture_status::active);
    EXPECT_TRUE(captures().info(stream, told, id).ok());
    EXPECT_EQ(told, CaptureState::open);
    EXPECT_EQ(id, 77u);
    for (const int status : {capture_status::none, capture_status::invalidated}) {
        fake().set_capture_status(status);
        EXPECT_TRUE(captures().info(stream, told, id).ok());
        EXPECT_NE(told, CaptureState::open);
        EXPECT_EQ(id, 0u);
    }
}

// keeps S16: the node that a launch became is the one thing that the next would follow
TEST_F(CudaCaptureCalls, TheLastNodeIsToldWhereItIsOne) {
    fake().set_capture_status(capture_status::active);
    NodeHandle node{};
    EXPECT_TRUE(captures().last_node(stream, node).ok());
    EXPECT_EQ(node, NodeHandle{0x51});
    EXPECT_EQ(calls(), "cuStreamGetCaptureInfo_v2 ");
    for (const std::size_t others : {std::size_t{0}, std::size_t{2}}) {
        fake().set_capture_dependencies(others);
        EXPECT_TRUE(captures().last_node(stream, node).ok());
        EXPECT_EQ(node, NodeHandle::none) << others;
    }
    fake().set_capture_dependencies(1);
    fake().set_capture_status(capture_status::none);
    EXPECT_TRUE(captures().last_node(stream, node).ok());
    EXPECT_EQ(node, NodeHandle::none);
}

// keeps S15: a graph within a graph stands behind all that the stream waits for, and what follows behind it
TEST_F(CudaCaptureCalls, AGraphIsAppendedAsOneNode) {
    fake().set_capture_status(capture_status::active);
    fake().set_capture_dependencies(2);
    EXPECT_TRUE(captures().append(stream, GraphHandle{0x20}).ok());
    EXPECT_EQ(calls(), "cuStreamGetCaptureInfo_v2 cuGraphAddChildGraphNode cuStreamUpdateCaptureDependencies ");
    const FakeSeen& seen = *fake().seen();
    EXPECT_EQ(seen.parent, reinterpret_cast<CUgraph>(0x61));
    EXPECT_EQ(seen.child, reinterpret_cast<CUgraph>(0x20));
    EXPECT_EQ(seen.dependencies, 2u);
    EXPECT_EQ(seen.node, reinterpret_cast<CUgraphNode>(0x53));
    EXPECT_EQ(fake().flags(), set_capture_dependencies);
    fake().fail("cuGraphAddChildGraphNode", 1);
    EXPECT_EQ(captures().append(stream, GraphHandle{0x20}).code, Code::invalid_argument);
    EXPECT_EQ(calls(), "cuStreamGetCaptureInfo_v2 cuGraphAddChildGraphNode ");
    fake().set_capture_status(capture_status::invalidated);
    EXPECT_EQ(captures().append(stream, GraphHandle{0x20}).code, Code::capture_error);
    EXPECT_EQ(calls(), "cuStreamGetCaptureInfo_v2 ") << "nothing is added to a lost capture";
}

// keeps S16: one driver call once the kernel is known, and none for what cannot be launched
TEST_F(CudaCaptureCalls, ArgumentsOfANodeCostOneCall) {
    const unsigned char code[4] = {};
    const KernelImage image{code, sizeof code, "abcd", "k.cpp", true};
    KernelInfo kernel{};
    kernel.name = "k";
    kernel.symbol = "isthmus_k";
    kernel.rank = 1;
    kernel.image = &image;
    int pack = 3;
    const GraphInstanceHandle instance{0x10};
    LaunchRequest request{&kernel, FunctionHandle::none, {300, 1, 1}, &pack, StreamHandle::none};
    for (const char* asked : {"cuLibraryLoadData cuLibraryGetKernel ", ""}) {
        ASSERT_TRUE(captures().resolve_for_nodes(kernel, request.function).ok());
        EXPECT_EQ(calls(), asked);
    }
    EXPECT_TRUE(captures().set_kernel_arguments(instance, NodeHandle{0x51}, request).ok());
    EXPECT_EQ(calls(), "cuGraphExecKernelNodeSetParams_v2 ");
    const FakeSeen& seen = *fake().seen();
    EXPECT_EQ(seen.node, reinterpret_cast<CUgraphNode>(0x51));
    EXPECT_EQ(seen.kernel_node.kern, reinterpret_cast<CUkernel>(static_cast<std::uintptr_t>(request.function)));
    EXPECT_EQ(seen.kernel_node.func, nullptr) << "the driver crashes on it where no context is current";
    EXPECT_NE(seen.kernel_node.ctx, nullptr);
    EXPECT_EQ(seen.kernel_node.gridDimX, 2u);
    EXPECT_EQ(seen.kernel_node.blockDimX, 256u);
    EXPECT_EQ(seen.kernel_node.gridDimZ * seen.kernel_node.blockDimY, 1u);
    EXPECT_EQ(seen.kernel_node_value, 3);
    EXPECT_EQ(seen.kernel_node.extra, nullptr);
    EXPECT_EQ(seen.kernel_node_extent_x, 300u);
    for (const std::uint64_t impossible : {std::uint64_t{0}, std::uint64_t{1} << 62}) {
        request.extent.x = impossible;
        EXPECT_EQ(captures().set_kernel_arguments(instance, NodeHandle{0x51}, request).code, Code::invalid_argument);
    }
    EXPECT_EQ(calls(), "");
}

// keeps S16, R1: an update that the driver refuses says what differs
TEST_F(CudaCaptureCalls, ARefusedUpdateTellsTheDifference) {
    const GraphInstanceHandle instance{0x10};
    const GraphHandle graph{0x20};
    const char* why = nullptr;
    EXPECT_TRUE(captures().update(instance, graph, why).ok());
    EXPECT_STREQ(why, "");
    EXPECT_EQ(calls(), "cuGraphExecUpdate_v2 ");
    std::string last;
    for (const int told : {graph_update::error, graph_update::topology_changed, graph_update::node_type_changed,
                           graph_update::unsupported_function_change, graph_update::parameters_changed,
                           graph_update::not_supported, graph_update::attributes_changed}) {
        fake().set_update_result(told);
        const Status status = captures().update(instance, graph, why);
        EXPECT_EQ(status.code, Code::invalid_argument);
        EXPECT_EQ(status.driver_code, 910);
        EXPECT_NE(why, last) << told;
        last = why;
    }
    fake().set_update_result(graph_update::success);
    fake().fail("cuGraphExecUpdate_v2", 400);
    EXPECT_EQ(captures().update(instance, graph, why).code, Code::invalid_handle);
    EXPECT_STREQ(why, "");
}

// keeps S19, R7: two runtimes in one process, one of them capturing
TEST_F(CudaCaptureCalls, AnotherRuntimesCaptureIsTakenCareOfToo) {
    MachineFacts machine;
    Result<OpenedDevices> second = open_devices(fake_library("good"), machine);
    ASSERT_TRUE(second.ok()) << second.error().text();
    Memory& its_memory = second->drivers[0]->memory();
    begin();
    Allocation allocation;
    EXPECT_TRUE(its_memory.allocate(MemoryKind::device, 64, Attachment::global, StreamHandle::none, allocation).ok());
    EXPECT_EQ(calls().rfind(exchange, 0), 0u);
    GraphHandle graph{};
    EXPECT_TRUE(captures().end(stream, graph).ok());
    fake().clear();
    EXPECT_TRUE(its_memory.release(allocation, StreamHandle::none).ok());
    EXPECT_EQ(calls().find(exchange), std::string::npos) << "no longer than it is open";
    EXPECT_TRUE(captures().destroy(graph).ok());
}

// keeps S19, K13: allocations and their like leave an open capture alone
TEST_F(CudaCaptureCalls, WhileACaptureIsOpenUnsafeCallsRunWithTheModeExchanged) {
    begin();
    const auto with_care = [](const std::string& inner) { return exchange + inner + exchange; };
    const auto entered = [&](const std::string& call) {
        return with_care("cuCtxPushCurrent_v2 cuCtxGetId " + call + " cuCtxPopCurrent_v2 ");
    };
    Allocation allocation;
    EXPECT_TRUE(memory().allocate(MemoryKind::device, 64, Attachment::global, other, allocation).ok());
    EXPECT_EQ(calls(), entered("cuMemAlloc_v2"));
    EXPECT_TRUE(memory().release(allocation, other).ok());
    EXPECT_EQ(calls(), entered("cuMemFree_v2"));
    EXPECT_TRUE(memory().allocate(MemoryKind::managed, 64, Attachment::global, other, allocation).ok());
    EXPECT_EQ(calls(), entered("cuMemAllocManaged"));
    EXPECT_TRUE(memory().allocate(MemoryKind::pool, 64, Attachment::global, other, allocation).ok());
    EXPECT_EQ(calls(), with_care("cuMemAllocAsync "));
    EXPECT_TRUE(memory().release(allocation, other).ok());
    EXPECT_EQ(calls(), with_care("cuMemFreeAsync "));
    PoolHandle pool{};
    EXPECT_TRUE(device().pools()->create({}, pool).ok());
    EXPECT_EQ(calls(), entered("cuMemPoolCreate"));
    EXPECT_TRUE(device().pools()->trim(pool, 0).ok());
    EXPECT_EQ(calls(), with_care("cuMemPoolTrimTo "));
    EXPECT_TRUE(device().pools()->destroy(pool).ok());
    EXPECT_EQ(calls(), with_care("cuMemPoolDestroy "));
    EXPECT_TRUE(device().transfers()->advise(64, 64, Advice::read_mostly, {}).ok());
    EXPECT_EQ(calls(), entered("cuMemAdvise_v2"));
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), with_care("cuStreamQuery "));
    EventHandle event{};
    EXPECT_TRUE(execution().create_event(EventKind::plain, event).ok());
    EXPECT_EQ(calls(), entered("cuEventCreate"));
    EXPECT_TRUE(execution().query_event(event).ok());
    EXPECT_EQ(calls(), with_care("cuEventQuery "));
    EXPECT_EQ(fake().capture_mode(), capture_mode::global);  // the thread's own mode again
}

// keeps S19: the other device's calls endanger the capture just as well
TEST_F(CudaCaptureCalls, EveryDeviceOfTheLibraryTakesCare) {
    begin();
    StreamHandle elsewhere{};
    EXPECT_TRUE(drivers_[1]->execution().create_stream(0, elsewhere).ok());
    EXPECT_EQ(calls().find(exchange), 0u);
}

// keeps S19: work for a stream is captured or not whatever the mode; it costs what it always costs
TEST_F(CudaCaptureCalls, WorkForStreamsIsStillOneDriverCall) {
    EventHandle event{};
    EXPECT_TRUE(execution().create_event(EventKind::plain, event).ok());
    begin();
    EXPECT_TRUE(memory().copy(64, 128, 8, CopyDirection::device_to_device, stream).ok());
    EXPECT_TRUE(memory().fill(64, 0, 8, stream).ok());
    EXPECT_TRUE(execution().record_event(event, stream).ok());
    EXPECT_TRUE(execution().wait_event(stream, event).ok());
    EXPECT_TRUE(device().transfers()->copy_shaped({64, false, 8, 1}, {128, false, 8, 1}, {8, 1, 1}, stream).ok());
    EXPECT_EQ(calls(), "cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuEventRecord cuStreamWaitEvent cuMemcpy2DAsync_v2 ");
}

// keeps S19: after the end nothing is exchanged any more
TEST_F(CudaCaptureCalls, TheLastEndEndsTheCare) {
    begin();
    EXPECT_TRUE(captures().begin(other).ok());
    GraphHandle graph{};
    EXPECT_TRUE(captures().end(other, graph).ok());
    fake().clear();
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), exchange + "cuStreamQuery " + exchange);
    EXPECT_TRUE(captures().end(stream, graph).ok());
    fake().clear();
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), "cuStreamQuery ");
}

// keeps S14: a lost capture is over with its end; one that was ended in the wrong place goes on
TEST_F(CudaCaptureCalls, AFailedEndEndsTheCareOnlyWhereTheCaptureIsOver) {
    begin();
    GraphHandle graph{};
    fake().set_capture_status(capture_status::active);
    fake().fail("cuStreamEndCapture", 908);
    EXPECT_EQ(captures().end(stream, graph).code, Code::capture_error);
    EXPECT_EQ(calls(), "cuStreamEndCapture cuStreamIsCapturing ");
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), exchange + "cuStreamQuery " + exchange);
    fake().set_capture_status(capture_status::none);
    fake().fail("cuStreamEndCapture", 901);
    const Status lost = captures().end(stream, graph);
    EXPECT_EQ(lost.code, Code::capture_error);
    EXPECT_EQ(lost.driver_code, 901);
    EXPECT_EQ(graph, GraphHandle::none);
    fake().clear();
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), "cuStreamQuery ");
}

// keeps S19: a foreign capture that is ended here was never counted, and a failed begin neither
TEST_F(CudaCaptureCalls, OnlyCapturesThatBeganHereAreCounted) {
    GraphHandle graph{};
    EXPECT_TRUE(captures().end(other, graph).ok());
    fake().fail("cuStreamBeginCapture_v2", 401);
    EXPECT_FALSE(captures().begin(stream).ok());
    fake().clear();
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), "cuStreamQuery ");
    begin();  // not undone by the previous end
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), exchange + "cuStreamQuery " + exchange);
}

TEST_F(CudaCaptureCalls, AModeThatCannotBeExchangedIsNotGivenBack) {
    begin();
    fake().fail(exchange.substr(0, exchange.size() - 1).c_str(), 1);
    EXPECT_TRUE(execution().query_stream(other).ok());
    EXPECT_EQ(calls(), exchange + "cuStreamQuery ");
    EXPECT_EQ(fake().capture_mode(), capture_mode::global);
}

// keeps R1: what the driver means by a code here
TEST_F(CudaCaptureCalls, RefusalsOfGraphsThatAllocateAreExplained) {
    fake().fail("cuGraphLaunch", 1);
    const Status again = captures().launch(GraphInstanceHandle{0x10}, stream);
    EXPECT_NE(device().explain(again, "launching").message().find("freed"), std::string_view::npos);
    fake().fail("cuGraphInstantiateWithFlags", 801);
    GraphInstanceHandle instance{};
    const Status second = captures().instantiate(GraphHandle{0x10}, instance);
    EXPECT_EQ(second.code, Code::unsupported);
    EXPECT_NE(device().explain(second, "instantiating").message().find("one instance"), std::string_view::npos);
    EXPECT_EQ(instance, GraphInstanceHandle::none);
}

}  // namespace
}  // namespace isthmus::platform::cuda
