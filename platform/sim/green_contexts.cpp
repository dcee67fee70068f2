// SPDX-License-Identifier: Apache-2.0
// Shares of a device's multiprocessors, and green contexts that have them.
#include "green_contexts.hpp"

#include "call.hpp"
#include "context_events.hpp"
#include "graph_objects.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int multiprocessor_type = 1;
constexpr unsigned ignore_coscheduling = 1, large_clusters = 2, with_default_stream = 1, non_blocking = 1;
constexpr char magic[8] = "simshar";

// In the bytes of CUdevResource that are the driver's own.
struct Hidden {
    char magic[8];
    Share share;
};
static_assert(sizeof(Hidden) <= sizeof(DevResource::hidden));

void write(const Driver& d, const Share& share, DevResource& out) {
    out = {};
    if (share.count == 0) return;  // type 0: none
    out.type = multiprocessor_type;
    out.count = share.count;
    if (share.split == 0) {  // observed: groups of a split, which cannot be split again, have 0 and 0
        const ShareSizes sizes = share_sizes(d.fact(share.device, attribute::cc_major), false);
        out.least = sizes.least;
        out.multiple = sizes.multiple;
    }
    Hidden hidden = {};
    std::memcpy(hidden.magic, magic, sizeof magic);
    hidden.share = share;
    std::memcpy(out.hidden, &hidden, sizeof hidden);
}

Result read(const Driver& d, const DevResource& resource, Share& out) {
    if (resource.type != multiprocessor_type) return result::invalid_resource_type;
    Hidden hidden;
    std::memcpy(&hidden, resource.hidden, sizeof hidden);
    out = hidden.share;
    // Observed (580, H200): with a changed count, 915 as for an invented one.
    const bool ours =
        std::memcmp(hidden.magic, magic, sizeof magic) == 0 && d.valid(out.device) && resource.count == out.count;
    return ours ? result::ok : result::invalid_resource_configuration;
}

Share whole(const Driver& d, int device) {
    return {device, 0, static_cast<unsigned>(d.fact(device, attribute::multiprocessors)), 0};
}

Result give(const Driver& d, const Share& share, DevResource* resource, int type) {
    if (!resource) return result::invalid_value;
    if (type != multiprocessor_type) return result::invalid_resource_type;
    write(d, share, *resource);
    return result::ok;
}

Result split(Driver& d, DevResource* groups, unsigned* count, const DevResource* input, DevResource* remaining,
             unsigned flags, unsigned least) {
    // Observed: the two flags exclude each other, and others are ignored.
    constexpr unsigned both = ignore_coscheduling | large_clusters;
    if (!count || !input || (flags & both) == both || (groups && *count == 0)) return result::invalid_value;
    Share from;
    if (const Result code = read(d, *input, from)) return code;
    // Observed: neither a group nor the rest is split again before it is a green context's.
    if (from.split != 0) return result::invalid_resource_configuration;
    if (least > from.count) return result::invalid_resource_configuration;  // observed
    const bool fine = (flags & ignore_coscheduling) != 0;
    const ShareSizes sizes = share_sizes(d.fact(from.device, attribute::cc_major), fine);
    const unsigned wanted = std::max(least, sizes.least);
    // Observed: a part that is rounded up beyond what is there is all of it.
    const unsigned size = std::min((wanted + sizes.multiple - 1) / sizes.multiple * sizes.multiple, from.count);
    unsigned made = from.count / size;
    if (groups) made = std::min(made, *count);
    *count = made;
    const std::lock_guard lock(d.mutex);
    const std::uint64_t number = ++d.splits;
    for (unsigned i = 0; groups && i < made; ++i) {
        write(d, {from.device, from.begin + i * size, size, number}, groups[i]);
    }
    if (remaining) {
        write(d, {from.device, from.begin + made * size, from.count - made * size, number}, *remaining);
    }
    return result::ok;
}

