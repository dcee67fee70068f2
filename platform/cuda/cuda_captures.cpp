// Beginning and ending captures, counted so that other calls take care of them, and what becomes of graphs.
#include "cuda_captures.hpp"

#include <algorithm>

namespace isthmus::platform::cuda {
namespace {

CUgraph graph_of(GraphHandle graph) noexcept {
    return reinterpret_cast<CUgraph>(static_cast<std::uintptr_t>(graph));
}
CUgraphExec instance_of(GraphInstanceHandle instance) noexcept {
    return reinterpret_cast<CUgraphExec>(static_cast<std::uintptr_t>(instance));
}

}  // namespace

CudaCaptures::~CudaCaptures() {
    context_.library().open_captures.fetch_sub(static_cast<int>(open_.size()), std::memory_order_relaxed);
}

void CudaCaptures::opened(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    open_.push_back(stream);
    context_.library().open_captures.fetch_add(1, std::memory_order_relaxed);
}

void CudaCaptures::closed(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(open_.begin(), open_.end(), stream);
    if (found == open_.end()) return;  // begun behind our back, or never
    open_.erase(found);
    context_.library().open_captures.fetch_sub(1, std::memory_order_relaxed);
}

Status CudaCaptures::begin(StreamHandle stream) {
    const Status status = context_.on_stream("cuStreamBeginCapture_v2", stream, [&] {
        return context_.api().stream_begin_capture(stream_of(stream), capture_mode::thread_local_);
    });
    if (status.ok()) opened(stream);
    return status;
}

// A capture that was lost is over when its end has answered 901; one that is ended on the wrong stream (903) or thread
// (908) goes on, and so does the care for it.
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
    if (!status.ok()) return status;
    switch (answer) {
        case capture_status::none: out = CaptureState::none; break;
        case capture_status::active: out = CaptureState::open; break;
        default: out = CaptureState::lost; break;
    }
    return status;
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

Status CudaCaptures::destroy(GraphHandle graph) {
    return context_.destroy("cuGraphDestroy", [&] { return context_.api().graph_destroy(graph_of(graph)); });
}

Status CudaCaptures::destroy(GraphInstanceHandle instance) {
    return context_.destroy("cuGraphExecDestroy",
                            [&] { return context_.api().graph_exec_destroy(instance_of(instance)); });
}

}  // namespace isthmus::platform::cuda
