// Contexts: primary and created ones, the stack of current ones, peer access, and what a context takes with it.
#include "access.hpp"
#include "allocate.hpp"
#include "call.hpp"
#include "pools.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// The calling thread's stack. Fixed, so that a thread's end needs no destructor.
constexpr int max_depth = 64;
thread_local Context* stack[max_depth];
thread_local int depth = 0;

DeviceState& state_of(Driver& d, int device) {
    return d.devices[static_cast<std::size_t>(device)];
}

Result make_current(Context* context) {
    if (depth == 0) {
        if (!context) return result::ok;
        depth = 1;
    }
    if (!context) {
        --depth;
        return result::ok;
    }
    stack[depth - 1] = context;
    return result::ok;
}

Result synchronize_context(Driver& d, int device) {
    // Lost in every mode and from any thread, where the context has an open capture: observed.
    if (d.engine().invalidate_captures(device)) return result::capture_unsupported;
    const Result code = d.engine().synchronize_device(device);
    update_managed_access(d);
    release_idle_reserves(d);
    return code;
}

Result create(Driver& d, Context** context, unsigned flags, DeviceOrdinal device) {
    if (!context) return result::invalid_value;
    if (!d.valid(device)) return result::invalid_device;
    if (const Result lost = d.engine().device_code(device)) return lost;
    const std::lock_guard lock(d.mutex);
    Context* made = d.contexts.create();
    made->device = device;
    made->flags = flags;
    made->id = d.next_context_id++;
    *context = made;
    if (depth == max_depth) return result::out_of_memory;
    stack[depth++] = made;
    return result::ok;
}

Result release_primary(Driver& d, DeviceOrdinal device, bool reset) {
    if (!d.valid(device)) return result::invalid_device;
    if (const Result lost = d.engine().device_code(device)) return lost;
    {
        const std::lock_guard lock(d.mutex);
        int& retained = state_of(d, device).retained;
        if (!reset && retained == 0) return result::invalid_context;
        if (!reset && --retained > 0) return result::ok;
        if (reset && retained == 0) return result::ok;
    }
    d.engine().synchronize_device(device);
    release_context_resources(d, &state_of(d, device).primary);
    return result::ok;
}

Result set_primary_flags(Driver& d, DeviceOrdinal device, unsigned flags) {
    if (!d.valid(device)) return result::invalid_device;
    const std::lock_guard lock(d.mutex);
    state_of(d, device).primary_flags = flags;
    state_of(d, device).primary.flags = flags;
    return result::ok;
}

}  // namespace

bool alive(const Driver& d, const Context* context) {
    if (!context) return false;
    for (const DeviceState& state : d.devices) {
        if (context == &state.primary) return state.retained > 0;
    }
    return d.contexts.alive(context);
}

std::size_t count_contexts(const Driver& d) {
    std::size_t count = d.contexts.count();
    for (const DeviceState& state : d.devices) count += state.retained > 0;
    return count;
}

std::set<int> peers_of_device(const Driver& d, int device) {
    std::set<int> peers = d.devices[static_cast<std::size_t>(device)].primary.peers;
    for (const Context* context : d.contexts.all()) {
        if (context->device == device) peers.insert(context->peers.begin(), context->peers.end());
    }
    const auto add = [&](const Pool& pool) {
        if (pool.device >= 0 && pool.access(device) != 0) peers.insert(pool.device);
    };
    for (const Pool* pool : d.pools.all()) add(*pool);
    for (const Pool& pool : d.retired_pools) add(pool);
    for (const DeviceState& state : d.devices) add(state.default_pool);
    return peers;
}

Context* current_context(Driver& d) {
    if (depth == 0) return nullptr;
    const std::lock_guard lock(d.mutex);
    return alive(d, stack[depth - 1]) ? stack[depth - 1] : nullptr;
}

Result need_context(Driver& d, Context*& context) {
    context = current_context(d);
    if (!context) return result::invalid_context;
    return d.engine().device_code(context->device);
}