Result describe(Driver& d, ResourceDescription** description, const DevResource* resources, unsigned count) {
    if (!description || !resources) return result::invalid_value;
    if (count == 0) die_like_the_driver("cuDevResourceGenerateDesc of no resources");  // observed (580, H200)
    std::vector<Share> shares(count);
    ResourceDescription all;
    for (unsigned i = 0; i < count; ++i) {
        if (const Result code = read(d, resources[i], shares[i])) return code;
        // Documented: of one device, and of one split. Observed (580, H200): the whole device beside a group is taken.
        const bool one_split = shares[i].split == shares[0].split || shares[i].split == 0 || shares[0].split == 0;
        if (shares[i].device != shares[0].device || !one_split) return result::invalid_resource_configuration;
        all.count += shares[i].count;  // observed (580, H200): the same one twice counts twice
    }
    all.device = shares[0].device;
    all.count = std::min(all.count, whole(d, all.device).count);  // assumed
    const std::lock_guard lock(d.mutex);
    *description = d.resource_descriptions.create();
    **description = all;
    return result::ok;
}

Result create(Driver& d, GreenContext** green, ResourceDescription* description, int device, unsigned flags) {
    if (!green || flags != with_default_stream) return result::invalid_value;
    if (!d.valid(device)) return result::invalid_device;
    if (const Result lost = d.engine().device_code(device)) return lost;
    const std::lock_guard lock(d.mutex);
    if (!d.resource_descriptions.alive(description) || description->device != device) return result::invalid_value;
    retain_primary(d, device);
    GreenContext* const made = d.green_contexts.create();
    made->context = d.contexts.create();
    made->context->device = device;
    made->context->green = made;
    made->context->id = made->id = d.next_context_id++;
    made->device = device;
    made->count = description->count;
    *green = made;
    return result::ok;
}

// Documented: its streams are lost, and answer 709.
Result destroy(Driver& d, GreenContext* green) {
    int device = 0;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.green_contexts.alive(green)) {
            return d.green_contexts.was_alive(green) ? result::context_is_destroyed : result::invalid_context;
        }
        device = green->device;
    }
    if (const Result lost = d.engine().device_code(device)) return lost;
    d.engine().synchronize_device(device);
    {
        const std::lock_guard lock(d.mutex);
        // Another thread may have destroyed it during the wait.
        if (!d.green_contexts.alive(green)) return result::context_is_destroyed;
        for (Stream* stream : d.streams.all()) {
            if (stream->green != green) continue;
            end_stream(d, *stream);
            d.streams.lose(stream);
        }
        open_gate(d, *green->context);
        Context* const ended = green->context;
        d.contexts.destroy(ended);
        ended->was_green = true;
        d.green_contexts.destroy(green);
        d.context_changes.fetch_add(1, std::memory_order_release);  // pairs with current_is_dead()
    }
    return release_primary(d, device, false);
}

// Body: Result(), called with a live green context and the driver's mutex held.
template <class Body>
Result call_for_green(CallId id, GreenContext* green, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.green_contexts.alive(green)) {
            return d.green_contexts.was_alive(green) ? result::context_is_destroyed : result::invalid_context;
        }
        return body(d);
    });
}

std::vector<engine::StreamId> streams_of(const Driver& d, const GreenContext* green) {
    std::vector<engine::StreamId> streams;
    for (const Stream* stream : d.streams.all()) {
        if (stream->green == green) streams.push_back(stream->id);
    }
    return streams;
}

// Documented: 400 for an event of another primary context.
Result check_event(Driver& d, const GreenContext* green, const Event* event) {
    if (!d.events.alive(event)) return lost_or_unknown(d.events, event);
    if (event->shared) {
        say("an interprocess event and a green context are not modelled together");
        return result::not_supported;
    }
    return event->context == &d.devices[static_cast<std::size_t>(green->device)].primary ? result::ok
                                                                                         : result::invalid_handle;
}

}  // namespace

// Documented for splitting by count: 7.x 2 and 2, 8.x 4 and 2, from 9.0 on 8 and 8; without co-scheduling 2 and 2.
ShareSizes share_sizes(int cc_major, bool ignore) noexcept {
    if (cc_major < 7) return {1, 1};
    if (cc_major == 7 || ignore) return {2, 2};
    return cc_major == 8 ? ShareSizes{4, 2} : ShareSizes{8, 8};
}

