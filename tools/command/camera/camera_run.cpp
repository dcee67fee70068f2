// SPDX-License-Identifier: Apache-2.0
// Order of a run: one thread reads frames; the other submits them to the device and finishes the oldest.
#include "camera_run.hpp"

#include "stop_signal.hpp"

#include <thread>
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
    if (Result<void> good = check_different({options_.output, options_.corners_file}); !good)
        return of_files(std::move(good).error());
    if (std::optional<Failure> failed = open_input(stop_descriptor)) return failed;
    const FrameShape& shape = shape_;
    summary_.shape = shape;
    if (!options_.output.empty()) {
        Result<std::unique_ptr<OverlayWriter>> overlay =
            open_overlay(options_.output, shape.width, shape.height, camera_ ? camera_->rate() : reader_->rate());
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

std::optional<Failure> CameraRun::open_input(int stop_descriptor) {
    stop_descriptor_ = stop_descriptor;
    if (!options_.camera.empty()) {
        Result<std::unique_ptr<VideoDevice>> camera =
            VideoDevice::open(options_.camera, options_.wish, *options_.video);
        if (!camera) return of_files(std::move(camera).error());
        camera_ = std::move(camera).value();
        summary_.input = camera_->name();
        shape_ = camera_->frames().shape;
        return std::nullopt;
    }
    Result<std::unique_ptr<ByteSource>> source = open_file(options_.input, stop_descriptor);
    if (!source) return of_files(std::move(source).error());
    summary_.input = (*source)->name();
    Result<std::unique_ptr<FrameReader>> reader = open_frames(std::move(source).value(), options_.reading);
    if (!reader) return of_files(std::move(reader).error());
    reader_ = std::move(reader).value();
    shape_ = reader_->shape();
    summary_.picture = reader_->picture();
    return std::nullopt;
}

FinderOptions CameraRun::finder_options() const {
    return {shape_, options_.rule, options_.max_corners, options_.memory, options_.in_flight, camera_ == nullptr};
}

std::optional<Failure> CameraRun::run_reader(Device& device) {
    Result<CornerFinder> finder = CornerFinder::create(device, finder_options());
    if (!finder) return of_device(std::move(finder).error());
    describe(*finder, finder->frames().buffer(0));
    Progress progress(reader_->frames_expected());
    std::optional<Failure> failed = frames(*finder, progress);
    summary_.stages = {read_, submit_, finder->device_times(), wait_, match_};
    return failed;
}

std::optional<Failure> CameraRun::run_camera(Device& device) {
    // One more than in flight is what the camera fills; another, so that it never waits.
    const std::uint32_t wanted = options_.in_flight + 2;
    const FinderOptions options = finder_options();
    Result<CameraFrames> frames =
        CameraFrames::create(device, std::move(camera_), wanted, options_.memory, options_.adopt);
    if (!frames) return of_device(std::move(frames).error());
    Result<CornerFinder> finder = CornerFinder::create(device, options);
    if (!finder) return of_device(std::move(finder).error());
    describe(*finder, frames->buffer(0));
    Progress progress(options_.reading.frames);
    std::optional<Failure> failed = camera_frames(*finder, *frames, progress);
    summary_.frames_broken = frames->broken();
    summary_.stages = {read_, submit_, finder->device_times(), wait_, match_};
    return failed;
}

// One thread: the camera works meanwhile. A frame's buffer is the camera's again when its corners are known.
std::optional<Failure> CameraRun::camera_frames(CornerFinder& finder, CameraFrames& frames, Progress& progress) {
    if (Result<void> started = frames.start(); !started) return of_device(std::move(started).error());
    for (bool ended = false;;) {
        if (!ended && !finder.full()) {
            const std::size_t before = finder.in_flight();
            if (std::optional<Failure> failed = submit_of_camera(finder, frames, ended)) return failed;
            if (finder.in_flight() != before) continue;
        }
        if (finder.in_flight() > 0) {
            if (std::optional<Failure> failed = finish(finder)) return failed;
            progress.show(summary_.frames);
            const std::uint32_t index = at_device_.front();
            at_device_.pop_front();
            if (Result<void> lent = frames.give_back(index); !lent) return of_device(std::move(lent).error());
        } else if (ended) {
            return std::nullopt;
        }
    }
}

// Waits for the camera only where no frame is in flight.
std::optional<Failure> CameraRun::submit_of_camera(CornerFinder& finder, CameraFrames& frames, bool& ended) {
    constexpr int longest_wait_ms = 10000;  // cameras of one frame in several seconds exist
    const std::uint64_t begun = summary_.frames + finder.in_flight();
    ended = StopSignal::received() != 0 || (options_.reading.frames != 0 && begun >= options_.reading.frames);
    // The last of few buffers may be in flight: the camera then has none to fill.
    if (ended || finder.in_flight() >= frames.count()) return std::nullopt;
    const auto begin = std::chrono::steady_clock::now();
    const Result<std::optional<std::uint32_t>> next =
        frames.next(stop_descriptor_, finder.in_flight() > 0 ? 0 : longest_wait_ms);
    if (!next) {
        if (next.code() == Code::timed_out && finder.in_flight() > 0) return std::nullopt;
        return of_files(next.error());
    }
    ended = !*next;
    if (ended) return std::nullopt;
    const auto waited = std::chrono::steady_clock::now() - begin;
    read_.add(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count()));
    const StageTimer timer(submit_);
    at_device_.push_back(**next);
    if (Result<void> submitted = finder.submit(frames.buffer(**next)); !submitted)
        return of_device(std::move(submitted).error());
    return std::nullopt;
}

