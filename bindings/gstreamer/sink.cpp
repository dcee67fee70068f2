// SPDX-License-Identifier: Apache-2.0
// isthmussink: gives frames to other processes, as `isthmus share` does.
#include "directory.hpp"
#include "elements.hpp"
#include "foreign_copy.hpp"
#include "layout.hpp"
#include "pool.hpp"
#include "ring_pool.hpp"

#include <gst/base/gstbasesink.h>
#include <gst/video/video.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

using Clock = std::chrono::steady_clock;

enum Property : guint {
    property_device = 1,
    property_machine,
    property_at,
    property_policy,
    property_slots,
    property_max_viewers,
    property_viewers,
    property_viewer_deadline,
    property_writable,
    property_frames,
    property_copied_frames,
    property_twice_copied_frames,
    property_dropped_frames,
    property_live_viewers,
};

struct Settings {
    SessionChoice session{};
    std::string at{};
    SlowReaderPolicy policy = SlowReaderPolicy::overwrite;
    guint slots = 4;
    guint max_viewers = 16;
    guint viewers = 0;
    guint viewer_deadline_ms = 1000;
    bool writable = false;
};

struct Counts {
    std::uint64_t frames = 0;
    std::uint64_t copied = 0;
    std::uint64_t copied_twice = 0;
    std::uint64_t dropped = 0;
};

// What exists between start and stop.
struct Run {
    OpenSession opened;
    Settings settings;  // as they were at the start
    std::string place;
    AllocatorPointer allocator;
    std::optional<Listener> listener;  // until the first ring
    std::optional<Stream> stream{};    // of copies by the device; with the first one
    GstVideoInfo info{};
    bool met = false;  // the wanted viewers have come once

    Run(OpenSession made, Settings chosen, std::string where, Listener listening)
        : opened(std::move(made)),
          settings(std::move(chosen)),
          place(std::move(where)),
          allocator(make_allocator(opened)),
          listener(std::move(listening)) {}
};

struct State {
    std::mutex lock;  // of the settings, the counts and the pointer to the ring, which any thread may ask for
    Settings settings{};
    Counts counts{};
    std::shared_ptr<Ring> ring{};
    std::unique_ptr<Run> run{};
    bool without_cuda = false;          // between start and stop, on the CPU device
    std::atomic<bool> unlocked{false};  // a waiting render() is to return
};

struct GstIsthmusSink {
    GstBaseSink base;
    State* state;
};
struct GstIsthmusSinkClass {
    GstBaseSinkClass base;
};

G_DEFINE_TYPE(GstIsthmusSink, gst_isthmus_sink, GST_TYPE_BASE_SINK)

template <class Object>
State& state_of(Object* object) {
    return *reinterpret_cast<GstIsthmusSink*>(object)->state;
}

std::shared_ptr<Ring> ring_of(State& state) {
    const std::lock_guard locked(state.lock);
    return state.ring;
}

