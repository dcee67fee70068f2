// SPDX-License-Identifier: Apache-2.0
// EXIF: the orientation of a photograph.
#pragma once

#include "frame_reader.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::tools::camera {

// The side of the stored picture that is the top, with EXIF's numbers.
enum class Orientation : std::uint8_t {
    upright = 1,
    mirrored = 2,
    half_turn = 3,
    half_turn_mirrored = 4,
    transposed = 5,
    quarter_turn = 6,  // rotate clockwise to view
    transversed = 7,
    three_quarter_turn = 8,
};

// Reads the orientation from an APP1 segment, which starts with "Exif". The bytes are not trusted; upright where the
// segment has no valid orientation.
Orientation exif_orientation(std::span<const std::uint8_t> segment) noexcept;

// Rotates a gray picture of facts.width × facts.height bytes, and updates `facts`.
std::vector<std::uint8_t> made_upright(PictureFacts& facts, std::vector<std::uint8_t> picture, Orientation orientation);

}  // namespace isthmus::tools::camera
