// SPDX-License-Identifier: Apache-2.0
// The whole of what two processes do over a channel, once: meeting, shared memory with its descriptors, an answer, the
// end. Each side as one function, for tests that disturb the other.
#pragma once

#include <isthmus/ipc/channel.hpp>

#include <platform/process_calls.hpp>

#include <functional>
#include <string>

// How they meet: in a directory, or over an end of a pair.
struct Meeting {
    std::string directory;
    isthmus::FileDescriptor end;
    std::function<bool()> other_is_over;  // it will not come any more
    std::chrono::nanoseconds step_timeout = std::chrono::seconds(5);
};

// To the other's orderly end, or to the first error.
isthmus::Result<void> play_offering(Meeting meeting, const isthmus::platform::os::ProcessCalls& calls);
isthmus::Result<void> play_receiving(Meeting meeting, const isthmus::platform::os::ProcessCalls& calls);