GType policy_type() {
    static const GType type = [] {
        static const GEnumValue values[] = {
            {static_cast<gint>(SlowReaderPolicy::overwrite), "Overwrite frames that slow viewers read", "drop"},
            {static_cast<gint>(SlowReaderPolicy::wait), "Wait for slow viewers, up to viewer-deadline", "wait"},
            {0, nullptr, nullptr}};
        return g_enum_register_static("GstIsthmusSinkPolicy", values);
    }();
    return type;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    const std::lock_guard locked(state.lock);
    Settings& settings = state.settings;
    if (set_session_property(settings.session, id, property_device, value)) return;
    switch (id) {
        case property_at: settings.at = g_value_get_string(value) == nullptr ? "" : g_value_get_string(value); break;
        case property_policy: settings.policy = static_cast<SlowReaderPolicy>(g_value_get_enum(value)); break;
        case property_slots: settings.slots = g_value_get_uint(value); break;
        case property_max_viewers: settings.max_viewers = g_value_get_uint(value); break;
        case property_viewers: settings.viewers = g_value_get_uint(value); break;
        case property_viewer_deadline: settings.viewer_deadline_ms = g_value_get_uint(value); break;
        case property_writable: settings.writable = g_value_get_boolean(value) != FALSE; break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    if (id == property_live_viewers) {
        const std::shared_ptr<Ring> ring = ring_of(state);
        g_value_set_uint(value, ring ? ring->live_viewers() : 0);
        return;
    }
    const std::lock_guard locked(state.lock);
    const Settings& settings = state.settings;
    if (get_session_property(settings.session, id, property_device, value)) return;
    switch (id) {
        case property_at: g_value_set_string(value, settings.at.c_str()); break;
        case property_policy: g_value_set_enum(value, static_cast<gint>(settings.policy)); break;
        case property_slots: g_value_set_uint(value, settings.slots); break;
        case property_max_viewers: g_value_set_uint(value, settings.max_viewers); break;
        case property_viewers: g_value_set_uint(value, settings.viewers); break;
        case property_viewer_deadline: g_value_set_uint(value, settings.viewer_deadline_ms); break;
        case property_writable: g_value_set_boolean(value, settings.writable); break;
        case property_frames: g_value_set_uint64(value, state.counts.frames); break;
        case property_copied_frames: g_value_set_uint64(value, state.counts.copied); break;
        case property_twice_copied_frames: g_value_set_uint64(value, state.counts.copied_twice); break;
        case property_dropped_frames: g_value_set_uint64(value, state.counts.dropped); break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

gboolean start(GstBaseSink* base) {
    State& state = state_of(base);
    Settings settings;
    {
        const std::lock_guard locked(state.lock);
        settings = state.settings;
        state.counts = {};
    }
    Result<std::string> place = meeting_place(settings.at);
    if (!place) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, place.error());
        return FALSE;
    }
    Result<OpenSession> opened = open_session(settings.session);
    if (!opened) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, opened.error());
        return FALSE;
    }
    Result<Listener> listener = Listener::create(*place);
    if (!listener) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_OPEN_WRITE, listener.error());
        return FALSE;
    }
    state.run = std::make_unique<Run>(std::move(opened).value(), std::move(settings), std::move(place).value(),
                                      std::move(listener).value());
    const std::lock_guard locked(state.lock);
    state.without_cuda = state.run->opened.device->is_cpu();
    return TRUE;
}

void end_ring(State& state) {
    std::shared_ptr<Ring> ring;
    {
        const std::lock_guard locked(state.lock);
        ring.swap(state.ring);
    }
    if (ring) ring->close();
}

gboolean stop(GstBaseSink* base) {
    State& state = state_of(base);
    end_ring(state);
    state.run.reset();
    const std::lock_guard locked(state.lock);
    state.without_cuda = false;
    return TRUE;
}

bool is_of_cuda(const GstCaps* caps, guint at) {
    const GstCapsFeatures* const features = gst_caps_get_features(caps, at);
    return features != nullptr && gst_caps_features_contains(features, cuda_caps_feature) != FALSE;
}

// The template's, but for CUDA memory where the device is the CPU: upstream chooses other memory if it has any.
GstCaps* get_caps(GstBaseSink* base, GstCaps* filter) {
    State& state = state_of(base);
    GstCaps* caps = gst_caps_make_writable(gst_pad_get_pad_template_caps(GST_BASE_SINK_PAD(base)));
    {
        const std::lock_guard locked(state.lock);
        for (guint at = gst_caps_get_size(caps); state.without_cuda && at > 0; --at) {
            if (is_of_cuda(caps, at - 1)) gst_caps_remove_structure(caps, at - 1);
        }
    }
    if (filter != nullptr) {
        GstCaps* const both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
        gst_caps_unref(caps);
        caps = both;
    }
    return caps;
}

