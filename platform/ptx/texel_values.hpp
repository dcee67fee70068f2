// SPDX-License-Identifier: Apache-2.0
// What the bytes of a texel are read as: integers, floats and sRGB; and the border.
#pragma once

#include "execution.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::ptx {

// Whether a fetch gives integers.
inline bool reads_integers(const TextureBytes& texture) {
    return texture.format.kind != TexelFormat::Kind::floating &&
           (texture.reads_integers || texture.format.channel_bytes == 4);
}
inline bool is_srgb(const TextureBytes& texture, std::uint32_t channel) {
    const TexelFormat& format = texture.format;
    // As on an H100: of two channels the second one is no colour, of four the last one.
    const std::uint32_t colours = format.channels == 4 ? 3 : 1;
    return texture.is_srgb && format.kind == TexelFormat::Kind::unsigned_ && format.channel_bytes == 1 &&
           !texture.reads_integers && channel < colours;
}

// A channel as an integer.
std::int32_t integer_of(const TexelFormat& format, const std::byte* from);

// Filters add integers in units of the last of 16 bits, and floats as they are.
inline double most_of(const TexelFormat& format) {
    return format.kind == TexelFormat::Kind::signed_ ? 32767 : 65535;
}
double addend_of(const TexelFormat& format, float value);
double addend_of(const TexelFormat& format, const std::byte* from);

float linear_of_srgb(const std::byte* from);
// The step of the table there, which is the last bit of the number.
double step_of_srgb(const std::byte* from);

float border_in(const TextureBytes& texture, std::uint32_t channel);

// What a point fetch gives: 0, or the border; the bits of a channel.
std::uint32_t point_outside(const TextureBytes& texture, bool of_integers, bool as_integers, std::uint32_t channel);
std::uint32_t point_inside(const TextureBytes& texture, bool as_integers, std::uint32_t channel, std::uint64_t texel);

}  // namespace isthmus::ptx
