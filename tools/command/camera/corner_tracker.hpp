// SPDX-License-Identifier: Apache-2.0
// CornerTracker: finds, for each corner of this frame, the same corner in the frame before, on the CPU, in integers.
#pragma once

#include "frame_shape.hpp"

#include <isthmus/kernels/camera.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace isthmus::tools::camera {

using kernels::Corner;

// The 8 × 8 pixels around a corner, by which it is matched.
inline constexpr std::uint32_t patch_side = 8;
inline constexpr std::uint32_t patch_margin = patch_side / 2;  // smallest distance of a corner from an edge, in pixels
using Patch = std::array<std::uint8_t, std::size_t{patch_side} * patch_side>;
Patch patch_around(const FrameShape& shape, const std::uint8_t* frame, const Corner& corner) noexcept;
std::uint32_t difference(const Patch& a, const Patch& b) noexcept;  // sum of absolute differences

struct MatchRule {
    std::uint32_t radius = 16;            // pixels that a corner may move between two frames, on each axis
    std::uint32_t max_difference = 1024;  // largest difference between two patches of the same corner
};

struct MatchItem {
    Corner corner{};
    Patch patch{};
};
// Returns, for each item of `now`, the index of the same corner in `before`, or -1. No index occurs twice. Both inputs
// are ordered by row, then column. Of equally good candidates the first wins, so that the result is the same on every
// machine.
std::vector<std::int32_t> match(std::span<const MatchItem> before, std::span<const MatchItem> now,
                                const MatchRule& rule);

struct Position {
    std::uint16_t x = 0;
    std::uint16_t y = 0;
};
struct TrackedCorner {
    MatchItem item{};
    std::uint32_t track = 0;           // numbered from 0 in order of appearance
    std::int32_t previous = -1;        // index in the frame before; -1: seen for the first time
    std::array<Position, 16> trail{};  // earlier positions, the latest first
    std::uint32_t trail_length = 0;
};

class CornerTracker {
public:
    explicit CornerTracker(const MatchRule& rule) : rule_(rule) {}

    // `corners` are in the order of match(), all at least patch_margin from the edges. The result is valid until the
    // next call.
    const std::vector<TrackedCorner>& follow(const FrameShape& shape, const std::uint8_t* frame,
                                             std::span<const Corner> corners);
    std::uint32_t tracks() const noexcept { return next_track_; }  // tracks begun so far

private:
    MatchRule rule_;
    std::vector<TrackedCorner> corners_;
    std::vector<MatchItem> items_;  // of corners_
    std::uint32_t next_track_ = 0;
};

}  // namespace isthmus::tools::camera
