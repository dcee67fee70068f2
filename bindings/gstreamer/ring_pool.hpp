// SPDX-License-Identifier: Apache-2.0
// A pool whose frames are the slots of a ring, so that upstream writes where viewers read.
#pragma once

#include "ring.hpp"

#include <gst/gst.h>

#include <memory>

namespace isthmus::gst {

// Where a slot cannot be had (upstream holds one already, or needs several at a time or another layout), a frame is
// ordinary memory of the allocator, which the sink copies. Under SlowReaderPolicy::wait, acquiring waits for viewers
// until the pool or `pad`, the sink's, is flushing.
GstBufferPool* make_ring_pool(GstAllocator* allocator, std::shared_ptr<Ring> ring, GstPad* pad);

// The slot in which the buffer's frame lies, alone, whole and in the ring's layout; null: it lies elsewhere.
Ring::Slot* slot_of(GstBuffer* buffer, const GstVideoInfo& info, const Ring& ring) noexcept;

}  // namespace isthmus::gst
