// SPDX-License-Identifier: Apache-2.0
// What the kernel is asked for, what its refusals mean, and which CPUs are near a device: over every combination.
#include "thread_plan.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

namespace {

using namespace isthmus;
using namespace isthmus::detail;
using namespace std::chrono_literals;
using platform::os::CpuLists;
using platform::os::CpuMask;
using platform::os::SchedulingAttributes;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
const std::vector<int> online = {0, 1, 2, 3, 8};

RealTimeOptions fifo(int priority) {
    RealTimeOptions options;
    options.policy = ThreadPolicy::fifo;
    options.priority = priority;
    return options;
}
RealTimeOptions deadline(std::chrono::nanoseconds runtime, std::chrono::nanoseconds due,
                         std::chrono::nanoseconds period) {
    RealTimeOptions options;
    options.policy = ThreadPolicy::deadline;
    options.runtime = runtime;
    options.deadline = due;
    options.period = period;
    return options;
}
RealTimeOptions on(std::vector<int> cpus) {
    RealTimeOptions options;
    options.cpus = std::move(cpus);
    return options;
}

testing::AssertionResult says(const Error& error, Code code, std::string_view id, std::string_view words) {
    const std::string text(error.text());
    if (error.code() == code && error.id() == id && text.find(words) != text.npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << error.id() << " " << text;
}

TEST(WrongRequest, FifoTakesThePrioritiesFrom1To99) {
    for (int priority = -1; priority <= 101; ++priority) {
        const std::optional<Error> wrong = wrong_request(fifo(priority), online);
        ASSERT_EQ(wrong.has_value(), priority < 1 || priority > 99) << priority;
        if (wrong) {
            EXPECT_TRUE(says(*wrong, Code::invalid_argument, "J001", std::to_string(priority)));
        }
    }
    EXPECT_FALSE(wrong_request({}, online)) << "without a policy the priority is not looked at";
}

TEST(WrongRequest, ATimerSlackIsNotNegative) {
    for (const std::chrono::nanoseconds slack : {-1ns, 0ns, 1ns, 50000ns}) {
        RealTimeOptions options;
        options.timer_slack = slack;
        const std::optional<Error> wrong = wrong_request(options, online);
        ASSERT_EQ(wrong.has_value(), slack < 0ns);
        if (wrong) {
            EXPECT_TRUE(says(*wrong, Code::invalid_argument, "J031", "-1 ns"));
        }
    }
}

TEST(WrongRequest, ADeadlineIsOrderedAndLongEnough) {
    const std::chrono::nanoseconds times[] = {-1ns, 0ns, 1023ns, 1024ns, 1ms, 2ms};
    for (const auto runtime : times) {
        for (const auto due : times) {
            for (const auto period : times) {
                const std::optional<Error> wrong = wrong_request(deadline(runtime, due, period), online);
                const bool fits = runtime >= 1024ns && runtime <= due && due <= period;
                EXPECT_EQ(wrong.has_value(), !fits) << runtime.count() << " " << due.count() << " " << period.count();
                if (wrong) {
                    EXPECT_TRUE(says(*wrong, Code::invalid_argument, "J002", "1024"));
                }
            }
        }
    }
}

TEST(WrongRequest, EveryCpuIsOnline) {
    EXPECT_FALSE(wrong_request(on({0, 8}), online));
    for (const int cpu : {-1, 4, 7, 9, CpuMask::most}) {
        const std::optional<Error> wrong = wrong_request(on({0, cpu}), online);
        ASSERT_TRUE(wrong) << cpu;
        EXPECT_TRUE(says(*wrong, Code::invalid_argument, "J003", "online: 0-3,8"));
    }
    // Where the system does not state which are online, the mask's size is the limit.
    EXPECT_FALSE(wrong_request(on({0, CpuMask::most - 1}), {}));
    EXPECT_TRUE(wrong_request(on({CpuMask::most}), {}));
    EXPECT_TRUE(wrong_request(on({-1}), {}));
}

TEST(WantedScheduling, KeepsTheNiceValueAndLetsOnlyDeadlinesResetOnFork) {
    SchedulingAttributes now;
    now.nice = 5;
    const SchedulingAttributes real = wanted_scheduling(fifo(80), now);
    EXPECT_EQ(real.policy, platform::os::policy_fifo);
    EXPECT_EQ(real.priority, 80u);
    EXPECT_EQ(real.flags, 0u) << "without CAP_SYS_NICE the flag could not be taken back";
    EXPECT_EQ(real.nice, 5);
    const SchedulingAttributes timed = wanted_scheduling(deadline(1ms, 2ms, 3ms), now);
    EXPECT_EQ(timed.policy, platform::os::policy_deadline);
    EXPECT_EQ(timed.priority, 0u);
    EXPECT_EQ(timed.flags, platform::os::reset_on_fork);
    EXPECT_EQ(timed.runtime_ns, 1000000u);
    EXPECT_EQ(timed.deadline_ns, 2000000u);
    EXPECT_EQ(timed.period_ns, 3000000u);
}

TEST(MaskOf, HasTheCpusThatWereNamed) {
    const CpuMask mask = mask_of(std::vector<int>{0, 63, 64, CpuMask::most - 1});
    for (int cpu = -1; cpu <= CpuMask::most; ++cpu) {
        EXPECT_EQ(mask.has(cpu), cpu == 0 || cpu == 63 || cpu == 64 || cpu == CpuMask::most - 1) << cpu;
    }
}

// Every errno that sched_setattr(2) documents, for both policies, with each relation of limit and priority.
TEST(SchedulingRefused, NamesWhatToChange) {
    for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{49}, std::uint64_t{50}, no_limit}) {
        const Error error = scheduling_refused(fifo(50), EPERM, limit);
        EXPECT_EQ(error.driver_code(), EPERM);
        EXPECT_EQ(error.call(), "sched_setattr");
        if (limit < 50) {
            EXPECT_TRUE(says(error, Code::not_permitted, "J006", "ulimit -r 50"));
            EXPECT_TRUE(says(error, Code::not_permitted, "J006", "LimitRTPRIO=50"));
            EXPECT_TRUE(says(error, Code::not_permitted, "J006", "RLIMIT_RTPRIO is " + std::to_string(limit)));
        } else {
            EXPECT_TRUE(says(error, Code::not_permitted, "J007", "cpu.rt_runtime_us"));
        }
        const RealTimeOptions timed = deadline(1ms, 2ms, 3ms);
        EXPECT_TRUE(says(scheduling_refused(timed, EPERM, limit), Code::not_permitted, "J008", "CAP_SYS_NICE"));
        EXPECT_TRUE(says(scheduling_refused(timed, EBUSY, limit), Code::system_limit, "J009", "3000000 ns"));
        for (const RealTimeOptions& options : {fifo(50), timed}) {
            EXPECT_TRUE(says(scheduling_refused(options, EINVAL, limit), Code::system_error, "J010", "Invalid"));
            EXPECT_TRUE(says(scheduling_refused(options, ENOSYS, limit), Code::unsupported, "J010", "seccomp"));
        }
    }
    EXPECT_TRUE(says(scheduling_refused(fifo(50), EBUSY, 0), Code::system_error, "J010", "busy"));
}

