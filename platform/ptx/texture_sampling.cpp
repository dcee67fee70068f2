// SPDX-License-Identifier: Apache-2.0
// Address modes, read modes and filters of textures.
#include "texture_sampling.hpp"

#include "numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace isthmus::ptx {
namespace {

using Address = TextureBytes::Address;
using Kind = TexelFormat::Kind;

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

enum class Take : std::uint8_t { nearest, filtered, gathered };
Axis axis_of(const TextureBytes& texture, std::size_t axis, const TexturePoint& point, std::int64_t size, Take take) {
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
    if (take == Take::nearest) {
        out.texel[0] = out.texel[1] = resolved(whole(std::floor(at)), size, mode);
        return out;
    }
    std::int64_t fixed = whole(std::floor((at - 0.5) * (1 << fraction_bits) + 0.5));
    if (mode == Address::clamp && take != Take::gathered)
        fixed = std::clamp<std::int64_t>(fixed, 0, (size - 1) << fraction_bits);
    const std::int64_t first = fixed >> fraction_bits;
    out.texel = {resolved(first, size, mode), resolved(first + 1, size, mode)};
    out.weight = static_cast<std::uint32_t>(fixed & ((1 << fraction_bits) - 1));
    return out;
}

// Of the corners, in 1/256, `total` together: bit 0 of a corner is the second texel along x, bit 1 along y, bit 2 along
// z.
std::array<std::uint32_t, 8> weights_of(const std::array<Axis, 3>& axes, std::uint32_t total) {
    constexpr std::uint32_t half = 128, below_half = 127;
    std::array<std::uint32_t, 8> out = {};
    for (const std::uint32_t z : {0u, 1u}) {
        const std::uint32_t behind = (total * axes[2].weight + half) >> fraction_bits;
        const std::uint32_t plane = z != 0 ? behind : total - behind;
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

// sRGB of 8 bits as an H100 converts it, in 1/16384: within 1/256 of what IEC 61966-2-1 says.
constexpr std::array<std::uint16_t, 256> srgb_table = {
    0,     5,     10,    15,    20,    25,    30,    35,    40,    45,    50,    55,    60,    66,    72,    78,
    85,    92,    99,    107,   115,   123,   131,   140,   150,   159,   169,   180,   190,   201,   213,   224,
    236,   250,   262,   276,   290,   304,   318,   332,   348,   364,   380,   396,   412,   430,   448,   466,
    484,   504,   524,   544,   564,   584,   604,   624,   648,   672,   692,   716,   740,   764,   788,   816,
    840,   864,   896,   920,   944,   976,   1000,  1032,  1064,  1088,  1120,  1152,  1184,  1216,  1248,  1280,
    1312,  1352,  1384,  1416,  1456,  1488,  1528,  1560,  1600,  1640,  1672,  1712,  1752,  1792,  1832,  1872,
    1920,  1952,  2000,  2048,  2080,  2128,  2176,  2224,  2272,  2320,  2368,  2416,  2464,  2512,  2560,  2608,
    2656,  2704,  2752,  2816,  2864,  2912,  2976,  3024,  3072,  3136,  3184,  3248,  3296,  3360,  3424,  3472,
    3536,  3600,  3664,  3712,  3776,  3840,  3904,  3968,  4032,  4096,  4160,  4224,  4288,  4352,  4416,  4512,
    4576,  4640,  4704,  4768,  4864,  4928,  4992,  5056,  5152,  5216,  5280,  5376,  5440,  5536,  5600,  5696,
    5760,  5824,  5920,  6016,  6080,  6176,  6240,  6336,  6400,  6496,  6592,  6688,  6752,  6848,  6944,  7008,
    7104,  7200,  7296,  7392,  7488,  7584,  7680,  7744,  7872,  7936,  8064,  8128,  8256,  8320,  8448,  8512,
    8640,  8768,  8832,  8960,  9024,  9152,  9280,  9344,  9472,  9600,  9664,  9792,  9920,  9984,  10112, 10240,
    10304, 10432, 10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968, 12096,
    12224, 12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632, 13760, 13888, 14016, 14144,
    14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360, 15488, 15616, 15744, 16000, 16128, 16256, 16384};
// The steps of the table, in 1/65536, from a number on.
struct SrgbStep {
    std::uint8_t from;
    double step;
};
constexpr SrgbStep srgb_steps[] = {{248, 512}, {182, 256}, {135, 128}, {95, 64}, {63, 32}, {48, 16}, {31, 8}, {0, 4}};

bool is_srgb(const TextureBytes& texture, std::uint32_t channel) {
    const TexelFormat& format = texture.format;
    // As on an H100: of two channels the second one is no colour, of four the last one.
    const std::uint32_t colours = format.channels == 4 ? 3 : 1;
    return texture.is_srgb && format.kind == Kind::unsigned_ && format.channel_bytes == 1 && !texture.reads_integers &&
           channel < colours;
}
float linear_of_srgb(const std::byte* from) {
    return std::ldexp(static_cast<float>(srgb_table[std::to_integer<std::size_t>(*from)]), -14);
}
// A border is kept as an 8-bit number of sRGB (IEC 61966-2-1).
std::byte srgb_of_linear(float value) {
    const double at = std::clamp(double{value}, 0.0, 1.0);
    const double encoded = at <= 0.0031308 ? 12.92 * at : 1.055 * std::pow(at, 1 / 2.4) - 0.055;
    return static_cast<std::byte>(static_cast<int>(encoded * 255 + 0.5));
}
double step_of_srgb(const std::byte* from) {
    const auto number = std::to_integer<std::uint8_t>(*from);
    for (const SrgbStep& one : srgb_steps) {
        if (number >= one.from) return std::ldexp(one.step, -16);
    }
    return 0;
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

}  // namespace

namespace {

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

// CUDA C++ Programming Guide, "Cubemap Textures": the face, and the place there.
TexturePoint on_face(const TextureBytes& texture, const TexturePoint& direction) {
    const float x = direction.at[0], y = direction.at[1], z = direction.at[2];
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    float m = 0, s = 0, t = 0;
    constexpr std::uint32_t faces = 6;
    std::uint32_t face = 0;
    if (az >= ax && az >= ay) {
        face = std::signbit(z) ? 5 : 4;
        m = az;
        s = std::signbit(z) ? -x : x;
        t = -y;
    } else if (ay >= ax) {
        face = std::signbit(y) ? 3 : 2;
        m = ay;
        s = x;
        t = std::signbit(y) ? -z : z;
    } else {
        face = std::signbit(x) ? 1 : 0;
        m = ax;
        s = std::signbit(x) ? z : -z;
        t = -y;
    }
    TexturePoint out = direction;
    // As on an H100: the middle of a face without a direction.
    out.at = {m == 0 ? 0.5f : (s / m + 1) / 2, m == 0 ? 0.5f : (t / m + 1) / 2, 0};
    const auto cubes = static_cast<std::uint32_t>(std::max<std::uint64_t>(texture.depth / faces, 1));
    out.layer = faces * (texture.layered ? std::min(direction.layer, cubes - 1) : 0) + face;
    return out;
}

struct Levels {
    std::uint32_t first = 0, second = 0;
    std::uint32_t weight = 0;  // of the second, in 1/256
};
std::int64_t in_256ths(float value) {
    return std::isnan(value) ? 0 : static_cast<std::int64_t>(std::clamp(value, -1e6f, 1e6f) * 256);
}
// As on an H100: all numbers are cut off to 1/256, and a fetch without a level has no bias.
Levels levels_of(const TextureBytes& texture, const TexturePoint& point) {
    constexpr float most_bias = 15;
    Levels out;
    const auto last = static_cast<std::uint32_t>(texture.smaller.size());
    if (last == 0) return out;
    std::int64_t level = 0;
    if (point.has_level) {
        level = in_256ths(point.level) + in_256ths(std::clamp(texture.level_bias, -most_bias, most_bias));
    }
    level = std::max(std::min(level, in_256ths(texture.most_level)), in_256ths(texture.least_level));
    const auto fixed = static_cast<std::uint32_t>(std::clamp<std::int64_t>(level, 0, std::int64_t{last} * 256));
    if (!texture.blends_levels) {
        out.first = (fixed + 128) >> fraction_bits;
        return out;
    }
    out.first = fixed >> fraction_bits;
    out.second = std::min(last, out.first + 1);
    out.weight = fixed & 255;
    return out;
}
const TextureLevel& level_at(const TextureBytes& texture, std::uint32_t level) {
    return level == 0 ? texture : texture.smaller[level - 1];
}

float border_in(const TextureBytes& texture, std::uint32_t channel) {
    if (!is_srgb(texture, channel)) {
        const float border = border_of(texture.format, texture.border[channel]);
        return texture.is_srgb && texture.format.channel_bytes == 1 ? std::floor(border * 255) / 255 : border;
    }
    const std::byte number = srgb_of_linear(texture.border[channel]);
    return linear_of_srgb(&number);
}

// 0, or the border, as a point fetch gives it.
std::uint32_t point_outside(const TextureBytes& texture, bool of_integers, bool as_integers, std::uint32_t channel) {
    if (as_integers || of_integers) return 0;
    return std::bit_cast<std::uint32_t>(border_in(texture, channel));
}
std::uint32_t point_inside(const TextureBytes& texture, bool as_integers, std::uint32_t channel, std::uint64_t texel) {
    const std::byte* const from = texture.host + texel + channel * texture.format.channel_bytes;
    if (as_integers) return static_cast<std::uint32_t>(integer_of(texture.format, from));
    if (is_srgb(texture, channel)) return std::bit_cast<std::uint32_t>(linear_of_srgb(from));
    return std::bit_cast<std::uint32_t>(float_of(texture.format, from));
}

bool reads_integers(const TextureBytes& texture) {
    return texture.format.kind != Kind::floating && (texture.reads_integers || texture.format.channel_bytes == 4);
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
