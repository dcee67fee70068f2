// SPDX-License-Identifier: Apache-2.0
// The state of the process for cuCheckpointProcess*.
#pragma once

#include "exports.hpp"

namespace isthmus::sim {

enum class ProcessState { running = 0, locked = 1, checkpointed = 2 };  // numbers of CUprocessState

enum class CheckpointStep { lock, checkpoint, restore, unlock };

// Documented: each step begins in one state and leads to one other. 401: the process is in another state.
struct CheckpointAnswer {
    Result code;
    ProcessState next;
};
CheckpointAnswer step(ProcessState now, CheckpointStep step) noexcept;

// While the process is locked, calls that change something wait here, except those of cuCheckpointProcess*.
void wait_while_locked(CallId id);

}  // namespace isthmus::sim
