// SPDX-License-Identifier: Apache-2.0
// isthmuscorners: finds corners in each frame on the device, in place, and tells them as `isthmus run` does.
#include "camera/corner_finder.hpp"
#include "camera/digest.hpp"
#include "elements.hpp"
#include "foreign.hpp"
#include "layout.hpp"
#include "memory.hpp"
#include "pool.hpp"

#include <gst/allocators/gstdmabuf.h>
#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#define GST_CAT_DEFAULT debug_category()

namespace isthmus::gst {
namespace {

using tools::camera::CornerFinder;
using tools::camera::Digest;

enum Property : guint {
    property_device = 1,
    property_machine,
    property_threshold,
    property_distance,
    property_max_corners,
    property_draw,
    property_copied_frames,
    property_frames,
};

struct Found {
    std::vector<kernels::Corner> corners;  // those listed
    std::uint32_t found = 0;
};

// What exists between start and stop; for the streaming thread.
struct Run {
    OpenSession opened;
    AllocatorPointer allocator;
    GstVideoInfo info{};
    FrameShape shape{};
    std::optional<CornerFinder> finder{};
    Buffer<std::uint8_t> copy{};      // of frames in other memory
    const GstMemory* last = nullptr;  // memory of another element that the finder still holds; compared only
    Digest clip{};                    // of all frames so far, as `isthmus run` has it at the end

    explicit Run(OpenSession made) : opened(std::move(made)), allocator(make_allocator(opened)) {}
};

struct Settings {
    SessionChoice session{};
    std::int32_t threshold = 2000;
    std::uint32_t distance = 5;
    std::uint32_t max_corners = 4096;
    bool draw = false;
};

struct State {
    std::mutex lock;  // of the settings and counts: properties may be asked for on any thread
    Settings settings{};
    std::uint64_t frames = 0;
    std::uint64_t copied_frames = 0;
    std::unique_ptr<Run> run{};
};

struct GstIsthmusCorners {
    GstBaseTransform base;
    State* state;
};
struct GstIsthmusCornersClass {
    GstBaseTransformClass base;
};

G_DEFINE_TYPE(GstIsthmusCorners, gst_isthmus_corners, GST_TYPE_BASE_TRANSFORM)

template <class Object>
State& state_of(Object* object) {
    return *reinterpret_cast<GstIsthmusCorners*>(object)->state;
}

Settings settings_of(State& state) {
    const std::lock_guard locked(state.lock);
    return state.settings;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    const std::lock_guard locked(state.lock);
    if (set_session_property(state.settings.session, id, property_device, value)) return;
    switch (id) {
        case property_threshold: state.settings.threshold = g_value_get_int(value); break;
        case property_distance: state.settings.distance = g_value_get_uint(value); break;
        case property_max_corners: state.settings.max_corners = g_value_get_uint(value); break;
        case property_draw: state.settings.draw = g_value_get_boolean(value) != FALSE; break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    State& state = state_of(object);
    const std::lock_guard locked(state.lock);
    if (get_session_property(state.settings.session, id, property_device, value)) return;
    switch (id) {
        case property_threshold: g_value_set_int(value, state.settings.threshold); break;
        case property_distance: g_value_set_uint(value, state.settings.distance); break;
        case property_max_corners: g_value_set_uint(value, state.settings.max_corners); break;
        case property_draw: g_value_set_boolean(value, state.settings.draw); break;
        case property_copied_frames: g_value_set_uint64(value, state.copied_frames); break;
        case property_frames: g_value_set_uint64(value, state.frames); break;
        default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
}

gboolean start(GstBaseTransform* base) {
    State& state = state_of(base);
    const Settings settings = settings_of(state);
    Result<OpenSession> opened = open_session(settings.session);
    if (!opened) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, opened.error());
        return FALSE;
    }
    state.run = std::make_unique<Run>(std::move(opened).value());
    const std::lock_guard locked(state.lock);
    state.frames = state.copied_frames = 0;
    return TRUE;
}

gboolean stop(GstBaseTransform* base) {
    state_of(base).run.reset();
    return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* caps, GstCaps*) {
    State& state = state_of(base);
    Run& run = *state.run;
    if (!gst_video_info_from_caps(&run.info, caps)) return FALSE;
    Result<FrameShape> shape = shape_of(run.info);
    if (!shape) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_SETTINGS, shape.error());
        return FALSE;
    }
    run.shape = *shape;
    run.finder.reset();  // made with the first frame, which has the pitch
    run.copy = Buffer<std::uint8_t>();
    // Frames that are only read need not be writable.
    gst_base_transform_set_passthrough(base, settings_of(state).draw ? FALSE : TRUE);
    return TRUE;
}

