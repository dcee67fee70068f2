// SPDX-License-Identifier: Apache-2.0
// What a texture makes of coordinates: pure functions.
#pragma once

#include "execution.hpp"

#include <array>
#include <cstdint>

namespace isthmus::ptx {

struct TexturePoint {
    std::array<float, 3> at = {};            // x, y, z; of a cube: the direction
    std::array<std::int32_t, 3> texel = {};  // instead, with integer coordinates
    bool of_integers = false;
    std::uint32_t layer = 0;
    bool has_level = false;
    float level = 0;
};

struct TextureSample {
    std::array<std::uint32_t, 4> channels = {};  // bits of u32, s32 or f32
    std::array<std::uint64_t, 16> texels = {};   // that were read: bytes from the texture's first one
    std::uint32_t texel_count = 0;
};

TextureSample sample(const TextureBytes& texture, const TexturePoint& point) noexcept;
// tld4: one channel of the four texels that a linear filter would take, as a point fetch gives it: at the left below,
// the right below, the right above and the left above.
TextureSample gather(const TextureBytes& texture, const TexturePoint& point, std::uint32_t channel) noexcept;

}  // namespace isthmus::ptx
