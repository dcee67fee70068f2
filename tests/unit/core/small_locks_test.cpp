// SPDX-License-Identifier: Apache-2.0
// PolledLock and StoreLock: one holder at a time, also for threads that only try and for one that slept meanwhile.
// Sleeps that a filter of system calls refuses.
#include "polled_lock.hpp"
#include "store_lock.hpp"
#include "view_lock.hpp"

#include <gtest/gtest.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

template <class Lock>
class SmallLocks : public testing::Test {};
using Locks = testing::Types<PolledLock, StoreLock>;
TYPED_TEST_SUITE(SmallLocks, Locks, );

TYPED_TEST(SmallLocks, HaveOneHolderAtATime) {  // keeps M7
    TypeParam lock;
    ASSERT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();

    constexpr int times = 20000;
    long sum = 0;  // not atomic: the lock orders the additions
    std::atomic<long> tried{0};
    const auto add = [&] {
        for (int at = 0; at < times; ++at) {
            const std::lock_guard held(lock);
            ++sum;
        }
    };
    const auto try_to_add = [&] {
        for (int at = 0; at < times; ++at) {
            if (!lock.try_lock()) continue;
            ++sum;
            tried.fetch_add(1, std::memory_order_relaxed);
            lock.unlock();
        }
    };
    std::thread other(add), trying(try_to_add);
    add();
    other.join();
    trying.join();
    EXPECT_EQ(sum, 2 * times + tried.load());
}

TYPED_TEST(SmallLocks, DoNotLetAThreadThatTriesWaitForOneThatLostItsCore) {  // keeps M7
    TypeParam lock;
    const std::lock_guard held(lock);
    std::thread trying([&] { EXPECT_FALSE(lock.try_lock()); });
    trying.join();  // while it is held
}

TYPED_TEST(SmallLocks, AreTakenByAThreadThatHasSleptMeanwhile) {
    TypeParam lock;
    bool done = false;
    std::thread waiting;
    {
        const std::lock_guard held(lock);
        waiting = std::thread([&] {
            const std::lock_guard late(lock);
            EXPECT_TRUE(done);
        });
        std::this_thread::sleep_for(2 * yielding);  // PolledLock sleeps from then on, StoreLock has slept
        done = true;
    }
    waiting.join();
    EXPECT_TRUE(lock.try_lock());
}

// The lock's two words lie on two pages. The second one is closed, so that the load of the sleepers comes to the
// handler, which looks at the first.
struct LockOnTwoPages {
    static LockOnTwoPages* here;
    std::byte* pages = nullptr;
    std::size_t page_bytes = 0;
    StoreLock* lock = nullptr;
    bool held = false, asked = false;

    static void look(int) noexcept {
        std::uint32_t word = 0;
        std::memcpy(&word, here->lock, sizeof word);
        here->held = word != 0;
        here->asked = true;
        (void)::mprotect(here->pages + here->page_bytes, here->page_bytes, PROT_READ | PROT_WRITE);
    }
};
LockOnTwoPages* LockOnTwoPages::here = nullptr;

TEST(StoreLocks, AreNotReadAfterTheyAreGivenBack) {  // keeps M7
    LockOnTwoPages test;
    LockOnTwoPages::here = &test;
    test.page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const pages =
        ::mmap(nullptr, 2 * test.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    test.pages = static_cast<std::byte*>(pages);
    static_assert(sizeof(StoreLock) == 8 && alignof(StoreLock) == 4);
    test.lock = ::new (test.pages + test.page_bytes - 4) StoreLock;
    test.lock->lock();

    struct sigaction before {
    }, handler{};
    handler.sa_handler = LockOnTwoPages::look;
    ASSERT_EQ(::sigaction(SIGSEGV, &handler, &before), 0);
    ASSERT_EQ(::mprotect(test.pages + test.page_bytes, test.page_bytes, PROT_NONE), 0);
    test.lock->unlock();
    ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
    EXPECT_TRUE(test.asked);
    EXPECT_TRUE(test.held) << "the next holder may have ended the lock";
    EXPECT_TRUE(test.lock->try_lock());
    ::munmap(pages, 2 * test.page_bytes);
}

TEST(StoreLocks, WakeEveryThreadThatWaits) {  // keeps M7
    StoreLock lock;
    long turns = 0;
    std::vector<std::thread> waiting;
    lock.lock();
    for (int at = 0; at < 8; ++at) {
        waiting.emplace_back([&] {
            for (int turn = 0; turn < 100; ++turn) {
                const std::lock_guard held(lock);
                ++turns;
            }
        });
    }
    std::this_thread::sleep_for(5 * std::chrono::nanoseconds(StoreLock::longest_sleep_ns));
    EXPECT_EQ(turns, 0);
    lock.unlock();
    for (std::thread& one : waiting) one.join();
    EXPECT_EQ(turns, 800);
}

// For the calling thread: futexes at this address are refused, and sched_yield() is a signal. false: such filters are
// not to be had here.
bool refuse_futex(const void* word) {
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    const auto low = static_cast<std::uint32_t>(address);
    constexpr auto first_argument = static_cast<std::uint32_t>(offsetof(seccomp_data, args));
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, first_argument),  // its lower half: little-endian
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof steps / sizeof *steps, steps};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

std::atomic<long> yields{0};
void count_yield(int) {
    yields.fetch_add(1, std::memory_order_relaxed);
}

template <class Lock>
class RefusedSleeps : public testing::Test {};
using SleepingLocks = testing::Types<StoreLock, ViewLock>;
TYPED_TEST_SUITE(RefusedSleeps, SleepingLocks, );

// keeps M7: of a real-time priority, a thread that yields leaves the core to no holder of a lower one.
TYPED_TEST(RefusedSleeps, LeaveTheCoreToTheHolder) {
    struct sigaction before {
    }, handler{};
    handler.sa_handler = count_yield;
    ASSERT_EQ(::sigaction(SIGSYS, &handler, &before), 0);
    yields = 0;
    TypeParam lock;
    std::atomic<int> begun{0};  // 1: locks next; -1: cannot be tried here
    bool done = false;
    std::thread waiting;
    {
        const std::lock_guard held(lock);
        waiting = std::thread([&] {
            const bool refused = refuse_futex(&lock);
            begun = refused ? 1 : -1;
            if (!refused) return;
            errno = 77;
            const std::lock_guard late(lock);
            EXPECT_EQ(errno, 77);
            EXPECT_TRUE(done);
        });
        while (begun == 0) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        done = true;
    }
    waiting.join();
    ASSERT_EQ(::sigaction(SIGSYS, &before, nullptr), 0);
    if (begun < 0) GTEST_SKIP() << "no filters of system calls";
    EXPECT_EQ(yields, 0);
    EXPECT_TRUE(lock.try_lock());
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
