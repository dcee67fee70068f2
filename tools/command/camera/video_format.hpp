// SPDX-License-Identifier: Apache-2.0
// What a V4L2 driver says of its formats and frames, checked and translated. Pure: a driver's structures are foreign
// data.
#pragma once

#include "frame_reader.hpp"
#include "frame_shape.hpp"

#include <isthmus/result.hpp>

#include <linux/videodev2.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace isthmus::tools::camera {

// What the user asked of a camera; 0 and nothing: as the camera is set.
struct CameraWish {
    std::optional<PixelFormat> format{};
    std::uint32_t width = 0;  // pixels; both or neither
    std::uint32_t height = 0;
};

std::optional<PixelFormat> pixel_format_of(std::uint32_t fourcc) noexcept;
std::string fourcc_text(std::uint32_t fourcc);  // "YUYV"; unprintable ones as a number

// The format to set, of those that the camera offers: `wanted`, else the one with the fewest bytes for its luma.
// Errors: unsupported, with what the camera offers.
Result<std::uint32_t> choose_fourcc(std::span<const std::uint32_t> offered, std::optional<PixelFormat> wanted,
                                    const std::string& camera);

// The frames that VIDIOC_S_FMT or VIDIOC_G_FMT answered with, of one plane or of several planes in one memory.
// `memory_bytes`: what a buffer must have, at least the shape's size. Errors: unsupported (another format, several
// memories, fields one by one), invalid_argument (sizes that no frame has).
struct VideoFrames {
    FrameShape shape{};
    std::size_t memory_bytes = 0;
};
Result<VideoFrames> frames_of(const v4l2_format& format);
FrameRate frame_rate_of(const v4l2_streamparm& parameters) noexcept;  // 25 where the driver states none

// The buffer that VIDIOC_DQBUF answered with. `whole`: it holds a frame; otherwise it only goes back to the driver.
struct FilledBuffer {
    std::uint32_t index = 0;
    bool whole = false;
};
// `queued`: whether the driver has the buffer of that number. Errors: system_error (no buffer that it has).
Result<FilledBuffer> filled_buffer(const v4l2_buffer& buffer, std::uint32_t bytes_used, std::span<const bool> queued,
                                   std::size_t frame_bytes);

// One line for a camera that cannot be used. `step`: what was tried, as "opening".
Error camera_failure(const std::string& camera, const char* step, const char* call, int error);

}  // namespace isthmus::tools::camera
