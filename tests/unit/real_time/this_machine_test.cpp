// SPDX-License-Identifier: Apache-2.0
// The public calls on this machine, in child processes: without privileges each refusal names its limit; with them the
// thread gets what it asked for, and everything is restored. What this machine forbids is skipped with the reason.
#include <isthmus/isthmus.hpp>

#include "sanitized.hpp"

#include <gtest/gtest.h>

#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;

// What `body` returns in a child process, whose policy, limits and locks end with it.
std::string in_a_child(const std::function<std::string()>& body) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string answer = body();
        const ssize_t written = ::write(ends[1], answer.data(), answer.size());
        ::_exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text;
    std::array<char, 512> piece{};
    for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;) text.append(piece.data(), got);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "the child ended by itself: " + text;
}

void limit(__rlimit_resource_t resource, rlim_t most) {
    const rlimit both{most, most};
    ::setrlimit(resource, &both);
}

// CAP_SYS_NICE and CAP_IPC_LOCK would let every limit pass.
void drop_privileges() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    ::syscall(SYS_capset, &header, none);
}

template <class T>
std::string answer_of(const Result<T>& answer) {
    return answer ? std::string("it worked") : std::string(answer.error().text());
}

RealTimeOptions fifo(int priority) {
    RealTimeOptions options;
    options.policy = ThreadPolicy::fifo;
    options.priority = priority;
    return options;
}

// Sanitizers answer mlock and mlockall themselves, and AddressSanitizer may keep a function's arrays elsewhere.
#if defined(ISTHMUS_SANITIZED)
#define NOT_WITH_SANITIZERS() GTEST_SKIP() << "built with a sanitizer, which locks nothing and moves arrays"
#else
#define NOT_WITH_SANITIZERS() static_cast<void>(0)
#endif

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(RealTimeHere, FifoWithoutPrivilegesNamesTheLimit) {
    const std::string text = in_a_child([] {
        limit(RLIMIT_RTPRIO, 0);
        drop_privileges();
        const std::string refused = answer_of(prepare_thread(fifo(20)));
        return ::sched_getscheduler(0) == SCHED_OTHER ? refused : "the policy changed: " + refused;
    });
    EXPECT_SAYS(text, "J006");
    EXPECT_SAYS(text, "RLIMIT_RTPRIO is 0");
    EXPECT_SAYS(text, "LimitRTPRIO=20");
    EXPECT_EQ(text.find("changed"), text.npos) << text;
}

TEST(RealTimeHere, DeadlineWithoutPrivilegesNamesTheCapability) {
    const std::string text = in_a_child([] {
        drop_privileges();
        RealTimeOptions options;
        options.policy = ThreadPolicy::deadline;
        options.runtime = 1ms, options.deadline = options.period = 10ms;
        return answer_of(prepare_thread(options));
    });
    if (text.find("J010") != text.npos) GTEST_SKIP() << "no SCHED_DEADLINE here: " << text;
    EXPECT_SAYS(text, "J008");
    EXPECT_SAYS(text, "CAP_SYS_NICE");
}

// keeps H8
TEST(RealTimeHere, LocksNameTheLimitThatIsTooSmall) {
    NOT_WITH_SANITIZERS();
    const std::string all = in_a_child([] {
        limit(RLIMIT_MEMLOCK, 65536);
        drop_privileges();
        RealTimeOptions options;
        options.lock = LockAll::present;
        return answer_of(prepare_thread(options));
    });
    EXPECT_SAYS(all, "J013");
    EXPECT_SAYS(all, "RLIMIT_MEMLOCK is 65536 bytes");
    const std::string range = in_a_child([] {
        limit(RLIMIT_MEMLOCK, 65536);
        drop_privileges();
        static std::array<char, 1 << 20> memory;
        return answer_of(LockedMemory::lock(memory.data(), memory.size()));
    });
    EXPECT_SAYS(range, "J016");
    EXPECT_SAYS(range, "LimitMEMLOCK=infinity");
}

