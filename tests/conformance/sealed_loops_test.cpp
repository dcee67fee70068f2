// SPDX-License-Identifier: Apache-2.0
// Loops with a deadline, watched from outside: what each may ask of the heap, of locks and of the system once it runs
// steadily. One table for the CPU device, every simulated machine and real drivers.
#include "counting.hpp"
#include "scenario.hpp"
#include "sealed_loops.hpp"
#include "system_call_names.hpp"
#include "traced_calls.hpp"

#include <linux/videodev2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace conformance {
namespace {

using namespace std::chrono_literals;

// A system call that a loop makes in its steady state, and why. What is not here is forbidden.
struct Permission {
    std::string_view loop;  // its name, or the beginning of several; empty: all
    LoopReport::Device on;  // none: everywhere
    Origin by;              // system: any
    std::vector<long> calls;
    const char* why;
    std::vector<unsigned long> requests{};  // of an ioctl: these alone
};
const Permission permissions[] = {
#include "sealed_loops.inc"
};

std::vector<AllowedCall> allowed(const SealedLoop& loop, int device) {
    std::vector<AllowedCall> all;
    for (const Permission& one : permissions) {
        if (std::string_view(loop.name).substr(0, one.loop.size()) != one.loop) continue;
        if (one.on != LoopReport::none && one.on != device) continue;
        for (const long number : one.calls) {
            EXPECT_FALSE(number == SYS_ioctl && one.requests.empty()) << "no request is listed: " << one.why;
            for (const Origin by : {Origin::library, Origin::driver, Origin::program, Origin::system}) {
                if (one.by != Origin::system && one.by != by) continue;
                if (one.requests.empty()) all.push_back({by, number});
                for (const unsigned long request : one.requests) all.push_back({by, number, request});
            }
        }
    }
    return all;
}

bool prints() {
    const char* const asked = std::getenv("ISTHMUS_PRINT_COUNTS");
    return asked != nullptr && *asked != 0;
}
bool on_a_real_driver() {
    return std::getenv("ISTHMUS_TEST_REAL") != nullptr;
}

struct Unmap {
    void operator()(LoopReport* report) const noexcept {
        report->~LoopReport();
        ::munmap(report, sizeof *report);
    }
};
using Shared = std::unique_ptr<LoopReport, Unmap>;
Shared shared_report() {
    void* const memory = ::mmap(nullptr, sizeof(LoopReport), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return Shared(new (memory) LoopReport);
}

struct Played {
    Shared report = shared_report();
    int status = 0;          // of the loop's process
    std::string untraced{};  // why its tracer saw nothing
};

// Plays a loop in a process of its own, which ends within its time.
Played play(const SealedLoop& loop, const LoopPlan& plan, std::size_t index) {
    Played played;
    LoopReport& report = *played.report;
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(200);
        try {
            loop.play(report, plan, index);
        } catch (const std::exception& thrown) {
            report.answer = Code::driver_error;
            std::snprintf(report.error.data(), report.error.size(), "%s", thrown.what());
        }
        report.phase.store(LoopReport::over);
        ::_exit(0);
    }
    if (plan.watcher == Watcher::tracer) {
        played.untraced = trace(report, 180s);
        if (!played.untraced.empty()) ::kill(child, SIGKILL);
    }
    EXPECT_EQ(::waitpid(child, &played.status, 0), child);
    report.enough.store(true);  // a killed loop could not tell the other process
    return played;
}

std::string with_count(const CallCount& call) {
    return system_call_name(call.number) + " by " + name(call.by) + ": " + std::to_string(call.count);
}

long locks_of(const SealedLoop& loop, int device) {
    return device == LoopReport::cpu ? loop.locks_on_cpu : loop.locks_on_gpu;
}

// What the loop did that it may not; empty: nothing.
std::string problems(const SealedLoop& loop, const LoopPlan& plan, const Played& played) {
    const LoopReport& report = *played.report;
    std::string found;
    const auto add = [&](const std::string& text) { found += found.empty() ? text : "; " + text; };
    if (report.forbidden.number >= 0) {
        add("ended by " + system_call_name(report.forbidden.number) + " by " + name(report.forbidden.by) +
            report.forbidden_where.data());
    } else if (played.status != 0) {
        add("its process ended with status " + std::to_string(played.status));
    }
    if (!played.untraced.empty()) add(played.untraced);
    if (report.answer != Code::ok) add(std::string(name(report.answer)) + " " + report.error.data());
    if (report.turns != plan.watched) add(std::to_string(report.turns) + " turns");
    if (report.allocations != 0) add(std::to_string(report.allocations) + " blocks of the heap" + report.where.data());
    if (report.frees > report.allocations) add(std::to_string(report.frees) + " blocks given back");
    if (report.mappings != 0) add(std::to_string(report.mappings) + " changes of mappings");
    const long locks = locks_of(loop, report.device);
    if (locks != uncounted && report.most_mutexes > locks)
        add(std::to_string(report.most_mutexes) + " mutexes in a turn");
    if (plan.watcher != Watcher::tracer) return found;
    for (const CallCount& call : report.calls) {
        // The tracer takes the first return address on the stack for the caller, and one may be left from a call
        // before: a listed call is accepted from each caller. The filter finds the caller from the frames.
        bool known = call.count == 0;
        for (const AllowedCall& one : allowed(loop, report.device)) known = known || one.number == call.number;
        // A real driver makes calls of its own: they are printed. A loop of the CPU device calls no driver.
        const bool by_system = call.by == Origin::driver || call.by == Origin::system;
        known = known || (on_a_real_driver() && report.device != LoopReport::cpu && by_system);
        if (!known) add(with_count(call));
    }
    return found;
}

void print(const SealedLoop& loop, const LoopReport& report) {
    std::printf("%s, %s: %ld turns, %ld allocations, %ld frees, %ld mappings, at most %ld mutexes in a turn\n",
                loop.name, report.device == LoopReport::cpu ? "CPU device" : "GPU", report.turns, report.allocations,
                report.frees, report.mappings, report.most_mutexes);
    for (const CallCount& call : report.calls) {
        if (call.count != 0) std::printf("    %s\n", with_count(call).c_str());
    }
}

// The kinds of this machine's devices, asked in a process that ends: this one has no runtime, because loops fork.
const std::vector<int>& devices() {
    static const std::vector<int> found = [] {
        std::vector<int> kinds;
        const Shared report = shared_report();
        const pid_t child = ::fork();
        if (child == 0) {
            for (const Device& device : all_devices()) {
                report->calls.at(static_cast<std::size_t>(report->turns++)).number =
                    device.is_cpu() ? LoopReport::cpu : LoopReport::gpu;
            }
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        for (long at = 0; at < report->turns; ++at) {
            kinds.push_back(static_cast<int>(report->calls[static_cast<std::size_t>(at)].number));
        }
        EXPECT_FALSE(kinds.empty());
        return kinds;
    }();
    return found;
}

// On the first device of each kind. Body: void(loop, index of the device, its kind).
template <class Body>
void on_every_loop(Body body) {
    for (std::size_t index = 0; index < devices().size(); ++index) {
        const auto here = devices().begin() + static_cast<std::ptrdiff_t>(index);
        if (std::find(devices().begin(), here, *here) != here) continue;
        for (const SealedLoop& loop : sealed_loops()) {
            SCOPED_TRACE(std::string(loop.name) + " on device " + std::to_string(index) +
                         (devices()[index] == LoopReport::cpu ? " (CPU)" : " (GPU)"));
            body(loop, index, devices()[index]);
        }
    }
}

void expect_sealed(const SealedLoop& loop, LoopPlan plan, std::size_t index) {
    plan.lists = prints();
    const Played played = play(loop, plan, index);
    if (played.report->unsupported) return;
    if (prints() || (plan.watcher == Watcher::tracer && on_a_real_driver())) print(loop, *played.report);
    if (!prints()) {
        EXPECT_EQ(problems(loop, plan, played), "");
    }
}

class SealedLoops : public testing::Test {
protected:
    void SetUp() override {
        if (!counts_allocations()) GTEST_SKIP() << "malloc() cannot be replaced here";
        if (!work_runs_by_itself()) GTEST_SKIP() << "this simulator does its work inside driver calls";
    }
};

TEST_F(SealedLoops, TakeNoHeapMapNothingAndLockNoMoreThanStated) {  // keeps T3, R9
    on_every_loop([](const SealedLoop& loop, std::size_t index, int) { expect_sealed(loop, {}, index); });
}

TEST_F(SealedLoops, EnterTheSystemForNamedWaitsOnly) {  // keeps T3, R9
    if (const std::string why = why_unwatched(); !why.empty()) GTEST_SKIP() << why;
    if (on_a_real_driver()) GTEST_SKIP() << "a driver's calls are counted by a tracer instead";
    on_every_loop([](const SealedLoop& loop, std::size_t index, int device) {
        LoopPlan plan;
        plan.watcher = Watcher::filter;
        plan.allowed = allowed(loop, device);
        expect_sealed(loop, plan, index);
    });
}

TEST_F(SealedLoops, EnterTheSystemUnderATracerAsTheTableSays) {  // keeps T3, R9
    if (const std::string why = why_untraced(); !why.empty()) GTEST_SKIP() << why;
    on_every_loop([](const SealedLoop& loop, std::size_t index, int) {
        LoopPlan plan;
        plan.watcher = Watcher::tracer;
        expect_sealed(loop, plan, index);
    });
}

// A planted fault in one turn of many.
struct Planted {
    Plant plant;
    Watcher watcher;
    const char* caught_as;  // in the words of problems()
};
const Planted planted[] = {
    {Plant::heap, Watcher::hooks, "1 blocks of the heap"},
    {Plant::operator_new, Watcher::hooks, "1 blocks of the heap"},
    {Plant::aligned_heap, Watcher::hooks, "1 blocks of the heap"},
    {Plant::locks, Watcher::hooks, "mutexes in a turn"},
    {Plant::mapping, Watcher::hooks, "2 changes of mappings"},
    {Plant::breaks, Watcher::hooks, "1 changes of mappings"},
    {Plant::mapping, Watcher::filter, "ended by mmap by the program"},
    {Plant::camera, Watcher::filter, "ended by ioctl by the program"},
    {Plant::system_call, Watcher::filter, "ended by getpid by the program"},
    {Plant::futex, Watcher::filter, "ended by futex by the program"},
    {Plant::system_call, Watcher::tracer, "getpid by the program: 1"},
};

void expect_caught(const SealedLoop& loop, const Planted& fault, std::size_t index, int device) {
    SCOPED_TRACE(fault.caught_as);
    if (fault.plant == Plant::locks && locks_of(loop, device) == uncounted) return;
    LoopPlan plan;
    plan.watcher = fault.watcher;
    plan.plant = fault.plant;
    plan.planted_locks = 1 + locks_of(loop, device);
    plan.allowed = allowed(loop, device);
    plan.warm = 150;
    plan.watched = 12;
    const Played played = play(loop, plan, index);
    if (played.report->unsupported) return;
    std::string found = problems(loop, plan, played);
    if (fault.watcher == Watcher::tracer && on_a_real_driver()) {  // any caller, see problems()
        long planted_calls = 0;
        for (const CallCount& call : played.report->calls) planted_calls += call.number == SYS_getpid ? call.count : 0;
        if (planted_calls == 1) found += fault.caught_as;
    }
    EXPECT_NE(found.find(fault.caught_as), std::string::npos) << found;
}

void expect_caught_by(Watcher watcher) {
    on_every_loop([&](const SealedLoop& loop, std::size_t index, int device) {
        for (const Planted& fault : planted) {
            if (fault.watcher == watcher) expect_caught(loop, fault, index, device);
        }
    });
}

// A watcher that sees nothing would let everything pass.
TEST_F(SealedLoops, APlantedBlockLockOrMappingIsCaught) {
    expect_caught_by(Watcher::hooks);
}
TEST_F(SealedLoops, APlantedSystemCallEndsTheLoopBeforeItIsMade) {
    if (const std::string why = why_unwatched(); !why.empty()) GTEST_SKIP() << why;
    if (on_a_real_driver()) GTEST_SKIP() << "a driver's calls are counted by a tracer instead";
    expect_caught_by(Watcher::filter);
}
TEST_F(SealedLoops, APlantedSystemCallIsCountedByATracer) {
    if (const std::string why = why_untraced(); !why.empty()) GTEST_SKIP() << why;
    expect_caught_by(Watcher::tracer);
}

}  // namespace
}  // namespace conformance
