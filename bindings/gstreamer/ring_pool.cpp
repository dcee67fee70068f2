// SPDX-License-Identifier: Apache-2.0
// A slot becomes a new GstBuffer each time; its release ends it. Other frames are the parent class's.
#include "ring_pool.hpp"

#include "pool.hpp"

#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

struct RingPoolState {
    std::shared_ptr<Ring> ring;
    GstPad* pad;
    bool usable = false;  // slots suit the pool's configuration; it changes only while the pool is inactive
    // Frames that upstream has in other memory. While there are any, no slot is lent: they go before the next slot.
    std::atomic<int> others{0};
};

struct GstIsthmusRingPool {
    GstIsthmusPool base;
    RingPoolState* state;
};
struct GstIsthmusRingPoolClass {
    GstIsthmusPoolClass base;
};

G_DEFINE_TYPE(GstIsthmusRingPool, gst_isthmus_ring_pool, gst_isthmus_pool_get_type())

RingPoolState& state_of(GstBufferPool* pool) {
    return *reinterpret_cast<GstIsthmusRingPool*>(pool)->state;
}

bool asks_for_edges(GstStructure* config) {
    if (gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT) == FALSE) return false;
    GstVideoAlignment edges;
    return gst_buffer_pool_config_get_video_alignment(config, &edges) == FALSE || edges.padding_top != 0 ||
           edges.padding_bottom != 0 || edges.padding_left != 0 || edges.padding_right != 0;
}

// Slots suit one frame at a time, of the ring's shape; where that lies otherwise than usual, upstream must know about
// GstVideoMeta.
bool slots_suit(GstStructure* config, const Ring& ring) {
    GstCaps* caps = nullptr;
    guint size = 0, least = 0, most = 0;
    GstVideoInfo info;
    if (gst_buffer_pool_config_get_params(config, &caps, &size, &least, &most) == FALSE || caps == nullptr)
        return false;
    if (gst_video_info_from_caps(&info, caps) == FALSE || least > 1 || asks_for_edges(config)) return false;
    Result<FrameShape> shape = shape_of(info);
    if (!shape || shape->format != ring.shape().format || shape->width != ring.shape().width ||
        shape->height != ring.shape().height || size > GST_VIDEO_INFO_SIZE(&info)) {
        return false;
    }
    return has_usual_layout(ring.shape()) ||
           gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META) != FALSE;
}

gboolean set_config(GstBufferPool* pool, GstStructure* config) {
    RingPoolState& state = state_of(pool);
    state.usable = slots_suit(config, *state.ring);
    return GST_BUFFER_POOL_CLASS(gst_isthmus_ring_pool_parent_class)->set_config(pool, config);
}

// A slot, as soon as viewers leave it; nothing where it cannot be had.
GstFlowReturn take_slot(GstBufferPool* pool, bool may_wait, std::unique_ptr<Ring::Slot>& slot) {
    RingPoolState& state = state_of(pool);
    for (;;) {
        Result<std::unique_ptr<Ring::Slot>> begun = Ring::begin(state.ring);
        if (begun) {
            slot = std::move(begun).value();
            return GST_FLOW_OK;
        }
        if (begun.code() != Code::timed_out) return GST_FLOW_OK;
        if (GST_BUFFER_POOL_IS_FLUSHING(pool) || GST_PAD_IS_FLUSHING(state.pad)) return GST_FLOW_FLUSHING;
        if (!may_wait) return GST_FLOW_EOS;  // as pools answer GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // others get the ring's lock meanwhile
    }
}

// Marks buffers with a slot. Flags would not do: the pool clears them before release().
GQuark has_slot() {
    static const GQuark quark = g_quark_from_static_string("isthmus-has-slot");
    return quark;
}
// Marks buffers that RingPoolState::others counts: the pool also releases those that it makes when it starts.
GQuark is_counted() {
    static const GQuark quark = g_quark_from_static_string("isthmus-is-counted");
    return quark;
}

