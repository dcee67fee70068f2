// SPDX-License-Identifier: Apache-2.0
// Sticky errors, host functions, stream callbacks and the hooks of the simulator's engine.
#include "engine_helpers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <memory>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace isthmus::sim::engine::tests {
namespace {

class EngineStickyError : public testing::TestWithParam<int> {};

TEST_P(EngineStickyError, EndsEverythingOnItsDeviceWithItsCode) {
    Engine engine(threads(2), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const EventId event = engine.create_event(true);
    std::atomic<bool> ran = false;
    std::atomic<int> seen = -1;
    Gate gate;
    Operation callback;
    callback.kind = Kind::stream_callback;
    callback.callback = [&](int code) { seen = code; };
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(stream, fails_with(GetParam())), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; })), code::ok);
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function, [&] { return ran = true, 0; })), code::ok);
    ASSERT_EQ(engine.submit(stream, callback), code::ok);
    ASSERT_EQ(engine.record(event, stream), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), GetParam());
    EXPECT_FALSE(ran);
    EXPECT_EQ(seen, GetParam());
    EXPECT_EQ(engine.device_code(0), GetParam());
    EXPECT_EQ(engine.query(stream), GetParam());
    EXPECT_EQ(engine.synchronize_device(0), GetParam());
    EXPECT_EQ(engine.query_event(event), GetParam());
    EXPECT_EQ(engine.synchronize_event(event), GetParam());
    EXPECT_EQ(engine.submit(stream, kernel([] { return 0; })), GetParam());
    EXPECT_EQ(engine.submit(engine.legacy_stream(0), kernel([] { return 0; })), GetParam());
    EXPECT_EQ(engine.record(event, stream), GetParam());
    EXPECT_EQ(engine.wait(stream, event), GetParam());
    EXPECT_EQ(engine.begin_capture(stream, CaptureMode::global), GetParam());
    GraphInstance empty;
    EXPECT_EQ(engine.launch(stream, empty), GetParam());
    EXPECT_EQ(engine.device_code(1), code::ok);
    EXPECT_EQ(engine.synchronize_device(1), code::ok);
}
INSTANTIATE_TEST_SUITE_P(Codes, EngineStickyError, testing::Values(700, 716, 719));

TEST(EngineErrors, TheFirstStickyErrorStays) {
    Engine engine(threads(), nullptr);
    engine.latch(0, 719);
    engine.latch(0, 700);
    EXPECT_EQ(engine.device_code(0), 719);
}

TEST(EngineErrors, AnErrorThatIsNotStickyIsToldOnceAndWorkGoesOn) {
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    std::atomic<bool> ran = false;
    WorkRef failing;
    ASSERT_EQ(engine.submit(stream, fails_with(code::invalid_value), &failing), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([&] { return ran = true, 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::invalid_value);
    EXPECT_TRUE(ran);
    EXPECT_EQ(engine.synchronize(failing), code::invalid_value);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(engine.device_code(0), code::ok);
}

TEST(EngineErrors, ALostDeviceWakesAWaiterThatItsRunningKernelWouldHold) {
    // The kernel's thread may be in them when the engine has given it up.
    const auto started = std::make_shared<Gate>(), stop = std::make_shared<Gate>();
    Options options = threads();
    options.grace_ns = 1'000'000;
    Engine engine(options, nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, kernel([=] { return started->open(), stop->wait(), 0; })), code::ok);
    started->wait();
    std::thread waiter([&] { EXPECT_EQ(engine.synchronize(stream), 719); });
    engine.latch(0, 719);
    waiter.join();
    stop->open();
    EXPECT_EQ(engine.synchronize_device(0), 719);
}

TEST(EngineErrors, ADelayedOperationIsDroppedAtOnceWhenItsDeviceIsLost) {
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    std::atomic<bool> ran = false;
    Operation delayed = kernel([&] { return ran = true, 0; });
    delayed.delay_ns = 3'600'000'000'000;  // an hour: the test ends because the operation is dropped
    ASSERT_EQ(engine.submit(stream, delayed), code::ok);
    engine.latch(0, 700);
    EXPECT_EQ(engine.synchronize(stream), 700);
    EXPECT_FALSE(ran);
}

TEST(EngineErrors, WorkOfAnotherDeviceThatWaitedForTheLostOneGoesOn) {
    Gate gate;
    Engine engine(threads(2), nullptr);
    const EventId event = engine.create_event(false);
    std::atomic<bool> ran = false;
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(0), fails_with(700)), code::ok);
    ASSERT_EQ(engine.record(event, engine.legacy_stream(0)), code::ok);
    ASSERT_EQ(engine.wait(engine.legacy_stream(1), event), code::ok);
    ASSERT_EQ(engine.submit(engine.legacy_stream(1), kernel([&] { return ran = true, 0; })), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize_device(1), code::ok);
    EXPECT_TRUE(ran);
    EXPECT_EQ(engine.synchronize_device(0), 700);
}

