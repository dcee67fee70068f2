// SPDX-License-Identifier: Apache-2.0
// isthmussrc: frames of `isthmus share`, isthmussink or another producer, as a live source.
#include "directory.hpp"
#include "elements.hpp"
#include "incoming.hpp"
#include "layout.hpp"

#include <gst/base/gstpushsrc.h>
#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

using Clock = std::chrono::steady_clock;

enum Property : guint {
    property_device = 1,
    property_machine,
    property_at,
    property_connect_deadline,
    property_deadline,
    property_copy,
    property_frames,
    property_copied_frames,
    property_missed_frames,
    property_overtaken_frames,
};

struct Settings {
    SessionChoice session{};
    std::string at{};
    guint connect_deadline_ms = 5000;
    guint deadline_ms = 30000;
    bool copy = false;
};

struct Counts {
    std::uint64_t frames = 0;
    std::uint64_t copied = 0;
    std::uint64_t missed = 0;
};

// What exists between start and stop.
struct Run {
    OpenSession opened;
    Settings settings;  // as they were at the start
    std::string place;
    AllocatorPointer allocator;
    std::shared_ptr<Incoming> ring{};  // after the first connection
    bool downstream_knows_meta = false;

    Run(OpenSession made, Settings chosen, std::string where)
        : opened(std::move(made)),
          settings(std::move(chosen)),
          place(std::move(where)),
          allocator(make_allocator(opened)) {}
};

struct State {
    std::mutex lock;  // of the members up to `told`, which any thread may ask for
    Settings settings{};
    Counts counts{};
    std::shared_ptr<OvertakenCount> overtaken = std::make_shared<OvertakenCount>(0);
    std::optional<FrameShape> told{};  // by the producer
    std::unique_ptr<Run> run{};
    std::atomic<bool> unlocked{false};  // a waiting create() is to return
};

struct GstIsthmusSrc {
    GstPushSrc base;
    State* state;
};
struct GstIsthmusSrcClass {
    GstPushSrcClass base;
};

G_DEFINE_TYPE(GstIsthmusSrc, gst_isthmus_src, GST_TYPE_PUSH_SRC)

template <class Object>
State& state_of(Object* object) {
    return *reinterpret_cast<GstIsthmusSrc*>(object)->state;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    const std::lock_guard locked(state.lock);
    Settings& settings = state.settings;
    if (set_session_property(settings.session, id, property_device, value)) return;
    switch (id) {
        case property_at: settings.at = g_value_get_string(value) == nullptr ? "" : g_value_get_string(value); break;
        case property_connect_deadline: settings.connect_deadline_ms = g_value_get_uint(value); break;
        case property_deadline: settings.deadline_ms = g_value_get_uint(value); break;
        case property_copy: settings.copy = g_value_get_boolean(value) != FALSE; break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    const std::lock_guard locked(state.lock);
    const Settings& settings = state.settings;
    if (get_session_property(settings.session, id, property_device, value)) return;
    switch (id) {
        case property_at: g_value_set_string(value, settings.at.c_str()); break;
        case property_connect_deadline: g_value_set_uint(value, settings.connect_deadline_ms); break;
        case property_deadline: g_value_set_uint(value, settings.deadline_ms); break;
        case property_copy: g_value_set_boolean(value, settings.copy); break;
        case property_frames: g_value_set_uint64(value, state.counts.frames); break;
        case property_copied_frames: g_value_set_uint64(value, state.counts.copied); break;
        case property_missed_frames: g_value_set_uint64(value, state.counts.missed); break;
        // A count alone: whatever thread frees a frame adds to it.
        case property_overtaken_frames:
            g_value_set_uint64(value, state.overtaken->load(std::memory_order_relaxed));
            break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

gboolean start(GstBaseSrc* base) {
    State& state = state_of(base);
    Settings settings;
    {
        const std::lock_guard locked(state.lock);
        settings = state.settings;
        state.counts = {};
        state.overtaken = std::make_shared<OvertakenCount>(0);
        state.told.reset();
    }
    Result<std::string> place = meeting_place(settings.at);
    Result<OpenSession> opened = place ? open_session(settings.session) : Result<OpenSession>(place.error());
    if (!opened) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, opened.error());
        return FALSE;
    }
    state.run = std::make_unique<Run>(std::move(opened).value(), std::move(settings), std::move(place).value());
    return TRUE;
}

gboolean stop(GstBaseSrc* base) {
    state_of(base).run.reset();
    return TRUE;
}

// Not before the connection, which tells the format.
gboolean negotiate(GstBaseSrc* base) {
    const State& state = state_of(base);
    if (!state.run || !state.run->ring) return TRUE;
    return GST_BASE_SRC_CLASS(gst_isthmus_src_parent_class)->negotiate(base);
}

GstCaps* get_caps(GstBaseSrc* base, GstCaps* filter) {
    State& state = state_of(base);
    std::optional<FrameShape> told;
    {
        const std::lock_guard locked(state.lock);
        told = state.told;
    }
    GstCaps* caps = nullptr;
    if (told) {
        GstVideoInfo info = info_of(*told);
        caps = gst_video_info_to_caps(&info);
    } else {
        caps = gst_pad_get_pad_template_caps(GST_BASE_SRC_PAD(base));
    }
    if (filter == nullptr) return caps;
    GstCaps* const both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(caps);
    return both;
}

// The frames lie in the ring: no pool is wanted.
gboolean decide_allocation(GstBaseSrc* base, GstQuery* query) {
    state_of(base).run->downstream_knows_meta =
        gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr) != FALSE;
    while (gst_query_get_n_allocation_pools(query) > 0) gst_query_remove_nth_allocation_pool(query, 0);
    return TRUE;
}

