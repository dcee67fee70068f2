// SPDX-License-Identifier: Apache-2.0
// Events of captures: how streams fork from a capture's streams and join them.
#include "captured_events.hpp"

#include "device_state.hpp"
#include "event_state.hpp"
#include "recording.hpp"
#include "stream_state.hpp"
#include "uncaptured_scope.hpp"
#include "streams_errors.hpp"

#include <algorithm>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

Error over() {
    return make_error<errors::capture_is_over>();
}

Error from_outside() {
    return make_error<errors::event_from_outside>();
}

Error another_capture() {
    return make_error<errors::event_of_another_capture>();
}

void follow(CaptureBranch& branch, const std::vector<std::uint32_t>& operations) {
    for (const std::uint32_t at : operations) {
        if (std::find(branch.tail.begin(), branch.tail.end(), at) == branch.tail.end()) branch.tail.push_back(at);
    }
}

Result<void> give_wait(StreamState& stream, const HeldRecord& last) {
    const platform::Status status = stream.device->execution.wait_event(stream.handle, last.handle());
    return status.ok() ? Result<void>() : stream.device->failure(status, "waiting for an event of a capture");
}

Result<void> may_join(const StreamState& stream, const Recording& recording) {
    if (stream.device->books != recording.device->books) {
        return make_error<errors::capture_of_another_runtime>();
    }
    if (stream.device->synchronous != recording.device->synchronous) {
        return make_error<errors::capture_of_gpu_and_cpu>();
    }
    // Documented (CUDA_CONDITIONAL_NODE_PARAMS): all kernels of a body, at any depth, belong to one context.
    if (recording.outer && stream.device != recording.device) {
        return make_error<errors::body_of_another_device>(named(*recording.device), named(*stream.device));
    }
    return refuse_in_parts(stream);
}

// Joins the event's capture. Fences earlier work first: no fence can be recorded while the stream is captured.
Result<bool> join(StreamState& stream, const HeldRecord& last, const std::shared_ptr<Recording>& recording) {
    if (Result<void> allowed = may_join(stream, *recording); !allowed) return std::move(allowed).error();
    if (Result<void> opened = stream.open_handle(); !opened) return std::move(opened).error();
    // As in begin_capture(): the capture's thread cannot create the pool later (K13).
    DeviceState& device = *stream.device;
    if (device.capabilities.has(Feature::pools)) (void)device.pools.own(device, MemoryKind::pool);
    if (Result<void> fenced = stream.fence(); !fenced) return std::move(fenced).error();
    const HeldCapture held(recording);
    if (held->state != Recording::State::open) return over();
    if (Result<void> waited = give_wait(stream, last); !waited) return std::move(waited).error();
    held->branches.push_back({stream.weak_from_this().lock(), stream.id, last.captured->behind});
    stream.recording = recording;
    return true;
}

}  // namespace

Result<bool> record_in_capture(StreamState& stream, EventState& event, std::shared_ptr<StreamState>& before) {
    Result<HeldCapture> held = stream.capture();
    if (!held) return std::move(held).error();
    if (!*held) return false;
    if (event.kind == platform::EventKind::interprocess) {
        return make_error<errors::interprocess_event_in_capture>();
    }
    const std::lock_guard lock(event.mutex);
    Result<FenceEvent*> next = event.next_to_record();
    if (!next) return std::move(next).error();
    const platform::Status status = stream.device->execution.record_event((*next)->handle, stream.handle);
    if (!status.ok()) {
        event.abandon(*next);
        return stream.device->failure(status, "recording an event in a capture");
    }
    event.recorded(*next);
    auto record = std::make_shared<CapturedRecord>();
    record->recording = stream.recording;
    record->recording_id = (*held)->id;
    if (const CaptureBranch* branch = (*held)->branch_of(stream.id)) record->behind = branch->tail;
    event.captured = std::move(record);
    event.leave_stream(before);
    event.position = 0;
    event.is_fence = false;
    event.complete.store(false, std::memory_order_release);
    return true;
}

Result<bool> wait_in_capture(StreamState& stream, const HeldRecord& last, const DeviceState& of_event) {
    if (stream.recording != nullptr) {
        Result<HeldCapture> held = stream.capture();
        if (!held) return std::move(held).error();
        if (*held) {
            if (!last.captured) {
                const bool always_done = last.outside() && of_event.synchronous;
                return always_done ? Result<bool>(true) : Result<bool>(from_outside());
            }
            if ((*held)->id != last.captured->recording_id) return another_capture();
            if (Result<void> waited = give_wait(stream, last); !waited) return std::move(waited).error();
            if (CaptureBranch* branch = (*held)->branch_of(stream.id)) follow(*branch, last.captured->behind);
            return true;
        }
    }
    if (!last.captured) return false;
    const std::shared_ptr<Recording> recording = last.captured->recording.lock();
    return recording == nullptr ? Result<bool>(over()) : join(stream, last, recording);
}

Error no_answer_in_capture(const char* what) {
    return make_error<errors::no_answer_in_capture>(what);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
