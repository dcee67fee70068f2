// SPDX-License-Identifier: Apache-2.0
// A whole exchange of two processes over a channel: connection, shared memory with its descriptors, an answer, the
// close. One function per side, for tests that disturb the other side.
#pragma once

#include <isthmus/ipc/channel.hpp>

#include <platform/process_calls.hpp>

#include <functional>
#include <string>

// How they connect: through a directory, or over an end of a socket pair.
struct Meeting {
    std::string directory;
    isthmus::FileDescriptor end;
    std::function<bool()> other_is_over;  // the other side will not connect any more
    std::chrono::nanoseconds step_timeout = std::chrono::seconds(30);
};

// Until the other side closes in an orderly way, or to the first error.
isthmus::Result<void> play_offering(Meeting meeting, const isthmus::platform::os::ProcessCalls& calls);
isthmus::Result<void> play_receiving(Meeting meeting, const isthmus::platform::os::ProcessCalls& calls);