extern "C" {

Result cuDeviceGetDevResource(DeviceOrdinal device, DevResource* resource, int type) {
    return call(CallId::cuDeviceGetDevResource, [&](Driver& d) -> Result {
        return d.valid(device) ? give(d, whole(d, device), resource, type) : result::invalid_device;
    });
}

Result cuCtxGetDevResource(Context* context, DevResource* resource, int type) {
    return call(CallId::cuCtxGetDevResource, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, context)) return code;
        if (const Result lost = d.engine().device_code(context->device)) return lost;  // observed
        Share share = whole(d, context->device);
        if (context->green) share.count = context->green->count;
        return give(d, share, resource, type);
    });
}

Result cuGreenCtxGetDevResource(GreenContext* green, DevResource* resource, int type) {
    return call_for_green(CallId::cuGreenCtxGetDevResource, green, [&](Driver& d) {
        return give(d, {green->device, 0, green->count, 0}, resource, type);
    });
}

Result cuDevSmResourceSplitByCount(DevResource* groups, unsigned* count, const DevResource* input,
                                   DevResource* remaining, unsigned flags, unsigned least) {
    return call(CallId::cuDevSmResourceSplitByCount,
                [&](Driver& d) { return split(d, groups, count, input, remaining, flags, least); });
}

Result cuDevResourceGenerateDesc(ResourceDescription** description, DevResource* resources, unsigned count) {
    return call(CallId::cuDevResourceGenerateDesc,
                [&](Driver& d) { return describe(d, description, resources, count); });
}

Result cuGreenCtxCreate(GreenContext** green, ResourceDescription* description, DeviceOrdinal device, unsigned flags) {
    return call(CallId::cuGreenCtxCreate, [&](Driver& d) { return create(d, green, description, device, flags); });
}

Result cuGreenCtxDestroy(GreenContext* green) {
    return call(CallId::cuGreenCtxDestroy, [&](Driver& d) { return destroy(d, green); });
}

Result cuCtxFromGreenCtx(Context** context, GreenContext* green) {
    return call_for_green(CallId::cuCtxFromGreenCtx, green, [&](Driver&) -> Result {
        if (!context) return result::invalid_value;
        *context = green->context;
        return result::ok;
    });
}

Result cuGreenCtxGetId(GreenContext* green, unsigned long long* id) {
    return call_for_green(CallId::cuGreenCtxGetId, green, [&](Driver&) -> Result {
        if (!id) return result::invalid_value;
        *id = green->id;
        return result::ok;
    });
}

Result cuGreenCtxStreamCreate(Stream** stream, GreenContext* green, unsigned flags, int priority) {
    return call_for_green(CallId::cuGreenCtxStreamCreate, green, [&](Driver& d) -> Result {
        if (!stream || flags != non_blocking) return result::invalid_value;  // documented
        if (const Result lost = d.engine().device_code(green->device)) return lost;
        Context& primary = d.devices[static_cast<std::size_t>(green->device)].primary;
        *stream = create_stream(d, primary, green, flags, priority);
        hold_new_stream(d, **stream);
        return result::ok;
    });
}

Result cuStreamGetGreenCtx(Stream* stream, GreenContext** green) {
    return call(CallId::cuStreamGetGreenCtx, [&](Driver& d) -> Result {
        StreamTarget target;
        if (const Result code = resolve(d, stream, target)) return code;
        if (!green) return result::invalid_value;
        *green = target.stream && target.stream->thread == 0 ? target.stream->green : current_green(d);
        return result::ok;
    });
}

Result cuGreenCtxRecordEvent(GreenContext* green, Event* event) {
    return call_for_green(CallId::cuGreenCtxRecordEvent, green, [&](Driver& d) -> Result {
        if (const Result code = check_event(d, green, event)) return code;
        // It also waits for the legacy stream and for destroyed streams: for more than the driver does, never for less.
        return d.engine().record_all(event->id, streams_of(d, green), d.engine().legacy_stream(green->device));
    });
}

Result cuGreenCtxWaitEvent(GreenContext* green, Event* event) {
    return call_for_green(CallId::cuGreenCtxWaitEvent, green, [&](Driver& d) -> Result {
        if (const Result code = check_event(d, green, event)) return code;
        return wait_for_event(d, *green->context, event->id);
    });
}
}

}  // namespace isthmus::sim
