// SPDX-License-Identifier: Apache-2.0
// Runs code that may crash or hang, such as driver calls, in a child process with a deadline.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace isthmus::tools {

enum class ProbeEnd { finished, crashed, hung, failed };  // failed: no child process could be started

struct ProbeOutcome {
    ProbeEnd end = ProbeEnd::failed;
    int signal = 0;    // the signal of a crash
    std::string text;  // the text from the probe; with failed: the reason
};

// Runs `probe` in a fork of this process, which must have one thread and no open CUDA. A child is killed when it
// exceeds the deadline, and when the calling thread ends, for whatever reason; that thread must live as long as the
// call.
ProbeOutcome run_probe(const std::function<std::string()>& probe, std::chrono::milliseconds deadline);

// The same for a probe that reports its results one by one: what it reported before a crash or a hang is kept in
// ProbeOutcome::text. `hear` gets the text in this process as it arrives, in pieces that end anywhere; empty: nobody
// listens.
using Say = std::function<void(const std::string& text)>;
ProbeOutcome run_saying_probe(const std::function<void(const Say& say)>& probe, std::chrono::milliseconds deadline,
                              const std::function<void(std::string_view piece)>& hear = {});

}  // namespace isthmus::tools