TEST(EngineErrors, AForkedChildThatDropsTheEngineEnds) {
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    ASSERT_EQ(engine.synchronize(stream), code::ok);  // an executor exists, in this process only
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(30);
        engine.~Engine();
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(engine.submit(stream, kernel([] { return 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
}

TEST(EngineErrors, ABodyMayLeaveAFaultByALongJumpToItself) {
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    const auto faulting = [] {
        sigjmp_buf before;
        if (sigsetjmp(before, 1) != 0) return 700;
        siglongjmp(before, 1);
    };
    ASSERT_EQ(engine.submit(stream, kernel(faulting)), code::ok);
    EXPECT_EQ(engine.synchronize(stream), 700);
}

TEST(EngineHostFunctions, AreKnownAsSuchAndMayNotWait) {  // keeps S20
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    bool inside = false;
    int waited = code::ok, device_waited = code::ok;
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function,
                                              [&] {
                                                  inside = Engine::in_host_function();
                                                  waited = engine.synchronize(stream);
                                                  device_waited = engine.synchronize_device(0);
                                                  return 0;
                                              })),
              code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_TRUE(inside);
    EXPECT_EQ(waited, code::not_permitted);
    EXPECT_EQ(device_waited, code::not_permitted);
    EXPECT_FALSE(Engine::in_host_function());
    bool inside_kernel = true;
    ASSERT_EQ(engine.submit(stream, kernel([&] { return inside_kernel = Engine::in_host_function(), 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_FALSE(inside_kernel);
}

TEST(EngineHostFunctions, HoldNoLockOfTheEngine) {
    Gate submitted;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, non_blocking());
    ASSERT_EQ(engine.submit(stream, operation(Kind::host_function, [&] { return submitted.wait(), 0; })), code::ok);
    const StreamId other = engine.create_stream(0, non_blocking());
    ASSERT_EQ(engine.submit(other, kernel([] { return 0; })), code::ok);
    EXPECT_EQ(engine.synchronize(other), code::ok);
    submitted.open();
    EXPECT_EQ(engine.synchronize(stream), code::ok);
}

TEST(EngineHostFunctions, AStreamCallbackOfAHealthyDeviceGetsZeroInStreamOrder) {
    Log log;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    Operation callback;
    callback.kind = Kind::stream_callback;
    callback.callback = [&](int code) { log.add("callback " + std::to_string(code)); };
    ASSERT_EQ(engine.submit(stream, logs(log, "before")), code::ok);
    ASSERT_EQ(engine.submit(stream, callback), code::ok);
    ASSERT_EQ(engine.submit(stream, logs(log, "after")), code::ok);
    ASSERT_EQ(engine.synchronize(stream), code::ok);
    EXPECT_EQ(log.entries(), (Entries{"before", "callback 0", "after"}));
}

// What a body captured may be destroyed under the caller's own locks, so the engine must hold none of its own.
TEST(EngineHostFunctions, DestroyingWhatABodyCapturedMayCallTheEngine) {
    Gate gate;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    std::atomic<int> destroyed = 0;
    const auto make = [&] {
        return std::shared_ptr<void>(&destroyed, [&](void*) {
            static_cast<void>(engine.query(stream));
            ++destroyed;
        });
    };
    ASSERT_EQ(engine.submit(stream, waits_for(gate)), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([held = make()] { return 0; })), code::ok);
    ASSERT_EQ(engine.submit(stream, fails_with(700)), code::ok);
    ASSERT_EQ(engine.submit(stream, kernel([held = make()] { return 0; })), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), 700);
    while (destroyed != 2) std::this_thread::yield();  // dropped ones are destroyed just after their end is announced
}

// The driver API destroys streams while it holds its own lock, which the destructor of captured memory takes, too.
TEST(EngineHostFunctions, WhatALostCaptureHeldIsDestroyedLaterAndNotUnderTheCallersLock) {
    std::mutex callers;
    std::atomic<int> destroyed = 0;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.begin_capture(stream, CaptureMode::relaxed), code::ok);
    std::shared_ptr<void> held(&destroyed, [&](void*) {
        const std::lock_guard<std::mutex> lock(callers);
        ++destroyed;
    });
    ASSERT_EQ(engine.submit(stream, kernel([held] { return 0; })), code::ok);
    held = nullptr;
    {
        const std::lock_guard<std::mutex> lock(callers);
        ASSERT_EQ(engine.destroy_stream(stream), code::ok);
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(engine.synchronize_device(0), code::ok);
    EXPECT_EQ(destroyed, 1);
}

// A program may end as soon as it sees the code: what device_latched() says must be out by then.
TEST(EngineHooks, HearOfALostDeviceBeforeAnyCallAnswersItsCode) {
    class SlowHooks : public Hooks {
    public:
        void device_latched(int, int) override {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            told = true;
        }
        std::atomic<bool> told = false;
    } hooks;
    Engine engine(threads(), &hooks);
    const StreamId stream = engine.create_stream(0, {});
    ASSERT_EQ(engine.submit(stream, fails_with(700)), code::ok);
    EXPECT_EQ(engine.synchronize(stream), 700);
    EXPECT_TRUE(hooks.told);
}

TEST(EngineEnds, CountsOfWhatIsLeftCanWaitForTheDestructionOfEndedWork) {
    struct Slow {
        std::atomic<bool>& gone;
        ~Slow() {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            gone = true;
        }
    };
    std::atomic<bool> gone = false;
    Engine engine(threads(), nullptr);
    const StreamId stream = engine.create_stream(0, {});
    Gate gate;
    ASSERT_EQ(engine.submit(stream, kernel([&] { return gate.wait(), 700; })), code::ok);
    // Dropped, so that it is destroyed after its end is visible.
    ASSERT_EQ(engine.submit(stream, kernel([slow = std::shared_ptr<Slow>(new Slow{gone})] { return 0; })), code::ok);
    gate.open();
    EXPECT_EQ(engine.synchronize(stream), 700);
    engine.await_destruction();
    EXPECT_TRUE(gone);
}

class RecordingHooks : public Hooks {
public:
    void thread_begins() override { ++threads_begun; }
    void gpu_work_begins(const Operation& operation) override { log.add("gpu begins " + operation.label); }
    void gpu_work_ends(const Operation& operation) override { log.add("gpu ends " + operation.label); }
    void host_work_begins(const Operation& operation) override { log.add("host begins " + operation.label); }
    void host_work_ends(const Operation& operation) override { log.add("host ends " + operation.label); }
    void device_latched(int device, int code) override {
        log.add("device " + std::to_string(device) + " latched " + std::to_string(code));
    }
    Log log;
    std::atomic<int> threads_begun = 0;
};

TEST(EngineHooks, SurroundGpuAndHostWorkAndNothingElse) {
    Gate gate;
    RecordingHooks hooks;
    {
        Engine engine(threads(), &hooks);
        const StreamId stream = engine.create_stream(0, {});
        const auto named = [&](Kind kind, const char* label) {
            Operation made = operation(kind, [&hooks, label] { return hooks.log.add(label), 0; });
            made.label = label;
            return made;
        };
        ASSERT_EQ(engine.submit(stream, operation(Kind::free, [&] { return gate.wait(), 0; })), code::ok);
        ASSERT_EQ(engine.submit(stream, named(Kind::kernel, "scale")), code::ok);
        ASSERT_EQ(engine.submit(stream, named(Kind::free, "freed")), code::ok);
        ASSERT_EQ(engine.submit(stream, named(Kind::host_function, "told")), code::ok);
        ASSERT_EQ(engine.submit(stream, fails_with(700)), code::ok);
        ASSERT_EQ(engine.submit(stream, named(Kind::copy, "dropped")), code::ok);
        gate.open();
        EXPECT_EQ(engine.synchronize(stream), 700);
    }
    EXPECT_EQ(hooks.log.entries(),
              (Entries{"gpu begins scale", "scale", "gpu ends scale", "freed", "host begins told", "told",
                       "host ends told", "gpu begins ", "gpu ends ", "device 0 latched 700"}));
    EXPECT_GE(hooks.threads_begun, 1);
}

}  // namespace
}  // namespace isthmus::sim::engine::tests
