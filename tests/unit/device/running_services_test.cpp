// SPDX-License-Identifier: Apache-2.0
// A service, and a call that would wait for it, never run at once: the first excludes the other.
#include "running_services.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;
using rules::DriverUse;

Result<std::uint64_t> begin(RunningServices& services, std::chrono::nanoseconds timeout) {
    return services.begin("answering", Deadline(Wait::at_most(timeout), 1h), WaitPolicy::adaptive);
}

// keeps G10
TEST(RunningServices, AServiceDoesNotStartBesideACallThatWouldWaitForItAndNamesIt) {
    for (const rules::ServingAnswer& answer : rules::serving_answers()) {
        RunningServices services;
        std::optional<CallInFlight> call = services.enter(answer.use);
        ASSERT_TRUE(call);
        const Result<std::uint64_t> begun = begin(services, 1ms);
        EXPECT_EQ(begun.ok(), !answer.waits) << answer.deed;
        if (begun) continue;
        EXPECT_EQ(begun.code(), Code::timed_out);
        EXPECT_NE(begun.error().message().find(answer.deed), std::string_view::npos) << begun.error().text();
        EXPECT_FALSE(services.any()) << "it was taken back";
        call->leave();
        EXPECT_TRUE(begin(services, 0ms));
    }
}

// keeps G10
TEST(RunningServices, ACallThatBeginsBesideAServiceIsRefusedOrPutOffUntilItEnds) {
    for (const rules::ServingAnswer& answer : rules::serving_answers()) {
        RunningServices services;
        const std::uint64_t id = begin(services, 0ms).value();
        EXPECT_EQ(services.enter(answer.use).has_value(), !answer.waits) << answer.deed;
        int done = 0;
        EXPECT_EQ(services.enter_or_put_off(answer.use, [&] { ++done; }).has_value(), !answer.waits);
        EXPECT_EQ(services.allow(answer.use, "it").ok(), !answer.waits);
        EXPECT_EQ(services.refusal(answer.use, "it").code(), Code::in_use);
        EXPECT_EQ(done, 0);
        services.end(id);
        EXPECT_EQ(done, answer.waits ? 1 : 0);
        EXPECT_TRUE(services.enter(answer.use));
        EXPECT_TRUE(begin(services, 0ms)) << "a call that is over hinders nobody";
    }
}

// keeps G10
TEST(RunningServices, AStartWaitsForCallsInFlightAndThoseThatComeMeanwhileMakeWay) {
    RunningServices services;
    std::optional<CallInFlight> call = services.enter(DriverUse::free_device);
    std::atomic<bool> started{false};
    std::thread starting([&] {
        EXPECT_TRUE(begin(services, 1h));
        started.store(true);
    });
    while (!services.any()) std::this_thread::yield();
    EXPECT_FALSE(services.enter(DriverUse::free_pinned)) << "or a start might wait for ever";
    EXPECT_FALSE(started.load());
    call->leave();
    starting.join();
    EXPECT_TRUE(started.load());
}

// keeps G10
TEST(RunningServices, WhatHasEndedByItselfHindersNoCall) {
    RunningServices services;
    services.watch(begin(services, 0ms).value(), [] { return true; });
    EXPECT_TRUE(services.enter(DriverUse::synchronize_device));
    EXPECT_FALSE(services.any());
}

// keeps G10
TEST(RunningServices, OfSeveralOneThatServesRefusesTheCallAndHoldsNoneOfThem) {
    for (const rules::ServingAnswer& answer : rules::serving_answers()) {
        RunningServices first, second;
        const std::uint64_t id = begin(second, 0ms).value();
        const Result<std::vector<CallInFlight>> refused = enter_all({&first, &second, &first}, answer.use, "it");
        ASSERT_EQ(refused.ok(), !answer.waits) << answer.deed;
        if (refused) continue;
        EXPECT_EQ(refused.code(), Code::in_use);
        EXPECT_NE(refused.error().message().find("'answering'"), std::string_view::npos) << refused.error().text();
        EXPECT_TRUE(first.begin("another", Deadline(Wait::never(), 1h), WaitPolicy::adaptive)) << "nothing is held";
        second.end(id);
    }
}

// keeps G10
TEST(RunningServices, ACallThatEntersSeveralHoldsThemAll) {
    RunningServices first, second;
    Result<std::vector<CallInFlight>> calls = enter_all({&first, &second}, DriverUse::change_mapping, "it");
    ASSERT_TRUE(calls);
    EXPECT_EQ(begin(first, 1ms).code(), Code::timed_out);
    EXPECT_EQ(begin(second, 1ms).code(), Code::timed_out);
    calls->clear();
    EXPECT_TRUE(begin(first, 0ms));
    EXPECT_TRUE(begin(second, 0ms));
}

// keeps G10
TEST(RunningServices, WhatWasPutOffBehindAnEndedOneIsDoneBeforeACallHoldsAnyAndMayStartOne) {
    RunningServices first, second;
    bool over = false;
    second.watch(begin(second, 0ms).value(), [&] { return over; });
    Result<std::uint64_t> begun = Error(Code::not_ready, "", "");
    ASSERT_TRUE(second.put_off(DriverUse::unregister_host, [&] {
        begun = begin(first, 1ms);
        if (begun) first.end(*begun);
    }));
    over = true;
    EXPECT_TRUE(enter_all({&first, &second}, DriverUse::switch_peer_access, "it"));
    EXPECT_TRUE(begun) << begun.error().text();
}

// keeps G10
TEST(RunningServices, AnAttemptWithLocksHeldDoesNothingThatWasPutOff) {
    RunningServices services;
    bool over = false;
    services.watch(begin(services, 0ms).value(), [&] { return over; });
    int done = 0;
    ASSERT_TRUE(services.put_off(DriverUse::free_pinned, [&] { ++done; }));
    over = true;
    EXPECT_FALSE(services.try_enter(DriverUse::load_code)) << "nobody looked after it";
    EXPECT_EQ(done, 0);
    EXPECT_TRUE(services.enter(DriverUse::load_code));
    EXPECT_EQ(done, 1);
    EXPECT_TRUE(services.try_enter(DriverUse::load_code));
}

// keeps G10
TEST(RunningServices, NeitherLooksBeforeTheOtherCounts) {
    RunningServices services;
    std::atomic<int> calling{0}, serving{0}, together{0};
    std::atomic<int> over{0};
    constexpr int rounds = 2000;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&] {
            while (over.load() < 2) {
                const std::optional<CallInFlight> call = services.enter(DriverUse::free_device);
                if (!call) continue;
                calling.fetch_add(1);
                if (serving.load() != 0) together.fetch_add(1);
                calling.fetch_sub(1);
            }
        });
    }
    for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const Result<std::uint64_t> begun = begin(services, 1h);
                serving.fetch_add(1);
                if (calling.load() != 0) together.fetch_add(1);
                serving.fetch_sub(1);
                if (begun) services.end(*begun);
            }
            over.fetch_add(1);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together.load(), 0);
    EXPECT_FALSE(services.any());
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
