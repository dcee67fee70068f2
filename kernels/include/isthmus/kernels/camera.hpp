// SPDX-License-Identifier: Apache-2.0
// Kernels of a camera pipeline: frame → gray → smooth → gradients → corner response → list of corners. Integer
// arithmetic throughout, so that every device gives the same bits. docs/kernels.md gives the order and the sizes.
#pragma once

#include <isthmus/kernel.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace kernels {

// Layout of an image, in elements: row y begins at y × pitch. At most 65535 × 65535. Elements between width and pitch
// are neither read nor written.
struct Plane {
    std::uint32_t width;
    std::uint32_t height;
    std::uint32_t pitch;
};
constexpr std::uint64_t size_of(const Plane& plane) noexcept {
    return std::uint64_t{plane.pitch} * plane.height;
}

// Only luma is used: NV12 and I420 hold chroma in later planes; Bayer mosaics are treated as gray.
enum class PixelFormat : std::uint8_t { gray, nv12, i420, yuyv, uyvy, bayer8 };

// Position of the luma of pixel (x, y) in a camera's frame: offset + y × pitch + x × step, in bytes.
struct LumaLayout {
    std::uint32_t offset_bytes;
    std::uint32_t pitch_bytes;
    std::uint32_t step_bytes;
};
constexpr LumaLayout luma_layout(PixelFormat format, std::uint32_t pitch_bytes) noexcept {
    switch (format) {
        case PixelFormat::yuyv: return {0, pitch_bytes, 2};
        case PixelFormat::uyvy: return {1, pitch_bytes, 2};
        default: return {0, pitch_bytes, 1};
    }
}

struct Gradient {
    std::int16_t x;
    std::int16_t y;
};
struct alignas(8) Corner {
    std::uint16_t x;
    std::uint16_t y;
    std::int32_t score;
};
struct CornerCount {
    std::uint32_t found;  // in the image
    // Less than `found` where the list was too small: then the first corners, by row, then column.
    std::uint32_t listed;
};
struct CornerRule {
    std::int32_t threshold;  // a corner's response is greater than this
    // And is the maximum within this many pixels, at most 1023 (more count as 1023); of equal responses the first wins,
    // by row, then column.
    std::uint32_t radius;
    std::uint32_t border;  // minimum distance from an edge
};
inline constexpr std::uint32_t row_threads = 256;

// The whole way in three launches, without intermediate pictures but one; the kernels after these do the same in eight
// steps. A graph takes a new frame by GraphInstance::set_arguments(). Where a GPU reads frames in host memory,
// copy_luma comes first, for tiles read pixels at their edges again: frame_response then takes `gray` with {0,
// gray.pitch, 1}.
inline constexpr std::uint32_t tile_width = 64, tile_height = 16, tile_threads = 512;
inline constexpr std::uint32_t join_rows = 16;  // of one block of join_corners
constexpr Blocks response_tiles(const Plane& plane) noexcept {
    return {(plane.width + tile_width - 1) / tile_width, (plane.height + tile_height - 1) / tile_height};
}
constexpr Extent2 luma_runs(const Plane& plane) noexcept {
    return {(std::uint64_t{plane.width} + 15) / 16, plane.height};
}
constexpr Blocks row_groups(const Plane& plane) noexcept {
    return {(plane.height + join_rows - 1) / join_rows};
}
// Over luma_runs(plane): to_gray, 16 pixels at a time and each once. Fast where rows of both begin at multiples of 16.
ISTHMUS_DECLARE_KERNEL(copy_luma, Index2 i, Out<std::uint8_t> gray, Plane plane, View<const std::uint8_t> frame,
                       LumaLayout layout);
// Over response_tiles(plane): to_gray, smooth, gradients and corner_response, tile by tile in shared memory.
ISTHMUS_DECLARE_KERNEL(frame_response, Block block, Out<std::int32_t> response, Plane plane,
                       View<const std::uint8_t> frame, LumaLayout layout);
// One block per row: the columns of the row's corners from element y × pitch of `columns` on, and their number.
ISTHMUS_DECLARE_KERNEL(row_corners, Block block, Out<std::uint32_t> rows, Out<std::uint16_t> columns,
                       View<const std::int32_t> response, Plane plane, CornerRule rule);
// Over row_groups(plane): the list of all corners, by row, then column, as far as it fits; `count` has one element.
ISTHMUS_DECLARE_KERNEL(join_corners, Block block, Out<Corner> corners, Out<CornerCount> count,
                       View<const std::uint32_t> rows, View<const std::uint16_t> columns,
                       View<const std::int32_t> response, Plane plane);

// Launched over Extent2{plane.width, plane.height}; outside the image the kernels use the nearest pixel.
ISTHMUS_DECLARE_KERNEL(to_gray, Index2 i, Out<std::uint8_t> gray, Plane plane, View<const std::uint8_t> frame,
                       LumaLayout layout);
// 5 × 5 binomial filter, rounded to nearest.
ISTHMUS_DECLARE_KERNEL(smooth, Index2 i, Out<std::uint8_t> smoothed, View<const std::uint8_t> gray, Plane plane);
// Sobel operator, 3 × 3.
ISTHMUS_DECLARE_KERNEL(gradients, Index2 i, Out<Gradient> gradient, View<const std::uint8_t> gray, Plane plane);
// Harris response over 5 × 5 gradients: ⌊(25 det − trace²) / 2²³⌋, which fits 32 bits for every picture.
ISTHMUS_DECLARE_KERNEL(corner_response, Index2 i, Out<std::int32_t> response, View<const Gradient> gradient,
                       Plane plane);
// Writes 1 where `rule` finds a corner, otherwise 0.
ISTHMUS_DECLARE_KERNEL(mark_corners, Index2 i, Out<std::uint8_t> mark, View<const std::int32_t> response, Plane plane,
                       CornerRule rule);

// One block per row: counts the row's corners. `rows` has one element per row.
ISTHMUS_DECLARE_KERNEL(count_corners, Block block, Out<std::uint32_t> rows, View<const std::uint8_t> mark, Plane plane);
// One block in total: turns counts into positions in the list; `count` has one element.
ISTHMUS_DECLARE_KERNEL(place_corners, Block block, View<std::uint32_t> rows, Out<CornerCount> count,
                       std::uint32_t capacity);
// One block per row: writes the row's corners at their positions, so that the list is ordered by row, then column.
ISTHMUS_DECLARE_KERNEL(list_corners, Block block, Out<Corner> corners, View<const std::uint32_t> rows,
                       View<const std::uint8_t> mark, View<const std::int32_t> response, Plane plane);

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
