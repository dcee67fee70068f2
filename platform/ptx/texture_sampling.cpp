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
constexpr int fraction_bits = 8;     // CUDA C++ Programming Guide, "Linear Filtering": of the weights
constexpr int normalised_bits = 21;  // of normalised coordinates; this and the roundings below: as on an H100

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
    return static_cast<std::int64_t>(std::clamp(value, -most, most));
}

// A coordinate in texels.
double place_of(const TextureBytes& texture, Address mode, float coordinate, std::int64_t size) {
    double at = coordinate;
    if (std::isnan(coordinate) || std::fpclassify(coordinate) == FP_SUBNORMAL) at = 0;
    if (!texture.normalised) return at;
    if (mode == Address::wrap || mode == Address::mirror) at = std::isinf(at) ? 0 : std::fmod(at, 2);
    return std::ldexp(std::floor(std::ldexp(at, normalised_bits)), -normalised_bits) * static_cast<double>(size);
}

Axis axis_of(const TextureBytes& texture, std::size_t axis, const TexturePoint& point, std::int64_t size) {
    // CUDA C++ Programming Guide: wrap and mirror need normalised coordinates.
    const Address stated = texture.address[axis];
    const bool repeats = stated == Address::wrap || stated == Address::mirror;
    const Address mode = repeats && !texture.normalised ? Address::clamp : stated;
    Axis out;
    if (point.of_integers) {
        out.texel[0] = out.texel[1] = resolved(point.texel[axis], size, Address::border);
        return out;
    }
    const double at = place_of(texture, mode, axis < texture.dimensions ? point.at[axis] : 0, size);
    if (!texture.linear_filter) {
        out.texel[0] = out.texel[1] = resolved(whole(std::floor(at)), size, mode);
        return out;
    }
    std::int64_t fixed = whole(std::floor((at - 0.5) * (1 << fraction_bits) + 0.5));
    if (mode == Address::clamp) fixed = std::clamp<std::int64_t>(fixed, 0, (size - 1) << fraction_bits);
    const std::int64_t first = fixed >> fraction_bits;
    out.texel = {resolved(first, size, mode), resolved(first + 1, size, mode)};
    out.weight = static_cast<std::uint32_t>(fixed & ((1 << fraction_bits) - 1));
    return out;
}

// Of the corners, in 1/256, 256 together: bit 0 of a corner is the second texel along x, bit 1 along y, bit 2 along z.
std::array<std::uint32_t, 8> weights_of(const std::array<Axis, 3>& axes) {
    constexpr std::uint32_t half = 128, below_half = 127;
    std::array<std::uint32_t, 8> out = {};
    for (const std::uint32_t z : {0u, 1u}) {
        const std::uint32_t plane = z != 0 ? axes[2].weight : 256 - axes[2].weight;
        const std::uint32_t right = (plane * axes[0].weight + half) >> fraction_bits;
        for (const std::uint32_t x : {0u, 1u}) {
            const std::uint32_t column = x != 0 ? right : plane - right;
            const std::uint32_t low = (column * axes[1].weight + (x != 0 ? half : below_half)) >> fraction_bits;
            out[4 * z + 2 + x] = low;
            out[4 * z + x] = column - low;
        }
    }
    return out;
}

// Rounded to the nearest, ties away from zero.
template <class Near, class Next>
auto nearest(double value, Near near_of, Next next_of) {
    const auto near = near_of(value);
    const double rest = value - near;
    if (rest == 0 || std::signbit(rest) != std::signbit(value)) return near;
    const auto next = next_of(near);
    return next - value == rest ? next : near;
}
float nearest_single(double value) {
    return nearest(
        value, [](double one) { return static_cast<float>(one); },
        [&](float near) { return std::nextafter(near, std::copysign(INFINITY, static_cast<float>(value))); });
}
float nearest_half(double value) {
    const auto bits_of = [](double one) { return half_of(half_format, one, Rounding::nearest); };
    return static_cast<float>(nearest(
        value, [&](double one) { return number_of(half_format, bits_of(one)); },
        [&](double near) { return number_of(half_format, static_cast<std::uint16_t>(bits_of(near) + 1)); }));
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

float border_of(const TexelFormat& format, float stated) {
    if (format.kind == Kind::floating) return stated;
    return std::clamp(stated, format.kind == Kind::signed_ ? -1.0f : 0.0f, 1.0f);
}

// Filters add integers in units of the last of 16 bits, and floats as they are.
double most_of(const TexelFormat& format) {
    return format.kind == Kind::signed_ ? 32767 : 65535;
}
double addend_of(const TexelFormat& format, float value) {
    return format.kind == Kind::floating ? value : double{value} * most_of(format);
}
double addend_of(const TexelFormat& format, const std::byte* from) {
    if (format.kind == Kind::floating) return float_of(format, from);
    const double most = std::exp2(8.0 * format.channel_bytes - (format.kind == Kind::signed_ ? 1 : 0)) - 1;
    return std::max<double>(integer_of(format, from), -most) * most_of(format) / most;
}

struct Corner {
    double weight = 0;
    std::array<double, 4> channels = {};
};
double sum_of(const TexelFormat& format, const std::array<Corner, 8>& corners, std::size_t channel) {
    double unit = 0;
    if (format.kind == Kind::floating && format.channel_bytes == 2) {
        // Of each half, the bits down to four below the last one of the largest half.
        double most = 0;
        for (const Corner& one : corners) {
            if (one.weight != 0) most = std::max(most, std::fabs(one.channels[channel]));
        }
        if (most != 0 && std::isfinite(most)) unit = std::ldexp(1.0, std::ilogb(most) - 14);
    }
    double sum = 0;
    for (const Corner& one : corners) {
        if (one.weight == 0) continue;
        const double value = one.channels[channel];
        sum += one.weight * (unit != 0 ? std::trunc(value / unit) * unit : value);
    }
    return sum;
}
float filtered(const TexelFormat& format, double sum) {
    if (format.kind != Kind::floating) return static_cast<float>(std::floor(sum + 0.5) / most_of(format));
    constexpr std::uint32_t nan = 0x7fffffff;
    if (std::isnan(sum)) return std::bit_cast<float>(nan);
    if (format.channel_bytes == 2) return nearest_half(sum);
    const float single = nearest_single(sum);
    return std::fpclassify(single) == FP_SUBNORMAL ? std::copysign(0.0f, single) : single;
}

}  // namespace

