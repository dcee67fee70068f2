// SPDX-License-Identifier: Apache-2.0
// Runs another program with a deadline and keeps what it prints.
#pragma once

#include "probe.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace isthmus::tools {

struct ProgramOutcome {
    ProbeEnd end = ProbeEnd::failed;
    int status = 0;    // the exit status, with `finished`
    int signal = 0;    // with `crashed`
    std::string text;  // standard output and standard error together, at most 64 MiB; with `failed`: the reason
};

// The program gets no input. It has ended when its first process has. It and all that it starts in its process group
// are killed when the deadline has passed, and when this process ends, for whatever reason. The process must have one
// thread.
ProgramOutcome run_program(const std::vector<std::string>& words, std::chrono::milliseconds deadline);

}  // namespace isthmus::tools