// A ring for frames of this shape; viewers of another one get its end, and may connect again.
Result<std::shared_ptr<Ring>> make_ring(State& state, const FrameShape& shape) {
    Run& run = *state.run;
    end_ring(state);
    SharedRingOptions options;
    options.slots = run.settings.slots;
    options.policy = run.settings.policy;
    options.rights = run.settings.writable ? ReaderRights::read_write : ReaderRights::read_only;
    options.max_readers = run.settings.max_viewers;
    options.reader_deadline = std::chrono::milliseconds(run.settings.viewer_deadline_ms);
    Result<std::shared_ptr<Ring>> ring = Ring::create(*run.opened.device, shape, options);
    if (!ring) return ring;
    if (!run.listener) {  // it ended with the last ring
        Result<Listener> listener = Listener::create(run.place);
        if (!listener) return std::move(listener).error();
        run.listener.emplace(std::move(listener).value());
    }
    const Result<void> opened = (*ring)->open_to(std::move(*run.listener));
    run.listener.reset();
    if (!opened) return opened.error();
    const std::lock_guard locked(state.lock);
    state.ring = *ring;
    return ring;
}

// What get_caps() leaves out is refused by set_caps(), which says why.
gboolean query(GstBaseSink* base, GstQuery* query) {
    if (GST_QUERY_TYPE(query) != GST_QUERY_ACCEPT_CAPS) {
        return GST_BASE_SINK_CLASS(gst_isthmus_sink_parent_class)->query(base, query);
    }
    GstCaps* caps = nullptr;
    gst_query_parse_accept_caps(query, &caps);
    GstCaps* const all = gst_pad_get_pad_template_caps(GST_BASE_SINK_PAD(base));
    gst_query_set_accept_caps_result(query, gst_caps_is_subset(caps, all));
    gst_caps_unref(all);
    return TRUE;
}

gboolean set_caps(GstBaseSink* base, GstCaps* caps) {
    State& state = state_of(base);
    Run& run = *state.run;
    GstVideoInfo info;
    if (is_of_cuda(caps, 0) && run.opened.device->is_cpu()) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS,
                   Error(Code::unsupported,
                         "frames in CUDA memory (memory:CUDAMemory) need a GPU, and this element's "
                         "device is the CPU",
                         "choose a GPU (property device), or put cudadownload before this element"));
        return FALSE;
    }
    if (!gst_video_info_from_caps(&info, caps)) return FALSE;
    Result<FrameShape> shape = shape_of(info);
    if (!shape) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, shape.error());
        return FALSE;
    }
    run.info = info;
    const std::shared_ptr<Ring> open = ring_of(state);
    const bool same = open && open->shape().format == shape->format && open->shape().width == shape->width &&
                      open->shape().height == shape->height;
    if (same) return TRUE;
    if (Result<std::shared_ptr<Ring>> made = make_ring(state, *shape); !made) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_OPEN_WRITE, made.error());
        return FALSE;
    }
    return TRUE;
}

gboolean propose_allocation(GstBaseSink* base, GstQuery* query) {
    State& state = state_of(base);
    if (!state.run) return FALSE;
    GstCaps* caps = nullptr;
    gst_query_parse_allocation(query, &caps, nullptr);
    if (wants_foreign_memory(caps)) {  // of its own kind: the ring's slots are host memory
        gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
        return TRUE;
    }
    GstAllocator* const allocator = state.run->allocator.get();
    const std::shared_ptr<Ring> ring = ring_of(state);
    if (!ring) return propose(query, allocator, nullptr);
    GstBufferPool* const pool = make_ring_pool(allocator, ring, GST_BASE_SINK_PAD(base));
    const bool proposed = propose(query, allocator, pool);
    gst_object_unref(pool);
    return proposed;
}

gboolean unlock(GstBaseSink* base) {
    state_of(base).unlocked.store(true, std::memory_order_relaxed);  // a flag alone: it publishes nothing
    return TRUE;
}
gboolean unlock_stop(GstBaseSink* base) {
    state_of(base).unlocked.store(false, std::memory_order_relaxed);
    return TRUE;
}

