// SPDX-License-Identifier: Apache-2.0
// Address modes, faces of cubes, and levels of textures.
#include "texture_coordinates.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::ptx {
namespace {

using Address = TextureBytes::Address;

constexpr int fraction_bits = 8;     // CUDA C++ Programming Guide, "Linear Filtering": of the weights
constexpr int normalised_bits = 21;  // of normalised coordinates; this and the roundings below: as on an H100

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

std::int64_t in_256ths(float value) {
    return std::isnan(value) ? 0 : static_cast<std::int64_t>(std::clamp(value, -1e6f, 1e6f) * 256);
}

}  // namespace

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

}  // namespace isthmus::ptx
