// SPDX-License-Identifier: Apache-2.0
// Probes that finish, throw, crash and hang, in real child processes; and what is recorded of trial exports that did.
#include "common/export_tries.hpp"
#include "common/probe.hpp"
#include "common/process.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
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
        milliseconds(6000));
    EXPECT_EQ(outcome.end, ProbeEnd::hung);
    EXPECT_EQ(outcome.text, "one\ntwo\n");
    expect_no_child_left();
}

TEST(Probes, AreHeardBeforeTheyEnd) {
    // The child ends only when its first words have been heard.
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::string heard;
    const ProbeOutcome outcome = run_saying_probe(
        [&](const Say& say) {
            say("one\n");
            char answer = 0;
            if (::read(ends[0], &answer, 1) == 1) say("two\n");
        },
        milliseconds(30000),
        [&](std::string_view piece) {
            if (heard.empty()) {
                EXPECT_EQ(::write(ends[1], "!", 1), 1);
            }
            heard += piece;
        });
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(outcome.end, ProbeEnd::finished);
    EXPECT_EQ(heard, "one\ntwo\n");
    EXPECT_EQ(outcome.text, heard);
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

// Reads until all writing ends are closed.
std::string read_all(int fd) {
    std::string text;
    char part[64];
    for (ssize_t got = 0; (got = ::read(fd, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
    return text;
}

// A forks B, B forks C and ends. The parent of C ended before C asked to end with it; C ends, too.
TEST(Probes, EndWithAParentThatEndedBeforeTheySaidSo) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t middle = ::fork();
    if (middle == 0) {
        const pid_t parent = ::getpid();
        if (::fork() == 0) {
            while (::getppid() == parent) ::usleep(1000);
            end_with_parent(parent);
            [[maybe_unused]] const ssize_t written = ::write(ends[1], "alive", 5);
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    ::waitpid(middle, nullptr, 0);
    EXPECT_EQ(read_all(ends[0]), "");
    ::close(ends[0]);
}

// B forks C and is killed; C hangs, and its end of the pipe closes only because it ends.
TEST(Probes, EndWithAParentThatIsKilled) {
    int ends[2], ready[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t middle = ::fork();
    if (middle == 0) {
        const pid_t parent = ::getpid();
        if (::fork() == 0) {
            end_with_parent(parent);
            ::close(ready[1]);
            for (;;) ::pause();
        }
        ::close(ready[1]);
        for (;;) ::pause();
    }
    ::close(ends[1]);
    ::close(ready[1]);
    EXPECT_EQ(read_all(ready[0]), "");
    ::kill(middle, SIGKILL);
    ::waitpid(middle, nullptr, 0);
    EXPECT_EQ(read_all(ends[0]), "");
    ::close(ends[0]);
    ::close(ready[0]);
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

ExportFinding finding_of(unsigned char device, ExportKinds kind, ExportStep failed, bool works = false) {
    ExportFinding finding;
    finding.device.bytes[0] = device;
    finding.kind = kind;
    finding.failed = failed;
    finding.works = works;
    return finding;
}

// keeps V5: a driver that dies at a try says that handles do not work, and of no other try
TEST(ExportTries, KeepWhatWasFoundBeforeTheChildEnded) {
    const ExportFinding announced = finding_of(1, ExportKinds::posix_fd, ExportStep::survive);
    ExportFinding worked = finding_of(1, ExportKinds::posix_fd, ExportStep::compare, true);
    worked.driver_version = 13000;
    worked.simulated = true;
    ExportFinding refused = finding_of(2, ExportKinds::fabric, ExportStep::create);
    refused.driver_code = 800;
    refused.call = "cuMemCreate";
    refused.message = "not \"permitted\"\n";
    const ExportFinding last = finding_of(3, ExportKinds::fabric, ExportStep::survive);
    ProbeOutcome end;
    end.end = ProbeEnd::crashed;
    end.signal = 11;
    end.text = line_of(announced) + line_of(worked) + line_of(finding_of(2, ExportKinds::fabric, ExportStep::survive)) +
               line_of(refused) + line_of(last) + "{\"device\": \"cut o";
    const std::vector<ExportFinding> found = findings_of(end);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_TRUE(found[0].works && found[0].simulated);
    EXPECT_EQ(found[0].driver_version, 13000);
    EXPECT_EQ(found[0].device, worked.device);
    EXPECT_FALSE(found[1].works);
    EXPECT_EQ(found[1].kind, ExportKinds::fabric);
    EXPECT_EQ(found[1].failed, ExportStep::create);
    EXPECT_EQ(found[1].driver_code, 800);
    EXPECT_EQ(found[1].call, "cuMemCreate");
    EXPECT_EQ(found[1].message, refused.message);
    EXPECT_EQ(found[2].failed, ExportStep::survive);
    EXPECT_NE(found[2].message.find("signal 11"), std::string::npos);
    end.end = ProbeEnd::hung;
    EXPECT_NE(findings_of(end)[2].message.find("deadline"), std::string::npos);
}

TEST(ExportTries, ThatLearnedNothingLeaveNothing) {
    ProbeOutcome end;
    end.end = ProbeEnd::finished;
    end.text = line_of(finding_of(1, ExportKinds::posix_fd, ExportStep::survive)) +
               line_of(finding_of(1, ExportKinds::none, ExportStep::survive)) +
               line_of(finding_of(1, ExportKinds::fabric, ExportStep::survive)) +
               line_of(finding_of(1, ExportKinds::fabric, ExportStep::compare, true));
    const std::vector<ExportFinding> found = findings_of(end);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, ExportKinds::fabric);
    for (const char* text : {"", "no JSON", "[]", "3\n", "{}x"}) {
        end.text = text;
        EXPECT_TRUE(findings_of(end).empty()) << text;
    }
}

}  // namespace
}  // namespace isthmus::tools
