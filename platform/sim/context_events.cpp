// SPDX-License-Identifier: Apache-2.0
// Events of whole contexts: recorded behind all of their work, and waited for by all of their later work.
#include "context_events.hpp"

#include "call.hpp"
#include "graph_objects.hpp"
#include "green_contexts.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// Of the primary context: its green contexts' too, as documented.
std::vector<engine::StreamId> streams_of(const Driver& d, const Context& context) {
    std::vector<engine::StreamId> streams;
    for (const Stream* stream : d.streams.all()) {
        const bool is_own = context.green ? stream->green == context.green : stream->context == &context;
        if (is_own) streams.push_back(stream->id);
    }
    return streams;
}

// Of a green context's context, the primary one, to which its events belong.
const Context* owner_of_events(const Driver& d, const Context& context) {
    return context.green ? &d.devices[static_cast<std::size_t>(context.device)].primary : &context;
}

Result refuse_shared(const char* call) {
    say("%s: interprocess events are not modelled", call);
    return result::not_supported;
}

// Invalidates the capture that an event belongs to. true: there was one.
bool leave_capture_of(Driver& d, engine::EventId event) {
    const std::uint64_t capture = d.engine().event_capture(event);
    if (capture == 0) return false;
    for (const Stream* stream : d.streams.all()) {
        if (d.engine().capture_info(stream->id).id == capture) d.engine().invalidate_capture(stream->id);
    }
    return true;
}

bool leave_captures(Driver& d, const std::vector<engine::StreamId>& streams) {
    bool any = false;
    for (const engine::StreamId stream : streams) {
        if (d.engine().capture_info(stream).state == engine::CaptureState::none) continue;
        d.engine().invalidate_capture(stream);
        any = true;
    }
    return any;
}

void hold(Driver& d, engine::StreamId gate, const Stream& stream) {
    if (gate == engine::StreamId::none) return;
    const engine::EventId passed = d.engine().create_event(false);
    (void)d.engine().record(passed, gate);
    (void)d.engine().wait(stream.id, passed);
    (void)d.engine().destroy_event(passed);
}

Result record(Driver& d, Context* context, const Event* event) {
    if (const Result code = context_code(d, context)) return code;
    if (!d.events.alive(event)) return lost_or_unknown(d.events, event);
    if (event->context != owner_of_events(d, *context)) return result::invalid_handle;
    if (event->shared) return refuse_shared("cuCtxRecordEvent");
    return d.engine().record_all(event->id, streams_of(d, *context), legacy_stream_of(d, *context));
}

Result wait(Driver& d, Context* context, const Event* event) {
    if (const Result code = context_code(d, context)) return code;
    if (!d.events.alive(event)) return lost_or_unknown(d.events, event);
    if (event->shared) return refuse_shared("cuCtxWaitEvent");
    if (const Result lost = d.engine().device_code(context->device)) return lost;
    return wait_for_event(d, *context, event->id);
}

}  // namespace

Result wait_for_event(Driver& d, Context& context, engine::EventId event) {
    std::vector<engine::StreamId> streams = streams_of(d, context);
    // Both, also where the first has a capture.
    const bool of_event = leave_capture_of(d, event), of_streams = leave_captures(d, streams);
    if (of_event || of_streams) return result::capture_unsupported;
    const engine::StreamId legacy = legacy_stream_of(d, context);
    if (context.gate == engine::StreamId::none)
        context.gate = d.engine().create_stream(context.device, {false, 0, legacy});
    streams.push_back(context.gate);
    if (!context.green) streams.push_back(legacy);
    for (const engine::StreamId stream : streams) {
        if (const Result code = d.engine().wait(stream, event)) return code;
    }
    return result::ok;
}

void hold_new_stream(Driver& d, const Stream& stream) {
    hold(d, stream.context->gate, stream);
    if (stream.green) hold(d, stream.green->context->gate, stream);
}

void open_gate(Driver& d, Context& context) {
    if (context.gate != engine::StreamId::none) (void)d.engine().destroy_stream(context.gate);
    context.gate = engine::StreamId::none;
}

extern "C" {

Result cuCtxRecordEvent(Context* context, Event* event) {
    return call(CallId::cuCtxRecordEvent, [&](Driver& d) {
        Context* const named = context ? context : current_context(d);
        const std::lock_guard lock(d.mutex);
        return record(d, named, event);
    });
}

Result cuCtxWaitEvent(Context* context, Event* event) {
    // Observed (580): null is no context, also where one is current.
    return call(CallId::cuCtxWaitEvent, [&](Driver& d) {
        const std::lock_guard lock(d.mutex);
        return wait(d, context, event);
    });
}
}

}  // namespace isthmus::sim
