// SPDX-License-Identifier: Apache-2.0
// Both ends of a shared ring of frames, in two processes with a channel between them.
#pragma once

#include "scenario.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace conformance {

using SharedRing = SharedFrameRing<std::int32_t>;
using SharedReader = SharedFrameReader<std::int32_t>;

inline SharedRing ring_for(Device& device, std::size_t items, WaitPolicy waiting,
                           std::chrono::seconds reader_deadline) {
    SharedRingOptions options;
    options.policy = SlowReaderPolicy::wait;
    options.reader_deadline = reader_deadline;
    options.waiting = waiting;
    return SharedRing::create(device, items, options).value();
}
inline void give(SharedRing& ring, Channel channel) {
    const SharedRingDescriptor descriptor = ring.admit().value();
    channel.send(1, descriptor.bytes(), descriptor.fds()).value();
    channel.wait_received().value();
}
inline SharedReader taken(Device& device, Channel channel, WaitPolicy waiting) {
    ChannelMessage message = channel.receive().value();
    SharedReaderOptions options;
    options.waiting = waiting;
    return SharedReader::open(device, SharedRingDescriptor::received(message.bytes, std::move(message.fds)).value(),
                              options)
        .value();
}

}  // namespace conformance
