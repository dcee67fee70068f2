// SPDX-License-Identifier: Apache-2.0
// Computes the sizes of frames without overflow.
#include "frame_shape.hpp"

#include <array>
#include <string>

namespace isthmus::tools::camera {
namespace {

struct FormatName {
    PixelFormat format;
    std::string_view name;
};
constexpr std::array<FormatName, 6> format_names{{{PixelFormat::gray, "gray"},
                                                  {PixelFormat::nv12, "nv12"},
                                                  {PixelFormat::i420, "i420"},
                                                  {PixelFormat::yuyv, "yuyv"},
                                                  {PixelFormat::uyvy, "uyvy"},
                                                  {PixelFormat::bayer8, "bayer8"}}};

constexpr std::uint64_t half(std::uint64_t size) {
    return (size + 1) / 2;
}

// In I420 and NV12 two pixels share their colour samples, so that an odd row takes as many bytes as the next even one.
std::uint64_t row_bytes(PixelFormat format, std::uint64_t width) {
    switch (format) {
        case PixelFormat::yuyv:
        case PixelFormat::uyvy: return 4 * half(width);
        case PixelFormat::nv12: return 2 * half(width);
        default: return width;
    }
}

// I420's two colour planes have half the pitch of the luma; NV12's one colour plane has all of it.
std::uint64_t colour_bytes(PixelFormat format, std::uint64_t pitch, std::uint64_t height) {
    switch (format) {
        case PixelFormat::nv12: return pitch * half(height);
        case PixelFormat::i420: return 2 * half(pitch) * half(height);
        default: return 0;
    }
}

}  // namespace

Result<FrameShape> make_frame_shape(PixelFormat format, std::uint64_t width, std::uint64_t height,
                                    std::uint64_t pitch_bytes) {
    const std::string size = std::to_string(width) + "x" + std::to_string(height);
    if (width == 0 || height == 0) {
        return Error(Code::invalid_argument, "frames of " + size + " pixels have no picture",
                     "width and height are at least 1");
    }
    if (width > max_pixels_a_side || height > max_pixels_a_side || width * height > max_pixels) {
        return Error(Code::invalid_argument, "frames of " + size + " pixels are too large",
                     "at most 65535 a side and 134217728 in all");
    }
    const std::uint64_t row = row_bytes(format, width);
    const std::uint64_t pitch = pitch_bytes == 0 ? row : pitch_bytes;
    if (pitch < row || pitch > max_pitch_bytes) {
        return Error(Code::invalid_argument,
                     "a pitch of " + std::to_string(pitch) + " bytes does not suit " + std::string(name(format)) +
                         " frames that are " + std::to_string(width) + " pixels wide",
                     "a pitch from " + std::to_string(row) + " to " + std::to_string(max_pitch_bytes) + " bytes");
    }
    // At most 2²⁰ × 2¹⁶ × 3/2 bytes: it does not overflow, but padding can exceed the limit that the pixels keep.
    const std::uint64_t bytes = pitch * height + colour_bytes(format, pitch, height);
    if (bytes > 4 * max_pixels) {
        return Error(Code::invalid_argument, "frames of " + std::to_string(bytes) + " bytes are too large",
                     "a smaller pitch");
    }
    return FrameShape{format, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                      static_cast<std::uint32_t>(pitch), static_cast<std::size_t>(bytes)};
}

std::string_view name(PixelFormat format) noexcept {
    for (const FormatName& known : format_names)
        if (known.format == format) return known.name;
    return "unknown";
}

std::optional<PixelFormat> pixel_format(std::string_view text) noexcept {
    for (const FormatName& known : format_names)
        if (known.name == text) return known.format;
    return std::nullopt;
}

}  // namespace isthmus::tools::camera
