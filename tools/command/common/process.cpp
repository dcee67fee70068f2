// SPDX-License-Identifier: Apache-2.0
// System calls that concern the whole process.
#include "process.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace isthmus::tools {

void prepare_process() noexcept {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);  // a parent may have ignored it; then no child could be waited for
    for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
        if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
        // open() returns the lowest free descriptor, which is this one. O_PATH: reading and writing fail, and /dev is
        // not needed.
        const int opened = ::open("/", O_PATH | O_DIRECTORY);
        if (opened < 0) ::_exit(1);  // no descriptor is available at all
    }
}

void end_with_parent(pid_t parent) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended between fork() and prctl(); then no signal arrives any more.
    if (::getppid() != parent) ::_exit(1);
}

}  // namespace isthmus::tools
