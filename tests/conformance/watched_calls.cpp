// SPDX-License-Identifier: Apache-2.0
// The filter sends SIGSYS for every call but those of one instruction, which the handler uses to make the call for the
// thread. The handler unwinds the stack to learn whose code made the call.
#include "watched_calls.hpp"

#include "sanitized.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

extern "C" {
// Makes the system call `number` and returns what the kernel returns: no errno.
long conformance_gate(long number, long a, long b, long c, long d, long e, long f);
extern const char conformance_gate_end[];
}
#if defined(__x86_64__)
#define CONFORMANCE_WATCHES 1
__asm__(R"(
    .text
    .globl conformance_gate
    .hidden conformance_gate
    .type conformance_gate, @function
conformance_gate:
    .cfi_startproc
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    mov 8(%rsp), %r9
    syscall
    .globl conformance_gate_end
    .hidden conformance_gate_end
conformance_gate_end:
    ret
    .cfi_endproc
    .size conformance_gate, .-conformance_gate
)");
#elif defined(__aarch64__)
#define CONFORMANCE_WATCHES 1
__asm__(R"(
    .text
    .globl conformance_gate
    .hidden conformance_gate
    .type conformance_gate, %function
conformance_gate:
    .cfi_startproc
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    .globl conformance_gate_end
    .hidden conformance_gate_end
conformance_gate_end:
    ret
    .cfi_endproc
    .size conformance_gate, .-conformance_gate
)");
#endif

namespace conformance {

#ifdef CONFORMANCE_WATCHES
namespace {

struct Watching {
    LoopReport* report = nullptr;  // none: calls pass
    std::span<const AllowedCall> allowed;
    bool lists = false;
};
thread_local Watching watching;

#if defined(__x86_64__)
constexpr unsigned architecture = AUDIT_ARCH_X86_64;
struct Trapped {
    explicit Trapped(mcontext_t& machine) : words(machine.gregs), at(static_cast<std::uintptr_t>(words[REG_RIP])) {}
    long argument(int which) const {
        constexpr std::array registers = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
        return words[registers[static_cast<std::size_t>(which)]];
    }
    void answer(long with) { words[REG_RAX] = with; }
    greg_t* words;
    std::uintptr_t at;  // behind the instruction
};
#else
constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
struct Trapped {
    explicit Trapped(mcontext_t& machine) : words(machine.regs), at(static_cast<std::uintptr_t>(machine.pc)) {}
    long argument(int which) const { return static_cast<long>(words[which]); }
    void answer(long with) { words[0] = static_cast<unsigned long long>(with); }
    unsigned long long* words;
    std::uintptr_t at;
};
#endif

// "libisthmus.so.0+0x1234": addr2line reads it.
void write_frames(std::array<char, 2048>& out, void* const* frames, int count) {
    std::size_t used = 0;
    for (int at = 0; at < count && used + 1 < out.size(); ++at) {
        Dl_info info{};
        if (dladdr(frames[at], &info) == 0 || info.dli_fname == nullptr) continue;
        const char* const slash = std::strrchr(info.dli_fname, '/');
        const int more = std::snprintf(
            out.data() + used, out.size() - used, "\n    %s+0x%zx %s", slash != nullptr ? slash + 1 : info.dli_fname,
            static_cast<std::size_t>(static_cast<const char*>(frames[at]) - static_cast<const char*>(info.dli_fbase)),
            info.dli_sname != nullptr ? info.dli_sname : "");
        if (more > 0) used += static_cast<std::size_t>(more);
    }
}

bool makes_a_thread(long number) {
#ifdef SYS_fork
    if (number == SYS_fork || number == SYS_vfork) return true;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

// Ends the process, unless the call is allowed.
void judge(const Watching& seen, long number, const Trapped& trapped) {
    constexpr int deep = 64;
    std::array<void*, deep> frames{};
    int count = backtrace(frames.data(), deep);
    int begin = 0;  // the handler's own frames come first
    while (begin < count && reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(begin)]) != trapped.at) {
        ++begin;
    }
    if (begin == count) begin = 0;
    LoopReport& report = *seen.report;
    const Origin by = report.code.of(frames.data() + begin, count - begin);
    report.count(number, by);
    bool passes = seen.lists;
    for (const AllowedCall& allowed : seen.allowed) {
        const bool asked = number != SYS_ioctl || allowed.request == static_cast<unsigned long>(trapped.argument(1));
        passes = passes || (allowed.number == number && allowed.by == by && asked);
    }
    if (passes && !makes_a_thread(number)) return;
    report.forbidden = {number, by, 1};
    write_frames(report.forbidden_where, frames.data() + begin, count - begin);
    (void)conformance_gate(SYS_exit_group, forbidden_call_status, 0, 0, 0, 0, 0);
}

void on_trap(int, siginfo_t* info, void* context) {
    auto& machine = *static_cast<ucontext_t*>(context);
    Trapped trapped(machine.uc_mcontext);
    const int error_before = errno;
    const long number = info->si_syscall;
    const Watching seen = std::exchange(watching, {});
    if (seen.report != nullptr) judge(seen, number, trapped);
    // The copy of the stack that a new thread would begin on is not the one that this handler returns to.
    if (makes_a_thread(number)) (void)conformance_gate(SYS_exit_group, forbidden_call_status, 0, 0, 0, 0, 0);
    trapped.answer(conformance_gate(number, trapped.argument(0), trapped.argument(1), trapped.argument(2),
                                    trapped.argument(3), trapped.argument(4), trapped.argument(5)));
    if (number == SYS_rt_sigprocmask) {  // the return from this handler sets the mask; SIGSYS stays open
        (void)conformance_gate(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&machine.uc_sigmask), 8, 0, 0);
        sigdelset(&machine.uc_sigmask, SIGSYS);
    }
    watching = seen;
    errno = error_before;
}

