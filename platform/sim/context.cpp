// SPDX-License-Identifier: Apache-2.0
// Primary and created contexts: queries, and the objects that end with a context.
#include "access.hpp"
#include "allocate.hpp"
#include "arrays.hpp"
#include "call.hpp"
#include "context_events.hpp"
#include "graph_objects.hpp"
#include "module.hpp"
#include "pools.hpp"
#include "semaphores.hpp"
#include "textures.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

DeviceState& state_of(Driver& d, int device) {
    return d.devices[static_cast<std::size_t>(device)];
}

Result synchronize_context(Driver& d, engine::StreamId legacy) {
    // Observed: an open capture of the context is lost, in every mode and from any thread.
    if (d.engine().invalidate_captures(legacy)) return result::capture_unsupported;
    const Result code = d.engine().synchronize_context(legacy);
    update_managed_access(d);
    release_idle_reserves(d);
    return code;
}

Result create(Driver& d, Context** context, unsigned flags, DeviceOrdinal device) {
    if (!context || !are_context_flags(flags)) return result::invalid_value;
    if (!d.valid(device)) return result::invalid_device;
    if (const Result lost = d.engine().device_code(device)) return lost;
    const std::lock_guard lock(d.mutex);
    Context* made = d.contexts.create();
    made->device = device;
    made->flags = flags;
    made->id = d.next_context_id++;
    made->legacy = d.engine().create_legacy_stream(device);
    *context = made;
    return push_current(made) ? result::ok : result::out_of_memory;
}

Result set_primary_flags(Driver& d, DeviceOrdinal device, unsigned flags) {
    if (!d.valid(device)) return result::invalid_device;
    constexpr unsigned map_host = 8;  // observed (580, H100): 1 here, and taken by cuCtxCreate
    if (!are_context_flags(flags) || (flags & map_host) != 0) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    state_of(d, device).primary_flags = flags;
    state_of(d, device).primary.flags = flags;
    return result::ok;
}

struct ContextParameters {  // CUctxCreateParams
    void* affinities;
    int affinity_count;
    void* graphics;
};

// Observed (580, H100, without MPS).
Result affinity_code(const void* affinities, int count) {
    constexpr Result unsupported_affinity = 224;
    if (count < 0 || (count > 0 && !affinities)) return result::invalid_value;
    return count > 0 ? unsupported_affinity : result::ok;
}

// Handles that name memory or words of other objects: what they name ends elsewhere.
void lose_opaque_objects(Driver& d, const Context* context) {
    lose_textures(d, context);
    lose_arrays(d, context);
    lose_semaphores(d, context);
}

}  // namespace

Result release_primary(Driver& d, DeviceOrdinal device, bool reset) {
    if (!d.valid(device)) return result::invalid_device;
    const Result lost = d.engine().device_code(device);
    {
        const std::lock_guard lock(d.mutex);
        DeviceState& state = state_of(d, device);
        if (!reset) {
            if (state.retained == 0) return result::invalid_context;
            --state.retained;
        }
        if (!state.active || (!reset && state.retained > 0)) return result::ok;
    }
    d.engine().synchronize_device(device);
    // Observed (580, H100 and H200): release and reset of a lost device answer 0, and later calls answer 709. Its
    // memory stays mapped here, because work that did not end may still use it.
    if (!lost) release_context_resources(d, &state_of(d, device).primary);
    // Observed: a reset leaves the references; every retain still needs its release.
    const std::lock_guard lock(d.mutex);
    state_of(d, device).active = false;
    d.context_changes.fetch_add(1, std::memory_order_release);  // pairs with current_is_dead()
    return result::ok;
}

void retain_primary(Driver& d, int device) {
    DeviceState& state = state_of(d, device);
    // Observed: the handle is the same as before, the id is new.
    ++state.retained;
    if (state.active) return;
    state.active = true;
    state.primary.id = d.next_context_id++;
    d.context_changes.fetch_add(1, std::memory_order_release);  // pairs with current_is_dead()
}

std::size_t count_contexts(const Driver& d) {
    std::size_t count = d.contexts.count();
    for (const DeviceState& state : d.devices) count += state.active;
    return count;
}

void release_context_resources(Driver& d, Context* context) {
    const std::lock_guard lock(d.mutex);
    for (Stream* stream : d.streams.all()) {
        if (stream->context != context) continue;
        end_stream(d, *stream);
        d.streams.lose(stream);
    }
    for (Event* event : d.events.all()) {
        if (event->context != context) continue;
        d.engine().destroy_event(event->id);
        d.events.lose(event);
    }
    for (Module* module : d.modules.all()) {
        if (module->context != context) continue;
        for (const auto& [name, function] : module->functions) d.functions.lose(function);
        d.modules.lose(module);
    }
    lose_opaque_objects(d, context);
    forget_heap(d, context);
    // Observed: device, managed and pinned memory is gone; pool memory survives and must still be freed.
    for (Region* region : d.regions.all()) {
        if (region->context != context) continue;
        region->context = nullptr;
        if (!region->pool) release_region(d, region);
    }
    context->peers.clear();
    open_gate(d, *context);
}

