// SPDX-License-Identifier: Apache-2.0
// The command's exit codes; docs/command.md documents them.
#pragma once

namespace isthmus::tools {

// A run that SIGHUP, SIGINT or SIGTERM ended exits with 128 + signal (129, 130, 143).
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;     // a check found a problem, or the work failed although the request was valid
inline constexpr int exit_bad_usage = 2;  // unusable options, input or output
inline constexpr int exit_cannot = 3;     // this machine, its driver or this build cannot do it

}  // namespace isthmus::tools
