// SPDX-License-Identifier: Apache-2.0
// Runs something risky in a child process with a deadline: a driver that crashes or hangs there harms nobody.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace isthmus::tools {

enum class ProbeEnd { finished, crashed, hung, failed };  // failed: there was no child to run it in

struct ProbeOutcome {
    ProbeEnd end = ProbeEnd::failed;
    int signal = 0;    // of a crash
    std::string text;  // what the probe returned; with failed: why
};

// `probe` runs in a fork of this process, which must have one thread and no open CUDA. A child that outlives the
// deadline is killed, and so is one whose parent ends before, in whatever way: the thread that calls this has to live
// as long as the call.
ProbeOutcome run_probe(const std::function<std::string()>& probe, std::chrono::milliseconds deadline);

// … that says what it found as it goes, so that what was said before a crash or a hang is kept in ProbeOutcome::text.
using Say = std::function<void(const std::string& text)>;
ProbeOutcome run_saying_probe(const std::function<void(const Say& say)>& probe, std::chrono::milliseconds deadline);

}  // namespace isthmus::tools
