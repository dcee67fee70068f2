// SPDX-License-Identifier: Apache-2.0
// Texels as integers, floats and sRGB, and the border.
#include "texel_values.hpp"

#include "numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace isthmus::ptx {
namespace {

using Kind = TexelFormat::Kind;

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

// A border is kept as an 8-bit number of sRGB (IEC 61966-2-1).
std::byte srgb_of_linear(float value) {
    const double at = std::clamp(double{value}, 0.0, 1.0);
    const double encoded = at <= 0.0031308 ? 12.92 * at : 1.055 * std::pow(at, 1 / 2.4) - 0.055;
    return static_cast<std::byte>(static_cast<int>(encoded * 255 + 0.5));
}

}  // namespace

std::int32_t integer_of(const TexelFormat& format, const std::byte* from) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, format.channel_bytes);
    if (format.kind != Kind::signed_) return static_cast<std::int32_t>(bits);
    return format.channel_bytes == 1   ? static_cast<std::int8_t>(bits)
           : format.channel_bytes == 2 ? static_cast<std::int16_t>(bits)
                                       : static_cast<std::int32_t>(bits);
}

float border_in(const TextureBytes& texture, std::uint32_t channel) {
    if (!is_srgb(texture, channel)) {
        const float border = border_of(texture.format, texture.border[channel]);
        return texture.is_srgb && texture.format.channel_bytes == 1 ? std::floor(border * 255) / 255 : border;
    }
    const std::byte number = srgb_of_linear(texture.border[channel]);
    return linear_of_srgb(&number);
}

double addend_of(const TexelFormat& format, float value) {
    return format.kind == Kind::floating ? value : double{value} * most_of(format);
}

double addend_of(const TexelFormat& format, const std::byte* from) {
    if (format.kind == Kind::floating) return float_of(format, from);
    const double most = std::exp2(8.0 * format.channel_bytes - (format.kind == Kind::signed_ ? 1 : 0)) - 1;
    return std::max<double>(integer_of(format, from), -most) * most_of(format) / most;
}

float linear_of_srgb(const std::byte* from) {
    return std::ldexp(static_cast<float>(srgb_table[std::to_integer<std::size_t>(*from)]), -14);
}

double step_of_srgb(const std::byte* from) {
    const auto number = std::to_integer<std::uint8_t>(*from);
    for (const SrgbStep& one : srgb_steps) {
        if (number >= one.from) return std::ldexp(one.step, -16);
    }
    return 0;
}

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

}  // namespace isthmus::ptx
