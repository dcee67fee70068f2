// SPDX-License-Identifier: Apache-2.0
// Preparing a thread against a system that is played: what is called, in which order, what is undone, and each call
// failing.
#include "prepared_thread.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;
using platform::os::CpuLists;
using platform::os::CpuMask;
using platform::os::SchedulingAttributes;
using platform::os::ThreadCalls;

// The played system: one thread, whose CPUs are those of the cpuset.
struct System {
    std::vector<std::string> calls;
    std::string failing;  // the call that fails, and how often it works before
    int works = 0;
    int error = EPERM;
    SchedulingAttributes policy;
    CpuMask cpus, cpuset;
    int thread = 7;
    std::uint64_t slack = 50000;
    int locked = 0;    // flags of mlockall
    int unlocked = 0;  // calls of munlock
    std::uint64_t limit = 0;
    std::size_t stack_bytes = 0;  // 0: this thread's own
};
System played;

int call(const char* name) {
    played.calls.emplace_back(name);
    if (played.failing != name || played.works-- > 0) return 0;
    errno = played.error;
    return -1;
}

const ThreadCalls& played_calls() {
    static const ThreadCalls calls = {
        [](int flags) { return call("mlockall") != 0 ? -1 : (played.locked = flags, 0); },
        [](const void*, std::size_t) { return call("mlock"); },
        [](const void*, std::size_t) { return ++played.unlocked, 0; },
        [](SchedulingAttributes* attributes) {
            return call("sched_getattr") != 0 ? -1 : (*attributes = played.policy, 0);
        },
        [](const SchedulingAttributes* attributes) {
            return call("sched_setattr") != 0 ? -1 : (played.policy = *attributes, 0);
        },
        [](CpuMask* cpus) { return call("sched_getaffinity") != 0 ? -1 : (*cpus = played.cpus, 0); },
        [](const CpuMask* cpus) {
            if (call("sched_setaffinity") != 0) return -1;
            for (std::size_t at = 0; at < cpus->words.size(); ++at) {
                played.cpus.words[at] = cpus->words[at] & played.cpuset.words[at];
            }
            return 0;
        },
        [](std::uint64_t ns, std::uint64_t* before) {
            if (call("prctl") != 0) return -1;
            if (before != nullptr) *before = played.slack;
            return played.slack = ns, 0;
        },
        [](rusage* usage) {
            usage->ru_minflt = 1, usage->ru_majflt = 2, usage->ru_nvcsw = 3, usage->ru_nivcsw = 4;
            return call("getrusage");
        },
        [](int, std::uint64_t* now) { return *now = played.limit, 0; },
        [](void** lowest, std::size_t* bytes) {
            if (call("stack_bounds") != 0) return -1;
            if (played.stack_bytes == 0) return ThreadCalls::real().stack_bounds(lowest, bytes);
            *lowest = static_cast<char*>(__builtin_frame_address(0)) - played.stack_bytes;
            *bytes = played.stack_bytes;
            return 0;
        },
        [] { return played.thread; }};
    return calls;
}

const CpuLists lists = {{0, 1, 2, 3}, {}};

RealTimeOptions everything() {
    RealTimeOptions options;
    options.policy = ThreadPolicy::fifo;
    options.priority = 10;
    options.cpus = {1, 2};
    options.timer_slack = 1ns;
    options.stack_bytes = 256 << 10;
    options.lock = LockAll::present_and_future;
    return options;
}

class Prepare : public testing::Test {
protected:
    void SetUp() override {
        played = {};
        for (int cpu = 0; cpu < 4; ++cpu) played.cpus.add(cpu), played.cpuset.add(cpu);
        before_ = played.cpus;
    }
    bool as_before() const { return played.policy.policy == 0 && played.cpus == before_ && played.slack == 50000; }
    CpuMask before_;
};

