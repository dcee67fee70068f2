// SPDX-License-Identifier: Apache-2.0
// GstVideoBufferPool makes frames with strides, alignment and metadata; this class names the memory.
#include "pool.hpp"

#include <gst/video/video.h>

#include <algorithm>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

// Rows that a GPU reads should begin at multiples of its cache line's half, and vectors of the CPU fit, too.
constexpr gsize least_alignment = 63;

}  // namespace

G_DEFINE_TYPE(GstIsthmusPool, gst_isthmus_pool, GST_TYPE_VIDEO_BUFFER_POOL)

namespace {

gboolean set_config(GstBufferPool* pool, GstStructure* config) {
    auto* const self = reinterpret_cast<GstIsthmusPool*>(pool);
    GstAllocationParams params{};
    gst_buffer_pool_config_get_allocator(config, nullptr, &params);
    params.align = std::max(params.align, least_alignment);
    gst_buffer_pool_config_set_allocator(config, self->allocator, &params);
    return GST_BUFFER_POOL_CLASS(gst_isthmus_pool_parent_class)->set_config(pool, config);
}

void finalize(GObject* object) {
    gst_object_unref(reinterpret_cast<GstIsthmusPool*>(object)->allocator);
    G_OBJECT_CLASS(gst_isthmus_pool_parent_class)->finalize(object);
}

}  // namespace

void gst_isthmus_pool_class_init(GstIsthmusPoolClass* type) {
    G_OBJECT_CLASS(type)->finalize = finalize;
    GST_BUFFER_POOL_CLASS(type)->set_config = set_config;
}

void gst_isthmus_pool_init(GstIsthmusPool*) {}

GstBufferPool* make_pool(GstAllocator* allocator) {
    auto* const pool = static_cast<GstIsthmusPool*>(g_object_new(gst_isthmus_pool_get_type(), nullptr));
    pool->allocator = static_cast<GstAllocator*>(gst_object_ref(allocator));
    gst_object_ref_sink(pool);
    return GST_BUFFER_POOL_CAST(pool);
}

bool propose(GstQuery* query, GstAllocator* allocator, GstBufferPool* given) {
    GstCaps* caps = nullptr;
    gboolean need_pool = FALSE;
    gst_query_parse_allocation(query, &caps, &need_pool);
    GstVideoInfo info;
    if (caps == nullptr || !gst_video_info_from_caps(&info, caps)) return false;
    const guint size = static_cast<guint>(GST_VIDEO_INFO_SIZE(&info));
    if (need_pool != FALSE) {
        GstBufferPool* const pool =
            given != nullptr ? static_cast<GstBufferPool*>(gst_object_ref(given)) : make_pool(allocator);
        GstStructure* const config = gst_buffer_pool_get_config(pool);
        gst_buffer_pool_config_set_params(config, caps, size, 0, 0);
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
        if (gst_buffer_pool_set_config(pool, config) != FALSE) {
            gst_query_add_allocation_pool(query, pool, size, 0, 0);
        }
        gst_object_unref(pool);
    }
    GstAllocationParams params{};
    params.align = least_alignment;
    gst_query_add_allocation_param(query, allocator, &params);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    return true;
}

bool is_proposed(GstQuery* query) {
    for (guint at = 0; at < gst_query_get_n_allocation_params(query); ++at) {
        GstAllocator* allocator = nullptr;
        gst_query_parse_nth_allocation_param(query, at, &allocator, nullptr);
        if (allocator == nullptr) continue;
        const bool ours = allocator->mem_type == memory_type;
        gst_object_unref(allocator);
        if (ours) return true;
    }
    return false;
}

}  // namespace isthmus::gst
