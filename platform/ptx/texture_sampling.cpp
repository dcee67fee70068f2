// SPDX-License-Identifier: Apache-2.0
// Filters of textures: the texels that take part are added by their weights.
#include "texture_sampling.hpp"

#include "numbers.hpp"
#include "texel_values.hpp"
#include "texture_coordinates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace isthmus::ptx {
namespace {

using Address = TextureBytes::Address;
using Kind = TexelFormat::Kind;

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

struct Addend {
    double weight = 0;
    double value = 0;
    double step = 0;  // of sRGB; the largest one cuts off all
};

double sum_of(const TexelFormat& format, std::span<const Addend> addends) {
    double unit = 0;
    for (const Addend& one : addends) unit = std::max(unit, one.step);
    if (format.kind == Kind::floating && format.channel_bytes == 2) {
        // Of each half, the bits down to four below the last one of the largest half.
        double most = 0;
        for (const Addend& one : addends) most = std::max(most, std::fabs(one.value));
        if (most != 0 && std::isfinite(most)) unit = std::ldexp(1.0, std::ilogb(most) - 14);
    }
    double sum = 0;
    for (const Addend& one : addends) {
        sum += one.weight * (unit != 0 ? std::trunc(one.value / unit) * unit : one.value);
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

// A texel that takes part, and how much, in 1/256.
struct Part {
    std::uint32_t weight = 0;
    bool is_outside = false;
    std::uint64_t texel = 0;  // bytes from the texture's first one
};
struct Parts {
    std::array<Part, 16> list;
    std::uint32_t count = 0;
};

// The texels of a level, whose weights are `total` together.
void add_parts(const TextureBytes& texture, const TextureLevel& level, const TexturePoint& point, bool filters,
               std::uint32_t total, Parts& parts) {
    const TexelFormat& format = texture.format;
    const std::array<std::uint64_t, 3> sizes = {level.width, level.height, level.depth};
    std::array<Axis, 3> axes;
    // A line that is filtered is a plane of one row, fetched at y = 0: half of it is the row above, the border's.
    const bool is_line =
        texture.dimensions == 1 && !texture.layered && filters && texture.address[1] == Address::border;
    const std::uint32_t filtered_axes = is_line ? 2 : texture.dimensions;
    for (std::size_t axis = 0; axis < filtered_axes; ++axis) {
        axes[axis] = axis_of(texture, axis, point, static_cast<std::int64_t>(sizes[axis]),
                             texture.linear_filter ? Take::filtered : Take::nearest);
    }
    if (texture.layered || texture.is_cube) {
        axes[2].texel[0] = static_cast<std::int64_t>(std::min<std::uint64_t>(point.layer, level.depth - 1));
    }
    const std::uint32_t corners = filters ? 1u << filtered_axes : 1;
    const std::array<std::uint32_t, 8> weights =
        filters ? weights_of(axes, total) : std::array<std::uint32_t, 8>{total};
    const auto first = static_cast<std::uint64_t>(level.host - texture.host);
    for (std::uint32_t corner = 0; corner < corners; ++corner) {
        if (weights[corner] == 0) continue;
        std::array<std::int64_t, 3> at = {};
        Part& part = parts.list[parts.count++];
        part.weight = weights[corner];
        for (std::size_t axis = 0; axis < 3; ++axis) {
            at[axis] = axes[axis].texel[(corner >> axis & 1) != 0 ? 1 : 0];
            part.is_outside = part.is_outside || at[axis] == outside;
        }
        if (part.is_outside) continue;  // nothing is read there
        part.texel = first + static_cast<std::uint64_t>(at[2]) * level.slice_bytes +
                     static_cast<std::uint64_t>(at[1]) * level.row_bytes +
                     static_cast<std::uint64_t>(at[0]) * format.channel_bytes * format.channels;
    }
}

const TextureLevel& level_at(const TextureBytes& texture, std::uint32_t level) {
    return level == 0 ? texture : texture.smaller[level - 1];
}

Addend addend(const TextureBytes& texture, bool as_integers, bool of_integers, std::uint32_t channel,
              const Part& part) {
    const TexelFormat& format = texture.format;
    const std::byte* const from = texture.host + part.texel + channel * format.channel_bytes;
    Addend out;
    out.weight = part.weight / 256.0;
    const bool srgb = is_srgb(texture, channel);
    if (as_integers) {
        out.value = part.is_outside ? 0 : integer_of(format, from);
    } else if (part.is_outside) {
        const float border = of_integers ? 0.0f : border_in(texture, channel);
        out.value = srgb ? border : addend_of(format, border);
    } else if (srgb) {
        out.value = linear_of_srgb(from);
        out.step = step_of_srgb(from);
    } else {
        out.value = addend_of(format, from);
    }
    return out;
}

}  // namespace

TextureSample sample(const TextureBytes& texture, const TexturePoint& stated) noexcept {
    TextureSample out;
    const TexelFormat& format = texture.format;
    const bool as_integers = reads_integers(texture);
    const TexturePoint point = texture.is_cube ? on_face(texture, stated) : stated;
    const bool can_filter = !point.of_integers && (!as_integers || format.channel_bytes < 4);
    const bool filters = texture.linear_filter && can_filter;
    const Levels levels = levels_of(texture, point);
    Parts parts;
    add_parts(texture, level_at(texture, levels.first), point, filters, 256 - levels.weight, parts);
    const std::uint32_t of_first = parts.count;
    if (levels.weight != 0) {
        add_parts(texture, level_at(texture, levels.second), point, filters, levels.weight, parts);
    }
    for (std::uint32_t at = 0; at < parts.count; ++at) {
        if (!parts.list[at].is_outside) out.texels[out.texel_count++] = parts.list[at].texel;
    }
    for (std::uint32_t channel = 0; channel < format.channels; ++channel) {
        if (!filters && levels.weight == 0) {
            const Part& one = parts.list[0];
            out.channels[channel] = one.is_outside ? point_outside(texture, point.of_integers, as_integers, channel)
                                                   : point_inside(texture, as_integers, channel, one.texel);
            continue;
        }
        std::array<Addend, 16> addends;
        for (std::uint32_t at = 0; at < parts.count; ++at) {
            const Part& part = parts.list[at];
            addends[at] = addend(texture, as_integers, point.of_integers, channel, part);
        }
        // The parts of each level are added by themselves.
        const std::span<const Addend> all(addends.data(), parts.count);
        const double sum = sum_of(format, all.first(of_first)) + sum_of(format, all.subspan(of_first));
        if (is_srgb(texture, channel)) {
            out.channels[channel] = std::bit_cast<std::uint32_t>(nearest_half(sum));
            continue;
        }
        out.channels[channel] = as_integers
                                    ? static_cast<std::uint32_t>(static_cast<std::int32_t>(std::floor(sum + 0.5)))
                                    : std::bit_cast<std::uint32_t>(filtered(format, sum));
    }
    return out;
}

TextureSample gather(const TextureBytes& texture, const TexturePoint& point, std::uint32_t channel) noexcept {
    TextureSample out;
    const TexelFormat& format = texture.format;
    std::array<Axis, 2> axes;
    const std::array<std::uint64_t, 2> sizes = {texture.width, texture.height};
    for (std::size_t axis = 0; axis < 2; ++axis) {
        axes[axis] = axis_of(texture, axis, point, static_cast<std::int64_t>(sizes[axis]), Take::gathered);
    }
    const std::uint64_t layer = texture.layered ? std::min<std::uint64_t>(point.layer, texture.depth - 1) : 0;
    const bool as_integers = reads_integers(texture);
    if (channel >= format.channels) return out;
    constexpr std::array<std::array<std::size_t, 2>, 4> order = {{{0, 1}, {1, 1}, {1, 0}, {0, 0}}};
    for (std::size_t at = 0; at < order.size(); ++at) {
        const std::int64_t x = axes[0].texel[order[at][0]], y = axes[1].texel[order[at][1]];
        if (x == outside || y == outside) {
            out.channels[at] = point_outside(texture, false, as_integers, channel);
            continue;
        }
        const std::uint64_t texel = layer * texture.slice_bytes + static_cast<std::uint64_t>(y) * texture.row_bytes +
                                    static_cast<std::uint64_t>(x) * format.channel_bytes * format.channels;
        out.texels[out.texel_count++] = texel;
        out.channels[at] = point_inside(texture, as_integers, channel, texel);
        // As on an H100: fractions of 8 signed bits pass the filter, which rounds them to 16.
        if (format.kind == Kind::signed_ && !as_integers) {
            const double value = addend_of(format, texture.host + texel + channel * format.channel_bytes);
            out.channels[at] = std::bit_cast<std::uint32_t>(filtered(format, value));
        }
    }
    return out;
}

}  // namespace isthmus::ptx
