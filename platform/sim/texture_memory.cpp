// SPDX-License-Identifier: Apache-2.0
// What texture objects are to kernels from PTX: texels, their format, and how they are read.
#include "ptx_kernels.hpp"
#include "textures.hpp"
#include "written_bytes.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace isthmus::sim {
namespace {

using ptx::TexelFormat;
using ptx::TextureBytes;
using ptx::TextureLevel;

constexpr unsigned reads_integers = 1, normalised = 2, srgb = 16, seamless = 64;

void not_modelled(TextureBytes& out, const char* what) {
    out.host = nullptr;
    out.is_modelled = false;
    out.refusal = std::string(what) + " are not modelled";
}

TextureLevel texels_of(const std::byte* host, const ArrayDescription3D& a) {
    TextureLevel out;
    out.host = host;
    out.width = a.width;
    out.height = rows_of(a);
    out.depth = layers_of(a);
    out.row_bytes = a.width * element_bytes_of(a.format, a.channels);
    out.slice_bytes = out.row_bytes * out.height;
    return out;
}

// Describes an array with so many levels, one behind the other; the texture's own fields are filled in by the caller.
void describe(const Driver& d, const GpuAgent& agent, std::uint64_t memory, std::size_t offset_bytes,
              const ArrayDescription3D& a, unsigned levels, TextureBytes& out) {
    const Region* const region = d.regions.find_id(memory);
    if (region == nullptr) {
        out.refusal = "its array was destroyed";
        return;
    }
    if (region->device != agent.device) {
        out.refusal = "its array belongs to another device";
        return;
    }
    if (element_bytes_of(a.format, a.channels) == 0) return not_modelled(out, "textures of whole NV12 arrays");
    const std::byte* host = static_cast<const std::byte*>(region->host) + offset_bytes;
    static_cast<TextureLevel&>(out) = texels_of(host, a);
    for (unsigned level = 1; level < levels; ++level) {
        host += bytes_of(level_of(a, level - 1));
        out.smaller.push_back(texels_of(host, level_of(a, level)));
    }
    out.written = written_bytes::of(static_cast<std::byte*>(region->host) + offset_bytes);
    out.format = format_of(a.format, a.channels);
    out.is_array = true;
    out.is_cube = (a.flags & array_flag::cubemap) != 0;
    out.layered = (a.flags & array_flag::layered) != 0;
    out.dimensions = out.is_cube ? 2 : dimensions_of(a);
}

// Memory of the program, which the machine's rules judge.
void describe(const Driver& d, const GpuAgent& agent, Address address, std::size_t bytes, TextureBytes& out) {
    const GpuAccess access = check_gpu_access(d, agent, address, bytes, false);
    if (!access.allowed) {
        out.refusal = access.reason;
        return;
    }
    out.host = static_cast<std::byte*>(access.pointer);
    out.written = written_bytes::of(out.host);
}

// CUresourceViewFormat, from 1 on: the kinds of channels, each with 1, 2 and 4 of them.
constexpr TexelFormat view_formats[] = {{TexelFormat::Kind::unsigned_, 1, 1}, {TexelFormat::Kind::signed_, 1, 1},
                                        {TexelFormat::Kind::unsigned_, 2, 1}, {TexelFormat::Kind::signed_, 2, 1},
                                        {TexelFormat::Kind::unsigned_, 4, 1}, {TexelFormat::Kind::signed_, 4, 1},
                                        {TexelFormat::Kind::floating, 2, 1},  {TexelFormat::Kind::floating, 4, 1}};

// Elements of the same size in another format, and some of the levels and layers.
void look_at(const TextureView& view, TextureBytes& out) {
    const int at = (view.format - 1) / 3;
    if (at < 0 || at >= static_cast<int>(std::size(view_formats))) {
        return not_modelled(out, "views in block-compressed formats");
    }
    if (out.is_cube) return not_modelled(out, "views of cubemaps");
    out.format = view_formats[at];
    out.format.channels = 1u << (view.format - 1) % 3;
    const auto size = static_cast<std::uint32_t>(out.smaller.size());
    const std::uint32_t last = std::min(view.last_level, size), first = std::min(view.first_level, last);
    std::vector<TextureLevel> levels = {static_cast<const TextureLevel&>(out)};
    levels.insert(levels.end(), out.smaller.begin(), out.smaller.end());
    if (out.layered) {
        for (TextureLevel& level : levels) {
            level.host += view.first_layer * level.slice_bytes;
            level.depth = std::min<std::uint64_t>(view.last_layer, level.depth - 1) + 1 - view.first_layer;
        }
    }
    const std::ptrdiff_t before = levels[first].host - out.host;
    if (out.written != nullptr) out.written += before;
    static_cast<TextureLevel&>(out) = levels[first];
    out.smaller.assign(levels.begin() + first + 1, levels.begin() + last + 1);
}

}  // namespace

