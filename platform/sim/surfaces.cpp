// SPDX-License-Identifier: Apache-2.0
// Surface objects: arrays that kernels from PTX read and write by coordinates (ptx_memory.cpp).
#include "call.hpp"
#include "textures.hpp"

namespace isthmus::sim {
namespace {

Surface* object_of(SurfaceHandle handle) {
    return reinterpret_cast<Surface*>(static_cast<std::uintptr_t>(handle));
}

// Documented for these calls: 1, not 400.
Result unknown_code(const Driver& d, const Surface* surface) {
    const Result code = lost_or_unknown(d.surfaces, surface);
    return code == result::invalid_handle ? result::invalid_value : code;
}

Result create(Driver& d, Context& context, SurfaceHandle* out, const TextureResource& resource) {
    const std::lock_guard lock(d.mutex);
    if (resource.type != resource_type::array || resource.flags != 0) return result::invalid_value;
    const Array* const array = resource.from.array;
    if (const Result code = check_array_of_object(d, array, context)) return code;
    // Observed (580, H200): an array without CUDA_ARRAY3D_SURFACE_LDST is taken, too.
    Surface* const made = d.surfaces.create();
    made->resource = resource;
    made->context = &context;
    *out = reinterpret_cast<std::uintptr_t>(made);
    return result::ok;
}

}  // namespace

extern "C" {

Result cuSurfObjectCreate(SurfaceHandle* surface, const TextureResource* resource) {
    return call_in_context(CallId::cuSurfObjectCreate, [&](Driver& d, Context& context) -> Result {
        return surface && resource ? create(d, context, surface, *resource) : result::invalid_value;
    });
}

Result cuSurfObjectDestroy(SurfaceHandle surface) {
    return call_in_context(CallId::cuSurfObjectDestroy, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        // Observed (580, H200): 0 for number 0. Assumed: for any other that is none, as for textures.
        if (!d.surfaces.alive(object_of(surface))) {
            const Result code = unknown_code(d, object_of(surface));
            return code == result::context_is_destroyed ? code : result::ok;
        }
        d.surfaces.retire(object_of(surface));
        return result::ok;
    });
}

Result cuSurfObjectGetResourceDesc(TextureResource* resource, SurfaceHandle surface) {
    return call_in_context(CallId::cuSurfObjectGetResourceDesc, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!d.surfaces.alive(object_of(surface))) return unknown_code(d, object_of(surface));
        if (!resource) return result::invalid_value;
        *resource = object_of(surface)->resource;
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
