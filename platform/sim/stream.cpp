// SPDX-License-Identifier: Apache-2.0
// Streams: handles for the engine's streams, and host functions in them.
#include "access.hpp"
#include "call.hpp"
#include "context_events.hpp"
#include "graph_objects.hpp"
#include "green_contexts.hpp"
#include "node_kinds.hpp"
#include "per_thread.hpp"
#include "pools.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

Stream* const legacy_handle = reinterpret_cast<Stream*>(1);
Stream* const per_thread_handle = reinterpret_cast<Stream*>(2);

constexpr unsigned non_blocking = 1;
constexpr int highest_priority = -5;

Result create(Driver& d, Context& context, Stream** stream, unsigned flags, int priority) {
    if (!stream || flags > non_blocking) return result::invalid_value;
    GreenContext* const green = current_green(d);
    const std::lock_guard lock(d.mutex);
    Stream* const made = create_stream(d, context, green, flags, priority);
    hold_new_stream(d, *made);
    *stream = made;
    return result::ok;
}

// Waiting for or querying a captured stream loses its capture in every mode; the rules for unsafe calls decide about
// other captures.
Result check_waiting(Driver& d, const StreamTarget& stream) {
    if (d.engine().capture_info(stream.id).state != engine::CaptureState::none) {
        d.engine().invalidate_capture(stream.id);
        return result::capture_unsupported;
    }
    return d.engine().unsafe_call();
}

Result wait_for(Driver& d, Stream* handle) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (const Result code = check_waiting(d, stream)) return code;
    const Result code = d.engine().synchronize(stream.id);
    update_managed_access(d);
    release_idle_reserves(d);
    return code;
}

Result add_callback(Driver& d, Stream* handle, StreamCallback callback, void* data, unsigned flags) {
    if (!callback || flags != 0) return result::invalid_value;
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (d.engine().capture_info(stream.id).state != engine::CaptureState::none) {
        d.engine().invalidate_capture(stream.id);
        return result::capture_unsupported;
    }
    engine::Operation operation;
    operation.kind = engine::Kind::stream_callback;
    operation.label = "cuStreamAddCallback";
    operation.callback = [=](int code) { callback(handle, code, data); };
    return d.engine().submit(stream.id, std::move(operation));
}

Result host_function(Driver& d, Stream* handle, HostFunction function, void* data) {
    if (!function) return result::invalid_value;
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    return d.engine().submit(stream.id, host_operation({function, data}, "cuLaunchHostFunc"));
}

// Body: Result(const StreamTarget&, const Stream*); the second is null for the legacy stream.
template <class Body>
Result call_about_stream(CallId id, Stream* handle, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget target;
        if (const Result code = resolve(d, handle, target)) return code;
        if (const Result lost = d.engine().device_code(target.device)) return lost;  // observed
        return body(target, target.stream);
    });
}

}  // namespace

Stream* create_stream(Driver& d, Context& context, GreenContext* green, unsigned flags, int priority) {
    const int device = context.device;
    const bool prioritised = d.fact(device, attribute::stream_priorities) != 0;
    Stream* const made = d.streams.create();
    made->priority = prioritised ? std::clamp(priority, highest_priority, 0) : 0;
    made->id = d.engine().create_stream(device, {flags != non_blocking, made->priority, legacy_stream_of(d, context)});
    made->context = &context;
    made->flags = flags;
    made->green = green;
    made->settings.of_launches = first_settings(attribute_facts(d, device));
    made->settings.of_launches.priority = made->priority;
    return made;
}

Result resolve(Driver& d, Stream* handle, StreamTarget& out) {
    const bool per_thread = handle == per_thread_handle || (handle == nullptr && default_stream_is_per_thread());
    if (!per_thread && (handle == nullptr || handle == legacy_handle)) {
        Context* context = current_context(d);
        if (!context) return current_is_dead(d) ? result::context_is_destroyed : result::invalid_context;
        out = {legacy_stream_of(d, *context), context->device, context, true, true, nullptr};
        return result::ok;
    }
    if (per_thread) {
        Context* const context = current_context(d);
        if (!context) return current_is_dead(d) ? result::context_is_destroyed : result::invalid_context;
        const std::lock_guard lock(d.mutex);
        Stream* const own = default_stream_of_thread(d, *context);
        out = {own->id, context->device, context, false, true, own};
        return result::ok;
    }
    const std::lock_guard lock(d.mutex);
    if (!d.streams.alive(handle)) return lost_or_unknown(d.streams, handle);
    out = {handle->id, handle->context->device, handle->context, false, handle->flags != non_blocking, handle};
    return result::ok;
}

