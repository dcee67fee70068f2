// SPDX-License-Identifier: Apache-2.0
// Runs a pipeline for pipelines_test.py and prints what happened as JSON: how it ended, the messages of isthmuscorners,
// and the readable properties of the elements of this project.
//
// usage: run_pipeline [--cycles N | --seek-after N] [--leak] [--dma-buf[-planes|-halves|-unreadable]] [--dma-buf-caps]
// PIPELINE
//   --cycles N       go from NULL to PLAYING and back N times, instead of running to the end
//   --seek-after N   flush by a seek to the start when the element "counted" has had N frames
//   --dma-buf        give the element "frames" another memory for each frame: a dma-buf, of two that a pool would have
//   --dma-buf-planes      the same, with a dma-buf for each plane of the frame
//   --dma-buf-halves      the same, with two dma-bufs whose boundary is within the first plane, and no GstVideoMeta
//   --dma-buf-unreadable  the same, with dma-bufs that are open for writing only: nothing can map them for reading
//   --dma-buf-caps        the caps behind "frames" have the feature memory:DMABuf
//   --leak           keep a buffer to the end, so that the leaks tracer has something to tell
#include <gst/allocators/gstdmabuf.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

using Json = nlohmann::ordered_json;

constexpr GstClockTime longest = 60 * GST_SECOND;

struct Options {
    unsigned cycles = 0;
    unsigned seek_after = 0;
    bool leak = false;
    bool dma_buf = false;
    bool dma_buf_planes = false;
    bool dma_buf_halves = false;
    bool dma_buf_unreadable = false;
    bool dma_buf_caps = false;
    std::string pipeline;
};

Options parse(int count, char** words) {
    Options options;
    for (int at = 1; at < count; ++at) {
        const std::string_view word = words[at];
        if (word == "--cycles" && at + 1 < count) {
            options.cycles = static_cast<unsigned>(std::atoi(words[++at]));
        } else if (word == "--seek-after" && at + 1 < count) {
            options.seek_after = static_cast<unsigned>(std::atoi(words[++at]));
        } else if (word == "--leak") {
            options.leak = true;
        } else if (word == "--dma-buf") {
            options.dma_buf = true;
        } else if (word == "--dma-buf-planes") {
            options.dma_buf = options.dma_buf_planes = true;
        } else if (word == "--dma-buf-halves") {
            options.dma_buf = options.dma_buf_halves = true;
        } else if (word == "--dma-buf-unreadable") {
            options.dma_buf = options.dma_buf_unreadable = true;
        } else if (word == "--dma-buf-caps") {
            options.dma_buf = options.dma_buf_caps = true;
        } else {
            options.pipeline = word;
        }
    }
    return options;
}

Json as_json(const GValue* value) {
    if (value == nullptr) return nullptr;
    if (G_VALUE_HOLDS_STRING(value)) {
        const char* const text = g_value_get_string(value);
        return text == nullptr ? "" : text;
    }
    if (G_VALUE_HOLDS_UINT64(value)) return g_value_get_uint64(value);
    if (G_VALUE_HOLDS_UINT(value)) return g_value_get_uint(value);
    return nullptr;
}

void add_counts(Json& document, GstElement* pipeline) {
    GstIterator* const all = gst_bin_iterate_recurse(GST_BIN(pipeline));
    GValue item = G_VALUE_INIT;
    while (gst_iterator_next(all, &item) == GST_ITERATOR_OK) {
        auto* const element = static_cast<GstElement*>(g_value_get_object(&item));
        const std::string kind = GST_OBJECT_NAME(gst_element_get_factory(element));
        if (kind.starts_with("isthmus")) {
            Json counts;
            guint count = 0;
            GParamSpec** const specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
            for (guint at = 0; at < count; ++at) {
                if (specs[at]->value_type != G_TYPE_UINT64 && specs[at]->value_type != G_TYPE_UINT) continue;
                GValue value = G_VALUE_INIT;
                g_value_init(&value, specs[at]->value_type);
                g_object_get_property(G_OBJECT(element), specs[at]->name, &value);
                counts[specs[at]->name] = as_json(&value);
                g_value_unset(&value);
            }
            g_free(specs);
            document["elements"][kind] = counts;
        }
        g_value_reset(&item);
    }
    g_value_unset(&item);
    gst_iterator_free(all);
}

void add_corners(Json& document, const GstStructure* told) {
    Json one;
    for (const char* const name : {"frame", "corners", "listed", "digest", "clip-digest"}) {
        one[name] = as_json(gst_structure_get_value(told, name));
    }
    document["corners"].push_back(one);
}

void add_error(Json& document, GstMessage* message) {
    GError* error = nullptr;
    gchar* more = nullptr;
    gst_message_parse_error(message, &error, &more);
    document["errors"].push_back({{"message", error->message}, {"more", more == nullptr ? "" : more}});
    g_clear_error(&error);
    g_free(more);
}

