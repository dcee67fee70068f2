// SPDX-License-Identifier: Apache-2.0
// Events: a record refers to an operation; waits and queries take the record that is current at the call.
#include "core.hpp"

#include <utility>

namespace isthmus::sim::engine {

namespace {

// Observed: once the capture has ended, its events are invalid until their next record.
int captured_code(const Event& event) {
    return event.capture->ended ? code::invalid_value : code::captured_event;
}

}  // namespace

EventId Engine::create_event(bool timing) {
    Core::Lock lock(*core_);
    const EventId id{core_->next_id++};
    core_->events[static_cast<std::uint64_t>(id)].timing = timing;
    return id;
}

int Engine::destroy_event(EventId id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    if (!event) return code::invalid_handle;
    core_->events.erase(static_cast<std::uint64_t>(id));
    return code::ok;
}

int Engine::record(EventId id, StreamId stream_id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    Stream* stream = core_->find(stream_id);
    if (!event || !stream) return code::invalid_handle;
    if (stream->capture) {
        if (stream->capture->invalidated) return code::capture_invalidated;
        event->capture = stream->capture;
        event->capture_nodes = stream->capture_tail;
        event->record = nullptr;
        return code::ok;
    }
    if (const int code = core_->devices[stream->device].code; code != code::ok) return code;
    Operation operation;
    operation.kind = Kind::event_record;
    event->record = core_->append(*stream, std::move(operation));
    event->capture = nullptr;
    event->capture_nodes.clear();
    return code::ok;
}

int Engine::record_all(EventId id, const std::vector<StreamId>& streams, StreamId legacy_id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    const Stream* const legacy = core_->find(legacy_id);
    if (!event || !legacy) return code::invalid_handle;
    bool capturing = false;
    for (const StreamId one : streams) {
        const Stream* stream = core_->find(one);
        if (!stream || !stream->capture) continue;
        stream->capture->invalidated = true;
        capturing = true;
    }
    if (capturing) return code::capture_unsupported;
    Device& device = core_->devices[legacy->device];
    if (device.code != code::ok) return device.code;
    Operation operation;
    operation.kind = Kind::event_record;
    const WorkRef record = core_->make_work(*legacy, std::move(operation));
    core_->link(legacy->tail, record);
    for (const StreamId one : streams) {
        if (const Stream* stream = core_->find(one)) core_->link(stream->tail, record);
    }
    for (const Orphan& orphan : device.orphans) {
        if (orphan.legacy == legacy_id) core_->link(orphan.tail, record);
    }
    *event = Event{event->timing, record, nullptr, {}};
    core_->seal(record);
    return code::ok;
}

int Engine::wait(StreamId stream_id, EventId id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    Stream* stream = core_->find(stream_id);
    if (!event || !stream) return code::invalid_handle;
    if (stream->capture && stream->capture->invalidated) return code::capture_invalidated;
    if (event->capture) {
        if (event->capture->ended) return code::invalid_value;  // observed
        if (event->capture->invalidated) return code::capture_invalidated;
        if (stream->capture && stream->capture != event->capture) {
            stream->capture->invalidated = event->capture->invalidated = true;
            return code::capture_merge;
        }
        if (stream->options.legacy == stream_id) {  // the legacy stream cannot join a capture (assumed)
            event->capture->invalidated = true;
            return code::capture_implicit;
        }
        if (!stream->capture) {  // the stream joins the capture
            stream->capture = event->capture;
            stream->capture_tail.clear();
        }
        for (NodeIndex node : event->capture_nodes) add_once(stream->capture_tail, node);
        return code::ok;
    }
    if (stream->capture) {
        if (!event->record) return code::ok;  // never recorded: complete
        stream->capture->invalidated = true;
        return code::capture_isolation;
    }
    if (const int code = core_->devices[stream->device].code; code != code::ok) return code;
    Operation operation;
    operation.kind = Kind::wait;
    core_->append(*stream, std::move(operation), event->record);
    return code::ok;
}

int Engine::query_event(EventId id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    if (!event) return code::invalid_handle;
    if (event->capture) return captured_code(*event);
    if (!event->record) return code::ok;
    if (const int code = core_->devices[event->record->operation.device].code; code != code::ok) return code;
    if (!event->record->done) return code::not_ready;
    core_->observe(*event->record);
    return code::ok;
}

int Engine::synchronize_event(EventId id) {
    Core::Lock lock(*core_);
    Event* event = core_->find(id);
    if (!event) return code::invalid_handle;
    if (event->capture) return captured_code(*event);
    if (!event->record) return code::ok;
    const WorkRef record = event->record;
    return core_->await(lock, record, record->operation.device);
}

int Engine::elapsed_ns(EventId start_id, EventId end_id, std::int64_t& nanoseconds) {
    Core::Lock lock(*core_);
    const Event* start = core_->find(start_id);
    const Event* end = core_->find(end_id);
    if (!start || !end || !start->timing || !end->timing) return code::invalid_handle;
    for (const Event* event : {start, end}) {
        if (event->capture) return captured_code(*event);
    }
    if (!start->record || !end->record) return code::invalid_handle;
    for (const Event* event : {start, end}) {
        if (const int code = core_->devices[event->record->operation.device].code; code != code::ok) return code;
    }
    if (!start->record->done || !end->record->done) return code::not_ready;
    nanoseconds = static_cast<std::int64_t>(end->record->ended_ns) - static_cast<std::int64_t>(start->record->ended_ns);
    return code::ok;
}

std::uint64_t Engine::event_capture(EventId id) const {
    Core::Lock lock(*core_);
    const Event* event = core_->find(id);
    return event && event->capture ? event->capture->id : 0;
}

}  // namespace isthmus::sim::engine
