// SPDX-License-Identifier: Apache-2.0
// A watchdog calls back once for each silence of its loop, and never while it is fed.
#include <isthmus/seal.hpp>

#include <gtest/gtest.h>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;

void wait_for(const std::atomic<int>& count, int value) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (count.load() < value && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
}

// keeps T1
TEST(Watchdogs, CallOnceForEachSilence) {
    std::atomic<int> called{0};
    std::atomic<std::int64_t> silent{0};
    Watchdog dog = Watchdog::start(2ms, [&](std::chrono::nanoseconds so_long) {
                       silent.store(so_long.count());
                       called.fetch_add(1);
                   }).value();
    wait_for(called, 1);
    ASSERT_EQ(called.load(), 1);
    EXPECT_GE(silent.load(), 2'000'000);
    std::this_thread::sleep_for(30ms);
    EXPECT_EQ(called.load(), 1) << "the silence is the same";
    dog.feed();
    wait_for(called, 2);
    EXPECT_EQ(called.load(), 2);
}

TEST(Watchdogs, LeaveALoopAloneThatLives) {
    std::atomic<int> called{0};
    Watchdog moved = Watchdog::start(10min, [&](std::chrono::nanoseconds) { called.fetch_add(1); }).value();
    const Watchdog dog = std::move(moved);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(called.load(), 0);
}  // ends at once, and not after ten minutes

// keeps R1
TEST(Watchdogs, AreRefusedWithoutLimitOrCallback) {
    EXPECT_EQ(Watchdog::start(0ns, [](std::chrono::nanoseconds) {}).code(), Code::invalid_argument);
    EXPECT_EQ(Watchdog::start(1s, nullptr).code(), Code::invalid_argument);
}

TEST(Watchdogs, SayWhyNoThreadStarts) {
    pthread_attr_t usual;
    pthread_attr_t huge;
    ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
    ASSERT_EQ(pthread_attr_init(&huge), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);  // more than the address space
    ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
    const Result<Watchdog> made = Watchdog::start(1s, [](std::chrono::nanoseconds) {});
    EXPECT_EQ(pthread_setattr_default_np(&usual), 0);
    EXPECT_EQ(made.code(), Code::system_error);
    if (!made) {
        EXPECT_EQ(made.error().id(), "J030");
    }
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
}

}  // namespace
