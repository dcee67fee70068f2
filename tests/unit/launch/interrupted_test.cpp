// SPDX-License-Identifier: Apache-2.0
// Calls made by a signal handler that interrupts a call of the same thread: refused, where waiting for a lock would
// never end.
#include "components.hpp"
#include "fake_device.hpp"
#include "refused_with.hpp"

#include "device_errors.hpp"
#include "process.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

// The handlers here allocate, as docs/errors.md says that they must not. They can: each runs within std::raise(), which
// this thread calls outside of malloc. ThreadSanitizer reports every allocation in a handler.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier): ThreadSanitizer's name
    return "report_signal_unsafe=0";
}

namespace {

using namespace isthmus;
using isthmus::testing::refused_with;

ISTHMUS_KERNEL(raise_by_one, Index i, View<int> data) {
    data[i] += 1;
}

struct One {
    isthmus::testing::FakeWorld world;
    isthmus::testing::FakeRuntime runtime;
    Device device{runtime.open(world)};
};

std::function<void()> in_handler;

// Raises a signal on this thread within the next driver call whose name begins with `call`.
class Interrupted {
public:
    Interrupted(isthmus::testing::FakeWorld& world, std::string call, std::function<void()> handler) : world_(world) {
        in_handler = std::move(handler);
        before_ = std::signal(SIGUSR1, [](int) { in_handler(); });
        world_.inside = [this, call = std::move(call)](const std::string& made) {
            if (raised_ || made.rfind(call, 0) != 0) return;
            raised_ = true;
            std::raise(SIGUSR1);
        };
    }
    Interrupted(const Interrupted&) = delete;
    Interrupted& operator=(const Interrupted&) = delete;
    ~Interrupted() {
        EXPECT_TRUE(raised_) << "no such call was made";
        world_.inside = nullptr;
        std::signal(SIGUSR1, before_);
        in_handler = nullptr;
    }

private:
    isthmus::testing::FakeWorld& world_;
    void (*before_)(int) = nullptr;
    bool raised_ = false;
};

// What a handler may try; each is refused while the thread holds a stream.
void expect_all_refused(Device& device, Stream& stream, Buffer<int>& buffer) {
    EXPECT_TRUE(refused_with<errors::called_inside_another_call>(stream.launch(raise_by_one, 8, buffer)));
    EXPECT_TRUE(refused_with<errors::called_inside_another_call>(stream.fill(buffer, 1)));
    EXPECT_TRUE(refused_with<errors::called_inside_another_call>(device.allocate<int>(8)));
    EXPECT_TRUE(refused_with<errors::called_inside_another_call>(device.create_stream()));
    EXPECT_TRUE(refused_with<errors::called_inside_another_call>(stream.synchronize()));
}

// keeps S21
TEST(Interrupted, AHandlerThatInterruptsALaunchIsRefusedAndDoesNotWait) {
    One fake;
    Device& device = fake.device;
    Stream stream = device.create_stream().value();
    Buffer<int> buffer = device.allocate<int>(8).value();
    ASSERT_TRUE(stream.launch(raise_by_one, 8, buffer).ok());  // the long way: loads the code
    for (const char* const way : {"launch", "launch"}) {       // the short way, and again after the refusals
        const Interrupted by(fake.world, way, [&] { expect_all_refused(device, stream, buffer); });
        EXPECT_TRUE(stream.launch(raise_by_one, 8, buffer).ok()) << "the interrupted call is as if nothing happened";
    }
    EXPECT_FALSE(process::here.taken());
    EXPECT_TRUE(stream.launch(raise_by_one, 8, buffer).ok());
    EXPECT_TRUE(stream.synchronize().ok());
}

// keeps S21
TEST(Interrupted, SoDoesOneThatInterruptsAnOperationThatGivesWork) {
    One fake;
    Device& device = fake.device;
    Stream stream = device.create_stream().value();
    Buffer<int> buffer = device.allocate<int>(8).value();
    {
        const Interrupted by(fake.world, "fill", [&] { expect_all_refused(device, stream, buffer); });
        EXPECT_TRUE(stream.fill(buffer, 3).ok());
    }
    {
        const Interrupted by(fake.world, "resolve", [&] { expect_all_refused(device, stream, buffer); });
        EXPECT_TRUE(stream.launch(raise_by_one, 8, buffer).ok()) << "the long way";
    }
    EXPECT_FALSE(process::here.taken());
    EXPECT_TRUE(stream.synchronize().ok());
}

// keeps S21: what may be asked in a handler is what may be asked in a host function
TEST(Interrupted, AHandlerMayAskWhatNeedsNoLockOfTheStream) {
    One fake;
    Device& device = fake.device;
    Stream stream = device.create_stream().value();
    Buffer<int> buffer = device.allocate<int>(8).value();
    const std::uint64_t position = stream.launch(raise_by_one, 8, buffer).value().position;
    const Interrupted by(fake.world, "launch", [&] {
        EXPECT_FALSE(stream.completed(position));
        EXPECT_TRUE(device.healthy());
    });
    EXPECT_TRUE(stream.launch(raise_by_one, 8, buffer).ok());
}

}  // namespace