TEST(CpusRefused, NamesTheCpusetWhereNoCpuIsInIt) {
    EXPECT_TRUE(says(cpus_refused(on({3}), EINVAL), Code::not_permitted, "J004", "CPU 3"));
    EXPECT_TRUE(says(cpus_refused(on({3}), EINVAL), Code::not_permitted, "J004", "--cpuset-cpus"));
    EXPECT_TRUE(says(cpus_refused(on({3}), EBUSY), Code::system_error, "J005", "busy"));
    EXPECT_TRUE(says(cpus_refused(on({3}), EPERM), Code::system_error, "J005", "permitted"));
}

TEST(CpuLeftOut, IsTheFirstThatTheKernelDidNotGive) {
    const std::vector<int> asked = {1, 2, 3};
    for (unsigned bits = 0; bits < 8; ++bits) {
        std::vector<int> given;
        int missing = 0;
        for (int at = 2; at >= 0; --at) {
            if ((bits >> at & 1) != 0) given.push_back(asked[at]);
            if ((bits >> at & 1) == 0) missing = asked[at];
        }
        const std::optional<Error> left_out = cpu_left_out(asked, mask_of(given));
        ASSERT_EQ(left_out.has_value(), missing != 0) << bits;
        if (left_out) {
            EXPECT_TRUE(says(*left_out, Code::not_permitted, "J004", "CPU " + std::to_string(missing)));
        }
    }
}

