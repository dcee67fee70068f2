// Streams, events and launches of one CUDA device: one driver call each.
#include "cuda_execution.hpp"

#include "launch_shape.hpp"

namespace isthmus::platform::cuda {

namespace {

unsigned flags_of(EventKind kind) noexcept {
    if (kind == EventKind::timing) return event_default;
    return kind == EventKind::interprocess ? event_disable_timing | event_interprocess : event_disable_timing;
}

}  // namespace

// Non-blocking: the legacy default stream of foreign code does not order our work, and cannot kill a capture (906).
// Priorities out of the device's range are clamped by the driver.
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

Status CudaExecution::stream_id(StreamHandle stream, std::uint64_t& id) {
    unsigned long long answer = 0;
    const Status status = context_.on_stream("cuStreamGetId", stream,
                                             [&] { return context_.api().stream_get_id(stream_of(stream), &answer); });
    if (status.ok()) id = answer;
    return status;
}

Status CudaExecution::query_stream(StreamHandle stream) {
    return context_.beside_captures("cuStreamQuery", stream,
                                    [&] { return context_.api().stream_query(stream_of(stream)); });
}

Status CudaExecution::synchronize_stream(StreamHandle stream) {
    return context_.beside_captures("cuStreamSynchronize", stream,
                                    [&] { return context_.api().stream_synchronize(stream_of(stream)); });
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

Status CudaExecution::synchronize_event(EventHandle event) {
    return context_.anywhere("cuEventSynchronize", [&] { return context_.api().event_synchronize(event_of(event)); });
}

Status CudaExecution::elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) {
    return context_.anywhere("cuEventElapsedTime", [&] {
        return context_.api().event_elapsed_time(&milliseconds, event_of(begin), event_of(end));
    });
}

Status CudaExecution::launch(const LaunchRequest& request) {
    const LaunchShape shape = launch_shape(*request.kernel, request.extent);
    if (shape.empty) return {};
    if (!shape.possible) return {Code::invalid_argument, 0, "cuLaunchKernel"};
    // The driver copies the arguments before it returns; it takes them as void* and does not write to them.
    void* arguments[] = {const_cast<Extent*>(&request.extent), const_cast<void*>(request.pack)};
    const auto function = reinterpret_cast<CUfunction>(static_cast<std::uintptr_t>(request.function));
    return context_.on_stream("cuLaunchKernel", request.stream, [&] {
        return context_.api().launch_kernel(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                                            shape.block[1], shape.block[2], 0, stream_of(request.stream), arguments,
                                            nullptr);
    });
}

}  // namespace isthmus::platform::cuda
