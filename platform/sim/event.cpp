// SPDX-License-Identifier: Apache-2.0
// Events: handles for the engine's events.
#include "access.hpp"
#include "call.hpp"
#include "event_nodes.hpp"
#include "ipc_events.hpp"
#include "pools.hpp"
#include "shared_event.hpp"

namespace isthmus::sim {
namespace {

constexpr unsigned blocking_wait = 1, no_timing = 2, interprocess = 4;

Result find(Driver& d, Event* handle, Event& out) {
    const std::lock_guard lock(d.mutex);
    if (!d.events.alive(handle)) return lost_or_unknown(d.events, handle);
    out = *handle;
    return result::ok;
}

Result find_working(Driver& d, Event* handle, Event& out) {
    if (const Result code = find(d, handle, out)) return code;
    return d.engine().device_code(out.context->device);
}

// A captured event answers 907 and its capture is lost; the rules for unsafe calls decide about other captures.
Result check_waiting(Driver& d, const Event& event) {
    const std::uint64_t capture = d.engine().event_capture(event.id);
    if (capture == 0) return d.engine().unsafe_call();
    std::vector<engine::StreamId> streams;
    {
        const std::lock_guard lock(d.mutex);
        for (const Stream* stream : d.streams.all()) streams.push_back(stream->id);
    }
    for (const engine::StreamId stream : streams) {
        if (d.engine().capture_info(stream).id == capture) d.engine().invalidate_capture(stream);
    }
    return d.engine().query_event(event.id);
}

Result create(Driver& d, Context& context, Event** event, unsigned flags) {
    if (!event || flags > (blocking_wait | no_timing | interprocess)) return result::invalid_value;
    if ((flags & interprocess) != 0 && (flags & no_timing) == 0) return result::invalid_value;
    std::shared_ptr<SharedEvent> shared;
    if ((flags & interprocess) != 0) {
        shared = SharedEvent::create();
        if (!shared) return result::out_of_memory;
    }
    const engine::EventId id = d.engine().create_event((flags & no_timing) == 0);
    const std::lock_guard lock(d.mutex);
    Event* made = d.events.create();
    *made = {id, &context, flags, std::move(shared), 0};
    *event = made;
    return result::ok;
}

Result record(Driver& d, Event* handle, Stream* stream_handle) {
    Event event;
    if (const Result code = find(d, handle, event)) return code;
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, stream_handle, stream)) return code;
    if (event.context != stream.context) return result::invalid_handle;
    const bool captured = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
    if (captured && event.shared) return result::capture_unsupported;  // observed: the capture continues
    if (const Result code = announce_record(d, handle, event, stream.id)) return code;
    return d.engine().record(event.id, stream.id);
}

Result elapsed(Driver& d, float* milliseconds, Event* begin_handle, Event* end_handle) {
    Event begin, end;
    if (!milliseconds) return result::invalid_value;
    if (const Result code = find_working(d, begin_handle, begin)) return code;
    if (const Result code = find_working(d, end_handle, end)) return code;
    // Documented for events of the CUDA runtime library; assumed for these.
    if (begin.context->device != end.context->device) return result::invalid_handle;
    std::int64_t nanoseconds = 0;
    if (const Result code = d.engine().elapsed_ns(begin.id, end.id, nanoseconds)) return code;
    *milliseconds = static_cast<float>(static_cast<double>(nanoseconds) * 1e-6);
    return result::ok;
}

}  // namespace

extern "C" {

Result cuEventCreate(Event** event, unsigned flags) {
    return call_in_context(CallId::cuEventCreate,
                           [&](Driver& d, Context& context) { return create(d, context, event, flags); });
}

Result cuEventDestroy_v2(Event* event) {
    return call(CallId::cuEventDestroy_v2, [&](Driver& d) -> Result {
        if (!event) return result::invalid_handle;
        const std::lock_guard lock(d.mutex);
        if (d.events.lost(event)) return result::context_is_destroyed;
        if (!d.events.alive(event)) die_like_the_driver("cuEventDestroy of an event that is already destroyed");
        if (const Result lost = d.engine().device_code(event->context->device)) return lost;
        d.engine().destroy_event(event->id);
        d.events.destroy(event);
        return result::ok;
    });
}

Result cuEventRecord(Event* event, Stream* stream) {
    return call(CallId::cuEventRecord, [&](Driver& d) { return record(d, event, stream); });
}

Result cuEventRecordWithFlags(Event* event, Stream* stream, unsigned flags) {
    return call(CallId::cuEventRecordWithFlags, [&](Driver& d) -> Result {
        if (flags > 1) return result::invalid_value;
        if (flags == 1) return capture_event_node(d, stream, event, false, "cuEventRecordWithFlags");
        return record(d, event, stream);
    });
}

Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
    return call(CallId::cuStreamWaitEvent, [&](Driver& d) -> Result {
        if (flags > 1) return result::invalid_value;
        if (flags == 1) return capture_event_node(d, stream, event, true, "cuStreamWaitEvent");
        Event found;
        if (const Result code = find(d, event, found)) return code;
        StreamTarget target;
        if (const Result code = resolve_for_work(d, stream, target)) return code;
        if (found.shared && d.engine().capture_info(target.id).state != engine::CaptureState::none) {
            d.engine().invalidate_capture(target.id);
            return result::capture_unsupported;  // observed: 900, and 901 at the end
        }
        if (found.shared && found.context->device != target.device) {  // observed
            die_like_the_driver("cuStreamWaitEvent on a stream of another device than the interprocess event's");
        }
        std::uint64_t elsewhere = 0;
        if (recorded_elsewhere(found, elsewhere)) return wait_in_stream(d, found, elsewhere, target);
        return d.engine().wait(target.id, found.id);
    });
}

Result cuEventQuery(Event* event) {
    return call(CallId::cuEventQuery, [&](Driver& d) -> Result {
        Event found;
        if (const Result code = find_working(d, event, found)) return code;
        if (const Result code = check_waiting(d, found)) return code;
        std::uint64_t elsewhere = 0;
        const Result code = recorded_elsewhere(found, elsewhere) ? query_elsewhere(d, found, elsewhere)
                                                                 : d.engine().query_event(found.id);
        if (code == 0) update_managed_access(d);
        return code;
    });
}

Result cuEventSynchronize(Event* event) {
    return call(CallId::cuEventSynchronize, [&](Driver& d) -> Result {
        Event found;
        if (const Result code = find_working(d, event, found)) return code;
        if (const Result code = check_waiting(d, found)) return code;
        std::uint64_t elsewhere = 0;
        const Result code = recorded_elsewhere(found, elsewhere) ? wait_elsewhere(d, found, elsewhere)
                                                                 : d.engine().synchronize_event(found.id);
        update_managed_access(d);
        release_idle_reserves(d);
        return code;
    });
}

Result cuEventElapsedTime(float* milliseconds, Event* begin, Event* end) {
    return call(CallId::cuEventElapsedTime, [&](Driver& d) { return elapsed(d, milliseconds, begin, end); });
}

Result cuEventElapsedTime_v2(float* milliseconds, Event* begin, Event* end) {
    return call(CallId::cuEventElapsedTime_v2, [&](Driver& d) { return elapsed(d, milliseconds, begin, end); });
}
}

}  // namespace isthmus::sim
