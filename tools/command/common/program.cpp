// SPDX-License-Identifier: Apache-2.0
// Two children: the program, with a process group of its own, and before it a guard, which ends that group.
#include "program.hpp"

#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace isthmus::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr int cannot_run = 127;  // as shells exit

[[noreturn]] void be_the_program(pid_t guard, const std::vector<std::string>& words, int out) {
    end_with_parent(guard);
    ::setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    const int nowhere = ::open("/dev/null", O_RDONLY);
    ::dup2(nowhere >= 0 ? nowhere : out, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    const std::string why = words[0] + ": " + std::strerror(errno);
    (void)!::write(STDERR_FILENO, why.data(), why.size());
    ::_exit(cannot_run);
}

// Waits for the program, or for a signal: from the parent at the deadline, from the system when the parent ends, or
// from a terminal, which the program's group does not get.
[[noreturn]] void be_the_guard(pid_t parent, const std::vector<std::string>& words, int out, int verdict) {
    sigset_t awaited;
    sigemptyset(&awaited);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&awaited, signal);
    ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    const pid_t guard = ::getpid();
    const pid_t program = ::fork();
    if (program == 0) be_the_program(guard, words, out);
    if (program < 0) ::_exit(1);
    ::setpgid(program, program);  // both sides do it: whichever is first
    ::close(out);
    int status = 0;
    while (::waitpid(program, &status, WNOHANG) != program) {
        const int came = ::sigwaitinfo(&awaited, nullptr);
        if (came > 0 && came != SIGCHLD) break;
    }
    ::kill(-program, SIGKILL);  // also what the program left running
    (void)!::write(verdict, &status, sizeof status);
    ::_exit(0);
}

// Appends one part; false: every writer has closed its end.
bool read_part(int from, std::string& text) {
    char part[16384];
    const ssize_t got = ::read(from, part, sizeof part);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    if (text.size() < most_bytes) text.append(part, static_cast<std::size_t>(got));
    return true;
}

// Reads what the program prints until the guard says how it ended, or has ended itself. A process that left the
// program's group may keep the output open, and the program may close it: neither decides. False: the deadline passed.
bool read_all(int from, int verdict, Clock::time_point until, std::string& text) {
    for (bool open = true;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return false;
        pollfd waits[2] = {{open ? from : -1, POLLIN, 0}, {verdict, POLLIN, 0}};
        const int ready = ::poll(waits, 2, static_cast<int>(std::min<long long>(left, 60000)));
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (waits[1].revents == 0) {
            open = read_part(from, text);
            continue;
        }
        // All that the program printed is in the pipe now.
        int there = 0;
        if (!open || ::ioctl(from, FIONREAD, &there) != 0) return true;
        const std::size_t whole = std::min(text.size() + static_cast<std::size_t>(there), most_bytes);
        while (text.size() < whole && read_part(from, text)) {
        }
        return true;
    }
}

// After the deadline. The guard answers a signal at once, unless the program has stopped it.
void end_guard(pid_t guard, int verdict) {
    ::kill(guard, SIGTERM);
    pollfd waiting{verdict, POLLIN, 0};
    constexpr int patience_ms = 2000;
    if (::poll(&waiting, 1, patience_ms) <= 0) ::kill(guard, SIGKILL);  // and so the program ends
}

void close_both(const int (&ends)[2]) {
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace

ProgramOutcome run_program(const std::vector<std::string>& words, std::chrono::milliseconds deadline) {
    ProgramOutcome outcome;
    int out[2], verdict[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return {ProbeEnd::failed, 0, 0, std::strerror(errno)};
    if (::pipe2(verdict, O_CLOEXEC) != 0) {
        outcome.text = std::strerror(errno);
        close_both(out);
        return outcome;
    }
    const auto until = Clock::now() + deadline;
    const pid_t parent = ::getpid();
    const pid_t guard = ::fork();
    if (guard == 0) {
        ::close(out[0]);
        ::close(verdict[0]);
        be_the_guard(parent, words, out[1], verdict[1]);
    }
    if (guard < 0) outcome.text = std::strerror(errno);
    ::close(out[1]);
    ::close(verdict[1]);
    if (guard > 0) {
        const bool over = read_all(out[0], verdict[0], until, outcome.text);
        if (!over) end_guard(guard, verdict[0]);
        int status = 0;
        ssize_t got = 0;
        while ((got = ::read(verdict[0], &status, sizeof status)) < 0 && errno == EINTR) {
        }
        while (::waitpid(guard, nullptr, 0) < 0 && errno == EINTR) {
        }
        if (!over) {
            outcome.end = ProbeEnd::hung;
        } else if (got != sizeof status || (WIFEXITED(status) && WEXITSTATUS(status) == cannot_run)) {
            outcome.end = ProbeEnd::failed;
        } else if (WIFSIGNALED(status)) {
            outcome.end = ProbeEnd::crashed;
            outcome.signal = WTERMSIG(status);
        } else {
            outcome.end = ProbeEnd::finished;
            outcome.status = WEXITSTATUS(status);
        }
    }
    ::close(out[0]);
    ::close(verdict[0]);
    return outcome;
}

}  // namespace isthmus::tools
