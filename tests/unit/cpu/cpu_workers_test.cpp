// SPDX-License-Identifier: Apache-2.0
// Kernels of the CPU device on several threads: how a launch is divided, and that nothing else about it changes.
#include "cpu/cpu_driver.hpp"
#include "cpu/cpu_workers.hpp"
#include "sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::platform::cpu {
namespace {

KernelInfo kernel_of(std::uint8_t rank, void (*twin)(const Extent&, std::uint64_t, std::uint64_t, const void*)) {
    KernelInfo kernel{};
    kernel.name = "kernel";
    kernel.symbol = "isthmus_kernel";
    kernel.parameters = "";
    kernel.pack_bytes = sizeof(void*);
    kernel.rank = rank;
    kernel.block_threads = rank == 0 ? 64 : 0;
    kernel.twin = twin;
    return kernel;
}

// keeps L16
TEST(Division, CoversEveryStepOnceWithPartsThatAreWorthAThread) {
    const auto none = [](const Extent&, std::uint64_t, std::uint64_t, const void*) {};
    for (const std::uint32_t threads : {0u, 1u, 2u, 3u, 8u, 1024u}) {
        for (std::uint8_t rank = 0; rank <= 4; ++rank) {
            const KernelInfo kernel = kernel_of(rank, none);
            for (const std::uint64_t x : {1ull, 7ull, 500ull, 4096ull, 100003ull, 1ull << 33}) {
                for (const std::uint64_t yz : {1ull, 3ull, 1000ull}) {
                    Extent extent{x, 1, 1};
                    if (rank != 1) extent.y = yz;
                    if (rank == 0 || rank >= 3) extent.z = yz;
                    const std::uint64_t size = outermost(kernel, extent);
                    const Division division = divide(kernel, extent, threads);
                    ASSERT_GT(division.parts, 0u);
                    ASSERT_GE(division.parts * division.length, size);
                    ASSERT_LT((division.parts - 1) * division.length, size);
                    if (threads <= 1 || rank == 4) {
                        ASSERT_EQ(division.parts, 1u);
                    }
                    ASSERT_LE(division.parts, std::max<std::uint64_t>(4 * threads, 1));
                    const std::uint64_t items = rank == 0   ? 64 * 4
                                                : rank == 1 ? 1
                                                : rank == 2 ? extent.x
                                                            : extent.x * extent.y;
                    if (division.parts > 1) {
                        ASSERT_GE(division.length * items, 4096u) << "rank " << int{rank};
                    }
                }
            }
        }
    }
    const KernelInfo blocks = kernel_of(0, none), row = kernel_of(1, none), picture = kernel_of(2, none);
    EXPECT_EQ(divide(row, {8191, 1, 1}, 2).parts, 2u);
    EXPECT_EQ(divide(row, {4096, 1, 1}, 2).parts, 1u) << "too small to be worth another thread";
    EXPECT_EQ(divide(picture, {640, 480, 1}, 4).parts, 16u);
    EXPECT_EQ(divide(blocks, {6, 18, 1}, 2).parts, 7u);
}

std::size_t threads_of_process() {
    constexpr unsigned exiting = 4;  // PF_EXITING: a thread that was joined may be listed for a while
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(entry.path() / "stat");
        std::string line;
        std::getline(file, line);
        std::istringstream fields(line.substr(line.rfind(')') + 1));
        std::string skipped;
        unsigned flags = exiting;  // the file of a thread that has gone is empty
        for (int field = 0; field < 6; ++field) fields >> skipped;
        if (fields >> flags; (flags & exiting) == 0) ++count;
    }
    return count;
}
// An emulated thread that was joined is listed for a moment without that flag.
std::size_t threads_at_rest() {
    std::size_t count = threads_of_process();
    for (int quiet = 0; quiet < 20; ++quiet) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::size_t now = threads_of_process();
        if (now != count) quiet = 0;
        count = now;
    }
    return count;
}
// For at most 30 s, so that a thread that ended and is still listed is not counted.
std::size_t threads_until(std::size_t wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::size_t count = threads_at_rest();
    while (count != wanted && std::chrono::steady_clock::now() < end) count = threads_at_rest();
    return count;
}

// Counts visits, and the threads that made them.
struct Visits {
    explicit Visits(std::size_t size) : count(size) {}
    std::vector<unsigned> count;
    std::atomic<std::size_t> arrived{0};
    std::size_t wanted = 0;  // threads that every thread waits for before it does its first part
    std::mutex mutex{};
    std::set<std::thread::id> threads{};
    bool all_signals_blocked = true;

    void arrive() {
        {
            const std::lock_guard lock(mutex);
            if (!threads.insert(std::this_thread::get_id()).second) return;
            if (threads.size() > 1) {
                sigset_t blocked;
                pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                if (std::this_thread::get_id() != launching) {
                    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM})
                        all_signals_blocked = all_signals_blocked && sigismember(&blocked, signal) == 1;
                }
            }
        }
        arrived.fetch_add(1);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (arrived.load() < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    }
    std::thread::id launching = std::this_thread::get_id();
};
void visit(const Extent&, std::uint64_t first, std::uint64_t last, const void* erased) {
    Visits& visits = **static_cast<Visits* const*>(erased);
    visits.arrive();
    for (std::uint64_t at = first; at < last; ++at) ++visits.count[at];
}

