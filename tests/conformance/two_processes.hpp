// SPDX-License-Identifier: Apache-2.0
// Two processes with a channel between them, both forked before either opens a runtime, as two programs would be; the
// parent never opens one.
#pragma once

#include "scenario.hpp"

#include <isthmus/ipc/channel.hpp>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

namespace conformance {

// Runs the body in a process of its own, which exits with the result of its expectations.
template <class Body>
pid_t process(Body body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
        body();
    } catch (const std::exception& thrown) {
        ADD_FAILURE() << thrown.what();
    }
    close_runtime();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

inline int end_of(pid_t child) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

inline isthmus::Channel opened(isthmus::FileDescriptor socket, isthmus::ChannelSide side) {
    isthmus::ChannelOptions options;
    options.step_timeout = std::chrono::seconds(60);  // a driver may start slowly
    return isthmus::Channel::adopt(std::move(socket), side, options).value();
}

// Runs both; the parent keeps no end of their channel. Returns how the first, the exporter, ended.
template <class Exporter, class Importer>
int play(Exporter exporter, Importer importer) {
    isthmus::ChannelPair pair = isthmus::create_channel_pair().value();
    const pid_t first = process([&] {
        pair.childs.close();
        exporter(opened(std::move(pair.ours), isthmus::ChannelSide::offering));
    });
    const pid_t second = process([&] {
        pair.ours.close();
        importer(opened(std::move(pair.childs), isthmus::ChannelSide::receiving));
    });
    pair.ours.close();
    pair.childs.close();
    const int status = end_of(first);
    EXPECT_EQ(end_of(second), 0) << "the importer";
    return status;
}

}  // namespace conformance