// What downstream proposes, if it is memory of this plugin: frames then go through in one memory. Otherwise this
// element's own.
gboolean propose_allocation(GstBaseTransform* base, GstQuery* decided, GstQuery* query) {
    GstCaps* caps = nullptr;
    gst_query_parse_allocation(query, &caps, nullptr);
    if (wants_foreign_memory(caps)) {
        // Such memory is upstream's or downstream's.
        return GST_BASE_TRANSFORM_CLASS(gst_isthmus_corners_parent_class)->propose_allocation(base, decided, query);
    }
    GstQuery* const further = gst_query_copy(query);
    const bool taken = gst_pad_peer_query(GST_BASE_TRANSFORM_SRC_PAD(base), further) != FALSE && is_proposed(further);
    if (taken) {
        for (guint at = 0; at < gst_query_get_n_allocation_pools(further); ++at) {
            GstBufferPool* pool = nullptr;
            guint size = 0, least = 0, most = 0;
            gst_query_parse_nth_allocation_pool(further, at, &pool, &size, &least, &most);
            gst_query_add_allocation_pool(query, pool, size, least, most);
            if (pool != nullptr) gst_object_unref(pool);
        }
        for (guint at = 0; at < gst_query_get_n_allocation_params(further); ++at) {
            GstAllocator* allocator = nullptr;
            GstAllocationParams params;
            gst_query_parse_nth_allocation_param(further, at, &allocator, &params);
            gst_query_add_allocation_param(query, allocator, &params);
            if (allocator != nullptr) gst_object_unref(allocator);
        }
        gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    }
    gst_query_unref(further);
    State& state = state_of(base);
    return taken || (state.run != nullptr && propose(query, state.run->allocator.get(), nullptr));
}

Result<void> make_finder(Run& run, const Settings& settings, const FrameShape& shape) {
    tools::camera::FinderOptions options;
    options.shape = shape;
    options.rule = {.threshold = settings.threshold, .radius = settings.distance, .border = 8};
    options.max_corners = settings.max_corners;
    options.in_flight = 1;
    options.own_frames = false;
    options.own_streams = true;  // a pipeline may have several of these elements, each with a thread
    Result<CornerFinder> finder = CornerFinder::create(*run.opened.device, options);
    if (!finder) return std::move(finder).error();
    run.finder.emplace(std::move(finder).value());
    run.shape = shape;
    return {};
}

Result<Found> find(CornerFinder& finder, const Buffer<std::uint8_t>& frame) {
    if (Result<void> submitted = finder.submit(frame); !submitted) return std::move(submitted).error();
    Found result;
    {
        Result<tools::camera::FoundCorners> found = finder.corners();
        if (!found) return std::move(found).error();
        const auto list = found->list.span().first(std::min<std::size_t>(found->count.listed, found->list.size()));
        result.corners.assign(list.begin(), list.end());
        result.found = found->count.found;
    }
    finder.finish();
    return result;
}

// The frame as the device can use it: in its own memory if that begins with the luma; null otherwise. `foreign` keeps
// memory of other elements.
const Buffer<std::uint8_t>* in_place(Run& run, GstBuffer* buffer, FrameShape& shape,
                                     std::optional<ForeignFrame>& foreign) {
    if (gst_buffer_n_memory(buffer) != 1) return nullptr;
    GstMemory* const memory = gst_buffer_peek_memory(buffer, 0);
    const Buffer<std::uint8_t>* whole = whole_buffer(memory, *run.opened.device);
    if (whole == nullptr) {
        // A pool of one buffer: memory is adopted once, and the finder still has it.
        if (memory == run.last && run.finder && gst_is_dmabuf_memory(memory) == FALSE) run.finder->forget_frames();
        run.last = nullptr;
        if (Result<ForeignFrame> found = ForeignFrame::of(memory, run.opened); found) {
            whole = &foreign.emplace(std::move(*found)).buffer();
            run.last = memory;
        }
    }
    const Result<Layout> layout = layout_of(buffer, run.info);
    if (whole == nullptr || !layout || layout->offset[0] != 0 || layout->stride[0] <= 0) return nullptr;
    Result<FrameShape> placed = tools::camera::make_frame_shape(shape.format, shape.width, shape.height,
                                                                static_cast<std::uint64_t>(layout->stride[0]));
    // Only luma is read: colour planes may lie anywhere behind it.
    if (!placed || whole->size() < std::size_t{placed->pitch_bytes} * placed->height) return nullptr;
    shape = *placed;
    return whole;
}