TEST_F(Prepare, DoesWhatWasAskedForAndTheScopeRestoresPolicyAndCpus) {
    {
        Result<RealTimeScope> scope = detail::prepare_thread(everything(), lists, played_calls());
        ASSERT_TRUE(scope) << scope.error().text();
        EXPECT_EQ(played.policy.policy, platform::os::policy_fifo);
        EXPECT_EQ(played.policy.priority, 10u);
        EXPECT_EQ(played.slack, 1u);
        EXPECT_FALSE(played.cpus.has(0));
        EXPECT_TRUE(played.cpus.has(1));
        EXPECT_EQ(played.locked, 3) << "MCL_CURRENT | MCL_FUTURE";
        EXPECT_EQ(played.calls,
                  (std::vector<std::string>{"sched_getaffinity", "sched_setaffinity", "sched_getaffinity", "prctl",
                                            "sched_getattr", "sched_setattr", "stack_bounds", "mlockall"}));
        played.calls.clear();
    }
    EXPECT_TRUE(as_before());
    EXPECT_EQ(played.calls, (std::vector<std::string>{"sched_setattr", "prctl", "sched_setaffinity"}))
        << "the policy first";
}

TEST_F(Prepare, CallsNothingForWhatWasNotAskedFor) {
    ASSERT_TRUE(detail::prepare_thread({}, lists, played_calls()));
    EXPECT_TRUE(played.calls.empty());
    RealTimeOptions options;
    options.lock = LockAll::present;
    ASSERT_TRUE(detail::prepare_thread(options, lists, played_calls()));
    EXPECT_EQ(played.calls, std::vector<std::string>{"mlockall"});
    EXPECT_EQ(played.locked, 1) << "MCL_CURRENT";
}

TEST_F(Prepare, ARefusedRequestCallsNothing) {
    RealTimeOptions options = everything();
    options.priority = 100;
    EXPECT_EQ(detail::prepare_thread(options, lists, played_calls()).code(), Code::invalid_argument);
    EXPECT_TRUE(played.calls.empty());
}

TEST_F(Prepare, RestoresOnceAndOnItsThreadAlone) {
    RealTimeScope scope = detail::prepare_thread(everything(), lists, played_calls()).value();
    played.thread = 8;  // another thread, or the child of a fork
    const Result<void> elsewhere = scope.restore();
    ASSERT_FALSE(elsewhere);
    EXPECT_EQ(elsewhere.error().id(), "J019");
    EXPECT_EQ(elsewhere.code(), Code::not_permitted);
    EXPECT_EQ(played.policy.policy, platform::os::policy_fifo) << "nothing was restored";
    played.thread = 7;
    EXPECT_TRUE(scope.restore());
    EXPECT_TRUE(as_before());
    played.policy.policy = 2;  // set by other code afterwards
    EXPECT_TRUE(scope.restore());
    EXPECT_EQ(played.policy.policy, 2u);
}

TEST_F(Prepare, AMoveTakesTheScopeAndRestoresTheOneThatWasThere) {
    RealTimeScope first = detail::prepare_thread(everything(), lists, played_calls()).value();
    RealTimeScope second = std::move(first);
    EXPECT_EQ(played.policy.policy, platform::os::policy_fifo);
    // NOLINTNEXTLINE(bugprone-use-after-move): that is the question
    EXPECT_TRUE(first.restore()) << "a moved-from scope has nothing to restore";
    EXPECT_EQ(played.policy.policy, platform::os::policy_fifo);
    second = detail::prepare_thread({}, lists, played_calls()).value();
    EXPECT_TRUE(as_before());
}

struct Failure {
    const char* call;
    int works;  // how often it works before
    std::string_view id;
};

