// Probes that finish, throw, crash and hang, in real child processes.
#include "probe.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace isthmus::tools {
namespace {

using std::chrono::milliseconds;

void expect_no_child_left() {
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST(Probes, HandBackWhatTheyReturnHoweverLong) {
    const std::string large(300000, 'x');  // more than a pipe holds
    const ProbeOutcome outcome = run_probe([&] { return std::string(large); }, milliseconds(30000));
    EXPECT_EQ(outcome.end, ProbeEnd::finished);
    EXPECT_EQ(outcome.text, large);
    expect_no_child_left();
}

TEST(Probes, ThatThrowHaveFailedWithTheirWords) {
    const ProbeOutcome outcome =
        run_probe([]() -> std::string { throw std::runtime_error("no such thing"); }, milliseconds(30000));
    EXPECT_EQ(outcome.end, ProbeEnd::failed);
    EXPECT_EQ(outcome.text, "no such thing");
    expect_no_child_left();
}

TEST(Probes, ThatCrashAreReportedWithTheirSignal) {
    const ProbeOutcome outcome = run_probe(
        []() -> std::string {
            ::signal(SIGSEGV, SIG_DFL);
            ::raise(SIGSEGV);
            return "not reached";
        },
        milliseconds(30000));
    EXPECT_EQ(outcome.end, ProbeEnd::crashed);
    EXPECT_EQ(outcome.signal, SIGSEGV);
    expect_no_child_left();
}

TEST(Probes, ThatHangHaveSaidWhatTheySaid) {  // keeps G13
    const ProbeOutcome outcome = run_saying_probe(
        [](const Say& say) {
            say("one\n");
            say("two\n");
            for (;;) ::pause();
        },
        milliseconds(2000));
    EXPECT_EQ(outcome.end, ProbeEnd::hung);
    EXPECT_EQ(outcome.text, "one\ntwo\n");
    expect_no_child_left();
}

TEST(Probes, ThatHangAreEndedAtTheDeadline) {
    const ProbeOutcome outcome = run_probe(
        []() -> std::string {
            for (;;) ::pause();
        },
        milliseconds(50));
    EXPECT_EQ(outcome.end, ProbeEnd::hung);
    expect_no_child_left();
}

TEST(Probes, ChangeNothingInTheProcessThatAsks) {
    int value = 1;
    const ProbeOutcome outcome = run_probe(
        [&] {
            value = 2;
            ::setenv("ISTHMUS_PROBE_TEST", "set", 1);
            return std::string("done");
        },
        milliseconds(30000));
    EXPECT_EQ(outcome.text, "done");
    EXPECT_EQ(value, 1);
    EXPECT_EQ(std::getenv("ISTHMUS_PROBE_TEST"), nullptr);
}

}  // namespace
}  // namespace isthmus::tools
