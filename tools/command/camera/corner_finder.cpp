// SPDX-License-Identifier: Apache-2.0
// Chooses the memory of the camera kernels, and the order of their launches.
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

}  // namespace

CornerFinder::CornerFinder(Device& device, const FinderOptions& options)
    : device_(&device),
      options_(options),
      plane_{options.shape.width, options.shape.height, options.shape.width},
      times_{{"gray", "device"},
             {"smooth", "device"},
             {"response", "device"},
             {"suppress", "device"},
             {"list", "device"}} {}

Result<CornerFinder> CornerFinder::create(Device& device, const FinderOptions& options) {
    CornerFinder finder(device, options);
    if (Result<void> allocated = finder.allocate(); !allocated) return std::move(allocated).error();
    return finder;
}

Result<void> CornerFinder::allocate() {
    // The host writes each frame and reads the pixels around its corners; the device reads every pixel once.
    const SharedUse use{.host = Use::reads_and_writes, .device = Use::reads_once, .kind = options_.memory};
    if (options_.own_frames) {
        Result<Frames> frames =
            Frames::create(*device_, options_.shape.size_bytes, {.frames = options_.in_flight + 1, .use = use});
        if (!frames) return std::move(frames).error();
        frames_.emplace(std::move(frames).value());
    }
    lanes_.reserve(options_.in_flight);
    for (std::uint32_t at = 0; at < options_.in_flight; ++at) {
        Result<Stream> stream = at == 0 ? Result<Stream>(device_->stream()) : device_->create_stream();
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
    for (Buffer<std::uint8_t>* picture : {&lane.gray, &lane.smoothed, &lane.marked}) {
        if (Result<void> done = keep(*picture, device_->allocate<std::uint8_t>(pixels)); !done) return done;
    }
    if (Result<void> done = keep(lane.gradient, device_->allocate<kernels::Gradient>(pixels)); !done) return done;
    if (Result<void> done = keep(lane.response, device_->allocate<std::int32_t>(pixels)); !done) return done;
    return keep(lane.rows, device_->allocate<std::uint32_t>(plane_.height));
}

Result<void> CornerFinder::allocate_shared(Lane& lane) {
    const SharedUse use{.host = Use::reads_once, .device = Use::writes_once, .kind = options_.memory};
    if (Result<void> done = keep(lane.corners, device_->allocate_shared<kernels::Corner>(options_.max_corners, use));
        !done)
        return done;
    if (Result<void> done = keep(lane.count, device_->allocate_shared<kernels::CornerCount>(1, use)); !done)
        return done;
    for (std::size_t at = 0; at <= stage_count; ++at) {
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
    const Extent2 pixels{plane_.width, plane_.height};
    const Blocks rows(plane_.height);
    const kernels::LumaLayout layout = kernels::luma_layout(options_.shape.format, options_.shape.pitch_bytes);
    to.source = &frame;
    to.copied_before = copied(to);
    // The stages run in order, each with one or more launches; the first failure ends the sequence.
    std::optional<Error> failed;
    const auto run = [&](auto&&... launch) {
        if (failed) return;
        auto report = to.stream.launch(std::forward<decltype(launch)>(launch)...);
        if (!report) failed = std::move(report).error();
    };
    const auto stage_ends = [&](std::size_t stage) {
        if (failed) return;
        if (Result<void> marked = to.stream.record(to.marks[stage]); !marked) failed = std::move(marked).error();
    };
    stage_ends(0);
    run(kernels::to_gray, pixels, to.gray, plane_, frame, layout);
    stage_ends(1);
    run(kernels::smooth, pixels, to.smoothed, to.gray, plane_);
    stage_ends(2);
    run(kernels::gradients, pixels, to.gradient, to.smoothed, plane_);
    run(kernels::corner_response, pixels, to.response, to.gradient, plane_);
    stage_ends(3);
    run(kernels::mark_corners, pixels, to.marked, to.response, plane_, options_.rule);
    stage_ends(4);
    run(kernels::count_corners, rows, to.rows, to.marked, plane_);
    run(kernels::place_corners, Blocks(1), to.rows, to.count, options_.max_corners);
    run(kernels::list_corners, rows, to.corners, to.rows, to.marked, to.response, plane_);
    stage_ends(5);
    if (failed) return *std::move(failed);
    ++submitted_;
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
    Result<HostView<const std::uint8_t>> frame = from.source->read_on_host();
    if (!frame) return std::move(frame).error();
    if (Result<void> taken = take_times(from); !taken) return std::move(taken).error();
    return FoundCorners{std::move(list).value(), count, std::move(frame).value(), copied(from) - from.copied_before};
}

void CornerFinder::finish() {
    lane(finished_).frame.reset();
    ++finished_;
}

Result<void> CornerFinder::take_times(Lane& lane) {
    if (Result<void> finished = lane.marks.back().synchronize(); !finished) return finished;
    for (std::size_t stage = 0; stage < stage_count; ++stage) {
        Result<float> taken = Event::elapsed_ms(lane.marks[stage], lane.marks[stage + 1]);
        if (!taken) return std::move(taken).error();
        times_[stage].add(static_cast<std::uint64_t>(*taken * 1e6f));
    }
    return {};
}

std::uint64_t CornerFinder::copied(const Lane& lane) noexcept {
    return lane.source->staged_bytes() + lane.corners.staged_bytes() + lane.count.staged_bytes();
}

std::array<CornerFinder::SharedBuffer, 3> CornerFinder::shared_buffers() const noexcept {
    return {{{"frame", &frames_->buffer(0)}, {"corners", &lanes_[0].corners}, {"count", &lanes_[0].count}}};
}

}  // namespace isthmus::tools::camera
