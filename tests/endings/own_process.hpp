// SPDX-License-Identifier: Apache-2.0
// Runs code that ends its process in a child process, and returns the exit code and all output.
#pragma once

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace endings {

struct Ended {
    bool in_time = false;
    int status = 0;  // as waitpid() gives it
    std::string out, errors;
};

// Not a measurement: a child that runs longer is taken for hung.
inline constexpr std::chrono::seconds longest{60};

inline std::string text_of(std::FILE* file) {
    std::string text;
    std::rewind(file);
    for (int each = std::fgetc(file); each != EOF; each = std::fgetc(file)) text.push_back(static_cast<char>(each));
    std::fclose(file);
    return text;
}

// The caller must not have started threads. A body that returns ends with exit code 0, by exit().
template <class Body>
Ended in_a_process_of_its_own(Body body) {
    std::FILE* const out = std::tmpfile();
    std::FILE* const errors = std::tmpfile();
    Ended ended;
    if (out == nullptr || errors == nullptr) {
        ADD_FAILURE() << "no temporary file";
        return ended;
    }
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::fileno(out), STDOUT_FILENO);
        ::dup2(::fileno(errors), STDERR_FILENO);
        body();
        std::exit(0);
    }
    const auto until = std::chrono::steady_clock::now() + longest;
    while (!ended.in_time && std::chrono::steady_clock::now() < until) {
        ended.in_time = ::waitpid(child, &ended.status, WNOHANG) == child;
        if (!ended.in_time) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!ended.in_time) {
        ::kill(child, SIGKILL);
        (void)::waitpid(child, &ended.status, 0);
    }
    ended.out = text_of(out);
    ended.errors = text_of(errors);
    return ended;
}

inline void expect_ended_quietly(const Ended& ended, int code) {
    EXPECT_TRUE(ended.in_time) << "it hung";
    EXPECT_FALSE(WIFSIGNALED(ended.status)) << "signal " << WTERMSIG(ended.status);
    EXPECT_EQ(WEXITSTATUS(ended.status), code);
    EXPECT_EQ(ended.out, "ready\n") << "what comes before the end did not work";
    EXPECT_EQ(ended.errors, "");
}

}  // namespace endings
