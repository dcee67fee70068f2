// SPDX-License-Identifier: Apache-2.0
// Closures of host functions: kept until they ran, destroyed once, and never while one runs.
#include "host_calls.hpp"
#include "process.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

template <class F>
std::shared_ptr<HostFunction> made_of(F function) {
    return std::make_shared<HostFunctionOf<F>>(std::move(function));
}

// keeps S20
TEST(HostCalls, EndTheirClosuresOnceTheyRan) {
    HostCalls calls;
    auto held = std::make_shared<int>(0);
    const auto first = made_of([held]() noexcept { ++*held; });
    calls.add(first);
    calls.add(made_of([held]() noexcept { ++*held; }));
    calls.reap();
    EXPECT_EQ(held.use_count(), 3) << "neither ran";
    run_once(first.get());
    run_once(first.get());
    EXPECT_EQ(*held, 1) << "once is once";
    calls.reap();
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_TRUE(calls.any());
}

// keeps S20: the driver never calls the functions of a lost device (cuLaunchHostFunc), and still has their addresses
TEST(HostCalls, DropWhatALostDeviceWillNeverCall) {
    HostCalls calls;
    auto held = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = held;
    std::shared_ptr<HostFunction> late = made_of([held = std::move(held)]() noexcept { ++*held; });
    HostFunction* const address = late.get();
    calls.add(std::move(late));
    calls.drop_all();
    EXPECT_FALSE(calls.any());
    EXPECT_TRUE(watched.expired());
    run_once(address);  // a late call of the driver: there is nothing left to call
}

// keeps S20
TEST(HostCalls, AreKeptWhileTheyRun) {
    HostCalls calls;
    auto held = std::make_shared<int>(0);
    const auto function = made_of([&calls, held]() noexcept {
        EXPECT_TRUE(process::here.in_host_function);
        calls.drop_all();
        calls.reap();
        ++*held;
    });
    calls.add(function);
    run_once(function.get());
    EXPECT_FALSE(process::here.in_host_function);
    EXPECT_EQ(*held, 1);
}

// keeps S20, S15: those of a graph run as often as it is launched
TEST(HostCalls, OfAGraphRunEachTime) {
    int ran = 0;
    const auto function = made_of([&ran]() noexcept { ran += process::here.in_host_function ? 1 : 100; });
    for (int launch = 0; launch < 3; ++launch) run_each_time(function.get());
    EXPECT_EQ(ran, 3);
}

// keeps S20
TEST(HostCalls, MoveToWhoeverOutlivesTheirStream) {
    HostCalls stream;
    HostCalls device;
    auto held = std::make_shared<int>(0);
    const auto function = made_of([held]() noexcept {});
    stream.add(function);
    device.take(stream);
    EXPECT_FALSE(stream.any());
    run_once(function.get());
    device.reap();
    EXPECT_FALSE(device.any());
}

// keeps S20
TEST(AfterHostFunctions, WorkIsDoneInOrderAndNotInsideOfOne) {
    AfterHostFunctions later;
    std::string done;
    later.put_off([&] { done += 'a'; });
    later.put_off([&] { done += 'b'; });
    const auto function = made_of([&later]() noexcept { later.drain(); });
    run_each_time(function.get());
    EXPECT_EQ(done, "");
    later.drain();
    later.drain();
    EXPECT_EQ(done, "ab");
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
