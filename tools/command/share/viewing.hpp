// SPDX-License-Identifier: Apache-2.0
// Viewing: connects, opens the ring, and takes frames until the ring ends.
#pragma once

#include "camera/corner_finder.hpp"
#include "camera/digest.hpp"
#include "checksums.hpp"

#include <isthmus/ipc/shared_frame_ring.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace isthmus::tools::share {

struct ViewOptions {
    std::string at;
    std::uint64_t frames = 0;  // 0: until the ring ends
    double connect_s = 5;      // how long to wait for a producer, in seconds
    double patience_s = 30;    // longest time without a frame, in seconds
    double work_ms = 0;        // how long each frame is held, in milliseconds, to simulate slow work
    WaitPolicy waiting = WaitPolicy::adaptive;
    bool corners = false;
    bool checksums = false;
    // Asked between attempts to connect; true ends them. Empty: signals alone end them.
    std::function<bool()> hopeless{};
    std::int64_t producer = 0;  // the process whose frames are wanted; 0: any
};

struct Viewed {
    explicit Viewed(bool keep) : checksums(keep) {}
    camera::FrameShape shape{};
    std::string kind{}, path{}, reason{}, policy{};
    std::uint64_t frames = 0;     // complete ones
    std::uint64_t missed = 0;     // overwritten before they were taken
    std::uint64_t overtaken = 0;  // overwritten while they were read
    std::chrono::nanoseconds wall{0};
    Checksums checksums;
    std::uint64_t corners = 0;
    camera::Digest corners_digest{};
    std::string received{};  // of frames of another machine: share::received_text()
    std::string end{};       // the reason for the end
};

// Runs until the ring ends, `frames` were taken, or a signal arrives. Errors: those of the channel, the ring and the
// device; timed_out; peer_lost: a second call adds to what the first viewed, and the shape of the frames has changed.
Result<void> view_frames(Device& device, const ViewOptions& options, Viewed& viewed);

}  // namespace isthmus::tools::share