// Copies the frame into memory that the device uses.
Result<const Buffer<std::uint8_t>*> copied(Run& run, GstBuffer* buffer, const FrameShape& shape) {
    if (run.copy.size() != shape.size_bytes) {
        Result<Buffer<std::uint8_t>> made = run.opened.device->allocate_shared<std::uint8_t>(
            shape.size_bytes, {.host = Use::writes_often, .device = Use::reads_once});
        if (!made) return std::move(made).error();
        run.copy = std::move(made).value();
    }
    GstVideoFrame frame{};
    if (!gst_video_frame_map(&frame, &run.info, buffer, GST_MAP_READ)) {
        return Error(Code::not_accessible, "the frame cannot be mapped for reading");
    }
    Result<HostView<std::uint8_t>> view = run.copy.write_on_host();
    Result<void> done = view ? copy_planes(view->data(), shape, frame) : std::move(view).error();
    gst_video_frame_unmap(&frame);
    if (!done) return std::move(done).error();
    return &run.copy;
}

// Squares of seven pixels around the corners, in white luma.
bool draw(Run& run, GstBuffer* buffer, const std::vector<kernels::Corner>& corners) {
    GstVideoFrame frame;
    if (!gst_video_frame_map(&frame, &run.info, buffer, static_cast<GstMapFlags>(GST_MAP_READ | GST_MAP_WRITE)))
        return false;
    auto* const pixels = static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
    const auto pitch = static_cast<std::uint32_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0));
    const kernels::LumaLayout layout = kernels::luma_layout(run.shape.format, pitch);
    const auto dot = [&](int x, int y) {
        if (x < 0 || y < 0 || x >= GST_VIDEO_INFO_WIDTH(&run.info) || y >= GST_VIDEO_INFO_HEIGHT(&run.info)) return;
        pixels[layout.offset_bytes + static_cast<std::size_t>(y) * pitch +
               static_cast<std::size_t>(x) * layout.step_bytes] = 255;
    };
    constexpr int radius = 3;
    for (const kernels::Corner& corner : corners) {
        for (int at = -radius; at <= radius; ++at) {
            dot(corner.x + at, corner.y - radius);
            dot(corner.x + at, corner.y + radius);
            dot(corner.x - radius, corner.y + at);
            dot(corner.x + radius, corner.y + at);
        }
    }
    gst_video_frame_unmap(&frame);
    return true;
}

void tell(GstBaseTransform* base, GstBuffer* buffer, Run& run, const Found& found, std::uint64_t frame) {
    Digest own;
    own.add_corners(found.corners);
    run.clip.add_corners(found.corners);
    GstStructure* const told = gst_structure_new(
        "isthmus-corners", "frame", G_TYPE_UINT64, frame, "timestamp", G_TYPE_UINT64, GST_BUFFER_PTS(buffer), "corners",
        G_TYPE_UINT, found.found, "listed", G_TYPE_UINT, static_cast<guint>(found.corners.size()), "digest",
        G_TYPE_STRING, own.text().c_str(), "clip-digest", G_TYPE_STRING, run.clip.text().c_str(), nullptr);
    gst_element_post_message(GST_ELEMENT_CAST(base), gst_message_new_element(GST_OBJECT_CAST(base), told));
}

