// SPDX-License-Identifier: Apache-2.0
// fork(), exec(), and a wait that passes signals on.
#include "play_program.hpp"

#include "common/console.hpp"
#include "common/process.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace isthmus::tools::simulate {
namespace {

constexpr int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

bool is_program(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// Writes errno to `failed` where the program cannot be run; a run closes it.
[[noreturn]] void be_the_program(const std::string& file, const std::vector<std::string>& words, bool output_to_stderr,
                                 const sigset_t& mask, pid_t parent, int failed) {
    end_with_parent(parent);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    if (output_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(file.c_str(), arguments.data());
    const int why = errno;
    (void)!::write(failed, &why, sizeof why);
    ::_exit(126);
}

Ending wait_for(pid_t program, const sigset_t& awaited) {
    int status = 0;
    while (::waitpid(program, &status, WNOHANG) != program) {
        siginfo_t came{};
        const int number = ::sigwaitinfo(&awaited, &came);
        // A terminal's signal (SI_KERNEL) has reached the program itself.
        if (number > 0 && number != SIGCHLD && came.si_code <= 0) ::kill(program, number);
    }
    Ending ending;
    if (WIFSIGNALED(status)) {
        ending.signal = WTERMSIG(status);
    } else {
        ending.status = WEXITSTATUS(status);
    }
    return ending;
}

}  // namespace

std::string found_program(const std::string& word) {
    if (word.find('/') != std::string::npos) return is_program(word) ? word : std::string();
    const char* const path = std::getenv("PATH");
    std::string_view rest = path ? path : "/usr/bin:/bin";
    while (!word.empty()) {
        const std::size_t at = rest.find(':');
        const std::string folder(rest.substr(0, at));
        std::string file = (folder.empty() ? "." : folder) + "/" + word;
        if (is_program(file)) return file;
        if (at == std::string_view::npos) break;
        rest.remove_prefix(at + 1);
    }
    return {};
}

Ending play_program(const std::string& file, const std::vector<std::string>& words, bool output_to_stderr) {
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) throw Failure(1, fmt::format("{}: {}", file, std::strerror(errno)));
    sigset_t awaited, before;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (const int signal : passed_on) sigaddset(&awaited, signal);
    ::sigprocmask(SIG_BLOCK, &awaited, &before);
    ::signal(SIGCHLD, SIG_DFL);  // it may be ignored since before this command; then no child could be waited for
    const pid_t parent = ::getpid();
    const pid_t program = ::fork();
    if (program == 0) {
        ::close(failed[0]);
        be_the_program(file, words, output_to_stderr, before, parent, failed[1]);
    }
    ::close(failed[1]);
    int why = program < 0 ? errno : 0;
    if (program > 0) {
        while (::read(failed[0], &why, sizeof why) < 0 && errno == EINTR) {
        }
    }
    ::close(failed[0]);
    Ending ending = program > 0 ? wait_for(program, awaited) : Ending{};
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (why != 0) throw Failure(126, fmt::format("'{}' cannot be run: {}", file, std::strerror(why)));
    return ending;
}

}  // namespace isthmus::tools::simulate