// Stops the stream before the element named "counted" gets one frame more than `after`, until a seek flushes it.
class Halt {
public:
    Halt(GstElement* pipeline, unsigned after)
        : after_(after), counted_(gst_bin_get_by_name(GST_BIN(pipeline), "counted")) {
        GstPad* const pad = gst_element_get_static_pad(counted_, "sink");
        gst_pad_add_probe(
            pad, static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
            [](GstPad*, GstPadProbeInfo*, gpointer self) { return static_cast<Halt*>(self)->next_frame(); }, this,
            nullptr);
        gst_object_unref(pad);
    }
    Halt(const Halt&) = delete;
    Halt& operator=(const Halt&) = delete;
    ~Halt() { gst_object_unref(counted_); }

    // true: all frames before the halt were rendered, and the seek was done.
    bool seek_when_due(GstElement* pipeline) {
        guint64 frames = 0;
        g_object_get(counted_, "frames", &frames, nullptr);
        if (frames < after_) return false;
        ended_ = true;
        return gst_element_seek_simple(pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0) != FALSE;
    }

private:
    GstPadProbeReturn next_frame() {
        if (ended_) return GST_PAD_PROBE_REMOVE;
        return frames_++ < after_ ? GST_PAD_PROBE_PASS : GST_PAD_PROBE_OK;
    }

    const unsigned after_;
    GstElement* const counted_;
    unsigned frames_ = 0;  // of the streaming thread
    std::atomic<bool> ended_{false};
};

// Replaces the memory of the frames that leave the element "frames" by dma-bufs, as a camera's element has them:
// memory files that made_up_dma_bufs.c lets pass for dma-bufs. Two of them take turns.
class DmaBufs {
public:
    DmaBufs(GstElement* pipeline, const Options& options) : options_(options), allocator_(gst_dmabuf_allocator_new()) {
        GstElement* const frames = gst_bin_get_by_name(GST_BIN(pipeline), "frames");
        GstPad* const pad = gst_element_get_static_pad(frames, "src");
        gst_pad_add_probe(
            pad, static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
            [](GstPad*, GstPadProbeInfo* info, gpointer self) {
                static_cast<DmaBufs*>(self)->replace(info);
                return GST_PAD_PROBE_OK;
            },
            this, nullptr);
        gst_object_unref(pad);
        gst_object_unref(frames);
    }
    DmaBufs(const DmaBufs&) = delete;
    DmaBufs& operator=(const DmaBufs&) = delete;
    ~DmaBufs() {
        for (const auto& frame : memories_) {
            for (GstMemory* const memory : frame) {
                if (memory != nullptr) gst_memory_unref(memory);
            }
        }
        gst_object_unref(allocator_);
    }

private:
    void replace(GstPadProbeInfo* info) {
        if ((info->type & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
            replace_frame(info);
        } else if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_CAPS) {
            replace_caps(info);
        }
    }
    void replace_caps(GstPadProbeInfo* info) {
        GstEvent* const old = GST_PAD_PROBE_INFO_EVENT(info);
        GstCaps* caps = nullptr;
        gst_event_parse_caps(old, &caps);
        if (gst_video_info_from_caps(&info_, caps) == FALSE) std::abort();
        if (!options_.dma_buf_caps) return;
        caps = gst_caps_copy(caps);
        gst_caps_set_features(caps, 0, gst_caps_features_new(GST_CAPS_FEATURE_MEMORY_DMABUF, nullptr));
        info->data = gst_event_new_caps(caps);
        gst_caps_unref(caps);
        gst_event_unref(old);
    }
    void replace_frame(GstPadProbeInfo* info) {
        GstBuffer* const old = GST_PAD_PROBE_INFO_BUFFER(info);
        const gsize bytes = gst_buffer_get_size(old);
        auto& memories = memories_[frame_++ % 2];
        GstBuffer* const made = gst_buffer_new();
        const guint planes = options_.dma_buf_planes ? GST_VIDEO_INFO_N_PLANES(&info_) : 1;
        GstVideoMeta* const meta = gst_buffer_get_video_meta(old);
        const gsize* const offsets = meta != nullptr ? meta->offset : info_.offset;
        const auto append = [&](GstMemory*& memory, gsize first, gsize end) {
            fill(memory, old, first, end - first);
            gst_buffer_append_memory(made, gst_memory_ref(memory));
        };
        if (options_.dma_buf_halves) {
            const gsize boundary = static_cast<gsize>(GST_VIDEO_INFO_PLANE_STRIDE(&info_, 0)) * 5 + 3;
            append(memories[0], 0, boundary);
            append(memories[1], boundary, bytes);
        } else {
            for (guint plane = 0; plane < planes; ++plane) {
                append(memories[plane], offsets[plane], plane + 1 < planes ? offsets[plane + 1] : bytes);
            }
        }
        gst_buffer_copy_into(made, old, GST_BUFFER_COPY_METADATA, 0, static_cast<gsize>(-1));
        if (meta != nullptr &&
            !options_.dma_buf_halves) {  // which belongs to the memory, and is not copied with the rest
            gst_buffer_add_video_meta_full(made, GST_VIDEO_FRAME_FLAG_NONE, meta->format, meta->width, meta->height,
                                           meta->n_planes, meta->offset, meta->stride);
        }
        gst_buffer_unref(old);
        info->data = made;
    }
    void fill(GstMemory*& memory, GstBuffer* from, gsize first, gsize bytes) {
        if (memory == nullptr) {
            int file = ::memfd_create("dma-buf", MFD_CLOEXEC);
            if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
            if (options_.dma_buf_unreadable) {
                const int whole = file;
                file = ::open(("/proc/self/fd/" + std::to_string(whole)).c_str(), O_WRONLY | O_CLOEXEC);
                ::close(whole);
            }
            memory = gst_dmabuf_allocator_alloc(allocator_, file, bytes);
        }
        GstMapInfo map;
        if (options_.dma_buf_unreadable) return;  // nor can they be filled by a map
        if (gst_memory_map(memory, &map, GST_MAP_WRITE) == FALSE) std::abort();
        gst_buffer_extract(from, first, map.data, bytes);
        gst_memory_unmap(memory, &map);
    }

