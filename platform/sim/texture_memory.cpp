// SPDX-License-Identifier: Apache-2.0
// What texture objects are to kernels from PTX: texels, their format, and how they are read.
#include "ptx_kernels.hpp"
#include "textures.hpp"
#include "written_bytes.hpp"

namespace isthmus::sim {
namespace {

using ptx::TexelFormat;
using ptx::TextureBytes;

constexpr unsigned reads_integers = 1, normalised = 2, srgb = 16;

void not_modelled(TextureBytes& out, const char* what) {
    out.host = nullptr;
    out.is_modelled = false;
    out.refusal = std::string(what) + " are not modelled";
}

// Describes the array; the texture's own fields are filled in by the caller.
void describe(const Driver& d, const GpuAgent& agent, const Array& array, TextureBytes& out) {
    const Region* const region = d.regions.find_id(array.region);
    if (region == nullptr) {
        out.refusal = "its array was destroyed";
        return;
    }
    if (region->device != agent.device) {
        out.refusal = "its array belongs to another device";
        return;
    }
    const ArrayDescription3D& a = array.description;
    if (element_bytes_of(a.format, a.channels) == 0) return not_modelled(out, "textures of whole NV12 arrays");
    out.host = static_cast<std::byte*>(region->host) + array.offset_bytes;
    out.written = written_bytes::of(out.host);
    out.width = a.width;
    out.height = rows_of(a);
    out.depth = layers_of(a);
    out.format = format_of(a.format, a.channels);
    out.row_bytes = a.width * element_bytes_of(a.format, a.channels);
    out.slice_bytes = out.row_bytes * out.height;
    out.dimensions = dimensions_of(a);
    out.layered = (a.flags & array_flag::layered) != 0;
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
        case resource_type::array:
            if (!d_.arrays.alive(resource.from.array)) {
                out.refusal = "its array was destroyed";
                return out;
            }
            describe(d_, agent_, *resource.from.array, out);
            if ((resource.from.array->description.flags & array_flag::cubemap) != 0) not_modelled(out, "cubemaps");
            break;
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
        default: not_modelled(out, "textures of mipmapped arrays");
    }
    if (texture->view) not_modelled(out, "textures with a view of their resource");
    if ((sampling.flags & srgb) != 0) not_modelled(out, "textures with sRGB");
    out.normalised = (sampling.flags & normalised) != 0;
    out.reads_integers = (sampling.flags & reads_integers) != 0;
    out.linear_filter = sampling.filter_mode == 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        out.address[axis] = static_cast<TextureBytes::Address>(sampling.address_mode[axis]);
    }
    for (std::size_t channel = 0; channel < 4; ++channel) out.border[channel] = sampling.border_color[channel];
    return out;
}

}  // namespace isthmus::sim
