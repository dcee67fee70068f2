// SPDX-License-Identifier: Apache-2.0
// GstIsthmusPool: a pool of video frames in memory of a GstIsthmusAllocator, and how it is proposed upstream.
#pragma once

#include "memory.hpp"

#include <gst/video/gstvideopool.h>

namespace isthmus::gst {

struct GstIsthmusPool {
    GstVideoBufferPool base;
    GstAllocator* allocator;
};
struct GstIsthmusPoolClass {
    GstVideoBufferPoolClass base;
};
GType gst_isthmus_pool_get_type();

// A pool whose frames are the allocator's, whatever allocator its configuration names.
GstBufferPool* make_pool(GstAllocator* allocator);

// Answers an ALLOCATION query: this pool where the query wants one, or one of make_pool(); the allocator; and that
// frames may have a GstVideoMeta. `pool` may be null. False: the query's caps are no raw video.
bool propose(GstQuery* query, GstAllocator* allocator, GstBufferPool* pool);
// Whether the query names an allocator of this plugin already.
bool is_proposed(GstQuery* query);

}  // namespace isthmus::gst
