// The order of a run: read a frame, hand it to the device, finish the one before it.
#include "camera_run.hpp"

#include "stop_signal.hpp"

#include <utility>

namespace isthmus::tools::camera {
namespace {

Failure of_files(Error error) {
    return {true, std::move(error)};
}
Failure of_device(Error error) {
    return {false, std::move(error)};
}

}  // namespace

std::optional<Failure> CameraRun::prepare(int stop_descriptor) {
    if (!options_.output.empty()) {
        if (Result<void> good = check_overlay_name(options_.output); !good) return of_files(std::move(good).error());
    }
    Result<std::unique_ptr<ByteSource>> source = open_file(options_.input, stop_descriptor);
    if (!source) return of_files(std::move(source).error());
    summary_.input = (*source)->name();
    Result<std::unique_ptr<FrameReader>> reader = open_frames(std::move(source).value(), options_.reading);
    if (!reader) return of_files(std::move(reader).error());
    reader_ = std::move(reader).value();
    const FrameShape& shape = reader_->shape();
    summary_.shape = shape;
    if (!options_.output.empty()) {
        Result<std::unique_ptr<OverlayWriter>> overlay =
            open_overlay(options_.output, shape.width, shape.height, reader_->rate());
        if (!overlay) return of_files(std::move(overlay).error());
        overlay_ = std::move(overlay).value();
        canvas_.emplace(shape.width, shape.height);
    }
    if (!options_.corners_file.empty()) {
        Result<CornerListWriter> list = CornerListWriter::create(options_.corners_file, shape.width, shape.height);
        if (!list) return of_files(std::move(list).error());
        list_.emplace(std::move(list).value());
    }
    return std::nullopt;
}

std::optional<Failure> CameraRun::go(Device& device) {
    Result<CornerFinder> finder =
        CornerFinder::create(device, {reader_->shape(), options_.rule, options_.most_corners, options_.memory});
    if (!finder) return of_device(std::move(finder).error());
    tracker_.emplace(options_.matching);
    describe(device, *finder);
    const auto begin = std::chrono::steady_clock::now();
    {
        Progress progress(reader_->frames_expected());
        if (std::optional<Failure> failed = frames(*finder, progress)) return failed;
    }
    const auto taken = std::chrono::steady_clock::now() - begin;
    summary_.wall_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
    summary_.signal = StopSignal::received();
    if (summary_.frames == 0 && summary_.signal == 0)
        return of_files(Error(Code::invalid_argument, summary_.input + " holds no frames"));
    summary_.tracks = tracker_->tracks();
    summary_.corners_digest = corners_digest_.text();
    summary_.tracks_digest = tracks_digest_.text();
    summary_.stages = {read_, submit_};
    for (const Samples& stage : finder->device_times()) summary_.stages.push_back(stage);
    summary_.stages.insert(summary_.stages.end(), {wait_, match_});
    if (overlay_) summary_.stages.push_back(draw_);
    if (overlay_ || list_) summary_.stages.push_back(write_);
    return commit();
}

// While the device works on one frame, the CPU finishes the one before it.
std::optional<Failure> CameraRun::frames(CornerFinder& finder, Progress& progress) {
    for (std::uint64_t number = 0;; ++number) {
        const std::size_t slot = number % CornerFinder::slot_count;
        Got got = Got::stopped;
        if (StopSignal::received() == 0) {
            if (std::optional<Failure> failed = read(finder, slot, got)) return failed;
        }
        if (got == Got::all) {
            const StageTimer timer(submit_);
            if (Result<void> submitted = finder.submit(slot); !submitted)
                return of_device(std::move(submitted).error());
            copied_up_[slot] = newly_copied(finder);
        }
        if (number > 0) {
            if (std::optional<Failure> failed = finish(finder, (number - 1) % CornerFinder::slot_count)) return failed;
            progress.show(number);
        }
        if (got != Got::all) return std::nullopt;
    }
}

// Straight from the file or the pipe into memory that the device reads.
std::optional<Failure> CameraRun::read(CornerFinder& finder, std::size_t slot, Got& got) {
    Result<HostView<std::uint8_t>> frame = finder.write_frame(slot);
    if (!frame) return of_device(std::move(frame).error());
    const StageTimer timer(read_);
    Result<Got> read = reader_->read(frame->span());
    if (!read) return StopSignal::received() != 0 ? std::nullopt : std::optional(of_files(std::move(read).error()));
    got = *read;
    return std::nullopt;
}

std::optional<Failure> CameraRun::finish(CornerFinder& finder, std::size_t slot) {
    std::optional<FoundCorners> found;
    {
        const StageTimer timer(wait_);
        Result<FoundCorners> corners = finder.corners(slot);
        if (!corners) return of_device(std::move(corners).error());
        found.emplace(std::move(corners).value());
    }
    Result<HostView<const std::uint8_t>> frame = finder.read_frame(slot);
    if (!frame) return of_device(std::move(frame).error());
    const std::vector<TrackedCorner>* tracked = nullptr;
    {
        const StageTimer timer(match_);
        tracked = &tracker_->follow(reader_->shape(), frame->data(), found->list.span().first(found->count.listed));
    }
    count(*found, *tracked);
    summary_.bytes_copied.add(copied_up_[slot] + newly_copied(finder));
    return write(*tracked, frame->data());
}

std::uint64_t CameraRun::newly_copied(const CornerFinder& finder) {
    const std::uint64_t copied = finder.bytes_copied();
    return copied - std::exchange(copied_before_, copied);
}

void CameraRun::count(const FoundCorners& found, const std::vector<TrackedCorner>& tracked) {
    ++summary_.frames;
    summary_.corners += found.count.listed;
    if (found.count.found > found.count.listed) ++summary_.frames_full;
    corners_digest_.add_corners(found.list.span().first(found.count.listed));
    tracks_digest_.add(found.count.listed);
    for (const TrackedCorner& corner : tracked) {
        if (corner.previous >= 0) ++summary_.matched;
        tracks_digest_.add(corner.track);
        tracks_digest_.add(static_cast<std::uint32_t>(corner.previous));
    }
}

std::optional<Failure> CameraRun::write(const std::vector<TrackedCorner>& corners, const std::uint8_t* frame) {
    if (overlay_) {
        const StageTimer timer(draw_);
        canvas_->show(reader_->shape(), frame);
        draw_corners(*canvas_, corners);
    }
    if (!overlay_ && !list_) return std::nullopt;
    const StageTimer timer(write_);
    if (overlay_) {
        if (Result<void> written = overlay_->write(*canvas_); !written) return of_files(std::move(written).error());
    }
    if (list_) {
        if (Result<void> written = list_->write(corners); !written) return of_files(std::move(written).error());
    }
    return std::nullopt;
}

std::optional<Failure> CameraRun::commit() {
    if (overlay_) {
        Result<std::vector<std::string>> files = overlay_->commit();
        if (!files) return of_files(std::move(files).error());
        summary_.files = *std::move(files);
    }
    if (list_) {
        if (Result<void> done = list_->commit(summary_.corners_digest, summary_.tracks_digest); !done)
            return of_files(std::move(done).error());
        summary_.files.push_back(options_.corners_file);
    }
    return std::nullopt;
}

void CameraRun::describe(Device& device, const CornerFinder& finder) {
    summary_.device = device.name();
    summary_.model = name(device.capabilities().model);
    for (const CornerFinder::SharedBuffer& shared : finder.shared_buffers()) {
        const BufferBase& buffer = *shared.buffer;
        summary_.buffers.push_back({std::string(shared.name), std::string(name(buffer.kind())),
                                    std::string(name(buffer.host_kind())), std::string(name(buffer.path())),
                                    std::string(buffer.explain())});
    }
}

}  // namespace isthmus::tools::camera
