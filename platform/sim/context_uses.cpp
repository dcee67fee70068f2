// SPDX-License-Identifier: Apache-2.0
// Uses of a context: counted by cuCtxAttach and cuCtxDetach, as before CUDA 4. The last one that ends destroys it.
#include "call.hpp"

namespace isthmus::sim {
namespace {

// Observed (580, H100): of a primary context they do what cuDevicePrimaryCtxRetain and cuDevicePrimaryCtxRelease do.
Result attach(Driver& d, Context& context, Context** out, unsigned flags) {
    if (!out || flags != 0) return result::invalid_value;
    const std::lock_guard lock(d.mutex);
    if (context.primary) {
        retain_primary(d, context.device);
    } else {
        ++context.uses;
    }
    *out = &context;
    return result::ok;
}

// Observed: 201 for a context that is not current to the calling thread.
Result detach(Driver& d, Context* context) {
    if (!context || context != current_context(d)) return result::invalid_context;
    if (context->primary) return release_primary(d, context->device, false);
    {
        const std::lock_guard lock(d.mutex);
        if (context->uses > 1) {
            --context->uses;
            return result::ok;
        }
    }
    return destroy_context(d, context);
}

}  // namespace

extern "C" {

Result cuCtxAttach(Context** context, unsigned flags) {
    return call_in_context(CallId::cuCtxAttach,
                           [&](Driver& d, Context& current) { return attach(d, current, context, flags); });
}

Result cuCtxDetach(Context* context) {
    return call(CallId::cuCtxDetach, [&](Driver& d) { return detach(d, context); });
}
}

}  // namespace isthmus::sim
