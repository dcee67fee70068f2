// SPDX-License-Identifier: Apache-2.0
// Which arrays a device can have, as cuArray3DCreate and cuMipmappedArrayCreate document it.
#include "array_limits.hpp"

#include "call.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// Formats with any number of channels: the bytes of a channel.
std::size_t channel_bytes(int format) {
    switch (format) {
        case 0x01:
        case 0x08: return 1;
        case 0x02:
        case 0x09:
        case 0x10: return 2;
        case 0x03:
        case 0x0a:
        case 0x20: return 4;
        default: return 0;
    }
}

// Normalised integers, whose format has its channels: 8 bits unsigned, 16 bits unsigned, 8 bits signed, 16 bits signed,
// each with 1, 2 and 4 of them.
constexpr int first_normalised = 0xc0, last_normalised = 0xcb;

unsigned channels_of_normalised(int format) {
    constexpr unsigned channels[] = {1, 2, 4};
    return channels[(format - first_normalised) % 3];
}

enum class Shape { line, plane, volume, lines, planes, cube, cubes, none };

Shape shape_of(const ArrayDescription3D& a) {
    const bool layered = (a.flags & array_flag::layered) != 0;
    if (a.width == 0) return Shape::none;
    if ((a.flags & array_flag::cubemap) != 0) {
        constexpr std::size_t faces = 6;
        if (a.height != a.width || a.depth == 0 || a.depth % faces != 0) return Shape::none;
        if (layered) return Shape::cubes;
        return a.depth == faces ? Shape::cube : Shape::none;
    }
    if (layered) return a.depth == 0 ? Shape::none : a.height == 0 ? Shape::lines : Shape::planes;
    if (a.height == 0) return a.depth == 0 ? Shape::line : Shape::none;
    return a.depth == 0 ? Shape::plane : Shape::volume;
}

// Attributes that limit an extent; 0: nothing does.
struct Limits {
    int width, height, depth;
};

Limits texture_limits(Shape shape, bool mipmapped) {
    using namespace attribute;
    switch (shape) {
        case Shape::line: return {mipmapped ? mipmapped_1d_width : texture_1d_width, 0, 0};
        case Shape::plane:
            if (mipmapped) return {mipmapped_2d_width, mipmapped_2d_height, 0};
            return {texture_2d_width, texture_2d_height, 0};
        case Shape::volume: return {texture_3d_width, texture_3d_height, texture_3d_depth};
        case Shape::lines: return {texture_1d_layered_width, 0, texture_1d_layers};
        case Shape::planes: return {texture_2d_layered_width, texture_2d_layered_height, texture_2d_layers};
        case Shape::cube: return {cubemap_width, 0, 0};
        case Shape::cubes: return {cubemap_layered_width, 0, cubemap_layers};
        case Shape::none: break;
    }
    return {0, 0, 0};
}

Limits surface_limits(Shape shape) {
    using namespace attribute;
    switch (shape) {
        case Shape::line: return {surface_1d_width, 0, 0};
        case Shape::plane: return {surface_2d_width, surface_2d_height, 0};
        case Shape::volume: return {surface_3d_width, surface_3d_height, surface_3d_depth};
        case Shape::lines: return {surface_1d_layered_width, 0, surface_1d_layers};
        case Shape::planes: return {surface_2d_layered_width, surface_2d_layered_height, surface_2d_layers};
        case Shape::cube: return {surface_cubemap_width, 0, 0};
        case Shape::cubes: return {surface_cubemap_layered_width, 0, surface_cubemap_layers};
        case Shape::none: break;
    }
    return {0, 0, 0};
}

// A record without the attribute sets no limit.
bool is_within(const Driver& d, int device, std::size_t extent, int id) {
    const int most = id != 0 ? d.fact(device, id) : 0;
    return most <= 0 || extent <= static_cast<std::size_t>(most);
}

bool fits(const Driver& d, int device, const ArrayDescription3D& a, const Limits& limits) {
    return is_within(d, device, a.width, limits.width) && is_within(d, device, a.height, limits.height) &&
           is_within(d, device, a.depth, limits.depth);
}

