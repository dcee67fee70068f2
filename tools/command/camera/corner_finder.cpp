// SPDX-License-Identifier: Apache-2.0
// Chooses the memory of the camera kernels, and records them once for each lane.
#include "corner_finder.hpp"

#include <isthmus/stream.hpp>

#include <utility>

namespace isthmus::tools::camera {
namespace {

// Stores the value, or returns the error: allocate(into, device.allocate<…>(…)).
template <class T>
Result<void> keep(T& into, Result<T> made) {
    if (!made) return std::move(made).error();
    into = std::move(made).value();
    return {};
}

bool has_host_side(const BufferBase& buffer) {
    const MemoryKind kind = buffer.host_kind();
    return kind != MemoryKind::unknown && kind != MemoryKind::device && kind != MemoryKind::pool &&
           kind != MemoryKind::imported;
}

}  // namespace

CornerFinder::CornerFinder(Device& device, const FinderOptions& options)
    : device_(&device),
      options_(options),
      plane_{options.shape.width, options.shape.height, options.shape.width},
      luma_{options.shape.width, options.shape.height, (options.shape.width + 15) / 16 * 16} {}

Result<CornerFinder> CornerFinder::create(Device& device, const FinderOptions& options) {
    CornerFinder finder(device, options);
    if (Result<void> allocated = finder.allocate(); !allocated) return std::move(allocated).error();
    return finder;
}

Result<void> CornerFinder::allocate() {
    // The host writes each frame and reads the pixels around its corners; the device reads every pixel
    // once.
    const SharedUse use{.host = Use::reads_and_writes, .device = Use::reads_once, .kind = options_.memory};
    if (options_.own_frames) {
        Result<Frames> frames =
            Frames::create(*device_, options_.shape.size_bytes, {.frames = options_.in_flight + 1, .use = use});
        if (!frames) return std::move(frames).error();
        frames_.emplace(std::move(frames).value());
    }
    lanes_.reserve(options_.in_flight);
    for (std::uint32_t at = 0; at < options_.in_flight; ++at) {
        Result<Stream> stream =
            at == 0 && !options_.own_streams ? Result<Stream>(device_->stream()) : device_->create_stream();
        if (!stream) return std::move(stream).error();
        Lane& lane = lanes_.emplace_back(std::move(stream).value());
        if (Result<void> done = allocate_pictures(lane); !done) return done;
        if (Result<void> done = allocate_shared(lane); !done) return done;
    }
    return {};
}

// Intermediate pictures stay on the device. Buffers that both sides use are shared, and state their use.
Result<void> CornerFinder::allocate_pictures(Lane& lane) {
    const std::size_t pixels = kernels::size_of(plane_);
    if (Result<void> done = keep(lane.luma, device_->allocate<std::uint8_t>(kernels::size_of(luma_))); !done)
        return done;
    if (Result<void> done = keep(lane.response, device_->allocate<std::int32_t>(pixels)); !done) return done;
    if (Result<void> done = keep(lane.columns, device_->allocate<std::uint16_t>(pixels)); !done) return done;
    return keep(lane.rows, device_->allocate<std::uint32_t>(plane_.height));
}

Result<void> CornerFinder::allocate_shared(Lane& lane) {
    const SharedUse use{.host = Use::reads_once, .device = Use::writes_once, .kind = options_.memory};
    if (Result<void> done = keep(lane.corners, device_->allocate_shared<kernels::Corner>(options_.max_corners, use));
        !done)
        return done;
    if (Result<void> done = keep(lane.count, device_->allocate_shared<kernels::CornerCount>(1, use)); !done)
        return done;
    for (int mark = 0; mark < 2; ++mark) {
        Result<Event> event = device_->create_event({.timing = true});
        if (!event) return std::move(event).error();
        lane.marks.push_back(std::move(event).value());
    }
    return {};
}

Result<void> CornerFinder::submit(ReadyFrame<std::uint8_t> frame) {
    Lane& to = lane(submitted_);
    to.frame.emplace(std::move(frame));
    return submit(to.frame->buffer());
}

Result<void> CornerFinder::submit(const Buffer<std::uint8_t>& frame) {
    Lane& to = lane(submitted_);
    to.source = &frame;
    to.copied_before = copied(to);
    if (Result<void> done = to.graph ? Result<void>() : record(to, frame); !done) return done;
    if (Result<void> done = to.stream.record(to.marks[0]); !done) return done;
    if (Result<void> done = launch(to, frame); !done) return done;
    if (Result<void> done = to.stream.record(to.marks[1]); !done) return done;
    ++submitted_;
    return {};
}

Result<void> CornerFinder::record(Lane& to, const Buffer<std::uint8_t>& frame) {
    Result<Capture> capture = to.stream.begin_capture();
    if (!capture) return std::move(capture).error();
    if (Result<void> first = record_first(*capture, to, frame); !first) return first;
    auto rows = capture->launch(kernels::row_corners, Blocks(plane_.height), to.rows, to.columns, to.response, plane_,
                                options_.rule);
    if (!rows) return std::move(rows).error();
    auto list = capture->launch(kernels::join_corners, kernels::row_groups(plane_), to.corners, to.count, to.rows,
                                to.columns, to.response, plane_);
    if (!list) return std::move(list).error();
    Result<Graph> graph = capture->end();
    if (!graph) return std::move(graph).error();
    Result<GraphInstance> instance = graph->instantiate();
    if (!instance) return std::move(instance).error();
    to.graph.emplace(std::move(instance).value());
    to.recorded = frame.state().get();
    return {};
}

// Tiles read pixels at their edges again: from the device's memory, for over a link each read would cost.
Result<void> CornerFinder::record_first(Capture& capture, Lane& to, const Buffer<std::uint8_t>& frame) {
    const kernels::LumaLayout layout = kernels::luma_layout(options_.shape.format, options_.shape.pitch_bytes);
    if (device_->is_cpu() || frame.path() == LaunchPath::stage) {
        Result<Responds> responds = capture.launch(kernels::frame_response, kernels::response_tiles(plane_),
                                                   to.response, plane_, frame, layout);
        if (!responds) return std::move(responds).error();
        to.responds.emplace(*responds);
        return {};
    }
    Result<Copies> copies =
        capture.launch(kernels::copy_luma, kernels::luma_runs(luma_), to.luma, luma_, frame, layout);
    if (!copies) return std::move(copies).error();
    to.copies.emplace(*copies);
    auto responds = capture.launch(kernels::frame_response, kernels::response_tiles(plane_), to.response, plane_,
                                   to.luma, kernels::LumaLayout{0, luma_.pitch, 1});
    if (!responds) return std::move(responds).error();
    return {};
}

// One driver call, and one before it where the frame is another than the lane's last.
Result<void> CornerFinder::launch(Lane& to, const Buffer<std::uint8_t>& frame) {
    if (to.recorded != frame.state().get()) {
        const kernels::LumaLayout layout = kernels::luma_layout(options_.shape.format, options_.shape.pitch_bytes);
        Result<void> taken =
            to.copies ? to.graph->set_arguments(*to.copies, kernels::luma_runs(luma_), to.luma, luma_, frame, layout)
                      : to.graph->set_arguments(*to.responds, kernels::response_tiles(plane_), to.response, plane_,
                                                frame, layout);
        if (!taken) return taken;
        to.recorded = frame.state().get();
    }
    auto launched = to.stream.launch(*to.graph);
    if (!launched) return std::move(launched).error();
    return {};
}

Result<FoundCorners> CornerFinder::corners() {
    Lane& from = lane(finished_);
    kernels::CornerCount count{};
    {
        Result<HostView<const kernels::CornerCount>> view = from.count.read_on_host();
        if (!view) return std::move(view).error();
        count = (*view)[0];
    }
    Result<HostView<const kernels::Corner>> list = from.corners.read_on_host();
    if (!list) return std::move(list).error();
    std::optional<HostView<const std::uint8_t>> frame;
    if (has_host_side(*from.source)) {
        Result<HostView<const std::uint8_t>> view = from.source->read_on_host();
        if (!view) return std::move(view).error();
        frame.emplace(std::move(view).value());
    }
    if (Result<void> taken = take_times(from); !taken) return std::move(taken).error();
    return FoundCorners{std::move(list).value(), count, std::move(frame), copied(from) - from.copied_before};
}

void CornerFinder::finish() {
    lane(finished_).frame.reset();
    ++finished_;
}

void CornerFinder::forget_frames() noexcept {
    for (Lane& lane : lanes_) {
        lane.graph.reset();
        lane.copies.reset();
        lane.responds.reset();
        lane.recorded = nullptr;
    }
}

Result<void> CornerFinder::take_times(Lane& lane) {
    if (Result<void> finished = lane.marks[1].synchronize(); !finished) return finished;
    Result<float> taken = Event::elapsed_ms(lane.marks[0], lane.marks[1]);
    if (!taken) return std::move(taken).error();
    times_.add(static_cast<std::uint64_t>(*taken * 1e6f));
    return {};
}

std::uint64_t CornerFinder::copied(const Lane& lane) noexcept {
    return lane.source->staged_bytes() + lane.corners.staged_bytes() + lane.count.staged_bytes();
}

std::array<CornerFinder::SharedBuffer, 3> CornerFinder::shared_buffers(const BufferBase& frame) const noexcept {
    return {{{"frame", &frame}, {"corners", &lanes_[0].corners}, {"count", &lanes_[0].count}}};
}

}  // namespace isthmus::tools::camera