class CpuThreads : public testing::Test {
protected:
    static std::unique_ptr<Driver> open(std::uint32_t threads) { return open_device(MachineFacts{}, threads); }
    static Status launch(Driver& driver, const KernelInfo& kernel, const Extent& extent, const void* pack) {
        return driver.execution().launch({&kernel, FunctionHandle::none, extent, pack, StreamHandle::none});
    }
    const KernelInfo row_ = kernel_of(1, visit);
};

// keeps R10, L16
TEST_F(CpuThreads, StartWithTheFirstLargeLaunchAndEndWithTheDevice) {
#if defined(__SANITIZE_THREAD__)
    std::thread([] {}).join();  // ThreadSanitizer starts one of its own with it
#endif
    const std::size_t before = threads_at_rest();
    for (const std::uint32_t threads : {0u, 1u}) {
        const std::unique_ptr<Driver> alone = open(threads);
        Visits visits(100000);
        Visits* const pack = &visits;
        ASSERT_TRUE(launch(*alone, row_, {100000, 1, 1}, &pack).ok());
        EXPECT_EQ(threads_until(before), before) << "none was asked for";
        EXPECT_EQ(visits.threads, std::set{std::this_thread::get_id()});
    }
    {
        std::unique_ptr<Driver> driver = open(3);
        EXPECT_EQ(threads_until(before), before);
        Visits few(64);
        Visits* pack = &few;
        ASSERT_TRUE(launch(*driver, row_, {64, 1, 1}, &pack).ok());
        EXPECT_EQ(threads_until(before), before) << "too small a launch";
        Visits many(100000);
        many.wanted = 3;
        pack = &many;
        ASSERT_TRUE(launch(*driver, row_, {100000, 1, 1}, &pack).ok());
        EXPECT_EQ(threads_until(before + 2), before + 2);
        EXPECT_EQ(many.threads.size(), 3u);
        EXPECT_EQ(many.threads.count(std::this_thread::get_id()), 1u) << "the launching thread works, too";
        EXPECT_TRUE(many.all_signals_blocked);
        for (const unsigned count : many.count) ASSERT_EQ(count, 1u);
    }
    EXPECT_EQ(threads_until(before), before);
}

// keeps L16
TEST_F(CpuThreads, RunEveryItemOnceOfEveryRankAgainAndAgain) {
    const std::unique_ptr<Driver> driver = open(4);
    for (int again = 0; again < 50; ++again) {
        for (const Extent& extent : {Extent{50000, 1, 1}, Extent{100, 500, 1}, Extent{50, 10, 100}}) {
            const auto rank = static_cast<std::uint8_t>(extent.y == 1 ? 1 : extent.z == 1 ? 2 : 3);
            std::vector<unsigned> count(50000);
            struct Pack {
                unsigned* count;
            } const pack{count.data()};
            const KernelInfo kernel =
                kernel_of(rank, [](const Extent& all, std::uint64_t first, std::uint64_t last, const void* erased) {
                    unsigned* const to = static_cast<const Pack*>(erased)->count;
                    const std::uint64_t inner = 50000 / (all.z > 1 ? all.z : all.y > 1 ? all.y : all.x);
                    for (std::uint64_t at = first * inner; at < last * inner; ++at) ++to[at];
                });
            ASSERT_TRUE(launch(*driver, kernel, extent, &pack).ok());
            for (const unsigned visited : count) ASSERT_EQ(visited, 1u);
        }
    }
}

// keeps L16
TEST_F(CpuThreads, RunGraphsAndLaunchesOfTwoThreadsAtATime) {
    const std::unique_ptr<Driver> driver = open(3);
    StreamHandle stream{};
    ASSERT_TRUE(driver->execution().create_stream(0, stream).ok());
    std::vector<std::atomic<std::uint32_t>> sums(60000);
    auto* const pack = sums.data();
    const KernelInfo kernel =
        kernel_of(1, [](const Extent&, std::uint64_t first, std::uint64_t last, const void* erased) {
            auto* const to = *static_cast<std::atomic<std::uint32_t>* const*>(erased);
            for (std::uint64_t at = first; at < last; ++at) to[at].fetch_add(1);
        });
    Captures& captures = *driver->captures();
    GraphHandle graph{};
    GraphInstanceHandle instance{};
    ASSERT_TRUE(captures.begin(stream).ok());
    ASSERT_TRUE(driver->execution().launch({&kernel, FunctionHandle::none, {60000, 1, 1}, &pack, stream}).ok());
    ASSERT_TRUE(captures.end(stream, graph).ok());
    ASSERT_TRUE(captures.instantiate(graph, instance).ok());
    std::thread other([&] {
        for (int n = 0; n < 100; ++n) EXPECT_TRUE(launch(*driver, kernel, {60000, 1, 1}, &pack).ok());
    });
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(captures.launch(instance, stream).ok());
    other.join();
    for (const auto& sum : sums) ASSERT_EQ(sum.load(), 200u);
}

