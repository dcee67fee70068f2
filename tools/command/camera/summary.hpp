// SPDX-License-Identifier: Apache-2.0
// Summary: the results of a run, as numbers, as a table and as JSON.
#pragma once

#include "frame_reader.hpp"
#include "stage_times.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

// A buffer that both sides use: its memory kind, its path to the device, and the reason.
struct BufferLine {
    std::string name;
    std::string kind;
    std::string host_kind;
    std::string path;
    std::string reason;
};

// The device and the machine of the run.
struct RanOn {
    std::string number;  // the value for --device
    std::string device;
    std::string model;
    bool simulated = false;
    std::string machine;  // --machine; empty: this machine, or the one that the environment simulates
};
std::string as_text(const RanOn& where);  // one line; simulated machines add a line about times

struct Summary {
    RanOn where{};
    std::string input;
    FrameShape shape{};
    std::optional<PictureFacts> picture{};  // set where the frames were made from a picture
    std::vector<BufferLine> buffers{};

    std::uint64_t frames = 0;
    std::uint64_t corners = 0;        // listed, in all frames
    std::uint64_t frames_full = 0;    // frames with more corners than the list holds
    std::uint64_t frames_broken = 0;  // that the camera's driver marked as damaged, or did not fill: left out
    std::uint64_t matched = 0;  // corners that continue a track of the frame before; every other corner begins a track
    std::uint64_t tracks = 0;
    std::string corners_digest;
    std::string tracks_digest;

    std::vector<Samples> stages{};           // nanoseconds
    Samples bytes_copied{"copied", "", {}};  // between host and device sides
    std::uint64_t wall_ns = 0;
    std::vector<std::string> files{};  // files written
    int signal = 0;                    // the signal that ended the run; 0: the input ended
};

std::string as_text(const Summary& summary);
std::string as_json(const Summary& summary);  // one document, with a newline

}  // namespace isthmus::tools::camera
