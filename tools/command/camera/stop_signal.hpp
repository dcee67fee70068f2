// SPDX-License-Identifier: Apache-2.0
// StopSignal: turns SIGHUP, SIGINT and SIGTERM into a flag and a descriptor for poll().
#pragma once

namespace isthmus::tools::camera {

// While the object lives, SIGHUP, SIGINT and SIGTERM are caught and SIGPIPE is ignored, so that write(2) to a closed
// pipe returns an error. One object at a time in a process: signal handlers belong to the process.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    // The signal that arrived; 0: none so far.
    static int received() noexcept;
    // Makes the descriptor readable, as a signal does, but records no signal.
    static void end_reading() noexcept;
    // Becomes readable when a signal arrives; -1 where the pipe could not be created.
    int descriptor() const noexcept { return pipe_[0]; }

private:
    int pipe_[2] = {-1, -1};
};

}  // namespace isthmus::tools::camera
