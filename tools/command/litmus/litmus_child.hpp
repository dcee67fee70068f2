// SPDX-License-Identifier: Apache-2.0
// Runs trials in a child process with a deadline: a hang or a crash becomes a part of the report.
#pragma once

#include "report.hpp"

#include <chrono>

namespace isthmus::tools {
struct CommandContext;
}

namespace isthmus::tools::litmus {

// Trials on the device that the context names, else on the default one. The process must have one thread and no open
// CUDA. Where no trial is possible, Report::cannot says why. Throws Failure where no child process can be started.
Report run_in_child(const CommandContext& context, const Request& request, std::chrono::milliseconds deadline);

}  // namespace isthmus::tools::litmus
