// SPDX-License-Identifier: Apache-2.0
// Arrays of one level: made, described, destroyed; the planes of NV12; where boxes lie in them.
#include "arrays.hpp"

#include "allocate.hpp"
#include "call.hpp"

#include <algorithm>
#include <string>

namespace isthmus::sim {
namespace {

constexpr unsigned nv12_planes = 2;
constexpr int unsigned_int8 = 1;

Result create(Driver& d, Context& context, CallId id, Array** array, const ArrayDescription3D& description) {
    if (const Result code = check_array(d, context.device, description, false, name(id))) return code;
    if (const Result code = d.engine().unsafe_call()) return code;
    const std::lock_guard lock(d.mutex);
    const Region* const region = allocate_array_memory(d, context.device, &context, bytes_of(description));
    if (!region) return result::out_of_memory;
    Array* const made = d.arrays.create();
    made->description = description;
    made->context = &context;
    made->device = context.device;
    made->region = region->id;
    *array = made;
    return result::ok;
}

// Observed (580, H200): a level is destroyed by itself, too. Assumed: only its handle ends, and a plane ends with the
// whole. Handles are retired: texture and surface objects may name them.
Result destroy(Driver& d, Array* array) {
    if (const Result code = d.engine().unsafe_call()) return code;
    int device = -1;
    {
        const std::lock_guard lock(d.mutex);
        if (const Result code = check_alive(d, array, "cuArrayDestroy")) return code;
        if (const Result lost = d.engine().device_code(array->device)) return lost;
        if (array->plane_of) return result::invalid_handle;
        device = array->device;
    }
    const Result lost = wait_before_destruction(d, device);
    const std::lock_guard lock(d.mutex);
    if (const Result code = check_alive(d, array, "cuArrayDestroy")) return code;  // by another thread meanwhile
    if (array->level_of) {
        std::vector<Array*>& levels = array->level_of->levels;
        std::replace(levels.begin(), levels.end(), array, static_cast<Array*>(nullptr));
    } else {
        release_array_memory(d, array->region);
    }
    for (Array* plane : array->planes) {
        if (plane) d.arrays.retire(plane);
    }
    d.arrays.retire(array);
    return lost;
}

// Documented for NV12.
ArrayDescription3D plane_of(const ArrayDescription3D& whole, unsigned index) {
    ArrayDescription3D plane = whole;
    plane.format = unsigned_int8;
    plane.channels = index + 1;
    if (index == 1) {
        plane.width /= 2;
        plane.height /= 2;
    }
    return plane;
}

Result get_plane(Driver& d, Array** out, Array* array, unsigned index) {
    const std::lock_guard lock(d.mutex);
    if (const Result code = check_alive(d, array, "cuArrayGetPlane")) return code;
    if (!out || array->description.format != nv12_format || index >= nv12_planes) return result::invalid_value;
    array->planes.resize(nv12_planes);
    Array*& plane = array->planes[index];
    if (!plane) {
        Array* const made = d.arrays.create();
        *made = *array;
        made->planes.clear();
        made->plane_of = array;
        made->description = plane_of(array->description, index);
        if (index == 1) made->offset_bytes += array->description.width * array->description.height;
        plane = made;
    }
    *out = plane;
    return result::ok;
}

// Body: Result(const Array&), for an array that is there.
template <class Body>
Result call_for_array(CallId id, const Array* array, Body body) {
    return call_in_context(id, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        if (const Result code = check_alive(d, array, name(id))) return code;
        return body(*array);
    });
}

}  // namespace

Region* allocate_array_memory(Driver& d, int device, Context* context, std::size_t bytes) {
    if (!has_room(d, device, bytes)) return nullptr;
    Region* const region = map_region(d, Kind::array, device, context, bytes);
    if (!region) return nullptr;
    region->closed = true;
    d.protection.close(region->host, region->mapped_bytes, device, Why::device_memory);
    d.devices[static_cast<std::size_t>(device)].used_bytes += bytes;
    return region;
}

void release_array_memory(Driver& d, std::uint64_t id) {
    if (Region* const region = d.regions.find_id(id)) release_region(d, region);
}

Result wait_before_destruction(Driver& d, int device) {
    const Result lost = d.engine().synchronize_device(device);
    update_managed_access(d);
    return lost;
}

Result check_alive(const Driver& d, const Array* array, const char* call) {
    if (d.arrays.alive(array)) return result::ok;
    if (d.arrays.was_alive(array) && !d.arrays.lost(array)) {
        die_like_the_driver((std::string(call) + " of an array that is destroyed").c_str());
    }
    return lost_or_unknown(d.arrays, array);
}

