// SPDX-License-Identifier: Apache-2.0
// Counts the system calls of a thread of another process from outside, by ptrace: nothing runs inside that process, so
// real drivers can be watched, too.
#pragma once

#include "loop_report.hpp"

#include <chrono>
#include <string>

namespace conformance {

// Why no process can be traced here; empty: it can.
std::string why_untraced();

// The thread of a loop calls these: waits until it is traced, and marks the part that counts.
void wait_for_tracer(LoopReport& report);
void mark_traced(bool begins);

// Traces the thread that report.thread names until its second mark or its end, and counts its calls in the report. A
// call's origin is the first return address on the stack that lies in the library, the driver or the program: stale
// words of the stack can mislead it. Empty, or why nothing was traced.
std::string trace(LoopReport& report, std::chrono::seconds longest);

}  // namespace conformance