GstFlowReturn transform(GstBaseTransform* base, GstBuffer* buffer) {
    State& state = state_of(base);
    Run& run = *state.run;
    const Settings settings = settings_of(state);
    const auto failed = [&](const Error& error) {
        post_error(GST_ELEMENT_CAST(base), GST_RESOURCE_ERROR_FAILED, error);
        return GST_FLOW_ERROR;
    };
    FrameShape shape = run.shape;
    std::optional<ForeignFrame> foreign;
    const Buffer<std::uint8_t>* frame = in_place(run, buffer, shape, foreign);
    const bool copies = frame == nullptr;
    if (copies) {
        foreign.reset();
        Result<const Buffer<std::uint8_t>*> copy = copied(run, buffer, shape);
        if (!copy) return failed(copy.error());
        frame = *copy;
    }
    if (!run.finder || shape.pitch_bytes != run.shape.pitch_bytes) {
        if (Result<void> made = make_finder(run, settings, shape); !made) return failed(made.error());
    }
    std::optional<HostView<const std::uint8_t>> reading;
    // The kernels of the CPU device are accesses by the CPU: a view brackets them as the kernel asks for.
    if (foreign && run.opened.device->is_cpu()) {
        Result<HostView<const std::uint8_t>> view = frame->read_on_host();
        if (!view) return failed(view.error());
        reading.emplace(std::move(view).value());
    }
    Result<Found> found = find(*run.finder, *frame);
    reading.reset();
    foreign.reset();  // before drawing, or downstream, maps the memory
    if (!found) return failed(found.error());
    std::uint64_t number = 0;
    {
        const std::lock_guard locked(state.lock);
        number = state.frames++;
        state.copied_frames += copies ? 1 : 0;
    }
    tell(base, buffer, run, *found, number);
    if (!gst_base_transform_is_passthrough(base) && !draw(run, buffer, found->corners)) {
        return failed(Error(Code::not_accessible, "the frame cannot be mapped for drawing"));
    }
    return GST_FLOW_OK;
}

void finalize(GObject* object) {
    delete reinterpret_cast<GstIsthmusCorners*>(object)->state;
    G_OBJECT_CLASS(gst_isthmus_corners_parent_class)->finalize(object);
}

void install_properties(GObjectClass* type) {
    constexpr GParamFlags set = set_before_start, count = only_read;
    install_session_properties(type, property_device);
    g_object_class_install_property(
        type, property_threshold,
        g_param_spec_int("threshold", "Threshold", "A corner's response is greater than this", 0, G_MAXINT, 2000, set));
    g_object_class_install_property(
        type, property_distance,
        g_param_spec_uint("distance", "Distance", "A corner is the best within this many pixels", 1, 64, 5, set));
    g_object_class_install_property(
        type, property_max_corners,
        g_param_spec_uint("max-corners", "Most corners", "Most corners that are listed for one frame", 1, 1u << 20,
                          4096, set));
    g_object_class_install_property(
        type, property_draw,
        g_param_spec_boolean("draw", "Draw", "Draw a square around each corner, into the frame's luma", FALSE, set));
    g_object_class_install_property(
        type, property_copied_frames,
        g_param_spec_uint64("copied-frames", "Copied frames",
                            "Frames copied for the device, because upstream did not take this element's memory", 0,
                            G_MAXUINT64, 0, count));
    g_object_class_install_property(
        type, property_frames,
        g_param_spec_uint64("frames", "Frames", "Frames in which corners were sought since the start", 0, G_MAXUINT64,
                            0, count));
}

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(ISTHMUS_GST_DEVICE_CAPS));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(ISTHMUS_GST_DEVICE_CAPS));

void gst_isthmus_corners_class_init(GstIsthmusCornersClass* type) {
    GObjectClass* const object = G_OBJECT_CLASS(type);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object);
    GstElementClass* const element = GST_ELEMENT_CLASS(type);
    gst_element_class_set_static_metadata(
        element, "Corners on CPU or GPU", "Filter/Analyzer/Video",
        "Finds corners in each frame on the chosen device, in place, and posts an element message with their number "
        "and digest",
        "isthmus maintainers");
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_element_class_add_static_pad_template(element, &src_template);
    type->base.start = start;
    type->base.stop = stop;
    type->base.set_caps = set_caps;
    type->base.propose_allocation = propose_allocation;
    type->base.transform_ip = transform;
    type->base.transform_ip_on_passthrough = TRUE;
}

void gst_isthmus_corners_init(GstIsthmusCorners* self) {
    self->state = new State();
}

}  // namespace

GType corners_element_type() {
    return gst_isthmus_corners_get_type();
}

}  // namespace isthmus::gst