Result check_handle(const Driver& d, const Array* array, const Context* context, const char* call) {
    if (!array) return result::invalid_value;
    if (const Result code = check_alive(d, array, call)) return code;
    return array->device == context->device ? result::ok : result::invalid_handle;
}

Result place_in_array(const Driver& d, const Context* context, const ArrayPlace& place, const Box& box, Side& side,
                      Layout& layout) {
    if (const Result code = check_handle(d, place.array, context, "a copy")) return code;
    const ArrayDescription3D& a = place.array->description;
    // Observed (580, H200): offsets and widths are bytes, and may cut elements.
    const std::size_t element = element_bytes_of(a.format, a.channels);
    if (element == 0) return result::invalid_value;  // assumed: of NV12 only planes are copied
    const std::size_t row_bytes = a.width * element;
    const auto leaves = [](std::size_t from, std::size_t count, std::size_t most) {
        return from > most || count > most - from;
    };
    if (leaves(place.x_bytes, box.width_bytes, row_bytes) || leaves(place.y, box.height, rows_of(a)) ||
        leaves(place.z, box.depth, layers_of(a))) {
        return result::invalid_value;
    }
    const Region* const region = d.regions.find_id(place.array->region);
    if (!region) return result::invalid_handle;
    layout = {row_bytes, row_bytes * rows_of(a)};
    side = {};
    side.address =
        region->base + place.array->offset_bytes + place.z * layout.slice + place.y * layout.pitch + place.x_bytes;
    side.device_address = true;
    side.array = place.array;
    side.region = region->id;
    side.x_bytes = place.x_bytes;
    side.y = place.y;
    side.z = place.z;
    return result::ok;
}

void lose_arrays(Driver& d, const Context* context) {
    for (Array* array : d.arrays.all()) {
        if (array->context == context) d.arrays.lose(array);
    }
    for (MipmappedArray* array : d.mipmapped_arrays.all()) {
        if (array->context == context) d.mipmapped_arrays.lose(array);
    }
    d.arrays.reuse_retired(context);
    d.mipmapped_arrays.reuse_retired(context);
}

extern "C" {

Result cuArrayCreate_v2(Array** array, const ArrayDescription* description) {
    return call_in_context(CallId::cuArrayCreate_v2, [&](Driver& d, Context& context) -> Result {
        if (!array || !description) return result::invalid_value;
        const ArrayDescription3D whole = {description->width,  description->height,   0,
                                          description->format, description->channels, 0};
        return create(d, context, CallId::cuArrayCreate_v2, array, whole);
    });
}

Result cuArray3DCreate_v2(Array** array, const ArrayDescription3D* description) {
    return call_in_context(CallId::cuArray3DCreate_v2, [&](Driver& d, Context& context) -> Result {
        if (!array || !description) return result::invalid_value;
        return create(d, context, CallId::cuArray3DCreate_v2, array, *description);
    });
}

Result cuArrayDestroy(Array* array) {
    return call(CallId::cuArrayDestroy, [&](Driver& d) { return destroy(d, array); });
}

Result cuArrayGetDescriptor_v2(ArrayDescription* description, Array* array) {
    return call_for_array(CallId::cuArrayGetDescriptor_v2, array, [&](const Array& known) -> Result {
        if (!description) return result::invalid_value;
        const ArrayDescription3D& a = known.description;
        *description = {a.width, a.height, a.format, a.channels};
        return result::ok;
    });
}

Result cuArray3DGetDescriptor_v2(ArrayDescription3D* description, Array* array) {
    return call_for_array(CallId::cuArray3DGetDescriptor_v2, array, [&](const Array& known) -> Result {
        if (!description) return result::invalid_value;
        *description = known.description;
        return result::ok;
    });
}

// Documented: 1 for arrays that are not sparse or not mapped later; there are no others here.
Result cuArrayGetSparseProperties(SparseProperties*, Array* array) {
    if (!array) {  // observed (580, H200)
        return call_in_context(CallId::cuArrayGetSparseProperties,
                               [](Driver&, Context&) -> Result { return result::invalid_value; });
    }
    return call_for_array(CallId::cuArrayGetSparseProperties, array,
                          [](const Array&) -> Result { return result::invalid_value; });
}

Result cuArrayGetMemoryRequirements(ArrayMemoryRequirements*, Array* array, DeviceOrdinal) {
    return call_for_array(CallId::cuArrayGetMemoryRequirements, array,
                          [](const Array&) -> Result { return result::invalid_value; });
}

Result cuArrayGetPlane(Array** plane, Array* array, unsigned index) {
    return call_in_context(CallId::cuArrayGetPlane,
                           [&](Driver& d, Context&) { return get_plane(d, plane, array, index); });
}
}

}  // namespace isthmus::sim
