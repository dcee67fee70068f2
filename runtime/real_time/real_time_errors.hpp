// SPDX-License-Identifier: Apache-2.0
// Error entries: threads prepared for real time, and locked memory.
#pragma once

#include "error_entry.hpp"

namespace isthmus {
inline namespace v0 {
namespace errors {

// clang-format off
inline constexpr auto no_such_priority =
    error_entry("J001", Code::invalid_argument,
                "SCHED_FIFO with priority {priority:number} was asked for",
                "a priority from 1 (low) to 99");
inline constexpr auto no_such_deadline =
    error_entry("J002", Code::invalid_argument,
                "SCHED_DEADLINE with a runtime of {runtime:number} ns, a deadline of {deadline:number} ns and a period of "
                "{period:number} ns was asked for",
                "1024 <= runtime <= deadline <= period");
inline constexpr auto cpu_not_online =
    error_entry("J003", Code::invalid_argument,
                "CPU {cpu:number} was asked for, which is not online (online: {online})",
                "name CPUs that are online; cpus_near() has those near a device");
inline constexpr auto cpu_outside_cpuset =
    error_entry("J004", Code::not_permitted,
                "CPU {cpu:number} was asked for, but the cpuset of this process leaves it out",
                "docker --cpuset-cpus, AllowedCPUs= of the service, or name another CPU");
inline constexpr auto cpus_not_set =
    error_entry("J005", Code::system_error,
                "setting the CPUs of a thread: {reason}",
                "threads of SCHED_DEADLINE change their CPUs before their policy; docker --cpuset-cpus, AllowedCPUs= of the "
                "service");
inline constexpr auto priority_limit_too_small =
    error_entry("J006", Code::not_permitted,
                "SCHED_FIFO with priority {priority:number} was refused: RLIMIT_RTPRIO is {limit:number}, and the process "
                "has no CAP_SYS_NICE",
                "ulimit -r {priority:number} (rtprio in /etc/security/limits.d), LimitRTPRIO={priority:number} of the "
                "service, docker --ulimit rtprio={priority:number} or --cap-add SYS_NICE");
inline constexpr auto priority_refused =
    error_entry("J007", Code::not_permitted,
                "SCHED_FIFO with priority {priority:number} was refused, though RLIMIT_RTPRIO allows it",
                "run outside of a user namespace (a rootless container), or give the process's real-time group time: "
                "cpu.rt_runtime_us");
inline constexpr auto deadline_refused =
    error_entry("J008", Code::not_permitted,
                "SCHED_DEADLINE was refused: it needs CAP_SYS_NICE, and a thread that may run on all CPUs of its cpuset",
                "setcap cap_sys_nice+ep PROGRAM, AmbientCapabilities=CAP_SYS_NICE of the service, docker --cap-add "
                "SYS_NICE; leave cpus empty, or put the process into a cpuset partition of these CPUs");
inline constexpr auto deadline_without_bandwidth =
    error_entry("J009", Code::system_limit,
                "SCHED_DEADLINE with {runtime:number} ns of each {period:number} ns is more than the CPUs have left",
                "ask for less runtime or a longer period, end other SCHED_DEADLINE threads, or raise "
                "kernel.sched_rt_runtime_us");
inline constexpr auto no_such_timer_slack =
    error_entry("J031", Code::invalid_argument,
                "a timer slack of {slack:number} ns was asked for",
                "1 ns, the least, or more; 0 leaves it unchanged");
inline constexpr auto timer_slack_not_set =
    error_entry("J032", Code::system_error,
                "setting the timer slack of a thread: {reason}",
                "leave timer_slack 0, or let the sandbox (seccomp) pass prctl");
// Code: unsupported for ENOSYS, else system_error.
inline constexpr auto policy_not_set =
    error_entry("J010", Code::ok,
                "setting the scheduling of a thread: {reason}",
                "leave the policy unchanged, or let the sandbox (seccomp) pass sched_getattr and sched_setattr");
inline constexpr auto stack_too_small =
    error_entry("J011", Code::system_limit,
                "{bytes:number} bytes of stack were asked for, and this thread has {left:number} bytes left",
                "ulimit -s and LimitSTACK= for the first thread, pthread_attr_setstacksize() for others, or ask for less");
inline constexpr auto stack_not_stated =
    error_entry("J012", Code::system_error,
                "asking for the bounds of a thread's stack: {reason}",
                "set no stack_bytes");
inline constexpr auto lock_all_limited =
    error_entry("J013", Code::system_limit,
                "locking all memory of the process: {reason} (RLIMIT_MEMLOCK is {limit:number} bytes)",
                "ulimit -l unlimited (memlock in /etc/security/limits.d), LimitMEMLOCK=infinity of the service, docker "
                "--ulimit memlock=-1");
inline constexpr auto lock_all_failed =
    error_entry("J014", Code::system_error,
                "locking all memory of the process: {reason}",
                "use less memory, or lock parts of it (LockedMemory)");
inline constexpr auto no_range_to_lock =
    error_entry("J015", Code::invalid_argument,
                "locking {bytes:number} bytes at a null address or beyond the address space, or no bytes at all",
                "name memory that exists");
inline constexpr auto lock_range_limited =
    error_entry("J016", Code::system_limit,
                "locking {bytes:number} bytes: {reason} (RLIMIT_MEMLOCK is {limit:number} bytes)",
                "ulimit -l unlimited (memlock in /etc/security/limits.d), LimitMEMLOCK=infinity of the service, docker "
                "--ulimit memlock=-1");
inline constexpr auto lock_range_failed =
    error_entry("J017", Code::system_error,
                "locking {bytes:number} bytes: {reason}",
                "lock memory that is mapped as a whole");
inline constexpr auto counts_not_stated =
    error_entry("J018", Code::system_error,
                "asking for a thread's page faults and context switches: {reason}",
                "let the sandbox (seccomp) pass getrusage");
inline constexpr auto scope_of_another_thread =
    error_entry("J019", Code::not_permitted,
                "a real-time scope was to be ended on another thread than prepare_thread() was called on",
                "end it on its thread");
inline constexpr auto thread_not_restored =
    error_entry("J020", Code::system_error,
                "restoring the {what} of a thread: {reason}",
                "set it by hand, or end the thread");
inline constexpr auto cpus_not_stated =
    error_entry("J021", Code::unsupported,
                "the system does not state which CPUs are online",
                "mount /sys, or name CPUs by hand");
inline constexpr auto sealed_already =
    error_entry("J022", Code::in_use,
                "a sealed scope was asked for, and {what} has one that is open",
                "end that scope first");
inline constexpr auto seal_of_another_thread =
    error_entry("J023", Code::not_permitted,
                "a sealed scope of a thread was to be ended on another thread",
                "end it on its thread");
inline constexpr auto turns_not_steady =
    error_entry("J024", Code::not_ready,
                "after {turns:number} turns of the rehearsal, a turn still came to what a sealed scope refuses: {call}",
                "make it before the loop, keep it from turn to turn, or prepare more of it (Preparation)");
inline constexpr auto no_such_rehearsal =
    error_entry("J025", Code::invalid_argument,
                "a rehearsal with {quiet:number} quiet turns out of {most:number} was asked for",
                "1 <= quiet_turns <= most_turns");
inline constexpr auto more_events_than_kept =
    error_entry("J026", Code::system_limit,
                "{events:number} events were to be prepared, and a device keeps {most:number}",
                "prepare fewer events, and create those that live long before the loop");
inline constexpr auto nothing_to_prepare =
    error_entry("J027", Code::invalid_argument,
                "memory of {bytes:number} bytes was to be prepared {count:number} times",
                "name a size and a count above 0");
inline constexpr auto memory_not_kept =
    error_entry("J028", Code::system_limit,
                "{count:number} pieces of {bytes:number} bytes were prepared, and {device} did not keep all of them",
                "open the runtime with more RuntimeOptions::cache_bytes (ISTHMUS_CACHE_BYTES), or keep the buffers "
                "themselves for the loop");
inline constexpr auto no_such_watchdog =
    error_entry("J029", Code::invalid_argument,
                "a watchdog was asked for with a limit of {limit:number} ns, or without a callback",
                "a limit of 1000 ns at least, and a callback");
inline constexpr auto watchdog_not_started =
    error_entry("J030", Code::system_error,
                "starting a watchdog's thread: {reason}",
                "raise ulimit -u and the container's limit on processes (docker --pids-limit)");
// clang-format on

}  // namespace errors
}  // namespace v0
}  // namespace isthmus
