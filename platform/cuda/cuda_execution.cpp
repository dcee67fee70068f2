// SPDX-License-Identifier: Apache-2.0
// Streams, events and launches of one CUDA device: one driver call each.
#include "cuda_execution.hpp"

#include "cuda_modules.hpp"
#include "launch_shape.hpp"

#include <isthmus/module_launch.hpp>

#include <cstring>

namespace isthmus::platform::cuda {
namespace {

// Requires Library::beginning.
bool capture_is_open() noexcept {
    return Library::open_captures.load(std::memory_order_relaxed) != 0;
}

}  // namespace

namespace {

unsigned flags_of(EventKind kind) noexcept {
    if (kind == EventKind::timing) return event_default;
    return kind == EventKind::interprocess ? event_disable_timing | event_interprocess : event_disable_timing;
}

}  // namespace

// Non-blocking: the legacy default stream of other code does not order its work, and cannot end a capture on it (906).
// The driver clamps priorities outside the device's range.
Status CudaExecution::create_stream(int priority, StreamHandle& out) {
    CUstream stream = nullptr;
    const Status status = context_.inside("cuStreamCreateWithPriority", [&] {
        return context_.api().stream_create_with_priority(&stream, stream_non_blocking, priority);
    });
    if (status.ok()) out = handle_of<StreamHandle>(stream);
    return status;
}

Status CudaExecution::destroy_stream(StreamHandle stream) {
    return context_.destroy("cuStreamDestroy_v2", [&] { return context_.api().stream_destroy(stream_of(stream)); });
}

// 0 if the device has no priorities: creating the stream clamped the request.
Status CudaExecution::stream_priority(StreamHandle stream, int& out) {
    return context_.on_stream("cuStreamGetPriority", stream,
                              [&] { return context_.api().stream_get_priority(stream_of(stream), &out); });
}

// Queried with this device's context current, so that the default stream is this context's.
Status CudaExecution::foreign_stream(void* native, ForeignStream& out) {
    const auto stream = native == nullptr ? stream_legacy() : static_cast<CUstream>(native);
    if (stream == stream_per_thread()) return {Code::unsupported, 0, "cuStreamGetCtx"};
    CUcontext ours = nullptr;
    CUcontext its = nullptr;
    if (Status retained = context_.handle(ours); !retained.ok()) return retained;
    Status status = context_.inside("cuStreamGetCtx", [&] { return context_.api().stream_get_context(stream, &its); });
    if (!status.ok()) return status;
    if (its != ours) return {Code::wrong_device, 0, "cuStreamGetCtx"};
    unsigned long long id = 0;
    status = context_.inside("cuStreamGetId", [&] { return context_.api().stream_get_id(stream, &id); });
    if (!status.ok()) return status;
    out = {handle_of<StreamHandle>(stream), id};
    Library::maybe_captured.fetch_add(1, std::memory_order_relaxed);
    return status;
}

void CudaExecution::forget_foreign_stream() noexcept {
    Library::maybe_captured.fetch_sub(1, std::memory_order_relaxed);
}

Status CudaExecution::call_on_host(StreamHandle stream, void (*function)(void*), void* data) {
    return context_.on_stream("cuLaunchHostFunc", stream,
                              [&] { return context_.api().launch_host_function(stream_of(stream), function, data); });
}

Status CudaExecution::query_stream(StreamHandle stream) {
    return context_.beside_captures("cuStreamQuery", stream,
                                    [&] { return context_.api().stream_query(stream_of(stream)); });
}

Status CudaExecution::call_in_context(void (*work)(void*), void* data) {
    return context_.around([&] { work(data); });
}

Status CudaExecution::status_of(int code, const char* call) const noexcept {
    return context_.library().status(code, call);
}

Status CudaExecution::create_event(EventKind kind, EventHandle& out) {
    CUevent event = nullptr;
    const unsigned flags = flags_of(kind);
    const Status status = context_.inside("cuEventCreate", [&] { return context_.api().event_create(&event, flags); });
    if (status.ok()) out = handle_of<EventHandle>(event);
    return status;
}

Status CudaExecution::destroy_event(EventHandle event) {
    return context_.destroy("cuEventDestroy_v2", [&] { return context_.api().event_destroy(event_of(event)); });
}

Status CudaExecution::record_event(EventHandle event, StreamHandle stream) {
    return context_.on_stream("cuEventRecord", stream,
                              [&] { return context_.api().event_record(event_of(event), stream_of(stream)); });
}

Status CudaExecution::wait_event(StreamHandle stream, EventHandle event) {
    return context_.on_stream("cuStreamWaitEvent", stream, [&] {
        return context_.api().stream_wait_event(stream_of(stream), event_of(event), event_wait_default);
    });
}

Status CudaExecution::query_event(EventHandle event) {
    return context_.anywhere("cuEventQuery", [&] { return context_.api().event_query(event_of(event)); });
}

Status CudaExecution::elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) {
    return context_.anywhere("cuEventElapsedTime", [&] {
        return context_.api().event_elapsed_time(&milliseconds, event_of(begin), event_of(end));
    });
}

