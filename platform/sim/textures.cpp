// SPDX-License-Identifier: Apache-2.0
// Texture objects: checked as documented, and described. No kernel reads them here.
#include "textures.hpp"

#include "call.hpp"

#include <algorithm>
#include <iterator>

namespace isthmus::sim {
namespace {

constexpr unsigned seamless_cubemap = 64;  // CU_TRSF_SEAMLESS_CUBEMAP

Texture* object_of(TextureHandle handle) {
    return reinterpret_cast<Texture*>(static_cast<std::uintptr_t>(handle));
}

// A record without the attribute sets no limit.
bool is_within(const Driver& d, int device, std::size_t extent, int id) {
    const int most = d.fact(device, id);
    return most <= 0 || extent <= static_cast<std::size_t>(most);
}

bool is_aligned(const Driver& d, int device, std::uint64_t value, int id) {
    const int alignment = d.fact(device, id);
    return alignment <= 0 || value % static_cast<std::uint64_t>(alignment) == 0;
}

// Observed (580, H200): what lies there, and how much, is not looked at.
bool is_address(const Driver& d, int device, Address address) {
    return address != 0 && is_aligned(d, device, address, attribute::texture_alignment);
}

bool is_lawful(const Driver& d, int device, const LinearTexels& texels) {
    const std::size_t element = element_bytes_of(texels.format, texels.channels);
    return element != 0 && is_address(d, device, texels.address) &&
           is_within(d, device, texels.bytes / element, attribute::texture_1d_linear_width);
}

bool is_lawful(const Driver& d, int device, const PitchedTexels& texels) {
    const std::size_t element = element_bytes_of(texels.format, texels.channels);
    if (element == 0 || texels.width == 0) return false;  // observed (580, H200): a height of 0 is taken
    if (!is_within(d, device, texels.width, attribute::texture_2d_linear_width) ||
        !is_within(d, device, texels.height, attribute::texture_2d_linear_height) ||
        !is_within(d, device, texels.pitch, attribute::texture_2d_linear_pitch) ||
        !is_aligned(d, device, texels.pitch, attribute::texture_pitch_alignment)) {
        return false;
    }
    return texels.pitch >= texels.width * element && is_address(d, device, texels.address);
}

// What a view can look at; `levels`: 1 for arrays without levels.
struct Viewed {
    ArrayDescription3D description;
    unsigned levels;
};

// CUresourceViewFormat: the bytes of an element, and for block-compressed formats the channels of the array below.
constexpr int first_compressed = 0x19, last_format = 0x22;

std::size_t element_bytes_of_view(int format) {
    // From 1: unsigned, signed with 8, 16 and 32 bits, each with 1, 2 and 4 channels; then floats with 16 and 32 bits.
    constexpr std::size_t bytes[] = {1, 2, 4, 1, 2, 4, 2, 4, 8, 2, 4, 8, 4, 8, 16, 4, 8, 16, 2, 4, 8, 4, 8, 16};
    return bytes[format - 1];
}

unsigned channels_below(int format) {
    constexpr int bc1 = 0x19, bc4_unsigned = 0x1c, bc4_signed = 0x1d;
    return format == bc1 || format == bc4_unsigned || format == bc4_signed ? 2 : 4;
}

bool fits(const Viewed& of, const TextureView& view) {
    constexpr int unsigned_int32 = 3;
    const ArrayDescription3D& a = of.description;
    if (view.format <= 0 || view.format > last_format) return false;  // observed (580, H200) for 0
    const bool compressed = view.format >= first_compressed;
    const std::size_t scale = compressed ? 4 : 1;  // documented
    if (view.width != a.width * scale || view.height != a.height * scale || view.depth != a.depth) return false;
    if (compressed && (a.format != unsigned_int32 || a.channels != channels_below(view.format))) return false;
    // Observed (580, H200): a view of another size of elements is refused.
    if (!compressed && element_bytes_of_view(view.format) != element_bytes_of(a.format, a.channels)) return false;
    if (view.first_level > view.last_level || view.last_level >= of.levels) return false;
    const bool layered = (a.flags & array_flag::layered) != 0;
    return view.first_layer <= view.last_layer && view.last_layer < (layered ? a.depth : 1);
}

// 0 and what a view may look at (levels 0: views are not allowed), or why it is no resource. Requires the driver's
// mutex.
Result check_resource(const Driver& d, const Context& context, const TextureResource& resource, Viewed& viewed) {
    viewed = {{}, 0};
    if (resource.flags != 0) return result::invalid_value;
    switch (resource.type) {
        case resource_type::array: {
            const Array* const array = resource.from.array;
            if (const Result code = check_array_of_object(d, array, context)) return code;
            viewed = {array->description, 1};
            return result::ok;
        }
        case resource_type::mipmapped: {
            const MipmappedArray* const array = resource.from.mipmapped;
            if (d.mipmapped_arrays.lost(array)) return result::context_is_destroyed;
            if (!d.mipmapped_arrays.alive(array) || array->context != &context) return result::invalid_value;
            viewed = {array->description, array->level_count};
            return result::ok;
        }
        case resource_type::linear:
            return is_lawful(d, context.device, resource.from.linear) ? result::ok : result::invalid_value;
        case resource_type::pitched:
            return is_lawful(d, context.device, resource.from.pitched) ? result::ok : result::invalid_value;
        default: return result::invalid_value;
    }
}

// Address modes other than clamp are taken without normalised coordinates too, although they then have no effect:
// clients that run on real drivers make such textures. Observed (580, H200): so are unknown flags, and mipmapped arrays
// without normalised coordinates.
bool is_lawful(const TextureSampling& sampling, const ArrayDescription3D& array) {
    constexpr int last_address_mode = 3, last_filter_mode = 1;
    if ((sampling.flags & seamless_cubemap) != 0 && (array.flags & array_flag::cubemap) == 0) return false;
    const auto is_mode = [](int mode) { return mode >= 0 && mode <= last_address_mode; };
    const auto is_filter = [](int mode) { return mode >= 0 && mode <= last_filter_mode; };
    return std::all_of(std::begin(sampling.address_mode), std::end(sampling.address_mode), is_mode) &&
           is_filter(sampling.filter_mode) && is_filter(sampling.level_filter_mode);
}

Result create(Driver& d, Context& context, TextureHandle* out, const TextureResource& resource,
              const TextureSampling& sampling, const TextureView* view) {
    const std::lock_guard lock(d.mutex);
    Viewed viewed;
    if (const Result code = check_resource(d, context, resource, viewed)) return code;
    if (!is_lawful(sampling, viewed.description)) return result::invalid_value;
    if (view && (viewed.levels == 0 || !fits(viewed, *view))) return result::invalid_value;
    Texture* const made = d.textures.create();
    made->resource = resource;
    made->sampling = sampling;
    if (view) made->view = *view;
    made->context = &context;
    *out = reinterpret_cast<std::uintptr_t>(made);
    return result::ok;
}

// Documented for these calls: 1, not 400.
Result unknown_code(const Driver& d, const Texture* texture) {
    const Result code = lost_or_unknown(d.textures, texture);
    return code == result::invalid_handle ? result::invalid_value : code;
}

// Body: Result(const Texture&).
template <class Body>
Result call_for_texture(CallId id, TextureHandle handle, Body body) {
    return call_in_context(id, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        const Texture* const texture = object_of(handle);
        return d.textures.alive(texture) ? body(*texture) : unknown_code(d, texture);
    });
}

}  // namespace