// The same bits: a thread of its own would round as it did when it started. keeps L16
TEST_F(CpuThreads, RoundAsTheLaunchingThreadDoes) {
    const std::unique_ptr<Driver> driver = open(3);
    struct Thirds {
        std::vector<double> values = std::vector<double>(100000);
        Visits visits{0};
    };
    const KernelInfo kernel =
        kernel_of(1, [](const Extent&, std::uint64_t first, std::uint64_t last, const void* erased) {
            Thirds& to = **static_cast<Thirds* const*>(erased);
            to.visits.arrive();
            volatile double one = 1, three = 3;
            for (std::uint64_t at = first; at < last; ++at) to.values[at] = one / three;
        });
    const auto play = [&](Thirds& to) {
        to.visits.wanted = 3;  // each thread computes a part
        Thirds* const pack = &to;
        return launch(*driver, kernel, {100000, 1, 1}, &pack);
    };
    Thirds nearest, upward;
    ASSERT_TRUE(play(nearest).ok());
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const Status launched = play(upward);
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(launched.ok());
    for (const Thirds* const thirds : {&nearest, &upward}) {
        ASSERT_EQ(thirds->visits.threads.size(), 3u);
        for (const double value : thirds->values) ASSERT_EQ(value, thirds->values[0]);
    }
    ASSERT_NE(upward.values[0], nearest.values[0]);
}

// A stand-in takes its grid at once. keeps L16
TEST_F(CpuThreads, LeaveKernelsOfModulesToTheLaunchingThread) {
    const std::unique_ptr<Driver> driver = open(3);
    std::atomic<int> calls{0};
    std::atomic<int>* const pack = &calls;
    const KernelInfo kernel = kernel_of(4, [](const Extent&, std::uint64_t, std::uint64_t, const void* erased) {
        (*static_cast<std::atomic<int>* const*>(erased))->fetch_add(1);
    });
    ASSERT_TRUE(launch(*driver, kernel, {100000, 10, 1}, &pack).ok());
    EXPECT_EQ(calls.load(), 1);
}

// A child that cannot make happen what it tests ends with this number, and the test is skipped.
constexpr int impossible = 77;
// Runs `body` in a child of a fork, which must end with 0 before a deadline.
template <class Body>
void in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        body();
        std::_Exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == impossible)
        GTEST_SKIP() << "the system starts a thread all the same";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// keeps R3
TEST_F(CpuThreads, AreLeftAloneByTheDestructorInAForkedChild) {
    std::unique_ptr<Driver> driver = open(3);
    Visits visits(100000);
    visits.wanted = 3;
    Visits* const pack = &visits;
    ASSERT_TRUE(launch(*driver, row_, {100000, 1, 1}, &pack).ok());
    in_child([&] {
        driver.reset();
#if !defined(__SANITIZE_THREAD__)               // which takes no new thread after a fork
        std::unique_ptr<Driver> own = open(2);  // a device of the child's own has workers of its own
        Visits again(100000);
        again.wanted = 2;
        Visits* const packed = &again;
        if (!launch(*own, kernel_of(1, visit), {100000, 1, 1}, &packed).ok() || again.threads.size() != 2)
            std::_Exit(1);
#endif
    });
    ASSERT_TRUE(launch(*driver, row_, {100000, 1, 1}, &pack).ok());  // and the parent's still work
}

#if !defined(ISTHMUS_SANITIZED)  // which need address space of their own
// keeps R6
TEST_F(CpuThreads, RunEverythingAloneWhereTheSystemStartsNone) {
    in_child([&] {
        // Larger stacks than those of ended threads that glibc keeps, and no address space for one more.
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, std::size_t{1} << 30) != 0 ||
            pthread_setattr_default_np(&attributes) != 0)
            std::_Exit(2);
        const rlimit little{1 << 20, 1 << 20};
        if (setrlimit(RLIMIT_AS, &little) != 0) std::_Exit(2);
        pthread_t thread{};  // qemu's emulation of a process sets no limit
        if (pthread_create(
                &thread, nullptr, [](void* none) { return none; }, nullptr) == 0)
            std::_Exit(impossible);
        static unsigned char count[100000];
        unsigned char* const pack = count;
        const KernelInfo kernel =
            kernel_of(1, [](const Extent&, std::uint64_t first, std::uint64_t last, const void* erased) {
                unsigned char* const to = *static_cast<unsigned char* const*>(erased);
                for (std::uint64_t at = first; at < last; ++at) ++to[at];
            });
        const std::unique_ptr<Driver> driver = open(3);
        for (int n = 0; n < 2; ++n)
            if (!launch(*driver, kernel, {100000, 1, 1}, &pack).ok()) std::_Exit(3);
        for (const unsigned char visited : count)
            if (visited != 2) std::_Exit(4);
        if (threads_of_process() != 1) std::_Exit(5);
    });
}
#endif

}  // namespace
}  // namespace isthmus::platform::cpu