GstFlowReturn acquire(GstBufferPool* pool, GstBuffer** buffer, GstBufferPoolAcquireParams* params) {
    const bool may_wait = params == nullptr || (params->flags & GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT) == 0;
    std::unique_ptr<Ring::Slot> slot;
    RingPoolState& state = state_of(pool);
    // A count alone: the frames themselves are handed over by the pipeline.
    if (state.usable && state.others.load(std::memory_order_relaxed) == 0) {
        if (const GstFlowReturn taken = take_slot(pool, may_wait, slot); taken != GST_FLOW_OK) return taken;
    }
    if (!slot) {
        GST_LOG_OBJECT(pool, "no slot for this frame: it will be copied");
        const GstFlowReturn acquired =
            GST_BUFFER_POOL_CLASS(gst_isthmus_ring_pool_parent_class)->acquire_buffer(pool, buffer, params);
        if (acquired != GST_FLOW_OK) return acquired;
        gst_mini_object_set_qdata(GST_MINI_OBJECT_CAST(*buffer), is_counted(), pool, nullptr);
        state.others.fetch_add(1, std::memory_order_relaxed);
        return acquired;
    }
    *buffer = gst_buffer_new();
    gst_mini_object_set_qdata(GST_MINI_OBJECT_CAST(*buffer), has_slot(), pool, nullptr);
    gst_buffer_append_memory(*buffer,
                             wrap_memory(reinterpret_cast<GstIsthmusPool*>(pool)->allocator, std::move(slot), false));
    add_video_meta(*buffer, state.ring->shape());
    return GST_FLOW_OK;
}

void release(GstBufferPool* pool, GstBuffer* buffer) {
    GstMiniObject* const object = GST_MINI_OBJECT_CAST(buffer);
    if (gst_mini_object_get_qdata(object, has_slot()) != nullptr) {
        gst_buffer_unref(buffer);
    } else {
        if (gst_mini_object_steal_qdata(object, is_counted()) != nullptr) {
            state_of(pool).others.fetch_sub(1, std::memory_order_relaxed);
        }
        GST_BUFFER_POOL_CLASS(gst_isthmus_ring_pool_parent_class)->release_buffer(pool, buffer);
    }
}

void finalize(GObject* object) {
    RingPoolState* const state = reinterpret_cast<GstIsthmusRingPool*>(object)->state;
    gst_object_unref(state->pad);
    delete state;
    G_OBJECT_CLASS(gst_isthmus_ring_pool_parent_class)->finalize(object);
}

void gst_isthmus_ring_pool_class_init(GstIsthmusRingPoolClass* type) {
    G_OBJECT_CLASS(type)->finalize = finalize;
    GstBufferPoolClass* const pool = GST_BUFFER_POOL_CLASS(type);
    pool->set_config = set_config;
    pool->acquire_buffer = acquire;
    pool->release_buffer = release;
}

void gst_isthmus_ring_pool_init(GstIsthmusRingPool*) {}

}  // namespace

GstBufferPool* make_ring_pool(GstAllocator* allocator, std::shared_ptr<Ring> ring, GstPad* pad) {
    auto* const made = static_cast<GstIsthmusRingPool*>(g_object_new(gst_isthmus_ring_pool_get_type(), nullptr));
    made->base.allocator = static_cast<GstAllocator*>(gst_object_ref(allocator));
    made->state = new RingPoolState{std::move(ring), static_cast<GstPad*>(gst_object_ref(pad))};
    gst_object_ref_sink(made);
    return GST_BUFFER_POOL_CAST(made);
}

Ring::Slot* slot_of(GstBuffer* buffer, const GstVideoInfo& info, const Ring& ring) noexcept {
    if (gst_buffer_n_memory(buffer) != 1) return nullptr;
    GstMemory* const memory = gst_buffer_peek_memory(buffer, 0);
    auto* const slot = dynamic_cast<Ring::Slot*>(tenancy_of(memory));
    if (slot == nullptr || slot->ring() != &ring || memory->offset != 0) return nullptr;
    const Result<Layout> layout = layout_of(buffer, info);
    return layout && same_planes(*layout, layout_of(ring.shape())) ? slot : nullptr;
}

}  // namespace isthmus::gst