Status CudaExecution::share_event(EventHandle event, SharedHandle& out) {
    if (!context_.api().ipc_get_event_handle) return {Code::unsupported, 0, "cuIpcGetEventHandle"};
    CUipcEventHandle made{};
    // Observed on driver 580: segmentation fault if another context is current.
    const Status status = context_.inside("cuIpcGetEventHandle",
                                          [&] { return context_.api().ipc_get_event_handle(&made, event_of(event)); });
    if (status.ok()) std::memcpy(out.data(), made.reserved, sizeof(made.reserved));
    return status;
}

Status CudaExecution::open_event(const SharedHandle& handle, EventHandle& out) {
    if (!context_.api().ipc_open_event_handle) return {Code::unsupported, 0, "cuIpcOpenEventHandle"};
    CUipcEventHandle theirs{};
    std::memcpy(theirs.reserved, handle.data(), sizeof(theirs.reserved));
    CUevent event = nullptr;
    const Status status =
        context_.inside("cuIpcOpenEventHandle", [&] { return context_.api().ipc_open_event_handle(&event, theirs); });
    if (status.ok()) out = handle_of<EventHandle>(event);
    return status;
}

Status CudaExecution::context_in_use(bool& out) {
    unsigned flags = 0;
    int active = 0;
    const Status status = context_.anywhere("cuDevicePrimaryCtxGetState", [&] {
        return context_.api().primary_context_get_state(context_.device(), &flags, &active);
    });
    out = status.ok() && active != 0;
    return status;
}

// A capture open in the context, of any mode and thread, would be lost (900, observed).
Status CudaExecution::record_context(EventHandle event) {
    if (!context_.api().context_record_event) return {Code::unsupported, 0, "cuCtxRecordEvent"};
    const std::lock_guard not_now(Library::beginning);
    if (capture_is_open()) return {Code::capture_error, 0, "cuCtxRecordEvent"};
    CUcontext context = nullptr;
    if (Status retained = context_.handle(context); !retained.ok()) return retained;
    return context_.inside("cuCtxRecordEvent",
                           [&] { return context_.api().context_record_event(context, event_of(event)); });
}

Status CudaExecution::synchronize_context() {
    const std::lock_guard not_now(Library::beginning);
    if (capture_is_open()) return {Code::capture_error, 0, "cuCtxSynchronize"};
    return context_.inside("cuCtxSynchronize", [&] { return context_.api().context_synchronize(); });
}

Status CudaExecution::launch(const LaunchRequest& request) {
    if (request.kernel->rank == detail::module_rank) [[unlikely]]
        return launch_of_module(context_, request);
    const LaunchShape shape = launch_shape(*request.kernel, request.extent);
    if (shape.empty) return {};
    if (!shape.possible) return {Code::invalid_argument, 0, "cuLaunchKernel"};
    // The driver copies the arguments before it returns; it takes void* and does not write to them.
    void* arguments[] = {const_cast<Extent*>(&request.extent), const_cast<void*>(request.pack)};
    const auto function = reinterpret_cast<CUfunction>(static_cast<std::uintptr_t>(request.function));
    return context_.on_stream("cuLaunchKernel", request.stream, [&] {
        return context_.api().launch_kernel(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                                            shape.block[1], shape.block[2], 0, stream_of(request.stream), arguments,
                                            nullptr);
    });
}

}  // namespace isthmus::platform::cuda
