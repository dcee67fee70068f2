// SPDX-License-Identifier: Apache-2.0
// A single picture as frames: one, or a stream in which a window moves over it, the same way every time.
#pragma once

#include "frame_reader.hpp"

#include <vector>

namespace isthmus::tools::camera {

struct WindowPlace {
    std::uint32_t x = 0;
    std::uint32_t y = 0;
};
// Where the window's corner lies in frame `frame`, when it may move `room_x` and `room_y` pixels: 3 pixels a frame
// across and 2 down, back from every edge.
WindowPlace window_place(std::uint64_t frame, std::uint32_t room_x, std::uint32_t room_y) noexcept;

// `picture` is gray, facts.width × facts.height bytes. With `frames` of 0 or 1 it is the one frame; else frames are an
// eighth smaller than the picture on each axis, which is the room to move.
Result<std::unique_ptr<FrameReader>> open_picture(const PictureFacts& facts, std::vector<std::uint8_t> picture,
                                                  std::uint64_t frames);

}  // namespace isthmus::tools::camera
