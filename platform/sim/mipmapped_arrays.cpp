// SPDX-License-Identifier: Apache-2.0
// Arrays with levels, each half as large as the one before it. A level is an array that ends with the whole.
#include "allocate.hpp"
#include "arrays.hpp"
#include "call.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

std::size_t bytes_before(const MipmappedArray& array, unsigned level) {
    std::size_t bytes = 0;
    for (unsigned i = 0; i < level; ++i) bytes += bytes_of(level_of(array.description, i));
    return bytes;
}

Result create(Driver& d, Context& context, MipmappedArray** out, const ArrayDescription3D& description,
              unsigned levels) {
    if (const Result code = check_array(d, context.device, description, true, "cuMipmappedArrayCreate")) return code;
    if (const Result code = d.engine().unsafe_call()) return code;
    MipmappedArray array;
    array.description = description;
    array.context = &context;
    array.device = context.device;
    array.level_count = std::clamp(levels, 1u, most_levels(description));  // documented
    array.levels.resize(array.level_count);
    const std::lock_guard lock(d.mutex);
    const std::size_t bytes = bytes_before(array, array.level_count);
    const Region* const region = allocate_array_memory(d, context.device, &context, bytes);
    if (!region) return result::out_of_memory;
    array.region = region->id;
    MipmappedArray* const made = d.mipmapped_arrays.create();
    *made = std::move(array);
    *out = made;
    return result::ok;
}

Result destroy(Driver& d, MipmappedArray* array) {
    if (const Result code = d.engine().unsafe_call()) return code;
    int device = -1;
    {
        const std::lock_guard lock(d.mutex);
        if (!d.mipmapped_arrays.alive(array)) return lost_or_unknown(d.mipmapped_arrays, array);
        if (const Result lost = d.engine().device_code(array->device)) return lost;
        device = array->device;
    }
    const Result lost = wait_before_destruction(d, device);
    const std::lock_guard lock(d.mutex);
    if (!d.mipmapped_arrays.alive(array)) return lost_or_unknown(d.mipmapped_arrays, array);
    for (Array* level : array->levels) {
        if (level) d.arrays.retire(level);
    }
    release_array_memory(d, array->region);
    d.mipmapped_arrays.retire(array);
    return lost;
}

// Assumed: every call for a level gives the same handle.
Result get_level(Driver& d, Array** out, MipmappedArray* array, unsigned level) {
    const std::lock_guard lock(d.mutex);
    if (!d.mipmapped_arrays.alive(array)) return lost_or_unknown(d.mipmapped_arrays, array);
    if (!out || level >= array->level_count) return result::invalid_value;
    Array*& known = array->levels[level];
    if (!known) {
        known = d.arrays.create();
        known->description = level_of(array->description, level);
        known->context = array->context;
        known->device = array->device;
        known->region = array->region;
        known->offset_bytes = bytes_before(*array, level);
        known->level_of = array;
    }
    *out = known;
    return result::ok;
}

// Documented: 1 for arrays that are not sparse or not mapped later; there are no others here.
Result refuse_query(CallId id, const MipmappedArray* array) {
    return call_in_context(id, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        return d.mipmapped_arrays.alive(array) ? result::invalid_value : lost_or_unknown(d.mipmapped_arrays, array);
    });
}

}  // namespace

extern "C" {

Result cuMipmappedArrayCreate(MipmappedArray** array, const ArrayDescription3D* description, unsigned levels) {
    return call_in_context(CallId::cuMipmappedArrayCreate, [&](Driver& d, Context& context) -> Result {
        if (!array || !description) return result::invalid_value;
        return create(d, context, array, *description, levels);
    });
}

Result cuMipmappedArrayDestroy(MipmappedArray* array) {
    return call(CallId::cuMipmappedArrayDestroy, [&](Driver& d) { return destroy(d, array); });
}

Result cuMipmappedArrayGetLevel(Array** out, MipmappedArray* array, unsigned level) {
    return call_in_context(CallId::cuMipmappedArrayGetLevel,
                           [&](Driver& d, Context&) { return get_level(d, out, array, level); });
}

Result cuMipmappedArrayGetSparseProperties(SparseProperties*, MipmappedArray* array) {
    return refuse_query(CallId::cuMipmappedArrayGetSparseProperties, array);
}

Result cuMipmappedArrayGetMemoryRequirements(ArrayMemoryRequirements*, MipmappedArray* array, DeviceOrdinal) {
    return refuse_query(CallId::cuMipmappedArrayGetMemoryRequirements, array);
}
}

}  // namespace isthmus::sim
