// SPDX-License-Identifier: Apache-2.0
// Capture: begins and ends the recording of a stream.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "composed.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "process.hpp"
#include "stream_state.hpp"
#include "uncaptured_scope.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
Result<Capture> Stream::begin_capture() {
    detail::StreamState& stream = *state_;
    detail::DeviceState& device = *stream.device;
    if (device.bars(rules::PublicCall::begin_capture)) return device.refusal(rules::PublicCall::begin_capture);
    platform::Captures* captures = device.driver->captures();
    if (captures == nullptr) return make_error<errors::device_without_captures>();
    // This thread cannot create a pool during the capture (K13). If creating it fails here, an allocation in the
    // capture reports that.
    if (device.capabilities.has(Feature::pools)) (void)device.pools.own(device, MemoryKind::pool);
    const std::lock_guard lock(stream.mutex);
    if (Result<void> opened = stream.open_handle(); !opened) return std::move(opened).error();
    Result<detail::HeldCapture> open = stream.capture();
    if (!open) return std::move(open).error();
    if (*open) return make_error<errors::stream_captured_already>();
    if (Result<void> whole = detail::refuse_in_parts(stream); !whole) return std::move(whole).error();
    if (stream.captured_elsewhere()) return make_error<errors::stream_captured_by_other_code>();
    // Records a fence for waits on earlier work: no event can be recorded for that while the stream is captured.
    if (Result<void> fenced = stream.fence(); !fenced) return std::move(fenced).error();
    auto recording = std::make_shared<detail::Recording>(state_, stream.handle);
    const platform::Status status = captures->begin(stream.handle);
    if (!status.ok()) return device.failure(status, "beginning a capture");
    stream.recording = recording;
    device.books->captures.begun();
    return Capture(std::move(recording));
}

Result<Graph> Capture::end() {
    if (!recording_) return make_error<errors::capture_ended_before>();
    detail::Recording& recording = *recording_;
    if (recording.outer) return make_error<errors::body_ends_with_its_function>();
    if (recording.body_open) return make_error<errors::capture_records_a_body>(recording.origin_id);  // and stays open
    platform::GraphHandle handle = platform::GraphHandle::none;
    std::vector<std::shared_ptr<detail::DeviceState>> devices;
    Result<void> ended = detail::end_recording(recording, handle, devices);
    // Still open: another thread ends it, or this one does once the work of other code that it is in has returned.
    if (!ended && (recording.thread != std::this_thread::get_id() || process::here.in_native_work)) {
        return std::move(ended).error();
    }
    const std::shared_ptr<detail::Recording> over = std::move(recording_);
    if (!ended) return std::move(ended).error();
    auto driver = detail::DriverGraph::make(over->device, handle, over->id);
    driver->devices = std::move(devices);
    driver->allocates = over->allocates;
    driver->conditional = over->conditional;
    for (const detail::RecordedOperation& operation : over->operations) {
        if (operation.closure != nullptr) driver->closures.push_back(operation.closure);
        driver->code.insert(driver->code.end(), operation.code.begin(), operation.code.end());
    }
    auto graph = std::make_shared<detail::GraphState>(std::move(driver));
    graph->operations = std::move(over->operations);
    return Graph(std::move(graph));
}

Capture& Capture::operator=(Capture&& other) noexcept {
    if (this != &other) {
        const Capture ended = std::move(*this);  // its destructor ends the capture that was open here
        recording_ = std::move(other.recording_);
    }
    return *this;
}

Capture::~Capture() {
    if (!recording_) return;
    if (recording_->outer) {
        detail::throw_away_body(std::exchange(recording_, nullptr));
        return;
    }
    const std::shared_ptr<detail::DeviceState> device = recording_->device;
    Result<Graph> thrown_away = end();
    if (recording_ && process::here.in_native_work) {  // its lock may be held
        device->books->after_host_functions.put_off(
            [given_up = std::exchange(recording_, nullptr)] { detail::give_up_recording(*given_up); });
    }
    if (recording_ && !device->config->forked()) detail::give_up_recording(*std::exchange(recording_, nullptr));
    if (!thrown_away)
        device->config->say(Severity::warning, composed("a capture given up: {}", thrown_away.error().text()));
}

}  // namespace v0
}  // namespace isthmus
