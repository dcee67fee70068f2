// SPDX-License-Identifier: Apache-2.0
// FrameShape: the format, size and pitch of a camera's frames, and the bytes of one frame.
#pragma once

#include <isthmus/kernels/camera.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::tools::camera {

using kernels::PixelFormat;

// Only make_frame_shape() makes a checked shape, in which no size below overflows.
struct FrameShape {
    PixelFormat format = PixelFormat::gray;
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::uint32_t pitch_bytes = 0;  // of the luma plane
    std::size_t size_bytes = 0;     // of a frame, including its colour planes
    friend bool operator==(const FrameShape&, const FrameShape&) = default;
};

inline constexpr std::uint32_t max_pixels_a_side = 65535;
inline constexpr std::uint64_t max_pixels = std::uint64_t{1} << 27;
inline constexpr std::uint64_t max_pitch_bytes = std::uint64_t{1} << 20;

// pitch_bytes = 0: no gap between rows. Takes 64-bit numbers, so that a file's numbers can be passed unchecked. Errors:
// invalid_argument where a side is zero or too long, or the pitch is shorter than a row.
Result<FrameShape> make_frame_shape(PixelFormat format, std::uint64_t width, std::uint64_t height,
                                    std::uint64_t pitch_bytes = 0);

std::string_view name(PixelFormat format) noexcept;
std::optional<PixelFormat> pixel_format(std::string_view name) noexcept;

// Reads the luma of pixel (x, y) in a frame of this shape, on the CPU.
inline std::uint8_t luma(const FrameShape& shape, const std::uint8_t* frame, std::uint32_t x,
                         std::uint32_t y) noexcept {
    const kernels::LumaLayout layout = kernels::luma_layout(shape.format, shape.pitch_bytes);
    return frame[layout.offset_bytes + std::size_t{y} * layout.pitch_bytes + std::size_t{x} * layout.step_bytes];
}

// BT.601 luma in 256ths, rounded to nearest; used for every colour picture that is read.
constexpr std::uint8_t luma_of_rgb(std::uint32_t red, std::uint32_t green, std::uint32_t blue) noexcept {
    return static_cast<std::uint8_t>((77 * red + 150 * green + 29 * blue + 128) >> 8);
}

}  // namespace isthmus::tools::camera
