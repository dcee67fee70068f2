// SPDX-License-Identifier: Apache-2.0
// Frame shapes have one pitch; the pitch of colour planes follows from it. GStreamer rounds every pitch up to four
// bytes, and heights of 4:2:0 up to two, so that some odd sizes have no shape that lies as GStreamer's.
#include "layout.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

namespace isthmus::gst {
namespace {

using kernels::PixelFormat;

struct FormatPair {
    PixelFormat ours;
    GstVideoFormat theirs;
};
constexpr std::array<FormatPair, 5> formats{{{PixelFormat::gray, GST_VIDEO_FORMAT_GRAY8},
                                             {PixelFormat::nv12, GST_VIDEO_FORMAT_NV12},
                                             {PixelFormat::i420, GST_VIDEO_FORMAT_I420},
                                             {PixelFormat::yuyv, GST_VIDEO_FORMAT_YUY2},
                                             {PixelFormat::uyvy, GST_VIDEO_FORMAT_UYVY}}};

}  // namespace

std::optional<PixelFormat> pixel_format(GstVideoFormat format) noexcept {
    for (const FormatPair& pair : formats)
        if (pair.theirs == format) return pair.ours;
    return std::nullopt;
}

GstVideoFormat video_format(PixelFormat format) noexcept {
    for (const FormatPair& pair : formats)
        if (pair.ours == format) return pair.theirs;
    return GST_VIDEO_FORMAT_UNKNOWN;
}

Layout layout_of(const FrameShape& shape) noexcept {
    Layout layout;
    const gsize luma = gsize{shape.pitch_bytes} * shape.height;
    const gint pitch = static_cast<gint>(shape.pitch_bytes);
    layout.size = shape.size_bytes;
    layout.planes = shape.format == PixelFormat::i420 ? 3 : shape.format == PixelFormat::nv12 ? 2 : 1;
    layout.stride[0] = pitch;
    if (layout.planes == 1) return layout;
    layout.offset[1] = luma;
    layout.stride[1] = pitch;
    if (layout.planes == 2) return layout;
    layout.stride[1] = layout.stride[2] = (pitch + 1) / 2;
    layout.offset[2] = luma + static_cast<gsize>(layout.stride[1]) * ((gsize{shape.height} + 1) / 2);
    return layout;
}

Layout layout_of(const GstVideoInfo& info) noexcept {
    Layout layout;
    layout.size = GST_VIDEO_INFO_SIZE(&info);
    layout.planes = GST_VIDEO_INFO_N_PLANES(&info);
    for (guint plane = 0; plane < layout.planes; ++plane) {
        layout.offset[plane] = GST_VIDEO_INFO_PLANE_OFFSET(&info, plane);
        layout.stride[plane] = GST_VIDEO_INFO_PLANE_STRIDE(&info, plane);
    }
    return layout;
}

Result<Layout> layout_of(GstBuffer* buffer, const GstVideoInfo& info) {
    Layout layout = layout_of(info);
    if (const GstVideoMeta* const meta = gst_buffer_get_video_meta(buffer)) {
        if (meta->format != GST_VIDEO_INFO_FORMAT(&info) || meta->n_planes != layout.planes ||
            std::cmp_less(meta->width, GST_VIDEO_INFO_WIDTH(&info)) ||
            std::cmp_less(meta->height, GST_VIDEO_INFO_HEIGHT(&info))) {
            return Error(Code::unsupported, "the frame's GstVideoMeta does not suit the caps");
        }
        std::copy_n(meta->offset, meta->n_planes, layout.offset);
        std::copy_n(meta->stride, meta->n_planes, layout.stride);
    }
    layout.size = gst_buffer_get_size(buffer);
    return layout;
}

bool same_planes(const Layout& one, const Layout& other) noexcept {
    return one.planes == other.planes && std::equal(one.offset, one.offset + one.planes, other.offset) &&
           std::equal(one.stride, one.stride + one.planes, other.stride);
}

Result<FrameShape> shape_of(const GstVideoInfo& info) {
    const std::optional<PixelFormat> format = pixel_format(GST_VIDEO_INFO_FORMAT(&info));
    if (!format) {
        return Error(Code::unsupported,
                     "frames of format " + std::string(GST_VIDEO_INFO_NAME(&info)) + " have no shape here",
                     "videoconvert, to one of " ISTHMUS_GST_FORMATS);
    }
    return tools::camera::make_frame_shape(*format, static_cast<std::uint64_t>(GST_VIDEO_INFO_WIDTH(&info)),
                                           static_cast<std::uint64_t>(GST_VIDEO_INFO_HEIGHT(&info)),
                                           static_cast<std::uint64_t>(GST_VIDEO_INFO_PLANE_STRIDE(&info, 0)));
}

bool has_usual_layout(const FrameShape& shape) noexcept {
    const Layout usual = layout_of(info_of(shape)), own = layout_of(shape);
    return usual.size == own.size && same_planes(usual, own);
}

GstVideoInfo info_of(const FrameShape& shape) noexcept {
    GstVideoInfo info;
    gst_video_info_set_format(&info, video_format(shape.format), shape.width, shape.height);
    return info;
}

void add_video_meta(GstBuffer* buffer, const FrameShape& shape) {
    Layout layout = layout_of(shape);
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, video_format(shape.format), shape.width,
                                   shape.height, layout.planes, layout.offset, layout.stride);
}