std::optional<Failure> CameraRun::go(Device& device) {
    tracker_.emplace(options_.matching);
    const auto begin = std::chrono::steady_clock::now();
    if (std::optional<Failure> failed = camera_ ? run_camera(device) : run_reader(device)) return failed;
    const auto taken = std::chrono::steady_clock::now() - begin;
    summary_.wall_ns = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
    summary_.signal = StopSignal::received();
    if (summary_.frames == 0 && summary_.signal == 0)
        return of_files(Error(Code::invalid_argument, summary_.input + " holds no frames"));
    summary_.tracks = tracker_->tracks();
    summary_.corners_digest = corners_digest_.text();
    summary_.tracks_digest = tracks_digest_.text();
    if (overlay_) summary_.stages.push_back(draw_);
    if (overlay_ || list_) summary_.stages.push_back(write_);
    return finish_files();
}

// A separate thread reads frames. Meanwhile the device processes submitted frames, and the CPU finishes the oldest.
std::optional<Failure> CameraRun::frames(CornerFinder& finder, Progress& progress) {
    std::thread reader([&] { read_all(finder.frames()); });
    const auto stop_reader = [&] {  // whether it waits for a free frame or for input
        finder.frames().close();
        StopSignal::end_reading();
        reader.join();
    };
    std::optional<Failure> failed;
    try {
        failed = work(finder, progress);
    } catch (...) {
        stop_reader();
        throw;
    }
    if (failed) {
        stop_reader();
        return failed;
    }
    reader.join();
    return std::move(read_failure_);
}

std::optional<Failure> CameraRun::work(CornerFinder& finder, Progress& progress) {
    for (bool ended = false;;) {
        if (!ended && !finder.full()) {
            const std::size_t before = finder.in_flight();
            if (std::optional<Failure> failed = submit(finder, ended)) return failed;
            if (finder.in_flight() != before) continue;
        }
        if (finder.in_flight() > 0) {
            if (std::optional<Failure> failed = finish(finder)) return failed;
            progress.show(summary_.frames);
        } else if (ended) {
            return std::nullopt;
        }
    }
}