TextureSample sample(const TextureBytes& texture, const TexturePoint& point) noexcept {
    TextureSample out;
    const TexelFormat& format = texture.format;
    const bool as_integers = format.kind != Kind::floating && (texture.reads_integers || format.channel_bytes == 4);
    const bool filters = texture.linear_filter && !point.of_integers && (!as_integers || format.channel_bytes < 4);
    const std::array<std::uint64_t, 3> sizes = {texture.width, texture.height, texture.depth};
    std::array<Axis, 3> axes;
    // A line that is filtered is a plane of one row, fetched at y = 0: half of it is the row above, the border's.
    const bool is_line =
        texture.dimensions == 1 && !texture.layered && filters && texture.address[1] == Address::border;
    const std::uint32_t filtered_axes = is_line ? 2 : texture.dimensions;
    for (std::size_t axis = 0; axis < filtered_axes; ++axis) {
        axes[axis] = axis_of(texture, axis, point, static_cast<std::int64_t>(sizes[axis]));
    }
    if (texture.layered) {
        axes[2].texel[0] = static_cast<std::int64_t>(std::min<std::uint64_t>(point.layer, texture.depth - 1));
    }
    const std::uint32_t corners = filters ? 1u << filtered_axes : 1;
    const std::array<std::uint32_t, 8> weights = filters ? weights_of(axes) : std::array<std::uint32_t, 8>{256};
    const auto border = [&](std::uint32_t channel) {
        return point.of_integers ? 0.0f : border_of(format, texture.border[channel]);
    };
    std::array<Corner, 8> found = {};
    for (std::uint32_t corner = 0; corner < corners; ++corner) {
        std::array<std::int64_t, 3> at = {};
        bool is_outside = false;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const bool second = (corner >> axis & 1) != 0;
            at[axis] = axes[axis].texel[second ? 1 : 0];
            is_outside = is_outside || at[axis] == outside;
        }
        if (weights[corner] == 0) continue;
        found[corner].weight = weights[corner] / 256.0;
        std::uint64_t texel = 0;  // nothing is read outside
        if (!is_outside) {
            texel = static_cast<std::uint64_t>(at[2]) * texture.slice_bytes +
                    static_cast<std::uint64_t>(at[1]) * texture.row_bytes +
                    static_cast<std::uint64_t>(at[0]) * format.channel_bytes * format.channels;
            out.texels[out.texel_count++] = texel;
        }
        for (std::uint32_t channel = 0; channel < format.channels; ++channel) {
            const std::byte* const from = texture.host + texel + channel * format.channel_bytes;
            std::uint32_t& to = out.channels[channel];
            if (filters && as_integers) {
                found[corner].channels[channel] = is_outside ? 0 : integer_of(format, from);
            } else if (filters) {
                found[corner].channels[channel] =
                    is_outside ? addend_of(format, border(channel)) : addend_of(format, from);
            } else if (as_integers) {
                to = is_outside ? 0 : static_cast<std::uint32_t>(integer_of(format, from));
            } else {
                to = std::bit_cast<std::uint32_t>(is_outside ? border(channel) : float_of(format, from));
            }
        }
    }
    if (!filters) return out;
    for (std::size_t channel = 0; channel < format.channels; ++channel) {
        const double sum = sum_of(format, found, channel);
        out.channels[channel] = as_integers
                                    ? static_cast<std::uint32_t>(static_cast<std::int32_t>(std::floor(sum + 0.5)))
                                    : std::bit_cast<std::uint32_t>(filtered(format, sum));
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
