// SPDX-License-Identifier: Apache-2.0
// Starts the program beside this one, and waits for its end.
#include "bridge_process.hpp"

#include "common/session.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

namespace isthmus::tools::share {
namespace {

using Clock = std::chrono::steady_clock;

Error failed(const char* call, int number) {
    const bool limit = number == EMFILE || number == ENFILE || number == EAGAIN || number == ENOMEM;
    return Error(limit ? Code::system_limit : Code::system_error,
                 std::string("isthmus-bridge cannot be started: ") + std::strerror(number))
        .from_call(call, number);
}

}  // namespace

Result<BridgeProcess> BridgeProcess::start(const std::vector<std::string>& arguments) {
    const std::optional<std::string> program = find_bridge();
    if (!program) {
        return Error(Code::unsupported,
                     "frames to other machines need isthmus-bridge, and there is none beside this program",
                     "install isthmus with UCX (-Ducx=enabled)");
    }
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe2", errno);
    FileDescriptor theirs(ends[0]), ours(ends[1]);
    std::vector<char*> words{const_cast<char*>(program->c_str())};
    for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
    // Standard output is this program's report.
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t process = -1;
    const int answer = ::posix_spawn(&process, program->c_str(), &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (answer != 0) return failed("posix_spawn", answer);
    return BridgeProcess(process, std::move(ours));
}

BridgeProcess::BridgeProcess(BridgeProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), input_(std::move(other.input_)), exit_code_(other.exit_code_) {}
BridgeProcess::~BridgeProcess() {
    end(std::chrono::nanoseconds(0));
}

bool BridgeProcess::runs() {
    if (process_ <= 0) return false;
    int status = 0;
    const pid_t ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == 0) return true;
    if (ended > 0 && WIFEXITED(status)) exit_code_ = WEXITSTATUS(status);
    process_ = -1;
    return false;
}

bool BridgeProcess::ends_within(std::chrono::nanoseconds at_most) {
    const Clock::time_point until = Clock::now() + at_most;
    while (runs() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return !runs();
}

bool BridgeProcess::crashes(std::chrono::nanoseconds at_most) {
    return ends_within(at_most) && !exit_code_.has_value();
}

void BridgeProcess::end(std::chrono::nanoseconds at_most) {
    input_.close();
    if (ends_within(at_most)) return;
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
}

}  // namespace isthmus::tools::share