bool is_small_enough(const Driver& d, int device, const ArrayDescription3D& a, Shape shape, bool mipmapped) {
    constexpr Limits alternate = {attribute::texture_3d_width_alternate, attribute::texture_3d_height_alternate,
                                  attribute::texture_3d_depth_alternate};
    const bool as_texture = fits(d, device, a, texture_limits(shape, mipmapped)) ||
                            (shape == Shape::volume && fits(d, device, a, alternate));
    if (!as_texture) return false;
    if ((a.flags & array_flag::surface) != 0 && !fits(d, device, a, surface_limits(shape))) return false;
    return (a.flags & array_flag::gather) == 0 ||
           fits(d, device, a, {attribute::gather_width, attribute::gather_height, 0});
}

// Documented for its planes: half the width and height. Observed (580, H200): 3 channels, even extents, and the flag
// for video. Assumed: one plane of extents, no mipmaps.
bool is_lawful_nv12(const ArrayDescription3D& a, Shape shape, bool mipmapped) {
    return shape == Shape::plane && a.channels == 3 && a.width % 2 == 0 && a.height % 2 == 0 && !mipmapped &&
           (a.flags & array_flag::video) != 0;
}

Result check_flags(const Driver& d, int device, unsigned flags, const char* call) {
    using namespace array_flag;
    if (flags >= 2 * video) return result::invalid_value;
    if ((flags & sparse) != 0 && d.fact(device, attribute::sparse_arrays) == 0)
        return result::not_supported;  // assumed
    if ((flags & (sparse | deferred_mapping)) != 0) {
        say("%s: sparse arrays and arrays that are mapped later are not modelled", call);
        return result::not_supported;
    }
    // Observed (580, H200): without graphics the flags for them are refused; that for video is taken.
    return (flags & (depth_texture | color_attachment)) == 0 ? result::ok : result::invalid_value;
}

}  // namespace

std::size_t element_bytes_of(int format, unsigned channels) {
    if (format >= first_normalised && format <= last_normalised) {
        if (channels != channels_of_normalised(format)) return 0;  // assumed
        return channels * ((format - first_normalised) / 3 % 2 == 0 ? 1 : 2);
    }
    const bool packed = channels == 1 || channels == 2 || channels == 4;
    return packed ? channels * channel_bytes(format) : 0;
}

bool is_format_not_modelled(int format) {
    constexpr int packed_10_bits = 0x50;
    if (format == nv12_format || format == 0xa0) return false;
    return format == packed_10_bits || (format >= 0x91 && format <= 0xb5);
}

Result check_array(const Driver& d, int device, const ArrayDescription3D& a, bool mipmapped, const char* call) {
    const Shape shape = shape_of(a);
    if (shape == Shape::none) return result::invalid_value;
    if (is_format_not_modelled(a.format)) {
        say("%s: block-compressed formats and formats of video but NV12 are not modelled", call);
        return result::not_supported;
    }
    const bool planar = a.format == nv12_format;
    if (planar ? !is_lawful_nv12(a, shape, mipmapped) : element_bytes_of(a.format, a.channels) == 0) {
        return result::invalid_value;
    }
    if (const Result code = check_flags(d, device, a.flags, call)) return code;
    if ((a.flags & array_flag::gather) != 0 && shape != Shape::plane) return result::invalid_value;
    return is_small_enough(d, device, a, shape, mipmapped) ? result::ok : result::invalid_value;
}

unsigned most_levels(const ArrayDescription3D& a) {
    const bool layered = (a.flags & (array_flag::layered | array_flag::cubemap)) != 0;
    std::size_t longest = std::max(a.width, a.height);
    if (!layered) longest = std::max(longest, a.depth);
    unsigned levels = 1;
    for (; longest > 1; longest /= 2) ++levels;
    return levels;
}

ArrayDescription3D level_of(const ArrayDescription3D& description, unsigned level) {
    const auto halved = [&](std::size_t extent) {
        return extent == 0 ? std::size_t{0} : std::max<std::size_t>(1, extent >> level);
    };
    const bool layered = (description.flags & (array_flag::layered | array_flag::cubemap)) != 0;
    ArrayDescription3D one = description;
    one.width = halved(description.width);
    one.height = halved(description.height);
    if (!layered) one.depth = halved(description.depth);
    return one;
}

std::size_t bytes_of(const ArrayDescription3D& a) {
    if (a.format == nv12_format) return a.width * a.height + a.width * a.height / 2;
    return a.width * element_bytes_of(a.format, a.channels) * rows_of(a) * layers_of(a);
}

}  // namespace isthmus::sim