TEST(RealTimeHere, FifoIsSetAndRestored) {
    const std::string text = in_a_child([]() -> std::string {
        Result<RealTimeScope> scope = prepare_thread(fifo(1));
        if (!scope) return answer_of(scope);
        sched_param parameters{};
        if (::sched_getscheduler(0) != SCHED_FIFO || ::sched_getparam(0, &parameters) != 0) return "no FIFO";
        if (parameters.sched_priority != 1) return "another priority";
        if (const Result<void> restored = scope->restore(); !restored) return answer_of(restored);
        return ::sched_getscheduler(0) == SCHED_OTHER ? "restored" : "not restored";
    });
    if (text.find("J006") != text.npos || text.find("J007") != text.npos) GTEST_SKIP() << text;
    EXPECT_EQ(text, "restored");
}

TEST(RealTimeHere, DeadlineIsSetAndRestored) {
    const std::string text = in_a_child([]() -> std::string {
        RealTimeOptions options;
        options.policy = ThreadPolicy::deadline;
        options.runtime = 100us, options.deadline = options.period = 100ms;
        Result<RealTimeScope> scope = prepare_thread(options);
        if (!scope) return answer_of(scope);
        if (::sched_getscheduler(0) != 6 + 0x40000000) return "no DEADLINE";  // with SCHED_RESET_ON_FORK
        if (const Result<void> restored = scope->restore(); !restored) return answer_of(restored);
        return ::sched_getscheduler(0) == SCHED_OTHER ? "restored" : "not restored";
    });
    for (const char* refusal : {"J008", "J009", "J010"}) {
        if (text.find(refusal) != text.npos) GTEST_SKIP() << text;
    }
    EXPECT_EQ(text, "restored");
}

TEST(RealTimeHere, TimerSlackIsSetAndRestored) {
    const std::string text = in_a_child([]() -> std::string {
        const int before = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        RealTimeOptions options;
        options.timer_slack = 1ns;
        Result<RealTimeScope> scope = prepare_thread(options);
        if (!scope) return answer_of(scope);
        if (::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) != 1) return "another slack";
        if (const Result<void> restored = scope->restore(); !restored) return answer_of(restored);
        return ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == before ? "restored" : "not restored";
    });
    EXPECT_EQ(text, "restored");
}

TEST(RealTimeHere, CpusAreSetAndRestored) {
    const std::string text = in_a_child([]() -> std::string {
        cpu_set_t before, now;
        if (::sched_getaffinity(0, sizeof before, &before) != 0) return "no CPUs";
        int last = -1;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) last = CPU_ISSET(cpu, &before) ? cpu : last;
        RealTimeOptions options;
        options.cpus = {last};
        Result<RealTimeScope> scope = prepare_thread(options);
        if (!scope) return answer_of(scope);
        ::sched_getaffinity(0, sizeof now, &now);
        if (CPU_COUNT(&now) != 1 || !CPU_ISSET(last, &now)) return "other CPUs";
        scope = prepare_thread({}).value();  // restores the scope that was there
        ::sched_getaffinity(0, sizeof now, &now);
        return CPU_EQUAL(&before, &now) ? "restored" : "not restored";
    });
    EXPECT_EQ(text, "restored");
}

TEST(RealTimeHere, AnotherThreadRestoresNothing) {
    const std::string text = in_a_child([]() -> std::string {
        RealTimeOptions options;
        cpu_set_t before;
        ::sched_getaffinity(0, sizeof before, &before);
        for (int cpu = CPU_SETSIZE; cpu-- > 0;) {
            if (CPU_ISSET(cpu, &before)) options.cpus = {cpu};
        }
        RealTimeScope scope = prepare_thread(options).value();
        std::string answer;
        std::thread([&] { answer = answer_of(scope.restore()); }).join();
        return answer;
    });
    EXPECT_SAYS(text, "J019");
}

// In a frame of its own: what prepare_thread() touches lies below its caller's frame.
__attribute__((noinline)) void use_a_mebibyte_of_stack() {
    volatile char used[std::size_t{1} << 20];
    for (std::size_t at = 0; at < sizeof used; at += 4096) used[at] = 1;
}