gboolean unlock(GstBaseSrc* base) {
    state_of(base).unlocked.store(true, std::memory_order_relaxed);  // a flag alone: it publishes nothing
    return TRUE;
}
gboolean unlock_stop(GstBaseSrc* base) {
    state_of(base).unlocked.store(false, std::memory_order_relaxed);
    return TRUE;
}

GstFlowReturn connect(GstBaseSrc* base) {
    State& state = state_of(base);
    Run& run = *state.run;
    const auto stopped = [&state] { return state.unlocked.load(std::memory_order_relaxed); };
    Result<std::shared_ptr<Incoming>> ring =
        Incoming::open(run.opened,
                       {.at = run.place,
                        .connect_deadline = std::chrono::milliseconds(run.settings.connect_deadline_ms),
                        .waiting = WaitPolicy::sleep,
                        .stopped = stopped},
                       state.overtaken);
    if (!ring && stopped()) return GST_FLOW_FLUSHING;
    if (!ring) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_OPEN_READ, ring.error());
        return GST_FLOW_ERROR;
    }
    if (video_format((*ring)->shape().format) == GST_VIDEO_FORMAT_UNKNOWN) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS,
                   Error(Code::unsupported,
                         "the producer's frames are " + std::string(tools::camera::name((*ring)->shape().format)) +
                             ", which is no raw video of GStreamer",
                         "frames of " ISTHMUS_GST_FORMATS));
        return GST_FLOW_ERROR;
    }
    run.ring = std::move(ring).value();
    {
        const std::lock_guard locked(state.lock);
        state.told = run.ring->shape();
    }
    if (gst_base_src_negotiate(base) == FALSE) return GST_FLOW_NOT_NEGOTIATED;
    return GST_FLOW_OK;
}

// The next frame, or what ends the stream.
GstFlowReturn take(GstBaseSrc* base, Run& run, Incoming::Taken& taken) {
    State& state = state_of(base);
    const Clock::time_point until = Clock::now() + std::chrono::milliseconds(run.settings.deadline_ms);
    for (;;) {
        if (state.unlocked.load(std::memory_order_relaxed)) return GST_FLOW_FLUSHING;
        Result<Incoming::Taken> next = Incoming::next(run.ring);
        if (next) {
            taken = std::move(next).value();
            return GST_FLOW_OK;
        }
        const Code code = next.code();
        if (code == Code::ended) return GST_FLOW_EOS;
        // in_use: downstream still has the frame that lay in this slot.
        if ((code == Code::timed_out || code == Code::in_use) && Clock::now() < until) {
            if (code == Code::in_use) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            continue;
        }
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_READ, next.error());
        return GST_FLOW_ERROR;
    }
}

// Copies the frame in the usual layout and says whether it was whole.
GstBuffer* copied(Run& run, std::unique_ptr<Incoming::Frame> frame, bool& whole) {
    const FrameShape& shape = run.ring->shape();
    GstVideoInfo info = info_of(shape);
    GstAllocationParams params{};
    GstBuffer* const buffer = gst_buffer_new_allocate(run.allocator.get(), GST_VIDEO_INFO_SIZE(&info), &params);
    if (buffer == nullptr) return nullptr;
    GstBuffer* const from = gst_buffer_new();
    auto* const held = frame.get();
    gst_buffer_append_memory(from, wrap_memory(run.allocator.get(), std::move(frame), true));
    add_video_meta(from, shape);
    GstVideoFrame source, target;
    const bool readable = gst_video_frame_map(&source, &info, from, GST_MAP_READ) != FALSE;
    bool done = false;
    if (readable) {
        if (gst_video_frame_map(&target, &info, buffer, GST_MAP_WRITE) != FALSE) {
            done = gst_video_frame_copy(&target, &source) != FALSE;
            gst_video_frame_unmap(&target);
        }
        gst_video_frame_unmap(&source);
    }
    whole = held->finish();
    gst_buffer_unref(from);
    if (done) return buffer;
    gst_buffer_unref(buffer);
    return nullptr;
}

