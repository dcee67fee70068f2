// SPDX-License-Identifier: Apache-2.0
// Events that two processes share.
#include "ipc_events.hpp"

#include "access.hpp"
#include "call.hpp"
#include "shared_event.hpp"

#include <chrono>
#include <thread>

namespace isthmus::sim {
namespace {

constexpr unsigned no_timing = 2, interprocess = 4;
constexpr int map_failed = 205;

// Polls, because the other process may be of any kind. If that process ends before its record is reached, waiters wait
// forever (observed).
Result wait_for(Driver& d, const SharedEvent& shared, std::uint64_t record, int device, bool progress) {
    while (!shared.reached(record)) {
        if (const Result lost = d.engine().device_code(device)) return lost;
        if (progress) d.engine().progress();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return result::ok;
}

Result get_handle(Driver& d, ShareableBytes* handle, Event* event) {
    if (!handle) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (!d.events.alive(event)) return lost_or_unknown(d.events, event);
    if (const Result lost = d.engine().device_code(event->context->device)) return lost;
    if (d.fact(event->context->device, attribute::ipc_events) == 0) return result::not_supported;
    if ((event->flags & interprocess) == 0) return result::invalid_handle;  // opened events do not have this flag
    // Observed on driver 580.159.04 with two H200.
    const Context* const current = current_context(d);
    if (current && current->device != event->context->device) {
        die_like_the_driver("cuIpcGetEventHandle with a context of another device current");
    }
    *handle = event->shared->handle();
    return result::ok;
}

Result open_handle(Driver& d, Context& context, Event** event, const ShareableBytes& handle) {
    if (!event) return result::invalid_value;
    if (d.fact(context.device, attribute::ipc_events) == 0) return result::not_supported;
    if (!SharedEvent::is_one(handle)) return map_failed;                       // observed, as the checks below
    if (SharedEvent::of_this_process(handle)) return result::invalid_context;  // the handle is for other processes
    std::shared_ptr<SharedEvent> shared = SharedEvent::open(handle);
    if (!shared) return result::invalid_handle;  // gone (assumed)
    const engine::EventId id = d.engine().create_event(false);
    const std::lock_guard lock(d.mutex);
    Event* const made = d.events.create();
    *made = {id, &context, no_timing, std::move(shared), 0};
    *event = made;
    return result::ok;
}

}  // namespace

Result announce_record(Driver& d, Event* handle, const Event& event, engine::StreamId stream) {
    if (!event.shared) return result::ok;
    const std::uint64_t record = event.shared->begin_record();
    {
        const std::lock_guard lock(d.mutex);
        if (d.events.alive(handle) && handle->id == event.id) handle->own_record = record;
    }
    engine::Operation operation;
    operation.kind = engine::Kind::event_record;
    operation.label = "cuEventRecord for other processes";
    operation.body = [shared = event.shared, record] {
        shared->reach(record);
        return 0;
    };
    return d.engine().submit(stream, std::move(operation));
}

bool recorded_elsewhere(const Event& event, std::uint64_t& record) {
    if (!event.shared) return false;
    record = event.shared->last_record();
    return record != event.own_record;
}

Result query_elsewhere(Driver& d, const Event& event, std::uint64_t record) {
    if (const Result lost = d.engine().device_code(event.context->device)) return lost;
    return event.shared->reached(record) ? result::ok : result::not_ready;
}

Result wait_elsewhere(Driver& d, const Event& event, std::uint64_t record) {
    return wait_for(d, *event.shared, record, event.context->device, true);
}

Result wait_in_stream(Driver& d, const Event& event, std::uint64_t record, const StreamTarget& stream) {
    engine::Operation operation;
    operation.kind = engine::Kind::wait;
    operation.label = "cuStreamWaitEvent for another process";
    operation.body = [&d, shared = event.shared, record, device = stream.device]() -> int {
        const Result code = wait_for(d, *shared, record, device, false);
        return code == d.engine().device_code(device) ? result::ok : code;  // the device's own code is reported anyway
    };
    return d.engine().submit(stream.id, std::move(operation));
}

extern "C" {

Result cuIpcGetEventHandle(ShareableBytes* handle, Event* event) {
    return call(CallId::cuIpcGetEventHandle, [&](Driver& d) { return get_handle(d, handle, event); });
}

Result cuIpcOpenEventHandle(Event** event, ShareableBytes handle) {
    return call_in_context(CallId::cuIpcOpenEventHandle,
                           [&](Driver& d, Context& context) { return open_handle(d, context, event, handle); });
}
}

}  // namespace isthmus::sim
