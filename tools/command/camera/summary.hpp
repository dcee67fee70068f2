// SPDX-License-Identifier: Apache-2.0
// Summary: what a run did, as numbers, as a table for people and as JSON.
#pragma once

#include "frame_reader.hpp"
#include "stage_times.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::camera {

// A buffer that both sides use: how it travels, and why.
struct BufferLine {
    std::string name;
    std::string kind;
    std::string host_kind;
    std::string path;
    std::string reason;
};

// Where the work was done.
struct RanOn {
    std::string number;  // as --device takes it
    std::string device;
    std::string model;
    bool simulated = false;
    std::string machine;  // --machine; empty: this one, or one that the environment plays
};
std::string as_text(const RanOn& where);  // a line; on simulated machines another one, about times

struct Summary {
    RanOn where{};
    std::string input;
    FrameShape shape{};
    std::optional<PictureFacts> picture{};  // what the frames were made of, where that was pictures
    std::vector<BufferLine> buffers{};

    std::uint64_t frames = 0;
    std::uint64_t corners = 0;      // listed, in all frames
    std::uint64_t frames_full = 0;  // with more corners than the list holds
    std::uint64_t matched = 0;      // corners that continue a track of the frame before; every other one begins one
    std::uint64_t tracks = 0;
    std::string corners_digest;
    std::string tracks_digest;

    std::vector<Samples> stages{};           // nanoseconds
    Samples bytes_copied{"copied", "", {}};  // between host and device sides
    std::uint64_t wall_ns = 0;
    std::vector<std::string> files{};  // written
    int signal = 0;                    // that ended the run; 0: the input did
};

std::string as_text(const Summary& summary);
std::string as_json(const Summary& summary);  // one document, with a newline

}  // namespace isthmus::tools::camera