GstFlowReturn create(GstPushSrc* push, GstBuffer** buffer) {
    GstBaseSrc* const base = GST_BASE_SRC_CAST(push);
    State& state = state_of(base);
    Run& run = *state.run;
    if (!run.ring) {
        if (const GstFlowReturn connected = connect(base); connected != GST_FLOW_OK) return connected;
    }
    Incoming::Taken taken;
    if (const GstFlowReturn came = take(base, run, taken); came != GST_FLOW_OK) return came;
    const bool copies = run.settings.copy || (!run.downstream_knows_meta && !has_usual_layout(run.ring->shape()));
    const std::uint64_t number = taken.number, missed = taken.missed;
    bool whole = true;
    if (copies) {
        *buffer = copied(run, std::move(taken.frame), whole);
        if (*buffer == nullptr) {
            post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_READ,
                       Error(Code::out_of_memory, "a frame could not be copied", "the log has the reason"));
            return GST_FLOW_ERROR;
        }
    } else {
        *buffer = gst_buffer_new();
        gst_buffer_append_memory(*buffer, wrap_memory(run.allocator.get(), std::move(taken.frame), true));
        add_video_meta(*buffer, run.ring->shape());
    }
    if (!whole) GST_BUFFER_FLAG_SET(*buffer, GST_BUFFER_FLAG_CORRUPTED);
    if (missed != 0) GST_BUFFER_FLAG_SET(*buffer, GST_BUFFER_FLAG_DISCONT);
    GST_BUFFER_OFFSET(*buffer) = number;
    GST_BUFFER_OFFSET_END(*buffer) = number + 1;
    const std::lock_guard locked(state.lock);
    ++state.counts.frames;
    state.counts.missed += missed;
    state.counts.copied += copies ? 1 : 0;
    return GST_FLOW_OK;
}

void finalize(GObject* object) {
    delete reinterpret_cast<GstIsthmusSrc*>(object)->state;
    G_OBJECT_CLASS(gst_isthmus_src_parent_class)->finalize(object);
}

void install_properties(GObjectClass* type) {
    constexpr GParamFlags set = set_before_start, count = only_read;
    const auto add = [type](guint id, GParamSpec* spec) { g_object_class_install_property(type, id, spec); };
    install_session_properties(type, property_device);
    add(property_at, g_param_spec_string("at", "Directory", at_help, "", set));
    add(property_connect_deadline, g_param_spec_uint("connect-deadline", "Connect deadline",
                                                     "Milliseconds to wait for a producer", 0, 3600000, 5000, set));
    add(property_deadline, g_param_spec_uint("deadline", "Deadline", "Longest time without a frame, in milliseconds", 1,
                                             86400000, 30000, set));
    add(property_copy,
        g_param_spec_boolean("copy", "Copy",
                             "Copy each frame before it goes downstream, and mark it as corrupted if the producer "
                             "overwrote it meanwhile. Otherwise frames go downstream in place, and one that is "
                             "overwritten there is only counted, when it is freed",
                             FALSE, set));
    add(property_frames, g_param_spec_uint64("frames", "Frames", "Frames that went downstream since the start", 0,
                                             G_MAXUINT64, 0, count));
    add(property_copied_frames,
        g_param_spec_uint64("copied-frames", "Copied frames",
                            "Those of them that were copied: copy=true, or a layout that downstream does not know", 0,
                            G_MAXUINT64, 0, count));
    add(property_missed_frames,
        g_param_spec_uint64("missed-frames", "Missed frames", "Frames overwritten before they were taken", 0,
                            G_MAXUINT64, 0, count));
    add(property_overtaken_frames,
        g_param_spec_uint64("overtaken-frames", "Overtaken frames", "Frames overwritten while they were in use", 0,
                            G_MAXUINT64, 0, count));
}

GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(ISTHMUS_GST_CAPS));

void gst_isthmus_src_class_init(GstIsthmusSrcClass* type) {
    GObjectClass* const object = G_OBJECT_CLASS(type);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    GstElementClass* const element = GST_ELEMENT_CLASS(type);
    gst_element_class_set_static_metadata(
        element, "Frames of another process", "Source/Video",
        "Takes frames of `isthmus share`, isthmussink or another producer of this machine, in place",
        "isthmus maintainers");
    gst_element_class_add_static_pad_template(element, &src_template);
    GstBaseSrcClass* const base = GST_BASE_SRC_CLASS(type);
    base->start = start;
    base->stop = stop;
    base->negotiate = negotiate;
    base->get_caps = get_caps;
    base->decide_allocation = decide_allocation;
    base->unlock = unlock;
    base->unlock_stop = unlock_stop;
    type->base.create = create;
}

void gst_isthmus_src_init(GstIsthmusSrc* self) {
    self->state = new State();
    GstBaseSrc* const base = GST_BASE_SRC_CAST(self);
    gst_base_src_set_live(base, TRUE);
    gst_base_src_set_format(base, GST_FORMAT_TIME);
    gst_base_src_set_do_timestamp(base, TRUE);
}

}  // namespace

GType source_element_type() {
    return gst_isthmus_src_get_type();
}

}  // namespace isthmus::gst