namespace {

struct Rows {
    const std::uint8_t* first;
    std::ptrdiff_t pitch;
    gsize count;
    gsize bytes;       // of a row, in ascending order with the padding that both sides have
    gsize last_bytes;  // of the one that ends the memory: behind it there need be no padding
};

Rows rows_of(const Layout& layout, const Layout& tight, const FrameShape& shape, const GstVideoFrame& from,
             guint plane) noexcept {
    const auto pitch = static_cast<std::ptrdiff_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&from, plane));
    const auto room = static_cast<gsize>(std::abs(pitch));
    return {static_cast<const std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&from, plane)), pitch,
            plane == 0 ? shape.height : (gsize{shape.height} + 1) / 2,
            std::min(room, static_cast<gsize>(pitch > 0 ? layout.stride[plane] : tight.stride[plane])),
            std::min(room, static_cast<gsize>(tight.stride[plane]))};
}

// Whether the rows lie within the memory that was mapped for them: of the plane with a GstVideoMeta, else of the frame.
bool within_memory(const Rows& rows, const GstVideoFrame& from, guint plane) noexcept {
    const GstMapInfo& map = from.map[from.meta != nullptr ? plane : 0];
    if (map.data == nullptr || rows.count == 0) return true;
    if (std::less<>()(rows.first, map.data)) return false;
    return plane_fits(map.size, static_cast<gsize>(rows.first - map.data), rows.pitch, rows.count, rows.last_bytes);
}

}  // namespace

Result<void> copy_planes(std::uint8_t* to, const FrameShape& shape, const GstVideoFrame& from) {
    const Layout layout = layout_of(shape);
    ISTHMUS_TRY(const FrameShape tight, tools::camera::make_frame_shape(shape.format, shape.width, shape.height));
    const Layout tight_rows = layout_of(tight);
    for (guint plane = 0; plane < layout.planes; ++plane) {
        if (!within_memory(rows_of(layout, tight_rows, shape, from, plane), from, plane)) {
            return Error(Code::unsupported, "a plane of the frame goes on behind the end of its memory",
                         "a GstVideoMeta whose offsets and strides suit the frame's memory");
        }
    }
    for (guint plane = 0; plane < layout.planes; ++plane) {
        const Rows rows = rows_of(layout, tight_rows, shape, from, plane);
        for (gsize y = 0; y < rows.count; ++y) {
            std::memcpy(to + layout.offset[plane] + y * static_cast<gsize>(layout.stride[plane]),
                        rows.first + static_cast<std::ptrdiff_t>(y) * rows.pitch,
                        y + 1 < rows.count ? rows.bytes : rows.last_bytes);
        }
    }
    return {};
}

}  // namespace isthmus::gst
