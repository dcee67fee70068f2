// SPDX-License-Identifier: Apache-2.0
// Address modes, read modes and filters of textures.
#include "texture_sampling.hpp"

#include "numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace isthmus::ptx {
namespace {

using Address = TextureBytes::Address;
using Kind = TexelFormat::Kind;
using Colour = std::array<float, 4>;

constexpr std::int64_t outside = -1;
constexpr int fraction_bits = 8;  // CUDA C++ Programming Guide, "Linear Filtering": of the weights

// One axis of a fetch: the texels, and the weight of the second one in 1/256.
struct Axis {
    std::array<std::int64_t, 2> texel = {0, 0};
    std::uint32_t weight = 0;
};

std::int64_t wrapped(std::int64_t at, std::int64_t size) {
    const std::int64_t rest = at % size;
    return rest < 0 ? rest + size : rest;
}

std::int64_t resolved(std::int64_t at, std::int64_t size, Address mode) {
    switch (mode) {
        case Address::wrap: return wrapped(at, size);
        case Address::mirror: {
            const std::int64_t place = wrapped(at, 2 * size);
            return place < size ? place : 2 * size - 1 - place;
        }
        case Address::border: return at < 0 || at >= size ? outside : at;
        case Address::clamp: break;
    }
    return std::clamp<std::int64_t>(at, 0, size - 1);
}

std::int64_t whole(double value) {
    constexpr double most = 1LL << 50;
    return static_cast<std::int64_t>(std::clamp(std::isnan(value) ? 0.0 : value, -most, most));
}

Axis axis_of(const TextureBytes& texture, std::size_t axis, const TexturePoint& point, std::int64_t size) {
    // CUDA C++ Programming Guide: wrap and mirror need normalised coordinates.
    const Address stated = texture.address[axis];
    const bool repeats = stated == Address::wrap || stated == Address::mirror;
    const Address mode = repeats && !texture.normalised ? Address::clamp : stated;
    Axis out;
    if (point.of_integers) {
        out.texel[0] = out.texel[1] = resolved(point.texel[axis], size, mode);
        return out;
    }
    const double at = double{point.at[axis]} * (texture.normalised ? static_cast<double>(size) : 1.0);
    if (!texture.linear_filter) {
        out.texel[0] = out.texel[1] = resolved(whole(std::floor(at)), size, mode);
        return out;
    }
    const std::int64_t fixed = whole(std::floor((at - 0.5) * (1 << fraction_bits) + 0.5));
    const std::int64_t first = fixed >> fraction_bits;
    out.texel = {resolved(first, size, mode), resolved(first + 1, size, mode)};
    out.weight = static_cast<std::uint32_t>(fixed & ((1 << fraction_bits) - 1));
    return out;
}

// A channel as an integer or, converted, as a float.
std::int32_t integer_of(const TexelFormat& format, const std::byte* from) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, format.channel_bytes);
    if (format.kind != Kind::signed_) return static_cast<std::int32_t>(bits);
    return format.channel_bytes == 1   ? static_cast<std::int8_t>(bits)
           : format.channel_bytes == 2 ? static_cast<std::int16_t>(bits)
                                       : static_cast<std::int32_t>(bits);
}
float float_of(const TexelFormat& format, const std::byte* from) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, format.channel_bytes);
    if (format.kind == Kind::floating) {
        return format.channel_bytes == 4 ? std::bit_cast<float>(bits)
                                         : static_cast<float>(number_of(half_format, static_cast<std::uint16_t>(bits)));
    }
    // [0, 1] for unsigned integers, [-1, 1] for signed ones.
    const double value = integer_of(format, from);
    const double most = std::exp2(8.0 * format.channel_bytes - (format.kind == Kind::signed_ ? 1 : 0)) - 1;
    return static_cast<float>(std::max(value / most, -1.0));
}

}  // namespace

TextureSample sample(const TextureBytes& texture, const TexturePoint& point) noexcept {
    TextureSample out;
    const TexelFormat& format = texture.format;
    const bool as_integers = format.kind != Kind::floating && (texture.reads_integers || format.channel_bytes == 4);
    const std::array<std::uint64_t, 3> sizes = {texture.width, texture.height, texture.depth};
    std::array<Axis, 3> axes;
    for (std::size_t axis = 0; axis < texture.dimensions; ++axis) {
        axes[axis] = axis_of(texture, axis, point, static_cast<std::int64_t>(sizes[axis]));
    }
    if (texture.layered) {
        const auto layer = static_cast<std::int64_t>(static_cast<std::int32_t>(point.layer));
        axes[2].texel[0] = std::clamp<std::int64_t>(layer, 0, static_cast<std::int64_t>(texture.depth) - 1);
    }
    const bool filters = texture.linear_filter && !as_integers && !point.of_integers;
    const std::uint32_t corners = filters ? 1u << texture.dimensions : 1;
    std::array<double, 4> sums = {};
    for (std::uint32_t corner = 0; corner < corners; ++corner) {
        double weight = 1;
        std::array<std::int64_t, 3> at = {};
        bool is_outside = false;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const bool second = axis < texture.dimensions && (corner >> axis & 1) != 0;
            at[axis] = axes[axis].texel[second ? 1 : 0];
            is_outside = is_outside || at[axis] == outside;
            if (filters && axis < texture.dimensions) {
                weight *= (second ? axes[axis].weight : 256 - axes[axis].weight) / 256.0;
            }
        }
        if (weight == 0) continue;
        const std::uint64_t texel = static_cast<std::uint64_t>(at[2]) * texture.slice_bytes +
                                    static_cast<std::uint64_t>(at[1]) * texture.row_bytes +
                                    static_cast<std::uint64_t>(at[0]) * format.channel_bytes * format.channels;
        if (!is_outside) out.texels[out.texel_count++] = texel;
        for (std::uint32_t channel = 0; channel < 4; ++channel) {
            const bool there = channel < format.channels;
            const std::byte* const from = texture.host + texel + channel * format.channel_bytes;
            if (as_integers) {
                out.channels[channel] = is_outside ? std::bit_cast<std::uint32_t>(texture.border[channel])
                                        : there    ? static_cast<std::uint32_t>(integer_of(format, from))
                                                   : channel == 3;
                continue;
            }
            const float value = is_outside ? texture.border[channel] : there ? float_of(format, from) : channel == 3;
            sums[channel] += weight * double{value};
        }
    }
    if (as_integers) return out;
    for (std::size_t channel = 0; channel < 4; ++channel) {
        out.channels[channel] = std::bit_cast<std::uint32_t>(static_cast<float>(sums[channel]));
    }
    return out;
}

std::uint32_t channel_type_code(const TexelFormat& format, bool normalised) noexcept {
    // The numbers of OpenCL, which PTX uses: cl_channel_type.
    const std::uint32_t size = format.channel_bytes == 1 ? 0 : format.channel_bytes == 2 ? 1 : 2;
    if (format.kind == Kind::floating) return size == 1 ? 0x10dd : 0x10de;
    if (normalised && size < 2) return (format.kind == Kind::signed_ ? 0x10d0 : 0x10d2) + size;
    return (format.kind == Kind::signed_ ? 0x10d7 : 0x10da) + size;
}
std::uint32_t channel_order_code(const TexelFormat& format) noexcept {
    return format.channels == 1 ? 0x10b0 : format.channels == 2 ? 0x10b2 : 0x10b5;  // R, RG, RGBA
}

}  // namespace isthmus::ptx
