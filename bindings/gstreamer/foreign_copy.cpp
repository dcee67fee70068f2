// SPDX-License-Identifier: Apache-2.0
// A frame may lie in several memories, one for each plane, as cameras with one dma-buf for each plane have it.
#include "foreign_copy.hpp"

#include <gst/allocators/gstdmabuf.h>

#include <algorithm>
#include <utility>

namespace isthmus::gst {
namespace {

bool is_device_memory(GstMemory* memory) noexcept {
    return gst_memory_is_type(memory, cuda_memory_type) != FALSE;
}

template <class Predicate>
bool any_memory(GstBuffer* buffer, Predicate holds) noexcept {
    for (guint at = 0; at < gst_buffer_n_memory(buffer); ++at) {
        if (holds(gst_buffer_peek_memory(buffer, at))) return true;
    }
    return false;
}

gsize rows_of(const FrameShape& shape, guint plane) noexcept {
    return plane == 0 ? shape.height : (gsize{shape.height} + 1) / 2;
}

// Without padding behind the rows. The errors are those of shape_of() and make_frame_shape().
Result<FrameShape> tight_shape(const GstVideoInfo& info) {
    Result<FrameShape> shape = shape_of(info);
    return shape ? tools::camera::make_frame_shape(shape->format, shape->width, shape->height) : std::move(shape);
}

// Whether each plane that begins in a memory ends there, too. `tight`: without padding behind the rows.
bool planes_fit(GstBuffer* buffer, const Layout& layout, const FrameShape& tight) noexcept {
    const Layout rows = layout_of(tight);
    for (guint plane = 0; plane < layout.planes; ++plane) {
        guint first = 0, length = 0;
        gsize skip = 0;
        const bool begins = gst_buffer_find_memory(buffer, layout.offset[plane], 1, &first, &length, &skip) != FALSE;
        if (begins && layout.stride[plane] > 0 &&
            !rows_fit(gst_buffer_peek_memory(buffer, first)->size, skip, static_cast<gsize>(layout.stride[plane]),
                      rows_of(tight, plane), static_cast<gsize>(rows.stride[plane]))) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool ForeignPlanes::is_copied_by_map(GstBuffer* buffer) noexcept {
    return any_memory(buffer, [](GstMemory* memory) {
        return is_device_memory(memory) && (GST_MINI_OBJECT_FLAGS(memory) & cuda_needs_upload) == 0;
    });
}

bool ForeignPlanes::has_foreign_memory(GstBuffer* buffer) noexcept {
    return any_memory(
        buffer, [](GstMemory* memory) { return is_device_memory(memory) || gst_is_dmabuf_memory(memory) != FALSE; });
}

Result<ForeignPlanes> ForeignPlanes::of(GstBuffer* buffer, const GstVideoInfo& info, const OpenSession& opened) {
    ForeignPlanes made;
    const Result<Layout> found = layout_of(buffer, info);
    if (!found) return found.error();
    const Layout& layout = *found;
    const Result<FrameShape> shape = tight_shape(info);
    if (!shape) return shape.error();
    // A map without a GstVideoMeta joins the memories. With one it would read behind the plane's memory: such a frame
    // is left to copy(), which refuses it.
    if (gst_buffer_get_video_meta(buffer) == nullptr && !planes_fit(buffer, layout, *shape)) {
        return Error(Code::unsupported, "a plane of the frame goes on behind the end of its memory");
    }
    std::vector<guint> numbers;
    for (guint plane = 0; plane < layout.planes; ++plane) {
        guint first = 0, length = 0;
        gsize skip = 0;
        if (layout.stride[plane] <= 0 ||
            gst_buffer_find_memory(buffer, layout.offset[plane], 1, &first, &length, &skip) == FALSE) {
            return Error(Code::unsupported,
                         "a plane of the frame has no rows in ascending order in the frame's memory");
        }
        auto known = std::find(numbers.begin(), numbers.end(), first);
        if (known == numbers.end()) {
            GstMemory* const memory = gst_buffer_peek_memory(buffer, first);
            Result<ForeignFrame> frame = ForeignFrame::of(memory, opened);
            if (!frame) return std::move(frame).error();
            made.frames_.push_back(std::move(frame).value());
            made.device_memory_ = made.device_memory_ || is_device_memory(memory);
            known = numbers.insert(numbers.end(), first);
        }
        made.planes_[plane] = {static_cast<std::size_t>(known - numbers.begin()),
                               {.offset = skip, .row_pitch = static_cast<std::size_t>(layout.stride[plane])}};
    }
    made.count_ = layout.planes;
    return made;
}

FrameCopy ForeignPlanes::way_to(const Stream& stream, const Buffer<std::uint8_t>& slot) const {
    FrameCopy all{CopyWay::runtime, false};
    for (const ForeignFrame& frame : frames_) {
        const FrameCopy one = frame_copy(stream.explain_copy(slot, frame.buffer()).path,
                                         slot.path() == LaunchPath::stage, device_memory_);
        if (one.way == CopyWay::map) return one;
        all.twice = all.twice || one.twice;
    }
    return all;
}

Result<void> ForeignPlanes::copy(Stream& stream, Buffer<std::uint8_t>& slot, const FrameShape& shape) const {
    const Result<FrameShape> tight = tools::camera::make_frame_shape(shape.format, shape.width, shape.height);
    if (!tight) return tight.error();
    const Layout to = layout_of(shape), rows = layout_of(*tight);
    Result<void> copied;
    for (guint plane = 0; plane < count_ && copied; ++plane) {
        copied = stream.copy_region(
            slot, {.offset = to.offset[plane], .row_pitch = static_cast<std::size_t>(to.stride[plane])},
            frames_[planes_[plane].memory].buffer(), planes_[plane].layout,
            {.width = static_cast<std::size_t>(rows.stride[plane]), .height = rows_of(shape, plane)});
    }
    Result<void> ended = stream.synchronize();  // also behind an error: copies of earlier planes read the memory
    return copied ? std::move(ended) : std::move(copied);
}

}  // namespace isthmus::gst
