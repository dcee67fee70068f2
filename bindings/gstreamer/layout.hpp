// SPDX-License-Identifier: Apache-2.0
// How GStreamer's video formats and layouts correspond to the frame shapes of the library's tools.
#pragma once

#include "camera/frame_shape.hpp"

#include <gst/video/video.h>

#include <optional>

namespace isthmus::gst {

using tools::camera::FrameShape;

// The formats that the elements take, and their caps; the limits are those of make_frame_shape().
#define ISTHMUS_GST_FORMATS "{ GRAY8, NV12, I420, YUY2, UYVY }"
#define ISTHMUS_GST_FIELDS                          \
    ", format = (string) " ISTHMUS_GST_FORMATS      \
    ", width = (int) [ 1, 65535 ], height = (int) " \
    "[ 1, 65535 ], framerate = (fraction) [ 0/1, 2147483647/1 ]"
#define ISTHMUS_GST_CAPS "video/x-raw" ISTHMUS_GST_FIELDS
// The same, and in memory of other elements: CUDA memory, and dma-bufs that need not be accessible by the CPU. Their
// rows lie one after another: a layout with a DRM modifier (format=DMA_DRM) is not among them.
#define ISTHMUS_GST_DEVICE_CAPS \
    ISTHMUS_GST_CAPS            \
    "; video/x-raw(memory:CUDAMemory)" ISTHMUS_GST_FIELDS "; video/x-raw(memory:DMABuf)" ISTHMUS_GST_FIELDS

std::optional<kernels::PixelFormat> pixel_format(GstVideoFormat format) noexcept;
// GST_VIDEO_FORMAT_UNKNOWN: GStreamer has no such format among its raw video.
GstVideoFormat video_format(kernels::PixelFormat format) noexcept;

// The planes of one frame in memory.
struct Layout {
    gsize size = 0;
    guint planes = 0;
    gsize offset[GST_VIDEO_MAX_PLANES]{};
    gint stride[GST_VIDEO_MAX_PLANES]{};
};
Layout layout_of(const FrameShape& shape) noexcept;
Layout layout_of(const GstVideoInfo& info) noexcept;
// As the buffer lies in memory: by its GstVideoMeta, else as its caps say. Errors: unsupported (the meta is of another
// format, has other planes, or is of a smaller frame). GStreamer's map refuses such a frame, too.
Result<Layout> layout_of(GstBuffer* buffer, const GstVideoInfo& info);
// Whether `rows` rows of a plane, the first at `offset`, lie within `size` bytes. Pitch and rows are not 0.
constexpr bool rows_fit(gsize size, gsize offset, gsize pitch, gsize rows, gsize row_bytes) noexcept {
    return offset <= size && row_bytes <= size - offset && rows - 1 <= (size - offset - row_bytes) / pitch;
}
// The same of rows in ascending (pitch > 0) or descending order.
constexpr bool plane_fits(gsize size, gsize offset, std::ptrdiff_t pitch, gsize rows, gsize row_bytes) noexcept {
    if (pitch > 0) return rows_fit(size, offset, static_cast<gsize>(pitch), rows, row_bytes);
    return pitch < 0 && rows - 1 <= offset / static_cast<gsize>(-pitch) && rows_fit(size, offset, 1, 1, row_bytes);
}
bool same_planes(const Layout& one, const Layout& other) noexcept;

// The shape whose layout is GStreamer's own wherever there is one; see has_usual_layout(). Errors: unsupported (the
// format), invalid_argument (the size).
Result<FrameShape> shape_of(const GstVideoInfo& info);
// Whether frames of the shape lie as GStreamer lays them out; if not, they need a GstVideoMeta.
bool has_usual_layout(const FrameShape& shape) noexcept;
// A video info of this format and size, in GStreamer's own layout, without frame rate. The format is known.
GstVideoInfo info_of(const FrameShape& shape) noexcept;

void add_video_meta(GstBuffer* buffer, const FrameShape& shape);

// Copies the planes of one frame; `to` lies as `shape`. `from` was zero before it was mapped: where its memory has a
// map of its own that tells no size, only that map knows where the memory ends. Errors: unsupported (a plane leaves its
// memory; nothing is copied).
Result<void> copy_planes(std::uint8_t* to, const FrameShape& shape, const GstVideoFrame& from);

}  // namespace isthmus::gst
