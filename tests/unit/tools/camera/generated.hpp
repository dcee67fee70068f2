// SPDX-License-Identifier: Apache-2.0
// Generated frames with corners: rectangles and noise that move.
#pragma once

#include "read_frames.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

inline std::uint8_t generated_pixel(int x, int y, int frame) {
    const auto hash = [](std::uint32_t value) {
        value = (value ^ (value >> 15)) * 0x2c1b3c6du;
        value = (value ^ (value >> 12)) * 0x297a2d39u;
        return value ^ (value >> 15);
    };
    const int u = x + 2 * frame, v = y + frame;  // the scene moves to the upper left
    const std::uint32_t tile = hash(static_cast<std::uint32_t>((u / 11) * 1009 + v / 7));
    const std::uint32_t noise = hash(static_cast<std::uint32_t>(x * 7919 + y * 104729 + frame));
    return static_cast<std::uint8_t>((tile & 0xc0) + 24 + (noise & 0x07));
}

// Frames of any shape; everything but luma is filled with noise, which must not matter.
inline std::vector<Frame> generated_frames(const FrameShape& shape, int count) {
    const kernels::LumaLayout layout = kernels::luma_layout(shape.format, shape.pitch_bytes);
    std::vector<Frame> frames;
    for (int number = 0; number < count; ++number) {
        Frame frame(shape.size_bytes);
        for (std::size_t at = 0; at < frame.size(); ++at) frame[at] = static_cast<std::uint8_t>(at * 131 + at / 7);
        for (std::uint32_t y = 0; y < shape.height; ++y) {
            for (std::uint32_t x = 0; x < shape.width; ++x)
                frame[layout.offset_bytes + std::size_t{y} * layout.pitch_bytes + x * layout.step_bytes] =
                    generated_pixel(static_cast<int>(x), static_cast<int>(y), number);
        }
        frames.push_back(std::move(frame));
    }
    return frames;
}

inline std::string bytes_of(const std::vector<Frame>& frames, const std::string& before_each = {}) {
    std::string bytes;
    for (const Frame& frame : frames) bytes += before_each + std::string(frame.begin(), frame.end());
    return bytes;
}

// As YUV4MPEG2: gray as mono, I420 as 4:2:0.
inline std::string video_of(const FrameShape& shape, const std::vector<Frame>& frames) {
    return "YUV4MPEG2 W" + std::to_string(shape.width) + " H" + std::to_string(shape.height) + " F10:1 Ip A1:1 C" +
           (shape.format == PixelFormat::gray ? "mono" : "420jpeg") + "\n" + bytes_of(frames, "FRAME\n");
}

}  // namespace isthmus::tools::camera
