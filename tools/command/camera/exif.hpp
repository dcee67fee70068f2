// SPDX-License-Identifier: Apache-2.0
// EXIF: which way up a photograph is to be looked at.
#pragma once

#include "frame_reader.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::tools::camera {

// Which side of the stored picture is the top, as EXIF numbers it.
enum class Orientation : std::uint8_t {
    upright = 1,
    mirrored = 2,
    half_turn = 3,
    half_turn_mirrored = 4,
    transposed = 5,
    quarter_turn = 6,  // clockwise, to look at it
    transversed = 7,
    three_quarter_turn = 8,
};

// What an APP1 segment says, from "Exif" on. The bytes may be anything; upright where they say nothing.
Orientation exif_orientation(std::span<const std::uint8_t> segment) noexcept;

// Turns a gray picture of facts.width × facts.height bytes, and the facts with it.
std::vector<std::uint8_t> made_upright(PictureFacts& facts, std::vector<std::uint8_t> picture, Orientation orientation);

}  // namespace isthmus::tools::camera
