// SPDX-License-Identifier: Apache-2.0
// The driver's log: which calls failed, and what the simulator says beside them. The newest lines are kept. Callbacks
// of the program get each line at the end of the call that made it, or of a later one, on that call's thread and
// without locks of the driver.
#pragma once

#include <atomic>

namespace isthmus::sim {

enum class CallId : int;

// Both may be called under any lock; inside a signal handler a line may be left out.
void log_answer(CallId id, int code) noexcept;
void log_line(const char* text) noexcept;

// Whether callbacks have lines to get.
extern std::atomic<bool> log_is_waiting;
void deliver_log();

}  // namespace isthmus::sim