// keeps H8: pages of a prefaulted stack fault no more
TEST(RealTimeHere, ATouchedStackFaultsNoMore) {
    NOT_WITH_SANITIZERS();
    const std::string text = in_a_child([]() -> std::string {
        std::string answer;
        std::thread([&answer] {
            RealTimeOptions options;
            options.stack_bytes = std::size_t{2} << 20;
            const Result<RealTimeScope> scope = prepare_thread(options);
            if (!scope) {
                answer = answer_of(scope);
                return;
            }
            const ThreadCounts before = thread_counts().value();
            use_a_mebibyte_of_stack();
            const ThreadCounts in_loop = thread_counts().value() - before;
            answer = in_loop.minor_faults < 16 ? "few faults" : std::to_string(in_loop.minor_faults) + " faults";
        }).join();
        return answer;
    });
    EXPECT_EQ(text, "few faults");
}

TEST(RealTimeHere, AStackThatIsTooSmallIsRefused) {
    const std::string text = in_a_child([] {
        std::string answer;
        pthread_attr_t attributes;
        ::pthread_attr_init(&attributes);
        ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
        pthread_t thread{};
        ::pthread_create(
            &thread, &attributes,
            [](void* to) -> void* {
                RealTimeOptions options;
                options.stack_bytes = std::size_t{1} << 20;
                *static_cast<std::string*>(to) = answer_of(prepare_thread(options));
                return nullptr;
            },
            &answer);
        ::pthread_join(thread, nullptr);
        ::pthread_attr_destroy(&attributes);
        return answer;
    });
    EXPECT_SAYS(text, "J011");
    EXPECT_SAYS(text, "pthread_attr_setstacksize");
}

TEST(RealTimeHere, CountsPagesThatAreTouched) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), bytes = 64 * page;
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ::madvise(memory, bytes, MADV_NOHUGEPAGE);
    const ThreadCounts before = thread_counts().value();
    for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    const ThreadCounts touched = thread_counts().value() - before;
    EXPECT_GE(touched.minor_faults, 64);
    // No switch: the time was over before the system had put the thread to sleep.
    std::int64_t switches = 0;
    for (int tries = 0; tries < 100 && switches == 0; ++tries) {
        std::this_thread::sleep_for(1ms);
        switches = (thread_counts().value() - before).voluntary_switches;
    }
    EXPECT_GE(switches, 1);
    ::munmap(memory, bytes);
}

// keeps H8
TEST(RealTimeHere, LockedMemoryIsLockedUntilItsEnd) {
    NOT_WITH_SANITIZERS();
    const std::string text = in_a_child([]() -> std::string {
        const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        void* const memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        // Locked pages cannot be thrown away: madvise(MADV_DONTNEED) says EINVAL.
        const auto is_locked = [&](int at) {
            return ::madvise(static_cast<char*>(memory) + at * page, page, MADV_DONTNEED) != 0;
        };
        {
            Result<LockedMemory> first = LockedMemory::lock(memory, page);
            if (!first) return answer_of(first);
            LockedMemory kept = std::move(*first);
            if (!is_locked(0)) return "not locked";
            kept = LockedMemory::lock(static_cast<char*>(memory) + page, page).value();
            if (is_locked(0) || !is_locked(1)) return "the first is still locked";
        }
        if (is_locked(1)) return "not unlocked";
        ::munmap(static_cast<char*>(memory) + page, page);
        return answer_of(LockedMemory::lock(memory, 2 * page)) + (is_locked(0) ? " and locked" : "");
    });
    if (text.find("J016") == 0) GTEST_SKIP() << text;
    EXPECT_TRUE(text.find("J016") != text.npos || text.find("J017") != text.npos) << text;  // half of it is not mapped
    EXPECT_EQ(text.find("and locked"), text.npos) << text;
}

TEST(RealTimeHere, CpusNearTheCpuDeviceAreOnline) {
    Runtime runtime = Runtime::open({.use_cuda = false}).value();
    const Result<NearCpus> near = cpus_near(runtime.cpu());
    if (!near) GTEST_SKIP() << near.error().text();
    ASSERT_FALSE(near->cpus.empty());
    EXPECT_TRUE(std::is_sorted(near->cpus.begin(), near->cpus.end()));
    for (const int cpu : near->isolated) EXPECT_NE(std::count(near->cpus.begin(), near->cpus.end(), cpu), 0);
    if (near->numa_node < 0) {
        EXPECT_GE(near->cpus.size(), static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
    }
}

}  // namespace