namespace {

// Of a lost device: work that did not end may still use the memory of the context, so that only its streams, events and
// modules end.
void forget_context(Driver& d, Context* context) {
    const std::lock_guard lock(d.mutex);
    for (Stream* stream : d.streams.all()) {
        if (stream->context == context) d.streams.lose(stream);
    }
    for (Event* event : d.events.all()) {
        if (event->context == context) d.events.lose(event);
    }
    for (Module* module : d.modules.all()) {
        if (module->context != context) continue;
        for (const auto& [name, function] : module->functions) d.functions.lose(function);
        d.modules.lose(module);
    }
    lose_opaque_objects(d, context);
    forget_heap(d, context);
    for (Region* region : d.regions.all()) {
        if (region->context == context) region->context = nullptr;
    }
}

}  // namespace

Result destroy_context(Driver& d, Context* context) {
    {
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, context)) return code;
        if (context->primary || context->green) return result::invalid_context;  // observed
    }
    // Observed (580, H100): 0 on a lost device too. Its memory stays mapped, as after a reset.
    const Result lost = d.engine().device_code(context->device);
    d.engine().synchronize_device(context->device);
    if (!lost) {
        release_context_resources(d, context);
        (void)d.engine().destroy_stream(context->legacy);
    } else {
        forget_context(d, context);
    }
    pop_if_current(context);
    const std::lock_guard lock(d.mutex);
    d.contexts.destroy(context);
    d.context_changes.fetch_add(1, std::memory_order_release);  // pairs with current_is_dead()
    return result::ok;
}

extern "C" {

Result cuDevicePrimaryCtxRetain(Context** context, DeviceOrdinal device) {
    return call(CallId::cuDevicePrimaryCtxRetain, [&](Driver& d) -> Result {
        if (!context) return result::invalid_value;
        if (!d.valid(device)) return result::invalid_device;
        if (const Result lost = d.engine().device_code(device)) return lost;
        const std::lock_guard lock(d.mutex);
        retain_primary(d, device);
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
        *active = state_of(d, device).active;
        return result::ok;
    });
}

Result cuCtxCreate_v2(Context** context, unsigned flags, DeviceOrdinal device) {
    return call(CallId::cuCtxCreate_v2, [&](Driver& d) { return create(d, context, flags, device); });
}

Result cuCtxCreate_v3(Context** context, void* parameters, int count, unsigned flags, DeviceOrdinal device) {
    return call(CallId::cuCtxCreate_v3, [&](Driver& d) -> Result {
        if (const Result code = affinity_code(parameters, count)) return code;
        return create(d, context, flags, device);
    });
}

Result cuCtxCreate_v4(Context** context, void* parameters, unsigned flags, DeviceOrdinal device) {
    return call(CallId::cuCtxCreate_v4, [&](Driver& d) -> Result {
        // OpenMM and cuda-python's benchmarks give parameters that state nothing.
        const auto* stated = static_cast<const ContextParameters*>(parameters);
        if (stated && stated->graphics) {
            say("cuCtxCreate_v4: graphics contexts are not modelled");
            return result::not_supported;  // observed (580, H100): also beside an affinity
        }
        if (const Result code = stated ? affinity_code(stated->affinities, stated->affinity_count) : result::ok) {
            return code;
        }
        return create(d, context, flags, device);
    });
}

Result cuCtxDestroy_v2(Context* context) {
    return call(CallId::cuCtxDestroy_v2, [&](Driver& d) { return destroy_context(d, context); });
}

Result cuCtxGetDevice(DeviceOrdinal* device) {
    return call_in_lost_context(CallId::cuCtxGetDevice, [&](Driver&, Context& context) -> Result {
        if (!device) return result::invalid_value;
        *device = context.device;
        return result::ok;
    });
}

Result cuCtxGetDevice_v2(DeviceOrdinal* device, Context* context) {
    return call(CallId::cuCtxGetDevice_v2, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, context)) return code;
        if (!device) return result::invalid_value;
        *device = context->device;
        return result::ok;
    });
}

Result cuCtxGetFlags(unsigned* flags) {
    return call_in_lost_context(CallId::cuCtxGetFlags, [&](Driver&, Context& context) -> Result {
        if (!flags) return result::invalid_value;
        *flags = context.flags;
        return result::ok;
    });
}

Result cuCtxGetId(Context* context, unsigned long long* id) {
    return call(CallId::cuCtxGetId, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, context)) return code;
        if (!id) return result::invalid_value;
        *id = context->id;
        return result::ok;
    });
}

Result cuCtxGetApiVersion(Context* context, unsigned* version) {
    return call(CallId::cuCtxGetApiVersion, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (const Result code = context ? context_code(d, context) : result::ok) return code;
        if (!version) return result::invalid_value;
        *version = 3020;  // answered for every context since that version
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
    return call_in_context(CallId::cuCtxSynchronize, [&](Driver& d, Context& context) {
        return synchronize_context(d, legacy_stream_of(d, context));
    });
}

Result cuCtxSynchronize_v2(Context* context) {
    return call(CallId::cuCtxSynchronize_v2, [&](Driver& d) -> Result {
        if (!context) context = current_context(d);
        engine::StreamId legacy = engine::StreamId::none;
        {
            const std::lock_guard lock(d.mutex);
            if (const Result code = context_code(d, context)) return code;
            legacy = legacy_stream_of(d, *context);
        }
        return synchronize_context(d, legacy);
    });
}
}

}  // namespace isthmus::sim
