// SPDX-License-Identifier: Apache-2.0
// Which texels the coordinates of a fetch take, and how much of each.
#pragma once

#include "texture_sampling.hpp"

#include <array>
#include <cstdint>

namespace isthmus::ptx {

inline constexpr std::int64_t outside = -1;  // of a texel that the border stands for

// One axis of a fetch: the texels, and the weight of the second one in 1/256.
struct Axis {
    std::array<std::int64_t, 2> texel = {0, 0};
    std::uint32_t weight = 0;
};

enum class Take : std::uint8_t { nearest, filtered, gathered };
Axis axis_of(const TextureBytes& texture, std::size_t axis, const TexturePoint& point, std::int64_t size, Take take);

// Of the corners, in 1/256, `total` together: bit 0 of a corner is the second texel along x, bit 1 along y, bit 2 along
// z.
std::array<std::uint32_t, 8> weights_of(const std::array<Axis, 3>& axes, std::uint32_t total);

// CUDA C++ Programming Guide, "Cubemap Textures": the face, and the place there.
TexturePoint on_face(const TextureBytes& texture, const TexturePoint& direction);

struct Levels {
    std::uint32_t first = 0, second = 0;
    std::uint32_t weight = 0;  // of the second, in 1/256
};
// As on an H100: all numbers are cut off to 1/256, and a fetch without a level has no bias.
Levels levels_of(const TextureBytes& texture, const TexturePoint& point);

}  // namespace isthmus::ptx