    const Options& options_;
    GstAllocator* const allocator_;
    GstVideoInfo info_{};
    std::array<std::array<GstMemory*, GST_VIDEO_MAX_PLANES>, 2> memories_{};
    unsigned frame_ = 0;  // of the streaming thread
};

void run(Json& document, GstElement* pipeline, const Options& options) {
    GstBus* const bus = gst_element_get_bus(pipeline);
    std::optional<Halt> halt;
    if (options.seek_after != 0) halt.emplace(pipeline, options.seek_after);
    bool sought = !halt;
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    document["end"] = "deadline";
    const gint64 until = g_get_monotonic_time() + static_cast<gint64>(longest / 1000);
    for (bool ended = false; !ended && g_get_monotonic_time() < until;) {
        if (!sought && halt->seek_when_due(pipeline)) sought = document["sought"] = true;
        GstMessage* const message = gst_bus_timed_pop(bus, 5 * GST_MSECOND);
        if (message == nullptr) continue;
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT &&
            gst_message_has_name(message, "isthmus-corners") != FALSE) {
            add_corners(document, gst_message_get_structure(message));
        } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            add_error(document, message);
            document["end"] = "error";
            ended = true;
        } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
            document["end"] = "eos";
            ended = true;
        }
        gst_message_unref(message);
    }
    add_counts(document, pipeline);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
}

// Whether the pipeline has reached the state. gst_element_get_state() also fails without an error where the pipeline's
// own threads change the state meanwhile.
bool reach(Json& document, GstElement* pipeline, GstBus* bus, GstState state) {
    gst_element_set_state(pipeline, state);
    const gint64 until = g_get_monotonic_time() + static_cast<gint64>(longest / 1000);
    while (g_get_monotonic_time() < until) {
        const GstStateChangeReturn reached = gst_element_get_state(pipeline, nullptr, nullptr, longest);
        if (reached == GST_STATE_CHANGE_SUCCESS || reached == GST_STATE_CHANGE_NO_PREROLL) return true;
        GstMessage* const message = gst_bus_timed_pop_filtered(bus, GST_MSECOND, GST_MESSAGE_ERROR);
        if (message == nullptr) continue;
        add_error(document, message);
        gst_message_unref(message);
        break;
    }
    return false;
}

void cycle(Json& document, GstElement* pipeline, unsigned cycles) {
    GstBus* const bus = gst_element_get_bus(pipeline);
    unsigned done = 0;
    while (done < cycles && reach(document, pipeline, bus, GST_STATE_PAUSED) &&
           reach(document, pipeline, bus, GST_STATE_PLAYING) && reach(document, pipeline, bus, GST_STATE_NULL)) {
        ++done;
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    document["end"] = done == cycles ? "cycles" : "error";
    document["cycles"] = done;
    gst_object_unref(bus);
}

}  // namespace

int main(int count, char** words) {
    gst_init(nullptr, nullptr);
    const Options options = parse(count, words);
    GError* error = nullptr;
    GstElement* const pipeline =
        gst_parse_launch_full(options.pipeline.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
    if (pipeline == nullptr) {
        std::fprintf(stderr, "run_pipeline: %s\n", error->message);
        return 2;
    }
    std::optional<DmaBufs> dma_bufs;
    if (options.dma_buf) dma_bufs.emplace(pipeline, options);
    Json document = {{"end", ""}, {"errors", Json::array()}, {"corners", Json::array()}, {"elements", Json::object()}};
    if (options.cycles != 0) {
        cycle(document, pipeline, options.cycles);
    } else {
        run(document, pipeline, options);
    }
    gst_object_unref(pipeline);
    dma_bufs.reset();
    static GstBuffer* kept = nullptr;
    if (options.leak) kept = gst_buffer_new();
    std::printf("%s\n", document.dump().c_str());
    gst_deinit();  // the leaks tracer tells what is left
    return kept == nullptr || options.leak ? 0 : 1;
}
