// SPDX-License-Identifier: Apache-2.0
// The names of the system calls that a loop or a driver might make.
#pragma once

#include <sys/syscall.h>

#include <string>

namespace conformance {

inline std::string system_call_name(long number) {
    switch (number) {
#define CONFORMANCE_NAMED(call) \
    case SYS_##call: return #call;
        CONFORMANCE_NAMED(brk)
        CONFORMANCE_NAMED(clock_gettime)
        CONFORMANCE_NAMED(clock_nanosleep)
        CONFORMANCE_NAMED(clone)
        CONFORMANCE_NAMED(clone3)
        CONFORMANCE_NAMED(close)
        CONFORMANCE_NAMED(exit)
        CONFORMANCE_NAMED(exit_group)
        CONFORMANCE_NAMED(fcntl)
        CONFORMANCE_NAMED(futex)
        CONFORMANCE_NAMED(getpid)
        CONFORMANCE_NAMED(getrandom)
        CONFORMANCE_NAMED(getrusage)
        CONFORMANCE_NAMED(gettid)
        CONFORMANCE_NAMED(ioctl)
        CONFORMANCE_NAMED(madvise)
        CONFORMANCE_NAMED(membarrier)
        CONFORMANCE_NAMED(mlock)
        CONFORMANCE_NAMED(mmap)
        CONFORMANCE_NAMED(mprotect)
        CONFORMANCE_NAMED(mremap)
        CONFORMANCE_NAMED(munmap)
        CONFORMANCE_NAMED(nanosleep)
        CONFORMANCE_NAMED(openat)
        CONFORMANCE_NAMED(ppoll)
        CONFORMANCE_NAMED(prctl)
        CONFORMANCE_NAMED(read)
        CONFORMANCE_NAMED(recvfrom)
        CONFORMANCE_NAMED(recvmsg)
        CONFORMANCE_NAMED(rt_sigaction)
        CONFORMANCE_NAMED(rt_sigprocmask)
        CONFORMANCE_NAMED(rt_sigreturn)
        CONFORMANCE_NAMED(sched_yield)
        CONFORMANCE_NAMED(sendmsg)
        CONFORMANCE_NAMED(sendto)
        CONFORMANCE_NAMED(tgkill)
        CONFORMANCE_NAMED(write)
        CONFORMANCE_NAMED(writev)
#ifdef SYS_poll
        CONFORMANCE_NAMED(poll)
#endif
#ifdef SYS_open
        CONFORMANCE_NAMED(open)
#endif
#undef CONFORMANCE_NAMED
        default: return "system call " + std::to_string(number);
    }
}

}  // namespace conformance
