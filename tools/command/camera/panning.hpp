// SPDX-License-Identifier: Apache-2.0
// A single picture as frames: one frame, or a stream in which a window moves over it along a fixed path.
#pragma once

#include "frame_reader.hpp"

#include <vector>

namespace isthmus::tools::camera {

struct WindowPlace {
    std::uint32_t x = 0;
    std::uint32_t y = 0;
};
// The corner of the window in frame `frame`, when it may move `room_x` and `room_y` pixels: it moves 3 pixels a frame
// across and 2 down, and turns back at every edge.
WindowPlace window_place(std::uint64_t frame, std::uint32_t room_x, std::uint32_t room_y) noexcept;

// `picture` is gray, facts.width × facts.height bytes. With `frames` of 0 or 1 the picture is the one frame. Otherwise
// frames are an eighth smaller than the picture on each axis, which leaves room to move.
Result<std::unique_ptr<FrameReader>> open_picture(const PictureFacts& facts, std::vector<std::uint8_t> picture,
                                                  std::uint64_t frames);

}  // namespace isthmus::tools::camera
