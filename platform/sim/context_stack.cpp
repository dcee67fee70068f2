// SPDX-License-Identifier: Apache-2.0
// The calling thread's stack of current contexts, and whether they still exist. A destroyed context stays current;
// nearly every call then answers 709 (observed).
#include "call.hpp"

namespace isthmus::sim {
namespace {

// The handle of a created context may belong to a later context; its id does not. A primary context's handle is valid
// again after the next retain (observed).
struct Entry {
    Context* context;
    std::uint64_t id;
};

// The calling thread's stack. Its size is fixed, so that the end of a thread needs no destructor, and small, because
// glibc keeps some 1600 bytes of static TLS for all libraries of a process that are loaded later.
constexpr int max_depth = 24;
thread_local Entry stack[max_depth];
thread_local int depth = 0;
// Value of Driver::context_changes when the top context last was alive; 0: not checked yet.
thread_local std::uint64_t seen_alive = 0;

bool alive(const Driver& d, const Entry& entry) {
    return alive(d, entry.context) && (entry.context->primary || entry.context->id == entry.id);
}

}  // namespace

bool push_current(Context* context) {
    if (depth == max_depth) return false;
    seen_alive = 0;
    stack[depth++] = {context, context->id};
    return true;
}

void pop_if_current(const Context* context) {
    if (depth == 0 || stack[depth - 1].context != context) return;
    seen_alive = 0;
    --depth;
}

bool current_is_dead(Driver& d) {
    if (depth == 0) return false;
    // Pairs with the functions that end contexts.
    const std::uint64_t changes = d.context_changes.load(std::memory_order_acquire);
    if (seen_alive == changes) return false;
    const std::lock_guard lock(d.mutex);
    if (!alive(d, stack[depth - 1])) return true;
    seen_alive = changes;
    return false;
}

engine::StreamId legacy_stream_of(Driver& d, const Context& context) {
    const bool own = context.legacy != engine::StreamId::none;
    return own ? context.legacy : d.engine().legacy_stream(context.device);
}

bool alive(const Driver& d, const Context* context) {
    if (!context) return false;
    for (const DeviceState& state : d.devices) {
        if (context == &state.primary) return state.active;
    }
    return d.contexts.alive(context);
}

Result context_code(const Driver& d, const Context* context) {
    if (alive(d, context)) return result::ok;
    for (const DeviceState& state : d.devices) {
        if (context == &state.primary) return result::context_is_destroyed;
    }
    return d.contexts.was_alive(context) ? result::context_is_destroyed : result::invalid_context;
}

Context* current_context(Driver& d) {
    if (depth == 0 || current_is_dead(d)) return nullptr;
    Context* const top = stack[depth - 1].context;
    return top->green ? &d.devices[static_cast<std::size_t>(top->device)].primary : top;
}

GreenContext* current_green(Driver& d) {
    return depth == 0 || current_is_dead(d) ? nullptr : stack[depth - 1].context->green;
}

Result need_context(Driver& d, Context*& context) {
    context = current_context(d);
    if (!context) return depth == 0 ? result::invalid_context : result::context_is_destroyed;
    return d.engine().device_code(context->device);
}

bool works_beside_a_dead_context(CallId id) noexcept {
    switch (id) {
        case CallId::cuCtxSetCurrent:
        case CallId::cuCtxGetCurrent:
        case CallId::cuCtxPushCurrent_v2:
        case CallId::cuCtxPopCurrent_v2:
        case CallId::cuCtxCreate_v2:
        case CallId::cuCtxCreate_v4:
        case CallId::cuCtxDestroy_v2:
        case CallId::cuGreenCtxDestroy:  // assumed
        case CallId::cuMemPoolDestroy:   // observed
        case CallId::cuThreadExchangeStreamCaptureMode: return true;
        default: {  // queries of devices, and references of primary contexts
            const char* const device = "cuDevice";
            const char* const called = name(id);
            for (int i = 0; device[i]; ++i) {
                if (called[i] != device[i]) return false;
            }
            return true;
        }
    }
}

extern "C" {

Result cuCtxSetCurrent(Context* context) {
    return call(CallId::cuCtxSetCurrent, [&](Driver& d) -> Result {
        if (!context) {
            pop_if_current(depth > 0 ? stack[depth - 1].context : nullptr);
            return result::ok;
        }
        const std::lock_guard lock(d.mutex);
        // Observed (580, H200): the context of a destroyed green context can become current; its calls are 709.
        const Result code = context_code(d, context);
        const bool was_green = code == result::context_is_destroyed && context->was_green;
        if (code != result::ok && !was_green) return code;
        pop_if_current(depth > 0 ? stack[depth - 1].context : nullptr);
        push_current(context);
        return result::ok;
    });
}

Result cuCtxGetCurrent(Context** context) {
    return call(CallId::cuCtxGetCurrent, [&](Driver&) -> Result {
        if (!context) return result::invalid_value;
        *context = depth > 0 ? stack[depth - 1].context : nullptr;
        return result::ok;
    });
}

Result cuCtxPushCurrent_v2(Context* context) {
    return call(CallId::cuCtxPushCurrent_v2, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, context)) return code;
        return push_current(context) ? result::ok : result::invalid_context;
    });
}

Result cuCtxPopCurrent_v2(Context** context) {
    return call(CallId::cuCtxPopCurrent_v2, [&](Driver&) -> Result {
        if (depth == 0) return result::invalid_context;
        if (context) *context = stack[depth - 1].context;
        pop_if_current(stack[depth - 1].context);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
