// SPDX-License-Identifier: Apache-2.0
// Watches the system calls of one thread by a seccomp filter: each is counted by whose code makes it, and one that is
// not allowed ends the process before the kernel does it.
#pragma once

#include "loop_report.hpp"

#include <span>
#include <string>

namespace conformance {

struct AllowedCall {
    Origin by;
    long number;
    unsigned long request = 0;  // of an ioctl, which is allowed with this one alone
};

// The exit status of a process whose thread made a call that is not allowed.
inline constexpr int forbidden_call_status = 86;

// Why no thread can be watched here; empty: it can.
std::string why_unwatched();

// Puts the calling thread under the filter, for ever. Its calls pass, at the cost of a signal each; only a new thread
// or process ends it. It must end by a plain `exit` of its own: what the C library does at a thread's end blocks
// signals.
bool filter_this_thread();

// Counts and judges the calls of this thread, which is filtered. `lists`: counts only.
class CallWatch {
public:
    CallWatch(LoopReport& report, std::span<const AllowedCall> allowed, bool lists) noexcept;
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;
};

}  // namespace conformance
