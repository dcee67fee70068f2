// SPDX-License-Identifier: Apache-2.0
// Draws into an RGB picture, pixel by pixel.
#include "canvas.hpp"

#include <algorithm>
#include <cstdlib>

namespace isthmus::tools::camera {

Canvas::Canvas(std::uint32_t width, std::uint32_t height)
    : width_(width), height_(height), pixels_(std::size_t{width} * height) {}

void Canvas::show(const FrameShape& shape, const std::uint8_t* frame) {
    std::size_t at = 0;
    for (std::uint32_t y = 0; y < height_; ++y) {
        for (std::uint32_t x = 0; x < width_; ++x) {
            const std::uint8_t gray = luma(shape, frame, x, y);
            pixels_[at++] = {gray, gray, gray};
        }
    }
}

void Canvas::dot(std::int32_t x, std::int32_t y, Colour colour) {
    if (x < 0 || y < 0 || std::int64_t{x} >= width_ || std::int64_t{y} >= height_) return;
    pixels_[static_cast<std::size_t>(y) * width_ + static_cast<std::size_t>(x)] = colour;
}

void Canvas::square(Position centre, std::int32_t radius, Colour colour) {
    for (std::int32_t at = -radius; at <= radius; ++at) {
        dot(centre.x + at, centre.y - radius, colour);
        dot(centre.x + at, centre.y + radius, colour);
        dot(centre.x - radius, centre.y + at, colour);
        dot(centre.x + radius, centre.y + at, colour);
    }
}

// Bresenham's line algorithm.
void Canvas::line(Position from, Position to, Colour colour) {
    std::int32_t x = from.x, y = from.y;
    const std::int32_t across = std::abs(to.x - x), down = -std::abs(to.y - y);
    const std::int32_t step_x = x < to.x ? 1 : -1, step_y = y < to.y ? 1 : -1;
    std::int32_t error = across + down;
    for (;;) {
        dot(x, y, colour);
        if (x == to.x && y == to.y) return;
        const std::int32_t twice = 2 * error;
        if (twice >= down) {
            error += down;
            x += step_x;
        }
        if (twice <= across) {
            error += across;
            y += step_y;
        }
    }
}

void draw_corners(Canvas& canvas, std::span<const TrackedCorner> corners) {
    constexpr Colour fresh{255, 210, 0}, tracked{0, 230, 80}, trail{255, 40, 40};
    for (const TrackedCorner& corner : corners) {
        Position from{corner.item.corner.x, corner.item.corner.y};
        for (std::uint32_t at = 0; at < corner.trail_length; ++at) {
            canvas.line(from, corner.trail[at], trail);
            from = corner.trail[at];
        }
    }
    for (const TrackedCorner& corner : corners) {
        canvas.square({corner.item.corner.x, corner.item.corner.y}, 3, corner.previous < 0 ? fresh : tracked);
    }
}

}  // namespace isthmus::tools::camera