// Between two looks at something that other processes do. Not GST_FLOW_OK: the sink is flushing or stopping.
GstFlowReturn pause(GstBaseSink* base, std::chrono::microseconds length) {
    if (state_of(base).unlocked.load(std::memory_order_relaxed)) return gst_base_sink_wait_preroll(base);
    std::this_thread::sleep_for(length);
    return GST_FLOW_OK;
}

GstFlowReturn fail(GstBaseSink* base, const Error& error) {
    post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_WRITE, error);
    return GST_FLOW_ERROR;
}

GstFlowReturn wait_for_viewers(GstBaseSink* base, Run& run, const Ring& ring) {
    while (!run.met && ring.admitted() < run.settings.viewers) {
        if (const Error* const ended = ring.admission_ended()) return fail(base, *ended);
        if (const GstFlowReturn paused = pause(base, std::chrono::milliseconds(5)); paused != GST_FLOW_OK)
            return paused;
    }
    run.met = true;
    return GST_FLOW_OK;
}

// A slot to copy a frame into; none where this process has it: lent upstream, or for too long in a reader's hands.
GstFlowReturn begin(GstBaseSink* base, Run& run, const std::shared_ptr<Ring>& ring, std::unique_ptr<Ring::Slot>& slot) {
    const bool waits = run.settings.policy == SlowReaderPolicy::wait;
    const auto until = Clock::now() + std::chrono::milliseconds(waits ? run.settings.viewer_deadline_ms : 0);
    for (;;) {
        Result<std::unique_ptr<Ring::Slot>> begun = Ring::begin(ring);
        if (begun) {
            slot = std::move(begun).value();
            return GST_FLOW_OK;
        }
        // in_use: upstream has a slot that comes after this frame, and waits for this thread.
        if (begun.code() == Code::in_use) return GST_FLOW_OK;
        if (begun.code() == Code::not_ready && Clock::now() >= until) return GST_FLOW_OK;
        if (begun.code() != Code::not_ready && begun.code() != Code::timed_out) return fail(base, begun.error());
        if (const GstFlowReturn paused = pause(base, std::chrono::microseconds(200)); paused != GST_FLOW_OK)
            return paused;
    }
}

Result<void> copy_by_map(Ring::Slot& slot, const Ring& ring, GstBuffer* buffer, const GstVideoInfo& info) {
    GstVideoFrame frame{};
    if (!gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ)) {
        return Error(Code::not_accessible, "the frame cannot be mapped for reading");
    }
    Result<HostView<std::uint8_t>> view = slot.writable()->write_on_host();
    Result<void> copied = view ? copy_planes(view->data(), ring.shape(), frame) : std::move(view).error();
    gst_video_frame_unmap(&frame);
    return copied;
}

// The frame cannot be had at all: neither the device nor the CPU has it.
Error out_of_reach(const Error& of_device, const Error& of_host) {
    return Error(of_host.code(),
                 std::string(of_host.message()) +
                     ", and the device does not use its memory: " + std::string(of_device.message()),
                 "let upstream make frames in ordinary memory: v4l2src io-mode=mmap, cudadownload, gldownload, or caps "
                 "without a memory feature");
}

// Whether the bytes of the frame move more than once.
Result<bool> copy_into(Run& run, Ring::Slot& slot, const Ring& ring, GstBuffer* buffer) {
    if (!ForeignPlanes::has_foreign_memory(buffer)) {
        Result<void> copied = copy_by_map(slot, ring, buffer, run.info);
        return copied ? Result<bool>(false) : std::move(copied).error();
    }
    std::optional<Error> refusal;
    {
        Result<ForeignPlanes> planes = ForeignPlanes::of(buffer, run.info, run.opened);
        if (planes) {
            if (!run.stream) {
                Result<Stream> made = run.opened.device->create_stream();
                if (made) {
                    run.stream.emplace(std::move(made).value());
                } else {
                    refusal.emplace(std::move(made).error());
                }
            }
            const FrameCopy found = run.stream ? planes->way_to(*run.stream, *slot.writable()) : FrameCopy{};
            if (found.way == CopyWay::runtime) {
                Result<void> copied = planes->copy(*run.stream, *slot.writable(), ring.shape());
                if (!copied) return std::move(copied).error();
                GST_LOG("the runtime copied the frame%s", found.twice ? ", in two steps" : "");
                return found.twice;
            }
            if (!refusal) refusal.emplace(Code::unsupported, "the device copies it by a way that the CPU has, too");
        } else {
            refusal.emplace(std::move(planes).error());
        }
    }
    const bool twice = ForeignPlanes::is_copied_by_map(buffer);
    Result<void> copied = copy_by_map(slot, ring, buffer, run.info);
    if (!copied) return out_of_reach(*refusal, copied.error());
    return twice;
}