void release_context_resources(Driver& d, Context* context) {
    const std::lock_guard lock(d.mutex);
    for (Stream* stream : d.streams.all()) {
        if (stream->context != context) continue;
        d.engine().destroy_stream(stream->id);
        d.streams.destroy(stream);
    }
    for (Event* event : d.events.all()) {
        if (event->context != context) continue;
        d.engine().destroy_event(event->id);
        d.events.destroy(event);
    }
    // Device, managed and pinned memory is gone; pool memory survives and must still be freed (observed).
    for (Region* region : d.regions.all()) {
        if (region->context != context) continue;
        region->context = nullptr;
        if (!region->pool) release_region(d, region);
    }
    context->peers.clear();
}

extern "C" {

Result cuDevicePrimaryCtxRetain(Context** context, DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxRetain, [&](Driver& d) -> Result {
        if (!context) return result::invalid_value;
        if (!d.valid(device)) return result::invalid_device;
        if (const Result lost = d.engine().device_code(device)) return lost;
        const std::lock_guard lock(d.mutex);
        ++state_of(d, device).retained;
        *context = &state_of(d, device).primary;
        return result::ok;
    });
}

Result cuDevicePrimaryCtxRelease_v2(DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxRelease_v2, [&](Driver& d) { return release_primary(d, device, false); });
}

Result cuDevicePrimaryCtxRelease(DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxRelease, [&](Driver& d) { return release_primary(d, device, false); });
}

Result cuDevicePrimaryCtxReset_v2(DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxReset_v2, [&](Driver& d) { return release_primary(d, device, true); });
}

Result cuDevicePrimaryCtxReset(DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxReset, [&](Driver& d) { return release_primary(d, device, true); });
}

Result cuDevicePrimaryCtxSetFlags_v2(DeviceOrdinal device, unsigned flags) {
    return call(CallId::cuDevicePrimaryCtxSetFlags_v2, [&](Driver& d) { return set_primary_flags(d, device, flags); });
}

Result cuDevicePrimaryCtxSetFlags(DeviceOrdinal device, unsigned flags) {
    return call(CallId::cuDevicePrimaryCtxSetFlags, [&](Driver& d) { return set_primary_flags(d, device, flags); });
}

Result cuDevicePrimaryCtxGetState(DeviceOrdinal device, unsigned* flags, int* active) {
    return call(CallId::cuDevicePrimaryCtxGetState, [&](Driver& d) -> Result {
        if (!d.valid(device)) return result::invalid_device;
        if (!flags || !active) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *flags = state_of(d, device).primary_flags;
        *active = state_of(d, device).retained > 0;
        return result::ok;
    });
}

Result cuCtxCreate_v2(Context** context, unsigned flags, DeviceOrdinal device) {
    return call(CallId::cuCtxCreate_v2, [&](Driver& d) { return create(d, context, flags, device); });
}

Result cuCtxCreate_v4(Context** context, void* parameters, unsigned flags, DeviceOrdinal device) {
    return call(CallId::cuCtxCreate_v4, [&](Driver& d) -> Result {
        if (parameters) {
            say("cuCtxCreate_v4: execution affinity and graphics contexts are not modelled");
            return result::not_supported;
        }
        return create(d, context, flags, device);
    });
}

Result cuCtxDestroy_v2(Context* context) {
    return call(CallId::cuCtxDestroy_v2, [&](Driver& d) -> Result {
        {
            const std::lock_guard lock(d.mutex);
            if (!d.contexts.alive(context)) return result::invalid_context;
        }
        if (const Result lost = d.engine().device_code(context->device)) return lost;
        d.engine().synchronize_device(context->device);
        release_context_resources(d, context);
        if (depth > 0 && stack[depth - 1] == context) --depth;
        const std::lock_guard lock(d.mutex);
        d.contexts.destroy(context);
        return result::ok;
    });
}

Result cuCtxSetCurrent(Context* context) {
    return call(CallId::cuCtxSetCurrent, [&](Driver& d) -> Result {
        if (context) {
            const std::lock_guard lock(d.mutex);
            if (!alive(d, context)) return result::invalid_context;
        }
        return make_current(context);
    });
}

