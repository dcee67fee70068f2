// SPDX-License-Identifier: Apache-2.0
#include "traced_calls.hpp"

#include "sanitized.hpp"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace conformance {
namespace {

// No option of prctl: EINVAL.
constexpr unsigned long begin_mark = 0x69737468, end_mark = 0x69737469;

// struct ptrace_syscall_info of Linux 5.3, which C libraries name differently.
constexpr int get_syscall_info = 0x420e;
struct SyscallInfo {
    std::uint8_t op;  // 1: entry
    std::uint8_t pad[3];
    std::uint32_t arch;
    std::uint64_t instruction_pointer;
    std::uint64_t stack_pointer;
    std::uint64_t number;
    std::uint64_t args[6];
};
constexpr std::uint8_t at_entry = 1;

long asked_of(int request, pid_t thread, std::uintptr_t address, void* data) {
    return ::syscall(SYS_ptrace, request, thread, address, data);
}

Origin origin_of(const LoopReport& report, pid_t thread, const SyscallInfo& call) {
    if (const Origin direct = report.code.of(call.instruction_pointer); direct != Origin::system) return direct;
    std::array<std::uintptr_t, 512> words{};
    const iovec here{words.data(), sizeof words};
    const iovec there{reinterpret_cast<void*>(call.stack_pointer), sizeof words};
    const ssize_t bytes = ::process_vm_readv(thread, &here, 1, &there, 1, 0);
    for (std::size_t at = 0; at < words.size() && static_cast<ssize_t>((at + 1) * sizeof words[0]) <= bytes; ++at) {
        if (const Origin origin = report.code.of(words[at]); origin != Origin::system) return origin;
    }
    return Origin::system;
}

// Waits for the thread's next stop. false: it has ended, or `longest` is over.
bool stopped(pid_t thread, int& status, std::chrono::steady_clock::time_point until) {
    while (std::chrono::steady_clock::now() < until) {
        const pid_t found = ::waitpid(thread, &status, __WALL | WNOHANG);
        if (found == thread) return WIFSTOPPED(status);
        if (found < 0 && errno != EINTR) return false;
        if (found == 0) ::sched_yield();
    }
    return false;
}

}  // namespace

std::string why_untraced() {
    if (sanitized) return "sanitizers make system calls of their own";
    const pid_t child = ::fork();
    if (child < 0) return "no process can be forked";
    if (child == 0) {
        for (;;) ::pause();
    }
    const bool seized = asked_of(PTRACE_SEIZE, child, 0, reinterpret_cast<void*>(PTRACE_O_TRACESYSGOOD)) == 0;
    const int error = errno;
    SyscallInfo info{};
    int status = 0;
    bool informed = false;
    if (seized && asked_of(PTRACE_INTERRUPT, child, 0, nullptr) == 0 && ::waitpid(child, &status, __WALL) == child) {
        informed = asked_of(get_syscall_info, child, sizeof info, &info) > 0;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, __WALL);
    if (!seized) return std::string("ptrace is not allowed here: ") + std::strerror(error);
    return informed ? "" : "this kernel does not tell the system call that a thread stopped at (Linux 5.3)";
}

void wait_for_tracer(LoopReport& report) {
    report.thread.store(static_cast<int>(::syscall(SYS_gettid)), std::memory_order_relaxed);
    report.phase.store(LoopReport::warm, std::memory_order_release);  // pairs with the load in trace()
    while (report.phase.load(std::memory_order_acquire) != LoopReport::traced) {
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

void mark_traced(bool begins) {
    (void)::syscall(SYS_prctl, begins ? begin_mark : end_mark, 0, 0, 0, 0);
}

std::string trace(LoopReport& report, std::chrono::seconds longest) {
    const auto until = std::chrono::steady_clock::now() + longest;
    while (report.phase.load(std::memory_order_acquire) != LoopReport::warm) {
        if (report.phase.load(std::memory_order_acquire) == LoopReport::over) return "";  // it never came so far
        if (std::chrono::steady_clock::now() > until) return "the loop did not begin in time";
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    const pid_t thread = report.thread.load(std::memory_order_relaxed);
    if (asked_of(PTRACE_SEIZE, thread, 0, reinterpret_cast<void*>(PTRACE_O_TRACESYSGOOD)) != 0) {
        return std::string("PTRACE_SEIZE: ") + std::strerror(errno);
    }
    (void)asked_of(PTRACE_INTERRUPT, thread, 0, nullptr);
    report.phase.store(LoopReport::traced, std::memory_order_release);  // pairs with the load in wait_for_tracer()
    bool counts = false;
    int status = 0;
    while (stopped(thread, status, until)) {
        long signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            signal = 0;
            SyscallInfo info{};
            if (asked_of(get_syscall_info, thread, sizeof info, &info) > 0 && info.op == at_entry) {
                const bool marks = info.number == SYS_prctl && (info.args[0] == begin_mark || info.args[0] == end_mark);
                if (marks && info.args[0] == end_mark) {
                    (void)asked_of(PTRACE_DETACH, thread, 0, nullptr);
                    return "";
                }
                if (counts && !marks) report.count(static_cast<long>(info.number), origin_of(report, thread, info));
                counts = counts || marks;
            }
        } else if ((status >> 16) == PTRACE_EVENT_STOP) {
            signal = 0;
        }
        (void)asked_of(PTRACE_SYSCALL, thread, 0, reinterpret_cast<void*>(signal));
    }
    return "the loop ended, or did not end in time, before its second mark";
}

}  // namespace conformance
