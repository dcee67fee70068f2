// SPDX-License-Identifier: Apache-2.0
// Runs a forked child that answers through a pipe.
#include "probe.hpp"

#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace isthmus::tools {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int fd, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
        if (wrote < 0 && errno != EINTR) ::_exit(2);
        if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
}

[[noreturn]] void be_the_child(pid_t parent, int fd, const std::function<void(const Say&)>& probe) {
    end_with_parent(parent);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    // Output of the driver is discarded.
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere >= 0) {
        ::dup2(nowhere, STDOUT_FILENO);
        ::dup2(nowhere, STDERR_FILENO);
    }
    int code = 0;
    try {
        probe([fd](const std::string& text) { write_all(fd, text); });
    } catch (const std::exception& error) {
        write_all(fd, error.what());
        code = 1;
    }
    ::_exit(code);  // skips destructors: they would end the parent's state
}

constexpr std::size_t pipe_bytes = 65536;  // what a pipe holds

// Reads until the child closes its end of the pipe; false: the deadline passed. What is in the pipe by then is read.
bool read_answer(int fd, Clock::time_point until, std::string& text,
                 const std::function<void(std::string_view)>& hear) {
    for (std::size_t late_bytes = 0; late_bytes < pipe_bytes;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd waiting{fd, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, 60000)));
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0 && left <= 0) return false;
        if (ready <= 0) continue;
        char part[4096];
        const ssize_t got = ::read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        text.append(part, static_cast<std::size_t>(got));
        if (hear) hear({part, static_cast<std::size_t>(got)});
        if (left <= 0) late_bytes += static_cast<std::size_t>(got);
    }
    return false;
}

// The child may end shortly after it closed the pipe, or hang in its last system call.
bool wait_for(pid_t child, Clock::time_point until, int& status) {
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) return true;
        if (ended < 0 && errno != EINTR) return false;
        if (Clock::now() >= until) return false;
        ::usleep(1000);
    }
}

}  // namespace

ProbeOutcome run_probe(const std::function<std::string()>& probe, std::chrono::milliseconds deadline) {
    return run_saying_probe([&probe](const Say& say) { say(probe()); }, deadline);
}

ProbeOutcome run_saying_probe(const std::function<void(const Say& say)>& probe, std::chrono::milliseconds deadline,
                              const std::function<void(std::string_view piece)>& hear) {
    ProbeOutcome outcome;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        outcome.text = std::string("pipe: ") + std::strerror(errno);
        return outcome;
    }
    const auto until = Clock::now() + deadline;
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        be_the_child(parent, ends[1], probe);
    }
    const int fork_error = errno;
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        outcome.text = std::string("fork: ") + std::strerror(fork_error);
        return outcome;
    }
    int status = 0;
    const bool answered = read_answer(ends[0], until, outcome.text, hear) && wait_for(child, until, status);
    ::close(ends[0]);
    if (!answered) {
        outcome.end = ProbeEnd::hung;
        ::kill(child, SIGKILL);
        // A process that waits inside the kernel driver cannot be killed; it is left behind after this wait.
        wait_for(child, Clock::now() + std::chrono::seconds(20), status);
        return outcome;
    }
    if (WIFSIGNALED(status)) {
        outcome.end = ProbeEnd::crashed;
        outcome.signal = WTERMSIG(status);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        outcome.end = ProbeEnd::finished;
    }
    return outcome;
}

}  // namespace isthmus::tools