Result cuCtxGetCurrent(Context** context) {
    return call(CallId::cuCtxGetCurrent, [&](Driver&) -> Result {
        if (!context) return result::invalid_value;
        *context = depth > 0 ? stack[depth - 1] : nullptr;
        return result::ok;
    });
}

Result cuCtxPushCurrent_v2(Context* context) {
    return call(CallId::cuCtxPushCurrent_v2, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!alive(d, context) || depth == max_depth) return result::invalid_context;
        stack[depth++] = context;
        return result::ok;
    });
}

Result cuCtxPopCurrent_v2(Context** context) {
    return call(CallId::cuCtxPopCurrent_v2, [&](Driver&) -> Result {
        if (depth == 0) return result::invalid_context;
        --depth;
        if (context) *context = stack[depth];
        return result::ok;
    });
}

Result cuCtxGetDevice(DeviceOrdinal* device) {
    return call_in_context(CallId::cuCtxGetDevice, [&](Driver&, Context& context) -> Result {
        if (!device) return result::invalid_value;
        *device = context.device;
        return result::ok;
    });
}

Result cuCtxGetDevice_v2(DeviceOrdinal* device, Context* context) {
    return call(CallId::cuCtxGetDevice_v2, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        const std::lock_guard lock(d.mutex);
        if (!alive(d, context)) return result::invalid_context;
        if (!device) return result::invalid_value;
        *device = context->device;
        return result::ok;
    });
}

Result cuCtxGetFlags(unsigned* flags) {
    return call_in_context(CallId::cuCtxGetFlags, [&](Driver&, Context& context) -> Result {
        if (!flags) return result::invalid_value;
        *flags = context.flags;
        return result::ok;
    });
}

Result cuCtxGetId(Context* context, unsigned long long* id) {
    return call(CallId::cuCtxGetId, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        const std::lock_guard lock(d.mutex);
        if (!alive(d, context)) return result::invalid_context;
        if (!id) return result::invalid_value;
        *id = context->id;
        return result::ok;
    });
}

Result cuCtxGetApiVersion(Context* context, unsigned* version) {
    return call(CallId::cuCtxGetApiVersion, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (context && !alive(d, context)) return result::invalid_context;
        if (!version) return result::invalid_value;
        *version = 3020;  // of every context since that version
        return result::ok;
    });
}

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return call_in_context(CallId::cuCtxGetStreamPriorityRange, [&](Driver& d, Context& context) -> Result {
        if (least) *least = 0;
        if (greatest) *greatest = d.fact(context.device, attribute::stream_priorities) != 0 ? -5 : 0;
        return result::ok;
    });
}

Result cuCtxSynchronize() {
    return call_in_context(CallId::cuCtxSynchronize,
                           [&](Driver& d, Context& context) { return synchronize_context(d, context.device); });
}

Result cuCtxSynchronize_v2(Context* context) {
    return call(CallId::cuCtxSynchronize_v2, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        {
            const std::lock_guard lock(d.mutex);
            if (!alive(d, context)) return result::invalid_context;
        }
        return synchronize_context(d, context->device);
    });
}

Result cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
    return call_in_context(CallId::cuCtxEnablePeerAccess, [&](Driver& d, Context& context) -> Result {
        if (flags != 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (!alive(d, peer) || peer->device == context.device) return result::invalid_context;
        const auto* way = d.machine.peer(context.device, peer->device);
        if (!way || !way->access) return result::peer_unsupported;
        return context.peers.insert(peer->device).second ? result::ok : result::peer_already_enabled;
    });
}

Result cuCtxDisablePeerAccess(Context* peer) {
    return call_in_context(CallId::cuCtxDisablePeerAccess, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!alive(d, peer)) return result::invalid_context;
        return context.peers.erase(peer->device) != 0 ? result::ok : result::peer_not_enabled;
    });
}
}

}  // namespace isthmus::sim