// Upstream may still map the frame in another branch of the pipeline, for a moment.
GstFlowReturn publish(GstBaseSink* base, Run& run, Ring::Slot& slot) {
    const auto until = Clock::now() + std::chrono::milliseconds(run.settings.viewer_deadline_ms);
    for (;;) {
        Result<void> published = slot.publish();
        if (published) return GST_FLOW_OK;
        if (published.code() != Code::in_use || Clock::now() >= until) return fail(base, published.error());
        if (const GstFlowReturn paused = pause(base, std::chrono::microseconds(200)); paused != GST_FLOW_OK)
            return paused;
    }
}

GstFlowReturn render(GstBaseSink* base, GstBuffer* buffer) {
    State& state = state_of(base);
    Run& run = *state.run;
    if (run.info.finfo == nullptr) {  // the base class lets frames without caps through
        post_error(
            GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS,
            Error(Code::invalid_argument, "a frame came before its caps",
                  "caps between this element and the one before it: video/x-raw,format=NV12,width=640,height=480"));
        return GST_FLOW_NOT_NEGOTIATED;
    }
    std::shared_ptr<Ring> ring = ring_of(state);
    if (!ring) {  // it ended with EOS, and frames came after that
        Result<FrameShape> shape = shape_of(run.info);
        Result<std::shared_ptr<Ring>> made = shape ? make_ring(state, *shape) : std::move(shape).error();
        if (!made) return fail(base, made.error());
        ring = std::move(made).value();
    }
    if (const GstFlowReturn met = wait_for_viewers(base, run, *ring); met != GST_FLOW_OK) return met;
    Ring::Slot* slot = slot_of(buffer, run.info, *ring);
    std::unique_ptr<Ring::Slot> own;
    bool twice = false;
    if (slot == nullptr || slot->writable() == nullptr) {  // not in the ring, or given to viewers already
        if (const GstFlowReturn begun = begin(base, run, ring, own); begun != GST_FLOW_OK) return begun;
        if (own) {
            Result<bool> copied = copy_into(run, *own, *ring, buffer);
            if (!copied) return fail(base, copied.error());
            twice = *copied;
        }
        slot = own.get();
    }
    if (slot != nullptr) {
        if (const GstFlowReturn published = publish(base, run, *slot); published != GST_FLOW_OK) return published;
    } else {
        GST_WARNING_OBJECT(base, "a frame was dropped: this process still has its slot");
    }
    const std::lock_guard locked(state.lock);
    if (slot != nullptr) ++state.counts.frames;
    if (slot != nullptr && own) ++state.counts.copied;
    if (slot != nullptr && twice) ++state.counts.copied_twice;
    if (slot == nullptr) ++state.counts.dropped;
    return GST_FLOW_OK;
}

// At EOS, viewers get the end behind the last frame; frames that come later have a ring of their own.
gboolean event(GstBaseSink* base, GstEvent* event) {
    const bool is_end = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    const gboolean done = GST_BASE_SINK_CLASS(gst_isthmus_sink_parent_class)->event(base, event);
    if (is_end) end_ring(state_of(base));
    return done;
}

