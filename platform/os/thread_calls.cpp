// SPDX-License-Identifier: Apache-2.0
// ThreadCalls::real(): the system's own calls, each for the calling thread.
#include <platform/thread_calls.hpp>

#include "fact_parsers.hpp"
#include "text_file.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace isthmus::platform::os {
namespace {

static_assert(policy_fifo == SCHED_FIFO);

int call_sched_getattr(SchedulingAttributes* attributes) {
    return static_cast<int>(::syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0));
}
int call_sched_setattr(const SchedulingAttributes* attributes) {
    return static_cast<int>(::syscall(SYS_sched_setattr, 0, attributes, 0));
}
// cpu_set_t has the layout of CpuMask on machines with the low byte first, and its functions take every size.
int call_sched_getaffinity(CpuMask* cpus) {
    return ::sched_getaffinity(0, sizeof *cpus, reinterpret_cast<cpu_set_t*>(cpus->words.data()));
}
int call_sched_setaffinity(const CpuMask* cpus) {
    return ::sched_setaffinity(0, sizeof *cpus, reinterpret_cast<const cpu_set_t*>(cpus->words.data()));
}
int call_set_timer_slack(std::uint64_t ns, std::uint64_t* before) {
    const int now = before != nullptr ? ::prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL) : 0;
    if (now < 0) return -1;
    if (before != nullptr) *before = static_cast<std::uint64_t>(now);
    return ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(ns), 0UL, 0UL, 0UL);
}
int call_getrusage(rusage* usage) {
    return ::getrusage(RUSAGE_THREAD, usage);
}
int call_getrlimit(int resource, std::uint64_t* now) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return -1;
    *now = limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : limit.rlim_cur;
    return 0;
}
int call_stack_bounds(void** lowest, std::size_t* bytes) {
    pthread_attr_t attributes;
    errno = ::pthread_getattr_np(::pthread_self(), &attributes);
    if (errno != 0) return -1;
    ::pthread_attr_getstack(&attributes, lowest, bytes);
    ::pthread_attr_destroy(&attributes);
    return 0;
}
int call_thread_id() {
    return static_cast<int>(::gettid());
}

}  // namespace

const ThreadCalls& ThreadCalls::real() noexcept {
    static constexpr ThreadCalls calls = {::mlockall,
                                          ::mlock,
                                          ::munlock,
                                          call_sched_getattr,
                                          call_sched_setattr,
                                          call_sched_getaffinity,
                                          call_sched_setaffinity,
                                          call_set_timer_slack,
                                          call_getrusage,
                                          call_getrlimit,
                                          call_stack_bounds,
                                          call_thread_id};
    return calls;
}

std::vector<int> parse_cpu_list(std::string_view text) {
    return parse_id_list(text);
}

CpuLists cpu_lists() {
    return {parse_id_list(read_text("/sys/devices/system/cpu/online")),
            parse_id_list(read_text("/sys/devices/system/cpu/isolated"))};
}

}  // namespace isthmus::platform::os
