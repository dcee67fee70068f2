// SPDX-License-Identifier: Apache-2.0
// Connects to a producer and opens its ring: for `isthmus view` and for the GStreamer element isthmussrc.
#pragma once

#include "camera/frame_shape.hpp"

#include <isthmus/device.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/result.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace isthmus::tools::share {

struct MeetingOptions {
    std::string at;  // the directory of the producer's socket
    std::chrono::nanoseconds connect_deadline = std::chrono::seconds(5);
    WaitPolicy waiting = WaitPolicy::adaptive;
    std::function<bool()> stopped{};  // asked between attempts; true ends them. Empty: nothing stops them
    std::int64_t producer = 0;        // its process; 0: any. Another one: in_use
};

struct OpenedRing {
    camera::FrameShape shape;
    SharedFrameReader<std::uint8_t> reader;
};

// The producer is not trusted: descriptor, shape and size are checked against each other. Errors: those of the channel
// and of SharedFrameReader::open(); peer_broke_rules (what came is no ring of frames).
Result<OpenedRing> open_ring(Device& device, const MeetingOptions& options);

}  // namespace isthmus::tools::share
