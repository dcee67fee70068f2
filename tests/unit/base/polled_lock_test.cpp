// SPDX-License-Identifier: Apache-2.0
// PolledLock: one holder at a time, also for a thread that had to ask again.
#include "polled_lock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

TEST(PolledLocks, HaveOneHolderAtATime) {
    PolledLock lock;
    lock.lock();
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();

    constexpr int times = 20000;
    long sum = 0;  // not atomic: the lock orders the additions
    const auto add = [&] {
        for (int at = 0; at < times; ++at) {
            const std::lock_guard held(lock);
            ++sum;
        }
    };
    std::thread other(add);
    add();
    other.join();
    EXPECT_EQ(sum, 2 * times);
}

TEST(PolledLocks, AreTakenByAThreadThatHasSleptMeanwhile) {
    PolledLock lock;
    bool done = false;
    std::thread waiting;
    {
        const std::lock_guard held(lock);
        waiting = std::thread([&] {
            const std::lock_guard late(lock);
            EXPECT_TRUE(done);
        });
        std::this_thread::sleep_for(2 * yielding);
        done = true;
    }
    waiting.join();
    EXPECT_TRUE(lock.try_lock());
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
