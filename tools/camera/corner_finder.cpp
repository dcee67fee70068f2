// Which memory the camera kernels get, and the order of their launches.
#include "corner_finder.hpp"

#include <isthmus/stream.hpp>

#include <utility>

namespace isthmus::tools::camera {
namespace {

// Takes the value, or hands the error on: allocate(into, device.allocate<…>(…)).
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

// The pictures between the kernels stay on the device; what both sides touch is shared, and says how it is used.
Result<void> CornerFinder::allocate() {
    const std::size_t pixels = kernels::size_of(plane_);
    for (Buffer<std::uint8_t>* picture : {&gray_, &smoothed_, &marked_}) {
        if (Result<void> done = keep(*picture, device_->allocate<std::uint8_t>(pixels)); !done) return done;
    }
    if (Result<void> done = keep(gradient_, device_->allocate<kernels::Gradient>(pixels)); !done) return done;
    if (Result<void> done = keep(response_, device_->allocate<std::int32_t>(pixels)); !done) return done;
    if (Result<void> done = keep(rows_, device_->allocate<std::uint32_t>(plane_.height)); !done) return done;
    for (Slot& slot : slots_) {
        if (Result<void> done = allocate_slot(slot); !done) return done;
    }
    return {};
}

Result<void> CornerFinder::allocate_slot(Slot& slot) {
    // The host writes each frame and looks at the places of its corners again; the device reads every pixel once.
    const SharedUse frame_use{.host = Use::reads_and_writes, .device = Use::reads_once, .kind = options_.memory};
    const SharedUse list_use{.host = Use::reads_once, .device = Use::writes_once, .kind = options_.memory};
    if (Result<void> done =
            keep(slot.frame, device_->allocate_shared<std::uint8_t>(options_.shape.size_bytes, frame_use));
        !done)
        return done;
    if (Result<void> done =
            keep(slot.corners, device_->allocate_shared<kernels::Corner>(options_.most_corners, list_use));
        !done)
        return done;
    if (Result<void> done = keep(slot.count, device_->allocate_shared<kernels::CornerCount>(1, list_use)); !done)
        return done;
    for (std::size_t at = 0; at <= stage_count; ++at) {
        Result<Event> event = device_->create_event({.timing = true});
        if (!event) return std::move(event).error();
        slot.marks.push_back(std::move(event).value());
    }
    return {};
}

Result<void> CornerFinder::mark(Slot& slot, std::size_t stage) {
    return device_->stream().record(slot.marks[stage]);
}

Result<void> CornerFinder::submit(std::size_t number) {
    Slot& slot = slots_[number];
    Stream& stream = device_->stream();
    const Extent2 pixels{plane_.width, plane_.height};
    const Blocks rows(plane_.height);
    const kernels::LumaLayout layout = kernels::luma_layout(options_.shape.format, options_.shape.pitch_bytes);
    // Stages in order, each of one or more launches; the first that fails ends it.
    std::optional<Error> failed;
    const auto run = [&](auto&&... launch) {
        if (failed) return;
        auto report = stream.launch(std::forward<decltype(launch)>(launch)...);
        if (!report) failed = std::move(report).error();
    };
    const auto stage_ends = [&](std::size_t stage) {
        if (failed) return;
        if (Result<void> marked = mark(slot, stage); !marked) failed = std::move(marked).error();
    };
    stage_ends(0);
    run(kernels::to_gray, pixels, gray_, plane_, slot.frame, layout);
    stage_ends(1);
    run(kernels::smooth, pixels, smoothed_, gray_, plane_);
    stage_ends(2);
    run(kernels::gradients, pixels, gradient_, smoothed_, plane_);
    run(kernels::corner_response, pixels, response_, gradient_, plane_);
    stage_ends(3);
    run(kernels::mark_corners, pixels, marked_, response_, plane_, options_.rule);
    stage_ends(4);
    run(kernels::count_corners, rows, rows_, marked_, plane_);
    run(kernels::place_corners, Blocks(1), rows_, slot.count, options_.most_corners);
    run(kernels::list_corners, rows, slot.corners, rows_, marked_, response_, plane_);
    stage_ends(5);
    if (failed) return *std::move(failed);
    return {};
}

Result<FoundCorners> CornerFinder::corners(std::size_t number) {
    Slot& slot = slots_[number];
    kernels::CornerCount count{};
    {
        Result<HostView<const kernels::CornerCount>> view = slot.count.read_on_host();
        if (!view) return std::move(view).error();
        count = (*view)[0];
    }
    Result<HostView<const kernels::Corner>> list = slot.corners.read_on_host();
    if (!list) return std::move(list).error();
    if (Result<void> taken = take_times(slot); !taken) return std::move(taken).error();
    return FoundCorners{std::move(list).value(), count};
}

Result<void> CornerFinder::take_times(Slot& slot) {
    if (Result<void> finished = slot.marks.back().synchronize(); !finished) return finished;
    for (std::size_t stage = 0; stage < stage_count; ++stage) {
        Result<float> taken = Event::elapsed_ms(slot.marks[stage], slot.marks[stage + 1]);
        if (!taken) return std::move(taken).error();
        times_[stage].add(static_cast<std::uint64_t>(*taken * 1e6f));
    }
    return {};
}

std::uint64_t CornerFinder::bytes_copied() const noexcept {
    std::uint64_t bytes = 0;
    for (const Slot& slot : slots_)
        bytes += slot.frame.staged_bytes() + slot.corners.staged_bytes() + slot.count.staged_bytes();
    return bytes;
}

std::array<CornerFinder::SharedBuffer, 3> CornerFinder::shared_buffers() const noexcept {
    return {{{"frame", &slots_[0].frame}, {"corners", &slots_[0].corners}, {"count", &slots_[0].count}}};
}

}  // namespace isthmus::tools::camera
