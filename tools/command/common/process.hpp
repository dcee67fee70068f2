// SPDX-License-Identifier: Apache-2.0
// Prepares the process before anything else runs: standard descriptors, and the signals of failed writes.
#pragma once

#include <sys/types.h>

namespace isthmus::tools {

// Call it first in main(), before a descriptor is opened. Closed descriptors among 0 to 2 are replaced by ones that
// answer EBADF to reading and writing, as closed ones do, so that no pipe or file of this program becomes standard
// input or output. SIGPIPE and SIGXFSZ are ignored from here on: a write fails with EPIPE or EFBIG instead. SIGCHLD has
// its default, so that children can be waited for.
void prepare_process() noexcept;

// Call it first in the child of a fork: the system kills this process when the thread that forked it ends. `parent` is
// the process that forked; if it has ended already, the child exits here.
void end_with_parent(pid_t parent) noexcept;

}  // namespace isthmus::tools