Result resolve_for_work(Driver& d, Stream* handle, StreamTarget& out) {
    if (const Result code = resolve(d, handle, out)) return code;
    if (const Result lost = d.engine().device_code(out.device)) return lost;
    if (out.legacy && d.engine().would_join_capture(out.id)) {
        d.engine().invalidate_captures(out.id);
        return result::capture_implicit;
    }
    return result::ok;
}

extern "C" {

Result cuStreamCreate(Stream** stream, unsigned flags) {
    return call_in_context(CallId::cuStreamCreate,
                           [&](Driver& d, Context& context) { return create(d, context, stream, flags, 0); });
}

Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
    return call_in_context(CallId::cuStreamCreateWithPriority,
                           [&](Driver& d, Context& context) { return create(d, context, stream, flags, priority); });
}

Result cuStreamDestroy_v2(Stream* stream) {
    return call(CallId::cuStreamDestroy_v2, [&](Driver& d) -> Result {
        if (stream == nullptr || stream == legacy_handle || stream == per_thread_handle) {
            return result::invalid_handle;
        }
        const std::lock_guard lock(d.mutex);
        if (d.streams.lost(stream)) return result::context_is_destroyed;
        if (!d.streams.alive(stream)) die_like_the_driver("cuStreamDestroy of a stream that is already destroyed");
        if (const Result lost = d.engine().device_code(stream->context->device)) return lost;
        end_stream(d, *stream);
        d.streams.destroy(stream);
        return result::ok;
    });
}

Result cuStreamQuery(Stream* stream) {
    return call(CallId::cuStreamQuery, [&](Driver& d) -> Result {
        StreamTarget target;
        if (const Result code = resolve_for_work(d, stream, target)) return code;
        if (const Result code = check_waiting(d, target)) return code;
        const Result code = d.engine().query(target.id);
        if (code == 0) update_managed_access(d);
        return code;
    });
}

Result cuStreamSynchronize(Stream* stream) {
    return call(CallId::cuStreamSynchronize, [&](Driver& d) { return wait_for(d, stream); });
}

Result cuStreamGetId(Stream* stream, unsigned long long* id) {
    return call_about_stream(CallId::cuStreamGetId, stream, [&](const StreamTarget& target, const Stream*) -> Result {
        if (!id) return result::invalid_value;
        *id = static_cast<unsigned long long>(target.id);
        return result::ok;
    });
}

Result cuStreamGetPriority(Stream* stream, int* priority) {
    return call_about_stream(CallId::cuStreamGetPriority, stream, [&](const StreamTarget&, const Stream* s) -> Result {
        if (!priority) return result::invalid_value;
        *priority = s ? s->priority : 0;
        return result::ok;
    });
}

Result cuStreamGetFlags(Stream* stream, unsigned* flags) {
    return call_about_stream(CallId::cuStreamGetFlags, stream, [&](const StreamTarget&, const Stream* s) -> Result {
        if (!flags) return result::invalid_value;
        *flags = s ? s->flags : 0;
        return result::ok;
    });
}

// Observed: a context of a green context's stream, too, and the green context of the NULL stream (580, H200).
Result cuStreamGetCtx_v2(Stream* stream, Context** context, GreenContext** green) {
    return call_about_stream(CallId::cuStreamGetCtx_v2, stream,
                             [&](const StreamTarget& target, const Stream* known) -> Result {
                                 if (!context || !green) return result::invalid_value;
                                 *green = known ? known->green : current_green(*driver());
                                 *context = target.context;
                                 return result::ok;
                             });
}

Result cuStreamGetCtx(Stream* stream, Context** context) {
    return call_about_stream(CallId::cuStreamGetCtx, stream,
                             [&](const StreamTarget& target, const Stream* known) -> Result {
                                 if (!context) return result::invalid_value;
                                 const GreenContext* const green = known ? known->green : current_green(*driver());
                                 *context = green ? green->context : target.context;
                                 return result::ok;
                             });
}

Result cuStreamGetDevice(Stream* stream, DeviceOrdinal* device) {
    return call_about_stream(CallId::cuStreamGetDevice, stream,
                             [&](const StreamTarget& target, const Stream*) -> Result {
                                 if (!device) return result::invalid_value;
                                 *device = target.device;
                                 return result::ok;
                             });
}

Result cuStreamAddCallback(Stream* stream, StreamCallback callback, void* data, unsigned flags) {
    return call(CallId::cuStreamAddCallback, [&](Driver& d) { return add_callback(d, stream, callback, data, flags); });
}

Result cuLaunchHostFunc(Stream* stream, HostFunction function, void* data) {
    return call(CallId::cuLaunchHostFunc, [&](Driver& d) { return host_function(d, stream, function, data); });
}
}

}  // namespace isthmus::sim
