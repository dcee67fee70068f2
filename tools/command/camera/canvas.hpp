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

    // The frame's luma, all of the canvas; the frame has its size.
    void show(const FrameShape& shape, const std::uint8_t* frame);
    // What lies outside the canvas is left out.
    void dot(std::int32_t x, std::int32_t y, Colour colour);
    void square(Position centre, std::int32_t radius, Colour colour);
    void line(Position from, Position to, Colour colour);

private:
    std::uint32_t width_;
    std::uint32_t height_;
    std::vector<Colour> pixels_;
};

// A square around every corner, yellow where it is new and green where it is tracked, and a red trail behind it.
void draw_corners(Canvas& canvas, std::span<const TrackedCorner> corners);

}  // namespace isthmus::tools::camera
