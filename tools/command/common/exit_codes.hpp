// SPDX-License-Identifier: Apache-2.0
// What the command's exit codes mean; docs/command.md says the same.
#pragma once

namespace isthmus::tools {

// Beside them 128 + signal (129, 130, 143) for a run that SIGHUP, SIGINT or SIGTERM ended.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;     // a check found a problem, or what was asked rightly failed on the way
inline constexpr int exit_bad_usage = 2;  // options, input or output that cannot be used
inline constexpr int exit_cannot = 3;     // this machine, its driver or this build cannot do it

}  // namespace isthmus::tools