TexelFormat format_of(int format, unsigned channels) {
    using Channel = TexelFormat::Kind;
    switch (format) {
        case 0x01: return {Channel::unsigned_, 1, channels};
        case 0x02: return {Channel::unsigned_, 2, channels};
        case 0x03: return {Channel::unsigned_, 4, channels};
        case 0x08: return {Channel::signed_, 1, channels};
        case 0x09: return {Channel::signed_, 2, channels};
        case 0x0a: return {Channel::signed_, 4, channels};
        case 0x10: return {Channel::floating, 2, channels};
        case 0x20: return {Channel::floating, 4, channels};
        default: break;
    }
    // CU_AD_FORMAT_UNORM_INT8X1 and so on: 8 and 16 bits unsigned, then signed, each with 1, 2 and 4 channels.
    constexpr int first = 0xc0;
    const int group = (format - first) / 3;
    return {group < 2 ? Channel::unsigned_ : Channel::signed_, group % 2 == 0 ? 1u : 2u, channels};
}

std::uint32_t dimensions_of(const ArrayDescription3D& a) {
    if ((a.flags & array_flag::layered) != 0) return a.height != 0 ? 2 : 1;
    return a.depth != 0 ? 3 : a.height != 0 ? 2 : 1;
}

ptx::TextureBytes PtxMemory::texture(std::uint64_t handle) {
    TextureBytes out;
    const std::lock_guard lock(d_.mutex);
    const auto* const texture = reinterpret_cast<const Texture*>(static_cast<std::uintptr_t>(handle));
    if (!d_.textures.alive(texture)) {
        out.refusal = "it is no texture object, or it was destroyed";
        return out;
    }
    const TextureResource& resource = texture->resource;
    const TextureSampling& sampling = texture->sampling;
    switch (resource.type) {
        case resource_type::array: {
            const Array* const array = resource.from.array;
            if (!d_.arrays.alive(array)) {
                out.refusal = "its array was destroyed";
                return out;
            }
            describe(d_, agent_, array->region, array->offset_bytes, array->description, 1, out);
            break;
        }
        case resource_type::mipmapped: {
            const MipmappedArray* const array = resource.from.mipmapped;
            if (!d_.mipmapped_arrays.alive(array)) {
                out.refusal = "its array was destroyed";
                return out;
            }
            describe(d_, agent_, array->region, 0, array->description, array->level_count, out);
            break;
        }
        case resource_type::linear: {
            const LinearTexels& texels = resource.from.linear;
            const std::size_t element = element_bytes_of(texels.format, texels.channels);
            out.width = texels.bytes / element;
            out.format = format_of(texels.format, texels.channels);
            out.row_bytes = out.slice_bytes = out.width * element;
            out.is_linear_memory = true;
            describe(d_, agent_, texels.address, out.row_bytes, out);
            break;
        }
        case resource_type::pitched: {
            const PitchedTexels& texels = resource.from.pitched;
            const std::size_t element = element_bytes_of(texels.format, texels.channels);
            out.width = texels.width;
            out.height = texels.height;
            out.format = format_of(texels.format, texels.channels);
            out.row_bytes = texels.pitch;
            out.slice_bytes = texels.pitch * texels.height;
            out.dimensions = 2;
            describe(d_, agent_, texels.address, texels.pitch * (texels.height - 1) + texels.width * element, out);
            break;
        }
        default: out.refusal = "it is of no resource";
    }
    if (texture->view && out.host != nullptr) look_at(*texture->view, out);
    out.is_srgb = (sampling.flags & srgb) != 0;
    out.is_seamless = (sampling.flags & seamless) != 0;
    out.normalised = (sampling.flags & normalised) != 0 || out.is_cube;  // observed (580, H100)
    out.reads_integers = (sampling.flags & reads_integers) != 0;
    out.linear_filter = sampling.filter_mode == 1;
    out.blends_levels = sampling.level_filter_mode == 1;
    out.level_bias = sampling.level_bias;
    out.least_level = sampling.least_level;
    out.most_level = sampling.most_level;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        out.address[axis] = static_cast<TextureBytes::Address>(sampling.address_mode[axis]);
    }
    for (std::size_t channel = 0; channel < 4; ++channel) out.border[channel] = sampling.border_color[channel];
    return out;
}

}  // namespace isthmus::sim