// keeps H8: the limit is named when it is too small
TEST(LockRefused, NamesTheLimitWhereThereIsOne) {
    for (const int error : {ENOMEM, EPERM, EAGAIN, EINVAL}) {
        for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{65536}, no_limit}) {
            const bool limited = limit != no_limit && error != EINVAL;
            const Error all = lock_all_refused(error, limit);
            const Error range = lock_range_refused(4096, error, limit);
            EXPECT_EQ(all.call(), "mlockall");
            EXPECT_EQ(range.call(), "mlock");
            if (limited) {
                const std::string words = "RLIMIT_MEMLOCK is " + std::to_string(limit);
                EXPECT_TRUE(says(all, Code::system_limit, "J013", words));
                EXPECT_TRUE(says(all, Code::system_limit, "J013", "ulimit -l unlimited"));
                EXPECT_TRUE(says(range, Code::system_limit, "J016", words));
                EXPECT_TRUE(says(range, Code::system_limit, "J016", "4096 bytes"));
            } else {
                EXPECT_TRUE(says(all, Code::system_error, "J014", ""));
                EXPECT_TRUE(says(range, Code::system_error, "J017", "4096 bytes"));
            }
        }
    }
}

TEST(StackToTouch, LeavesAReserveAboveTheGuard) {
    constexpr std::uintptr_t lowest = 0x10000000;
    constexpr std::size_t size = std::size_t{8} << 20, reserve = std::size_t{128} << 10;
    const std::uintptr_t here = lowest + size;
    EXPECT_EQ(stack_to_touch(here, lowest, 4096).value(), here - 4096);
    EXPECT_EQ(stack_to_touch(here, lowest, size - reserve).value(), lowest + reserve);
    const Result<std::uintptr_t> refused = stack_to_touch(here, lowest, size - reserve + 1);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(says(refused.error(), Code::system_limit, "J011", std::to_string(size - reserve) + " bytes left"));
    EXPECT_FALSE(stack_to_touch(lowest + reserve, lowest, 1)) << "nothing is left";
    EXPECT_FALSE(stack_to_touch(lowest - 1, lowest, 1)) << "the frame is on another stack";
    EXPECT_FALSE(stack_to_touch(here, lowest, std::numeric_limits<std::size_t>::max()));
}

// Which of driver and bus states a node, whether the node is listed with CPUs, and which CPUs are isolated.
TEST(NearCpusRule, IsTheNodeOfTheDriverThenOfTheBusThenAllCpusInEveryCombination) {
    const CpuLists cpus = {{0, 1, 2, 3, 4, 5}, {1, 3, 5}};
    const std::vector<NumaNode> all = {{0, 2, 1, "0-1"}, {1, 2, 1, "2-3"}, {2, 0, 1, ""}, {3, 2, 1, "64-65"}};
    for (const int driver : {-1, 0, 1, 2, 3, 9}) {
        for (const int bus : {-1, 0, 1, 2, 3, 9}) {
            for (const bool listed : {false, true}) {
                for (const bool bus_cpus : {false, true}) {
                    NearFacts facts;
                    facts.driver_node = driver;
                    facts.pci_node = bus;
                    if (bus_cpus) facts.pci_cpus = "4-5";
                    if (listed) facts.nodes = all;
                    facts.cpus = cpus;
                    const NearCpus near = near_cpus(facts).value();
                    const int node = driver >= 0 ? driver : bus;
                    std::vector<int> expected = cpus.online, isolated = cpus.isolated;
                    int expected_node = -1;
                    if (listed && node == 0) expected = {0, 1}, isolated = {1}, expected_node = 0;
                    if (listed && node == 1) expected = {2, 3}, isolated = {3}, expected_node = 1;
                    // What the bus says is used where the system lists no CPUs of the node.
                    const bool unlisted = !listed || node == 2 || node == 9;
                    if (unlisted && bus_cpus && node >= 0 && node == bus) {
                        expected = {4, 5}, isolated = {5}, expected_node = node;
                    }
                    EXPECT_EQ(near.cpus, expected) << driver << " " << bus << " " << listed << " " << bus_cpus;
                    EXPECT_EQ(near.isolated, isolated);
                    EXPECT_EQ(near.numa_node, expected_node);
                }
            }
        }
    }
}

TEST(NearCpusRule, IsRefusedWhereTheSystemStatesNoCpus) {
    const Result<NearCpus> refused = near_cpus({});
    ASSERT_FALSE(refused);
    EXPECT_TRUE(says(refused.error(), Code::unsupported, "J021", "/sys"));
}

}  // namespace
