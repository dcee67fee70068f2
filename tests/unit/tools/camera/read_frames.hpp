// SPDX-License-Identifier: Apache-2.0
// Reads all frames from bytes in memory.
#pragma once

#include "camera/frame_reader.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools::camera {

using Frame = std::vector<std::uint8_t>;

struct ReadFrames {
    FrameShape shape{};
    FrameRate rate{};
    std::vector<Frame> frames{};
};

inline Result<ReadFrames> read_frames(std::string_view bytes, const InputOptions& options = {}) {
    Result<std::unique_ptr<FrameReader>> reader = open_frames(from_memory("input", bytes), options);
    if (!reader) return std::move(reader).error();
    ReadFrames all{(*reader)->shape(), (*reader)->rate()};
    for (;;) {
        Frame frame(all.shape.size_bytes);
        Result<Got> got = (*reader)->read(frame);
        if (!got) return std::move(got).error();
        if (*got != Got::all) return all;
        all.frames.push_back(std::move(frame));
    }
}

inline std::string counted_bytes(std::size_t count, int first = 0) {
    std::string bytes;
    for (std::size_t at = 0; at < count; ++at) bytes.push_back(static_cast<char>(first + static_cast<int>(at)));
    return bytes;
}

}  // namespace isthmus::tools::camera