Result check_array_of_object(const Driver& d, const Array* array, const Context& context) {
    if (d.arrays.lost(array)) return result::context_is_destroyed;
    if (!d.arrays.alive(array)) return result::invalid_value;
    return array->context == &context ? result::ok : result::peer_not_enabled;
}

void lose_textures(Driver& d, const Context* context) {
    for (Texture* texture : d.textures.all()) {
        if (texture->context == context) d.textures.lose(texture);
    }
    for (Surface* surface : d.surfaces.all()) {
        if (surface->context == context) d.surfaces.lose(surface);
    }
    d.textures.reuse_retired(context);
    d.surfaces.reuse_retired(context);
}

extern "C" {

Result cuTexObjectCreate(TextureHandle* texture, const TextureResource* resource, const TextureSampling* sampling,
                         const TextureView* view) {
    return call_in_context(CallId::cuTexObjectCreate, [&](Driver& d, Context& context) -> Result {
        if (!texture || !resource || !sampling) return result::invalid_value;
        return create(d, context, texture, *resource, *sampling, view);
    });
}

Result cuTexObjectDestroy(TextureHandle texture) {
    return call_in_context(CallId::cuTexObjectDestroy, [&](Driver& d, Context&) -> Result {
        const std::lock_guard lock(d.mutex);
        // Observed (580, H200): 0 for number 0 and for a destroyed one. Assumed: for any other that is none.
        if (!d.textures.alive(object_of(texture))) {
            const Result code = unknown_code(d, object_of(texture));
            return code == result::context_is_destroyed ? code : result::ok;
        }
        d.textures.retire(object_of(texture));
        return result::ok;
    });
}

Result cuTexObjectGetResourceDesc(TextureResource* resource, TextureHandle texture) {
    return call_for_texture(CallId::cuTexObjectGetResourceDesc, texture, [&](const Texture& known) -> Result {
        if (!resource) return result::invalid_value;
        *resource = known.resource;
        return result::ok;
    });
}

Result cuTexObjectGetTextureDesc(TextureSampling* sampling, TextureHandle texture) {
    return call_for_texture(CallId::cuTexObjectGetTextureDesc, texture, [&](const Texture& known) -> Result {
        if (!sampling) return result::invalid_value;
        *sampling = known.sampling;
        return result::ok;
    });
}

Result cuTexObjectGetResourceViewDesc(TextureView* view, TextureHandle texture) {
    return call_for_texture(CallId::cuTexObjectGetResourceViewDesc, texture, [&](const Texture& known) -> Result {
        if (!view) return result::invalid_value;
        *view = known.view.value_or(TextureView{});  // observed (580, H200): 0 without one; what it tells: assumed
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
