// SPDX-License-Identifier: Apache-2.0
// Canvas: an RGB picture to draw corners and tracks on.
#pragma once

#include "corner_tracker.hpp"
#include "frame_shape.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::tools::camera {

struct Colour {
    std::uint8_t red;
    std::uint8_t green;
    std::uint8_t blue;
};

class Canvas {
public:
    Canvas(std::uint32_t width, std::uint32_t height);
    std::uint32_t width() const noexcept { return width_; }
    std::uint32_t height() const noexcept { return height_; }
    std::span<const Colour> pixels() const noexcept { return pixels_; }

    // Fills the canvas with the frame's luma; the frame must have the canvas' size.
    void show(const FrameShape& shape, const std::uint8_t* frame);
    // Pixels outside the canvas are not drawn.
    void dot(std::int32_t x, std::int32_t y, Colour colour);
    void square(Position centre, std::int32_t radius, Colour colour);
    void line(Position from, Position to, Colour colour);

private:
    std::uint32_t width_;
    std::uint32_t height_;
    std::vector<Colour> pixels_;
};

// Draws a square around every corner, yellow for a new corner and green for a tracked one, and a red trail behind it.
void draw_corners(Canvas& canvas, std::span<const TrackedCorner> corners);

}  // namespace isthmus::tools::camera
