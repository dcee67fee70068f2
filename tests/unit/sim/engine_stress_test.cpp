// SPDX-License-Identifier: Apache-2.0
// Sixteen threads use one engine of the simulator at once; sums and orders must be right.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace isthmus::sim::engine::tests {
namespace {

constexpr int thread_count = 16;

void on_all_threads(const std::function<void(int)>& body) {
    std::vector<std::thread> all;
    for (int t = 0; t < thread_count; ++t) all.emplace_back([&body, t] { body(t); });
    for (std::thread& thread : all) thread.join();
}

TEST(EngineStress, EachThreadsOwnStreamKeepsItsOrderAmongSixteen) {  // keeps S4
    Engine engine(threads(2), nullptr);
    on_all_threads([&](int t) {
        const StreamId stream = engine.create_stream(t % 2, t % 3 == 0 ? non_blocking() : StreamOptions{});
        const EventId event = engine.create_event(true);
        int next = 0, out_of_order = 0;  // unsynchronized: only stream order protects them
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(engine.submit(stream, kernel([&, i] { return out_of_order += next++ != i, 0; })), code::ok);
            if (i % 10 == 0) {
                EXPECT_EQ(engine.record(event, stream), code::ok);
            }
            if (i % 25 == 0) {
                EXPECT_EQ(engine.synchronize_event(event), code::ok);
            }
        }
        EXPECT_EQ(engine.synchronize(stream), code::ok);
        EXPECT_EQ(next, 100);
        EXPECT_EQ(out_of_order, 0);
        EXPECT_EQ(engine.destroy_stream(stream), code::ok);
        EXPECT_EQ(engine.destroy_event(event), code::ok);
    });
}

TEST(EngineStress, OneSharedStreamRunsOneOperationAtATimeForSixteenThreads) {
    Engine engine(threads(), nullptr);
    const StreamId shared = engine.create_stream(0, {});
    int sum = 0;  // unsynchronized: only stream order protects it
    on_all_threads([&](int) {
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(engine.submit(shared, kernel([&] { return ++sum, 0; })), code::ok);
        }
        EXPECT_EQ(engine.synchronize(shared), code::ok);
    });
    EXPECT_EQ(sum, thread_count * 100);
}

TEST(EngineStress, LegacyBarriersHoldAmongSixteenThreads) {
    Engine engine(threads(), nullptr);
    std::atomic<int> inside = 0, overlaps = 0;
    on_all_threads([&](int t) {
        const StreamId stream = engine.create_stream(0, {});
        for (int i = 0; i < 40; ++i) {
            const auto legacy = [&] { return overlaps += inside != 0, 0; };
            const auto blocking = [&] {
                ++inside;
                std::this_thread::yield();
                --inside;
                return 0;
            };
            const bool on_legacy = (i + t) % 8 == 0;
            EXPECT_EQ(on_legacy ? engine.submit(engine.legacy_stream(0), kernel(legacy))
                                : engine.submit(stream, kernel(blocking)),
                      code::ok);
        }
        EXPECT_EQ(engine.destroy_stream(stream), code::ok);
    });
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(overlaps, 0);
}

TEST(EngineStress, CapturesAndLaunchesOfSixteenThreadsStayApart) {  // keeps S19
    Engine engine(threads(), nullptr);
    std::array<std::atomic<int>, thread_count> ran{};
    on_all_threads([&](int t) {
        const StreamId stream = engine.create_stream(0, {});
        const StreamId branch = engine.create_stream(0, {});
        const EventId fork = engine.create_event(false), join = engine.create_event(false);
        for (int round = 0; round < 5; ++round) {
            EXPECT_EQ(engine.begin_capture(stream, CaptureMode::thread_local_), code::ok);
            EXPECT_EQ(engine.submit(stream, kernel([&, t] { return ++ran[t], 0; })), code::ok);
            EXPECT_EQ(engine.record(fork, stream), code::ok);
            EXPECT_EQ(engine.wait(branch, fork), code::ok);
            for (StreamId both : {stream, branch}) {
                EXPECT_EQ(engine.submit(both, kernel([&, t] { return ++ran[t], 0; })), code::ok);
            }
            EXPECT_EQ(engine.record(join, branch), code::ok);
            EXPECT_EQ(engine.wait(stream, join), code::ok);
            GraphInstance instance;
            EXPECT_EQ(engine.end_capture(stream, instance.graph), code::ok);
            for (int launch = 0; launch < 5; ++launch) EXPECT_EQ(engine.launch(stream, instance), code::ok);
        }
        EXPECT_EQ(engine.synchronize(stream), code::ok);
        EXPECT_EQ(ran[t], 5 * 5 * 3);
    });
}

TEST(EngineStress, AStickyErrorReachesAllOfSixteenWaiters) {
    Engine engine(threads(), nullptr);
    std::atomic<int> told = 0;
    on_all_threads([&](int t) {
        const StreamId stream = engine.create_stream(0, non_blocking());
        for (int i = 0; i < 20; ++i) {
            const int submitted = engine.submit(stream, t == 7 && i == 10 ? fails_with(700) : kernel([] { return 0; }));
            EXPECT_TRUE(submitted == code::ok || submitted == 700) << submitted;
        }
        while (engine.synchronize(stream) == code::ok) std::this_thread::yield();
        if (engine.synchronize(stream) == 700) ++told;
    });
    EXPECT_EQ(told, thread_count);
}

TEST(EngineStress, ALongChainTakesNoStack) {
    Gate gate;
    int sum = 0;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId event = engine.create_event(false);
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    for (int i = 0; i < 100'000; ++i) ASSERT_EQ(engine.record(event, stream), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ++sum, 0; })), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(sum, 1);
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
