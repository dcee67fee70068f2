// SPDX-License-Identifier: Apache-2.0
// CornerListWriter: corners and tracks of every frame as one JSON document, written during the run.
#pragma once

#include "atomic_file.hpp"
#include "corner_tracker.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace isthmus::tools::camera {

// {"width": …, "height": …, "columns": ["x", "y", "score", "track", "previous"],
//  "frames": [{"frame": 0, "corners": [[x, y, score, track, previous], …]}, …], "corners_digest": "…",
//  "tracks_digest": "…"}. `previous` is the corner's index in the frame before; -1: the corner is new.
class CornerListWriter {
public:
    static Result<CornerListWriter> create(const std::string& path, std::uint32_t width, std::uint32_t height);
    Result<void> write(std::span<const TrackedCorner> corners);
    // Ends the document and adds the file to those that the run commits.
    Result<void> finish(const std::string& corners_digest, const std::string& tracks_digest, OutputFiles& files);

private:
    explicit CornerListWriter(AtomicFile file) : file_(std::move(file)) {}
    AtomicFile file_;
    std::uint64_t frame_ = 0;
    std::string text_;
};

}  // namespace isthmus::tools::camera