// keeps R6 for these calls: a typed error, and policy and CPUs as before
TEST_F(Prepare, EachFailingCallIsATypedErrorAndNothingStaysChanged) {
    for (const Failure& failure :
         {Failure{"sched_getaffinity", 0, "J005"}, Failure{"sched_setaffinity", 0, "J005"},
          Failure{"sched_getaffinity", 1, "J005"}, Failure{"prctl", 0, "J032"}, Failure{"sched_getattr", 0, "J010"},
          Failure{"sched_setattr", 0, "J006"}, Failure{"stack_bounds", 0, "J012"}, Failure{"mlockall", 0, "J013"}}) {
        SetUp();
        played.failing = failure.call;
        played.works = failure.works;
        const Result<RealTimeScope> refused = detail::prepare_thread(everything(), lists, played_calls());
        ASSERT_FALSE(refused) << failure.call;
        EXPECT_EQ(refused.error().id(), failure.id) << refused.error().text();
        EXPECT_EQ(refused.error().driver_code(), EPERM);
        EXPECT_TRUE(as_before()) << failure.call;
        EXPECT_EQ(played.locked, 0);
    }
}

TEST_F(Prepare, ACpuOutsideTheCpusetIsNamedAndTheOldCpusComeBack) {
    played.cpuset = {};
    for (const int cpu : {0, 1}) played.cpuset.add(cpu);
    played.cpus = before_ = played.cpuset;
    const Result<RealTimeScope> refused = detail::prepare_thread(everything(), lists, played_calls());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), "J004");
    EXPECT_NE(refused.error().text().find("CPU 2"), std::string::npos);
    EXPECT_TRUE(as_before());
}

TEST_F(Prepare, ASmallStackIsRefusedWithItsSize) {
    played.stack_bytes = 256 << 10;
    const Result<RealTimeScope> refused = detail::prepare_thread(everything(), lists, played_calls());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), "J011");
    EXPECT_EQ(refused.code(), Code::system_limit);
    EXPECT_TRUE(as_before());
}

TEST_F(Prepare, WhatCannotBeRestoredIsNamedAndTheRestIsRestored) {
    for (const auto& [name, what] :
         {std::pair{"sched_setattr", "scheduling"}, {"prctl", "timer slack"}, {"sched_setaffinity", "CPUs"}}) {
        SetUp();
        RealTimeScope scope = detail::prepare_thread(everything(), lists, played_calls()).value();
        played.failing = name;
        const Result<void> answer = scope.restore();
        ASSERT_FALSE(answer) << name;
        EXPECT_EQ(answer.error().id(), "J020");
        EXPECT_NE(answer.error().text().find(what), std::string::npos) << answer.error().text();
        EXPECT_EQ(played.policy.policy == 0, std::string(name) != "sched_setattr");
        EXPECT_EQ(played.slack == 50000, std::string(name) != "prctl");
        EXPECT_EQ(played.cpus == before_, std::string(name) != "sched_setaffinity");
        EXPECT_TRUE(scope.restore()) << "it is not tried again";
    }
}

// keeps H8
TEST_F(Prepare, ARangeThatIsRefusedIsUnlocked) {
    const char memory[16] = {};
    EXPECT_TRUE(detail::lock_range(memory, sizeof memory, played_calls()));
    EXPECT_EQ(played.unlocked, 0);
    played.failing = "mlock";
    played.error = ENOMEM;
    const Result<void> refused = detail::lock_range(memory, sizeof memory, played_calls());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), "J016");
    EXPECT_EQ(played.unlocked, 1) << "pages before one that is not mapped";
    played.calls.clear();
    for (const auto& [data, bytes] :
         {std::pair<const void*, std::size_t>{nullptr, 1}, {memory, 0}, {memory, SIZE_MAX}}) {
        const Result<void> wrong = detail::lock_range(data, bytes, played_calls());
        ASSERT_FALSE(wrong);
        EXPECT_EQ(wrong.error().id(), "J015");
    }
    EXPECT_TRUE(played.calls.empty());
}

TEST_F(Prepare, CountsComeFromTheSystemInTheirFields) {
    EXPECT_EQ(detail::thread_counts(played_calls()).value(), (ThreadCounts{1, 2, 3, 4}));
    played.failing = "getrusage";
    const Result<ThreadCounts> refused = detail::thread_counts(played_calls());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id(), "J018");
    EXPECT_EQ((ThreadCounts{5, 7, 9, 11} - ThreadCounts{1, 2, 3, 4}), (ThreadCounts{4, 5, 6, 7}));
}

}  // namespace
