// Summary: what a run did, as numbers, as a table for people and as JSON.
#pragma once

#include "frame_shape.hpp"
#include "stage_times.hpp"

#include <cstdint>
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

struct Summary {
    std::string machine;  // empty: this one
    std::string device;
    std::string model;
    std::string input;
    FrameShape shape{};
    std::vector<BufferLine> buffers{};

    std::uint64_t frames = 0;
    std::uint64_t corners = 0;      // listed, in all frames
    std::uint64_t frames_full = 0;  // with more corners than the list holds
    std::uint64_t matched = 0;      // corners that the frame before had too
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