bool install() {
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler's own calls are trapped, too
    if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    const auto gate = reinterpret_cast<std::uintptr_t>(conformance_gate_end);
    constexpr auto word = [](std::size_t offset) -> sock_filter {
        return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
    };
    constexpr auto skip_unless = [](unsigned value, unsigned char otherwise) -> sock_filter {
        return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
    };
    constexpr auto skip_if = [](unsigned value, unsigned char then) -> sock_filter {
        return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, 0);
    };
    std::array filter = {
        word(offsetof(seccomp_data, arch)),
        skip_unless(architecture, 8),
        word(offsetof(seccomp_data, nr)),
        skip_if(SYS_rt_sigreturn, 5),  // the end of the handler
        skip_if(SYS_exit, 4),
        word(offsetof(seccomp_data, instruction_pointer)),
        skip_unless(static_cast<unsigned>(gate), 3),
        word(offsetof(seccomp_data, instruction_pointer) + 4),
        skip_unless(static_cast<unsigned>(gate >> 32), 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// In a process that ends: the filter stays with its thread.
int try_it() {
    if (!install()) return errno == 0 ? EPERM : errno;
    const pid_t asked = getpid();
    return syscall(SYS_getpid) == asked && asked > 0 ? 0 : ENOSYS;
}

}  // namespace

std::string why_unwatched() {
    if (sanitized) return "sanitizers make system calls of their own";
    static const std::string why = [] {
        const pid_t child = fork();
        if (child < 0) return std::string("no process can be forked");
        if (child == 0) {
            const int error = try_it();
            (void)conformance_gate(SYS_exit_group, error, 0, 0, 0, 0, 0);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFSIGNALED(status))
            return std::string("a seccomp filter ends its process: ") + strsignal(WTERMSIG(status));
        if (WEXITSTATUS(status) == 0) return std::string();
        return std::string("seccomp is not allowed here: ") + std::strerror(WEXITSTATUS(status));
    }();
    return why;
}

bool filter_this_thread() {
    std::array<void*, 2> first{};
    (void)backtrace(first.data(), 2);  // loads what it needs
    return install();
}

CallWatch::CallWatch(LoopReport& report, std::span<const AllowedCall> allowed, bool lists) noexcept {
    watching = {&report, allowed, lists};
}
CallWatch::~CallWatch() {
    watching = {};
}

#else

std::string why_unwatched() {
    return "no filter is written for this processor";
}
bool filter_this_thread() {
    return false;
}
CallWatch::CallWatch(LoopReport&, std::span<const AllowedCall>, bool) noexcept {}
CallWatch::~CallWatch() = default;

#endif

}  // namespace conformance