// Waits for a frame only where no frame is in flight.
std::optional<Failure> CameraRun::submit(CornerFinder& finder, bool& ended) {
    Result<ReadyFrame<std::uint8_t>> frame =
        finder.frames().next_frame(finder.in_flight() > 0 ? Wait::never() : Wait{});
    if (!frame) {
        ended = frame.code() == Code::ended;
        return std::nullopt;  // timed out: the camera may be slow, so the caller tries again
    }
    const StageTimer timer(submit_);
    if (Result<void> submitted = finder.submit(std::move(frame).value()); !submitted)
        return of_device(std::move(submitted).error());
    return std::nullopt;
}

void CameraRun::read_all(CornerFinder::Frames& frames) {
    while (StopSignal::received() == 0) {
        Result<Got> got = read(frames);
        if (got && *got == Got::all) continue;
        // Neither a signal nor a failure of the other thread (invalid_handle: the ring was closed) is an error of
        // reading.
        if (!got && StopSignal::received() == 0 && got.code() != Code::invalid_handle && !read_failure_)
            read_failure_ = of_files(std::move(got).error());
        break;
    }
    frames.close();
}

// Reads from the file or the pipe directly into memory that the device reads.
Result<Got> CameraRun::read(CornerFinder::Frames& frames) {
    Result<FrameToFill<std::uint8_t>> frame = frames.begin_frame();
    if (!frame && frame.code() == Code::timed_out) return Got::all;  // no free frame yet: the caller tries again
    if (!frame) return std::move(frame).error();
    Result<Got> got = Got::stopped;
    {
        Result<HostView<std::uint8_t>> view = frame->buffer().write_on_host();
        if (!view) {
            read_failure_ = of_device(std::move(view).error());
            return read_failure_->error;
        }
        const StageTimer timer(read_);
        got = reader_->read(view->span());
    }
    if (got && *got == Got::all) frame->publish();
    return got;
}

std::optional<Failure> CameraRun::finish(CornerFinder& finder) {
    {
        std::optional<FoundCorners> found;
        {
            const StageTimer timer(wait_);
            Result<FoundCorners> corners = finder.corners();
            if (!corners) return of_device(std::move(corners).error());
            found.emplace(std::move(corners).value());
        }
        const std::vector<TrackedCorner>* tracked = nullptr;
        {
            const StageTimer timer(match_);
            tracked = &tracker_->follow(shape_, found->frame->data(), found->list.span().first(found->count.listed));
        }
        count(*found, *tracked);
        summary_.bytes_copied.add(found->bytes_copied);
        if (std::optional<Failure> failed = write(*tracked, found->frame->data())) return failed;
    }
    finder.finish();
    return std::nullopt;
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
        canvas_->show(shape_, frame);
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

std::optional<Failure> CameraRun::finish_files() {
    if (overlay_) {
        Result<std::vector<std::string>> names = overlay_->finish(files_);
        if (!names) return of_files(std::move(names).error());
        summary_.files = *std::move(names);
    }
    if (list_) {
        Result<void> done = list_->finish(summary_.corners_digest, summary_.tracks_digest, files_);
        if (!done) return of_files(std::move(done).error());
        summary_.files.push_back(options_.corners_file);
    }
    return std::nullopt;
}

std::optional<Failure> CameraRun::commit() {
    if (Result<void> done = files_.commit(); !done) return of_files(std::move(done).error());
    return std::nullopt;
}

void CameraRun::describe(const CornerFinder& finder, const BufferBase& frame) {
    for (const CornerFinder::SharedBuffer& shared : finder.shared_buffers(frame)) {
        const BufferBase& buffer = *shared.buffer;
        summary_.buffers.push_back({std::string(shared.name), std::string(name(buffer.kind())),
                                    std::string(name(buffer.host_kind())), std::string(name(buffer.path())),
                                    std::string(buffer.explain())});
    }
}

}  // namespace isthmus::tools::camera
