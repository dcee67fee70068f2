// SPDX-License-Identifier: Apache-2.0
// CameraRun: the pipeline of `isthmus run`, from input frames to corners, tracks and an overlay. A thread of its own
// reads the frames of files and pipes; a camera writes its own into memory that the device uses.
#pragma once

#include "camera_frames.hpp"
#include "corner_finder.hpp"
#include "corner_list_writer.hpp"
#include "corner_tracker.hpp"
#include "digest.hpp"
#include "frame_reader.hpp"
#include "overlay_writer.hpp"
#include "progress.hpp"
#include "summary.hpp"

#include <isthmus/device.hpp>
#include <isthmus/result.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace isthmus::tools::camera {

struct RunOptions {
    std::string input;   // "-" is standard input
    std::string camera;  // a V4L2 device instead of `input`; empty: none
    CameraWish wish{};
    const VideoCalls* video = &VideoCalls::real();  // for the camera; a test's own
    AdoptDmaBuf adopt = adopt_by_device();
    InputOptions reading{};
    std::string output;        // the overlay; empty: none
    std::string corners_file;  // empty: none
    kernels::CornerRule rule{.threshold = 2000, .radius = 5, .border = 8};
    std::uint32_t max_corners = 4096;
    MatchRule matching{};
    std::optional<MemoryKind> memory{};  // the most frames in flight on the device
    std::uint32_t in_flight = 2;         // frames in flight on the device
};

struct Failure {
    bool of_input_or_output;  // the failure is of the input or an output, not of the device
    Error error;
};

class CameraRun {
public:
    explicit CameraRun(RunOptions options) : options_(std::move(options)) {}

    // Opens input and outputs, so that unusable ones are refused before a device is opened.
    std::optional<Failure> prepare(int stop_descriptor);
    // Processes every frame until the input ends or a signal arrives. Afterwards all files are written, but not yet
    // named.
    std::optional<Failure> go(Device& device);
    const Summary& summary() const noexcept { return summary_; }  // summary().where is not set
    // Gives the files their names; call it when the summary has been printed. Without commit(), or where it fails, no
    // file is left behind.
    std::optional<Failure> commit();

private:
    std::optional<Failure> frames(CornerFinder& finder, Progress& progress);
    std::optional<Failure> open_input(int stop_descriptor);
    std::optional<Failure> camera_frames(CornerFinder& finder, CameraFrames& frames, Progress& progress);
    std::optional<Failure> submit_of_camera(CornerFinder& finder, CameraFrames& frames, bool& ended);
    std::optional<Failure> run_camera(Device& device);
    std::optional<Failure> run_reader(Device& device);
    FinderOptions finder_options() const;
    std::optional<Failure> work(CornerFinder& finder, Progress& progress);
    void read_all(CornerFinder::Frames& frames);
    Result<Got> read(CornerFinder::Frames& frames);
    std::optional<Failure> submit(CornerFinder& finder, bool& ended);
    std::optional<Failure> finish(CornerFinder& finder);
    std::optional<Failure> write(const std::vector<TrackedCorner>& corners, const std::uint8_t* frame);
    std::optional<Failure> finish_files();
    void count(const FoundCorners& found, const std::vector<TrackedCorner>& tracked);
    void describe(const CornerFinder& finder, const BufferBase& frame);

    RunOptions options_;
    std::unique_ptr<FrameReader> reader_;  // nullptr: a camera
    std::unique_ptr<VideoDevice> camera_;  // until its frames are made
    int stop_descriptor_ = -1;
    FrameShape shape_{};
    std::deque<std::uint32_t> at_device_;  // the camera's buffers in flight, the oldest first
    std::optional<Canvas> canvas_;
    std::unique_ptr<OverlayWriter> overlay_;
    std::optional<CornerListWriter> list_;
    OutputFiles files_;
    std::optional<CornerTracker> tracker_;
    Digest corners_digest_;
    Digest tracks_digest_;
    std::optional<Failure> read_failure_;  // set by the reading thread; valid after it has ended
    Samples read_{"read", "CPU"}, submit_{"submit", "CPU"}, wait_{"wait", "CPU"}, match_{"match", "CPU"},
        draw_{"draw", "CPU"}, write_{"write", "CPU"};
    Summary summary_;
};

}  // namespace isthmus::tools::camera
