// SPDX-License-Identifier: Apache-2.0
// Both ends of a shared ring of frames, in two processes with a channel between them.
#pragma once

#include "scenario.hpp"
#include "two_processes.hpp"

#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
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

// Forks the process of the other end before a runtime is opened, and plays both. Theirs: void(Device&, Channel). Ours:
// void(FileDescriptor). End, which makes the other process end: void(pid_t).
template <class Theirs, class Ours, class End>
void with_another_process(Theirs theirs, Ours ours, End end) {
    ChannelPair pair = create_channel_pair().value();
    const pid_t child = ::fork();
    if (child == 0) {
        pair.ours.close();
        ::alarm(60);
        try {
            Runtime runtime = Runtime::open({}).value();
            theirs(runtime.default_device(), opened(std::move(pair.childs), ChannelSide::receiving));
        } catch (const std::exception& thrown) {
            std::fprintf(stderr, "the other end of the ring: %s\n", thrown.what());
        }
        ::_exit(0);
    }
    pair.childs.close();
    ours(std::move(pair.ours));
    end(child);
    int status = 0;
    ::waitpid(child, &status, 0);
}

}  // namespace conformance
