// SPDX-License-Identifier: Apache-2.0
// Begins and ends captures, counting them so that other calls protect them, and manages graphs.
#include "cuda_captures.hpp"

#include "launch_shape.hpp"

#include <algorithm>

namespace isthmus::platform::cuda {
namespace {

CUgraph graph_of(GraphHandle graph) noexcept {
    return reinterpret_cast<CUgraph>(static_cast<std::uintptr_t>(graph));
}
CUgraphExec instance_of(GraphInstanceHandle instance) noexcept {
    return reinterpret_cast<CUgraphExec>(static_cast<std::uintptr_t>(instance));
}

CUgraphNode node_of(NodeHandle node) noexcept {
    return reinterpret_cast<CUgraphNode>(static_cast<std::uintptr_t>(node));
}

CaptureState state_of(CUstreamCaptureStatus answer) noexcept {
    switch (answer) {
        case capture_status::none: return CaptureState::none;
        case capture_status::active: return CaptureState::open;
        default: return CaptureState::lost;
    }
}

// Text for the reason that cuGraphExecUpdate returns with 910.
const char* difference(CUgraphExecUpdateResult result) noexcept {
    switch (result) {
        case graph_update::topology_changed: return "the graphs have other nodes or edges";
        case graph_update::node_type_changed: return "a node is of another type";
        case graph_update::function_changed:
        case graph_update::unsupported_function_change: return "a node has a kernel that it cannot change to";
        case graph_update::parameters_changed: return "a node has parameters that cannot change in place";
        case graph_update::not_supported: return "a node is of a type that cannot be updated";
        case graph_update::attributes_changed: return "a node has attributes that cannot change in place";
        default: return "the driver does not say why";
    }
}

}  // namespace

CudaCaptures::~CudaCaptures() {
    Library::count_captures(-static_cast<int>(open_.size()));
}

void CudaCaptures::opened(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    open_.push_back(stream);
    Library::count_captures(1);
}

void CudaCaptures::closed(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(open_.begin(), open_.end(), stream);
    if (found == open_.end()) return;  // begun by other code, or never
    open_.erase(found);
    Library::count_captures(-1);
}

Status CudaCaptures::begin(StreamHandle stream) {
    const std::lock_guard not_now(Library::beginning);
    const Status status = context_.on_stream("cuStreamBeginCapture_v2", stream, [&] {
        return context_.api().stream_begin_capture(stream_of(stream), capture_mode::thread_local_);
    });
    if (status.ok()) opened(stream);
    return status;
}

// A lost capture is over when its end has answered 901. Ending on the wrong stream (903) loses a capture; ending on the
// wrong thread (908) ends it. It is counted as open while the driver reports it.
Status CudaCaptures::end(StreamHandle stream, GraphHandle& out) {
    CUgraph graph = nullptr;
    const Status status = context_.on_stream(
        "cuStreamEndCapture", stream, [&] { return context_.api().stream_end_capture(stream_of(stream), &graph); });
    if (status.ok()) {
        out = handle_of<GraphHandle>(graph);
        closed(stream);
        return status;
    }
    CaptureState now = CaptureState::none;
    if (!state(stream, now).ok() || now == CaptureState::none) closed(stream);
    return status;
}

Status CudaCaptures::state(StreamHandle stream, CaptureState& out) {
    CUstreamCaptureStatus answer = capture_status::none;
    const Status status = context_.on_stream(
        "cuStreamIsCapturing", stream, [&] { return context_.api().stream_is_capturing(stream_of(stream), &answer); });
    if (status.ok()) out = state_of(answer);
    return status;
}

Status CudaCaptures::info(StreamHandle stream, CaptureState& out, std::uint64_t& id) {
    CUstreamCaptureStatus answer = capture_status::none;
    std::uint64_t number = 0;
    const Status status = context_.on_stream("cuStreamGetCaptureInfo_v2", stream, [&] {
        return context_.api().stream_get_capture_info(stream_of(stream), &answer, &number, nullptr, nullptr, nullptr);
    });
    if (!status.ok()) return status;
    out = state_of(answer);
    id = answer == capture_status::active ? number : 0;  // the driver does not set `number` otherwise
    return status;
}

Status CudaCaptures::last_node(StreamHandle stream, NodeHandle& out) {
    CUstreamCaptureStatus answer = capture_status::none;
    const CUgraphNode* nodes = nullptr;  // the driver's array, valid until the stream's next use
    std::size_t count = 0;
    const Status status = context_.on_stream("cuStreamGetCaptureInfo_v2", stream, [&] {
        return context_.api().stream_get_capture_info(stream_of(stream), &answer, nullptr, nullptr, &nodes, &count);
    });
    if (!status.ok()) return status;
    const bool one = answer == capture_status::active && count == 1 && nodes != nullptr;
    out = one ? handle_of<NodeHandle>(nodes[0]) : NodeHandle::none;
    return status;
}

Status CudaCaptures::place(StreamHandle stream, Place& out) {
    CUstreamCaptureStatus answer = capture_status::none;
    const Status asked = context_.on_stream("cuStreamGetCaptureInfo_v2", stream, [&] {
        return context_.api().stream_get_capture_info(stream_of(stream), &answer, nullptr, &out.graph, &out.before,
                                                      &out.count);
    });
    if (!asked.ok() || answer == capture_status::active) return asked;
    return {Code::capture_error, 0, "cuStreamGetCaptureInfo_v2"};
}

// Retried: the node exists, and nothing can be removed from an open capture.
Status CudaCaptures::follow(StreamHandle stream, CUgraphNode node) {
    Status followed;
    for (int tries = 3; tries > 0; --tries) {
        followed = context_.on_stream("cuStreamUpdateCaptureDependencies", stream, [&] {
            return context_.api().stream_update_capture_dependencies(stream_of(stream), &node, 1,
                                                                     set_capture_dependencies);
        });
        if (followed.ok()) return followed;
    }
    return {Code::capture_error, followed.driver_code, followed.call};
}

Status CudaCaptures::append(StreamHandle stream, GraphHandle graph) {
    Place at;
    if (const Status asked = place(stream, at); !asked.ok()) return asked;
    CUgraphNode node = nullptr;
    const Status added = context_.on_stream("cuGraphAddChildGraphNode", stream, [&] {
        return context_.api().graph_add_child_graph_node(&node, at.graph, at.before, at.count, graph_of(graph));
    });
    return added.ok() ? follow(stream, node) : added;
}

Status CudaCaptures::add_setter(StreamHandle stream, const Place& at, const KernelInfo& setter,
                                const SetCondition& pack, CUgraphNode& out) {
    Extent extent;
    void* arguments[] = {&extent, const_cast<SetCondition*>(&pack)};  // the driver copies them before it returns
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    if (const Status found = modules_.free_of_context(setter, parameters.kern); !found.ok()) return found;
    if (const Status known = context_.handle(parameters.ctx); !known.ok()) return known;
    return context_.on_stream("cuGraphAddKernelNode_v2", stream, [&] {
        return context_.api().graph_add_kernel_node(&out, at.graph, at.before, at.count, &parameters);
    });
}

// Adds the conditional node, with an empty body.
Status CudaCaptures::add_conditional(StreamHandle stream, const Place& at, const ConditionalBody& request,
                                     const SetCondition& pack, CUgraphNode& out, CUgraph& body) {
    CUgraphNodeParams parameters{};
    parameters.type = graph_node_type::conditional;
    parameters.conditional.handle = pack.condition;
    parameters.conditional.type = request.loops ? conditional_type::loop : conditional_type::once;
    parameters.conditional.size = 1;
    if (const Status known = context_.handle(parameters.conditional.ctx); !known.ok()) return known;
    const Status status = context_.on_stream("cuGraphAddNode_v2", stream, [&] {
        return context_.api().graph_add_node(&out, at.graph, at.before, nullptr, at.count, &parameters);
    });
    if (!status.ok()) return status;
    if (parameters.conditional.phGraph_out == nullptr) return {Code::driver_error, 0, "cuGraphAddNode_v2"};
    body = parameters.conditional.phGraph_out[0];
    return status;
}

// A copy of the given body, then the kernel that sets the condition for the next turn.
Status CudaCaptures::fill(StreamHandle stream, CUgraph graph, const ConditionalBody& request,
                          const SetCondition& pack) {
    CUgraphNode body = nullptr, last = nullptr;
    const Status status = context_.on_stream("cuGraphAddChildGraphNode", stream, [&] {
        return context_.api().graph_add_child_graph_node(&body, graph, nullptr, 0, graph_of(request.body));
    });
    if (!status.ok() || !request.loops) return status;
    return add_setter(stream, {graph, &body, 1}, *request.setter, pack, last);
}

// Makes a condition, and adds the kernel that sets it first. Without that, nothing was added.
Status CudaCaptures::add_condition(StreamHandle stream, const Place& at, const ConditionalBody& request,
                                   SetCondition& pack, CUgraphNode& first) {
    CUcontext context = nullptr;
    if (const Status known = context_.handle(context); !known.ok()) return known;
    pack = {0, request.word, 1};
    const Status status = context_.on_stream("cuGraphConditionalHandleCreate", stream, [&] {
        return context_.api().graph_conditional_handle_create(&pack.condition, at.graph, context, 0, 0);
    });
    return status.ok() ? add_setter(stream, at, *request.setter, pack, first) : status;
}

// Observed on driver 580: these calls leave the capture open, and need no current context if this device's is named.
// Adds the node that sets the condition and the conditional node behind it. Resolves the setter first, so that an error
// of the driver's compiler is reported before any other. After an error behind the first node the capture is lost.
Status CudaCaptures::add_nodes(StreamHandle stream, const ConditionalBody& request, Conditional& out) {
    FunctionHandle loaded = FunctionHandle::none;
    if (const Status found = modules_.resolve(*request.setter, loaded); !found.ok()) return found;
    Place at;
    if (const Status asked = place(stream, at); !asked.ok()) return asked;
    CUgraphNode first = nullptr;
    if (const Status added = add_condition(stream, at, request, out.pack, first); !added.ok()) return added;
    return or_lost(add_conditional(stream, {at.graph, &first, 1}, request, out.pack, out.node, out.body));
}

Status CudaCaptures::append_conditional(StreamHandle stream, const ConditionalBody& request) {
    const Api& api = context_.api();
    if (api.graph_conditional_handle_create == nullptr || api.graph_add_node == nullptr) {
        return {Code::unsupported, 0, "cuGraphConditionalHandleCreate"};
    }
    Conditional made;
    if (const Status added = add_nodes(stream, request, made); !added.ok()) return added;
    const Status filled = fill(stream, made.body, request, made.pack);
    return filled.ok() ? follow(stream, made.node) : or_lost(filled);
}

// A body is filled by a capture of a second stream: a child graph may hold no conditional nodes (801), a body may
// (CUDA_CONDITIONAL_NODE_PARAMS: kernels, empty nodes, child graphs, memsets, copies and conditional nodes).
Status CudaCaptures::begin_body(StreamHandle outer, StreamHandle inside, ConditionalBody& request) {
    const Api& api = context_.api();
    if (api.graph_conditional_handle_create == nullptr || api.graph_add_node == nullptr ||
        api.stream_begin_capture_to_graph == nullptr) {
        return {Code::unsupported, 0, "cuStreamBeginCaptureToGraph"};
    }
    Conditional made;
    if (const Status added = add_nodes(outer, request, made); !added.ok()) return added;
    request.condition = made.pack.condition;
    Status status = follow(outer, made.node);
    if (status.ok()) {
        const std::lock_guard not_now(Library::beginning);
        status = context_.on_stream("cuStreamBeginCaptureToGraph", inside, [&] {
            return api.stream_begin_capture_to_graph(stream_of(inside), made.body, nullptr, nullptr, 0,
                                                     capture_mode::thread_local_);
        });
    }
    if (!status.ok()) return or_lost(status);
    opened(inside);
    return status;
}

Status CudaCaptures::finish_body(StreamHandle inside, const ConditionalBody& body) {
    if (!body.loops) return {};
    Place at;
    if (const Status asked = place(inside, at); !asked.ok()) return asked;
    CUgraphNode last = nullptr;
    const Status added = add_setter(inside, at, *body.setter, {body.condition, body.word, 1}, last);
    return added.ok() ? follow(inside, last) : added;
}

// The graph stays the node's, and is not destroyed.
Status CudaCaptures::end_body(StreamHandle /*outer*/, StreamHandle inside, const ConditionalBody& /*body*/) {
    GraphHandle graph = GraphHandle::none;
    return end(inside, graph);
}

Status CudaCaptures::instantiate(GraphHandle graph, GraphInstanceHandle& out) {
    CUgraphExec instance = nullptr;
    const Status status = context_.inside(
        "cuGraphInstantiateWithFlags", [&] { return context_.api().graph_instantiate(&instance, graph_of(graph), 0); });
    if (status.ok()) out = handle_of<GraphInstanceHandle>(instance);
    return status;
}

Status CudaCaptures::launch(GraphInstanceHandle instance, StreamHandle stream) {
    return context_.on_stream("cuGraphLaunch", stream,
                              [&] { return context_.api().graph_launch(instance_of(instance), stream_of(stream)); });
}

Status CudaCaptures::resolve_for_nodes(const KernelInfo& kernel, FunctionHandle& out) {
    CUkernel found = nullptr;
    const Status status = modules_.free_of_context(kernel, found);
    out = handle_of<FunctionHandle>(found);
    return status;
}

// Observed on driver 580: with a CUfunction the call crashes on a thread without a current context; with a
// context-independent kernel and this device's context named, it needs none.
Status CudaCaptures::set_kernel_arguments(GraphInstanceHandle instance, NodeHandle node, const LaunchRequest& request) {
    const LaunchShape shape = launch_shape(*request.kernel, request.extent);
    if (shape.empty || !shape.possible) return {Code::invalid_argument, 0, "cuGraphExecKernelNodeSetParams_v2"};
    // The driver copies the arguments before it returns, as cuLaunchKernel does.
    void* arguments[] = {const_cast<Extent*>(&request.extent), const_cast<void*>(request.pack)};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.kern = reinterpret_cast<CUkernel>(static_cast<std::uintptr_t>(request.function));
    if (Status known = context_.handle(parameters.ctx); !known.ok()) return known;
    parameters.gridDimX = shape.grid[0];
    parameters.gridDimY = shape.grid[1];
    parameters.gridDimZ = shape.grid[2];
    parameters.blockDimX = shape.block[0];
    parameters.blockDimY = shape.block[1];
    parameters.blockDimZ = shape.block[2];
    parameters.kernelParams = arguments;
    return context_.anywhere("cuGraphExecKernelNodeSetParams_v2", [&] {
        return context_.api().graph_exec_kernel_node_set_params(instance_of(instance), node_of(node), &parameters);
    });
}

Status CudaCaptures::update(GraphInstanceHandle instance, GraphHandle graph, const char*& why) {
    CUgraphExecUpdateResultInfo told{};
    const Status status = context_.anywhere("cuGraphExecUpdate_v2", [&] {
        return context_.api().graph_exec_update(instance_of(instance), graph_of(graph), &told);
    });
    why = status.driver_code == result::graph_exec_update_failure ? difference(told.result) : "";
    return status;
}

Status CudaCaptures::destroy(GraphHandle graph) {
    return context_.destroy("cuGraphDestroy", [&] { return context_.api().graph_destroy(graph_of(graph)); });
}

Status CudaCaptures::destroy(GraphInstanceHandle instance) {
    return context_.destroy("cuGraphExecDestroy",
                            [&] { return context_.api().graph_exec_destroy(instance_of(instance)); });
}

}  // namespace isthmus::platform::cuda