void finalize(GObject* object) {
    delete reinterpret_cast<GstIsthmusSink*>(object)->state;
    G_OBJECT_CLASS(gst_isthmus_sink_parent_class)->finalize(object);
}

void install_properties(GObjectClass* type) {
    constexpr GParamFlags set = set_before_start, count = only_read;
    const auto add = [type](guint id, GParamSpec* spec) { g_object_class_install_property(type, id, spec); };
    install_session_properties(type, property_device);
    add(property_at, g_param_spec_string("at", "Directory", at_help, "", set));
    add(property_policy,
        g_param_spec_enum("policy", "Policy", "What happens to viewers that are slower than the frames", policy_type(),
                          static_cast<gint>(SlowReaderPolicy::overwrite), set));
    add(property_slots, g_param_spec_uint("slots", "Slots", "Frames in the ring", 2, 256, 4, set));
    add(property_max_viewers,
        g_param_spec_uint("max-viewers", "Most viewers", "Most viewers at the same time", 1, 64, 16, set));
    add(property_viewers,
        g_param_spec_uint("viewers", "Viewers", "Wait with the first frame until this many viewers have connected", 0,
                          64, 0, set));
    add(property_viewer_deadline,
        g_param_spec_uint("viewer-deadline", "Viewer deadline",
                          "Milliseconds that a viewer may delay the others without finishing a frame (policy=wait)", 1,
                          3600000, 1000, set));
    add(property_writable,
        g_param_spec_boolean("writable", "Writable",
                             "Viewers may write the frames: for trusted viewers with GPUs that cannot register memory "
                             "for reading only",
                             FALSE, set));
    add(property_frames,
        g_param_spec_uint64("frames", "Frames", "Frames given to viewers since the start", 0, G_MAXUINT64, 0, count));
    add(property_copied_frames,
        g_param_spec_uint64("copied-frames", "Copied frames",
                            "Those of them that were copied, because upstream did not write into the ring", 0,
                            G_MAXUINT64, 0, count));
    add(property_twice_copied_frames,
        g_param_spec_uint64("twice-copied-frames", "Frames copied twice",
                            "Those of the copied frames whose bytes may have moved twice: CUDA memory that reaches the "
                            "ring through a copy of its own allocator, or through pinned memory",
                            0, G_MAXUINT64, 0, count));
    add(property_dropped_frames,
        g_param_spec_uint64("dropped-frames", "Dropped frames",
                            "Frames not given to viewers, because this process still had their slot", 0, G_MAXUINT64, 0,
                            count));
    add(property_live_viewers,
        g_param_spec_uint("live-viewers", "Live viewers", "Viewers that are connected", 0, 64, 0, count));
}

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(ISTHMUS_GST_DEVICE_CAPS));

void gst_isthmus_sink_class_init(GstIsthmusSinkClass* type) {
    GObjectClass* const object = G_OBJECT_CLASS(type);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    GstElementClass* const element = GST_ELEMENT_CLASS(type);
    gst_element_class_set_static_metadata(
        element, "Frames for other processes", "Sink/Video",
        "Gives frames to `isthmus view`, isthmussrc and other readers in other processes, from memory that all of "
        "them map",
        "isthmus maintainers");
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_type_mark_as_plugin_api(policy_type(), static_cast<GstPluginAPIFlags>(0));
    type->base.start = start;
    type->base.stop = stop;
    type->base.get_caps = get_caps;
    type->base.query = query;
    type->base.set_caps = set_caps;
    type->base.propose_allocation = propose_allocation;
    type->base.unlock = unlock;
    type->base.unlock_stop = unlock_stop;
    type->base.event = event;
    type->base.render = render;
}

void gst_isthmus_sink_init(GstIsthmusSink* self) {
    self->state = new State();
    // The last sample would keep a slot of the ring.
    gst_base_sink_set_last_sample_enabled(GST_BASE_SINK_CAST(self), FALSE);
}

}  // namespace

GType sink_element_type() {
    return gst_isthmus_sink_get_type();
}

}  // namespace isthmus::gst
