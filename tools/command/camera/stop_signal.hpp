// SPDX-License-Identifier: Apache-2.0
// StopSignal: SIGHUP, SIGINT and SIGTERM as something that a loop can ask about and that poll() can wait for.
#pragma once

namespace isthmus::tools::camera {

// While it lives, SIGHUP, SIGINT and SIGTERM are caught and SIGPIPE is ignored, so that a closed pipe is an error of
// write(2). One at a time in a process: signal handlers are the process's.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    // The signal that asked to stop; 0: none so far.
    static int received() noexcept;
    // Makes the descriptor readable, as a signal does, without one.
    static void end_reading() noexcept;
    // Becomes readable when a signal came; -1 where no pipe could be had.
    int descriptor() const noexcept { return pipe_[0]; }

private:
    int pipe_[2] = {-1, -1};
};

}  // namespace isthmus::tools::camera
