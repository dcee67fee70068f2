// SPDX-License-Identifier: Apache-2.0
// Lines on standard error: whole, in order, and never blocking for long.
#include "common/console.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <string>

namespace isthmus::tools {
namespace {

// A pipe in place of standard error; the test's own lines are passed on to the original.
class StandardError : public ::testing::Test {
protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        reader_ = ends[0];
        before_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        ASSERT_GE(before_, 0);
        ASSERT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
        ::close(ends[1]);
        ASSERT_EQ(::fcntl(reader_, F_SETFL, O_NONBLOCK), 0);
        pipe_signal_ = ::signal(SIGPIPE, SIG_IGN);
    }
    void TearDown() override {
        ::dup2(before_, STDERR_FILENO);
        ::close(before_);
        if (reader_ >= 0) ::close(reader_);
        ::signal(SIGPIPE, pipe_signal_);
    }
    std::string read() const {
        std::string text;
        char part[4096];
        for (ssize_t got = 0; (got = ::read(reader_, part, sizeof part)) > 0;)
            text.append(part, static_cast<std::size_t>(got));
        return text;
    }
    // Leaves so little room that no line fits.
    static void fill() {
        const int writer = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        ASSERT_GE(writer, 0);
        const std::string blanks(PIPE_BUF, ' ');
        while (::write(writer, blanks.data(), blanks.size()) > 0) {
        }
        while (::write(writer, " ", 1) > 0) {
        }
        ::close(writer);
    }
    int reader_ = -1;
    int before_ = -1;
    void (*pipe_signal_)(int) = nullptr;
};

TEST_F(StandardError, HasOneLineForEachComplaint) {
    complain("one");
    complain("two");
    EXPECT_EQ(read(), "isthmus: one\nisthmus: two\n");
}

TEST_F(StandardError, ThatNobodyReadsLosesLinesAndSaysHowMany) {
    fill();
    for (int line = 0; line < 3; ++line) complain("lost");
    EXPECT_EQ(read().find("lost"), std::string::npos);
    complain("seen");
    EXPECT_EQ(read(), "isthmus: (lines dropped before this one, because nobody read them: 3) seen\n");
    complain("the next");
    EXPECT_EQ(read(), "isthmus: the next\n");
}

TEST_F(StandardError, GetsNoMoreOfALineThanArrivesWhole) {
    complain(std::string(1 << 20, 'x'));
    const std::string text = read();
    EXPECT_EQ(text.size(), static_cast<std::size_t>(PIPE_BUF));
    EXPECT_EQ(text.back(), '\n');
}

TEST_F(StandardError, WithoutAReaderIsNoReasonToEnd) {
    ::close(reader_);
    reader_ = -1;
    complain("unheard");
}

}  // namespace
}  // namespace isthmus::tools
