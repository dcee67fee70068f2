// SPDX-License-Identifier: Apache-2.0
// Launch modes on the machine at hand: what each accepts, what it costs, and its messages.
#include "scenario.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;
constexpr LaunchOptions checked{.mode = LaunchMode::checked};
constexpr LaunchOptions strict{.mode = LaunchMode::strict};
constexpr LaunchOptions verify{.mode = LaunchMode::verify};

std::vector<std::int32_t> zeros() {
    return std::vector<std::int32_t>(count, 0);
}

TEST(LaunchMode, CheckedLetsPassExactlyWhatTheDeviceReaches) {  // keeps L3, L5, A3
    on_every_device([](Device& device) {
        std::vector<std::int32_t> memory = zeros();
        Buffer<std::int32_t> pageable = device.allocate_host<std::int32_t>(count).value();
        { (void)pageable.write_on_host().value(); }
        const bool reaches = device.is_cpu() || device.capabilities().has(Feature::pageable_access);
        const auto by_buffer = device.stream().launch(checked, add_one, count, pageable);
        const auto by_view = device.stream().launch(checked, add_one, count, View<std::int32_t>{memory.data(), count});
        if (reaches) {
            EXPECT_TRUE(worked(by_buffer));
            EXPECT_TRUE(worked(by_view));
            device.synchronize().value();
            EXPECT_EQ(memory[count - 1], 1);
            return;
        }
        ASSERT_TRUE(refused_as(by_buffer, Code::not_accessible));
        const std::string message(by_buffer.error().message());
        for (const std::string& part : {std::string("kernel 'add_one'"), std::string("argument 'data'"),
                                        std::string("host memory"), std::string(device.name())}) {
            EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
        }
        EXPECT_FALSE(by_buffer.error().remedy().empty());
        EXPECT_TRUE(refused_as(by_view, Code::not_accessible));
        EXPECT_EQ(memory[0], 0);
    });
}

TEST(LaunchMode, CheckedTakesOneDriverCallAndAsksNothingOfOwnedMemory) {  // keeps L3, K4
    Device& device = runtime().default_device();
    if (device.is_cpu() || driver_calls() < 0) GTEST_SKIP() << "driver calls are counted on the simulator";
    Buffer<std::int32_t> a = device.allocate<std::int32_t>(count).value();
    Buffer<std::int32_t> b = device.allocate<std::int32_t>(count).value();
    device.stream().fill_bytes(a, 0).value();
    (void)device.stream().launch(checked, scale_into, count, b, a, 2).value();
    for (const LaunchOptions& options :
         {checked, strict, LaunchOptions{.mode = LaunchMode::staged}, LaunchOptions{.mode = LaunchMode::relaxed}}) {
        const LaunchExplanation told = device.stream().explain(options, scale_into, count, b, a, 2);
        EXPECT_TRUE(unless_fault(!told.refusal && told.driver_calls == 1));
        const long before = driver_calls();
        (void)device.stream().launch(options, scale_into, count, b, a, 2).value();
        EXPECT_TRUE(unless_fault(driver_calls() - before == 1)) << isthmus::name(*options.mode);
    }
}

TEST(LaunchMode, StrictTakesOnlyWhatTheLaunchDeviceAllocated) {  // keeps L2
    on_every_device([](Device& device) {
        Buffer<std::int32_t> own = device.allocate_shared<std::int32_t>(count).value();
        { (void)own.write_on_host().value(); }
        EXPECT_TRUE(worked(device.stream().launch(strict, add_one, count, own)));
        std::vector<std::int32_t> memory = zeros();
        EXPECT_TRUE(refused_as(device.stream().launch(strict, add_one, count, View<std::int32_t>{memory.data(), count}),
                               Code::unverified));
        EXPECT_EQ(memory[0], 0);
        for (Device& other : all_devices()) {
            if (&other == &device) continue;
            Buffer<std::int32_t> elsewhere = other.allocate_shared<std::int32_t>(count).value();
            EXPECT_TRUE(refused_as(device.stream().launch(strict, add_one, count, elsewhere), Code::wrong_device));
        }
    });
}

TEST(LaunchMode, ASpanIsForTheCpuDevice) {  // keeps A17
    on_every_device([](Device& device) {
        std::vector<std::int32_t> memory = zeros();
        for (const LaunchMode mode : {LaunchMode::relaxed, LaunchMode::checked}) {
            const auto launched =
                device.stream().launch({.mode = mode}, add_one, count, std::span<std::int32_t>(memory));
            if (device.is_cpu()) {
                EXPECT_TRUE(worked(launched));
            } else {
                EXPECT_TRUE(refused_as(launched, Code::not_accessible));
            }
        }
        EXPECT_EQ(memory[0], device.is_cpu() ? 2 : 0);
    });
}

TEST(LaunchMode, VerifyReturnsWhenTheKernelHasEnded) {  // keeps L11
    on_every_device([](Device& device) {
        Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(count).value();
        { (void)data.write_on_host().value(); }
        EXPECT_TRUE(worked(device.stream().launch(verify, churn, count, data, 1000)));
        EXPECT_TRUE(worked(device.stream().synchronize(Wait::never()))) << "nothing is left to wait for";
    });
}

TEST(LaunchMode, ExplainAgreesWithTheLaunch) {  // keeps L5
    on_every_device([](Device& device) {
        Buffer<std::int32_t> own = device.allocate_shared<std::int32_t>(count, {.kind = MemoryKind::device}).value();
        { (void)own.write_on_host().value(); }
        Buffer<std::int32_t> pageable = device.allocate_host<std::int32_t>(count).value();
        { (void)pageable.write_on_host().value(); }
        Buffer<std::int32_t> none;
        for (Buffer<std::int32_t>* buffer : {&own, &pageable, &none}) {
            for (const LaunchMode mode : {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict}) {
                if (mode == LaunchMode::relaxed && buffer == &pageable) continue;  // a GPU may fault on it
                const auto told = device.stream().explain({.mode = mode}, add_one, count, *buffer);
                ASSERT_EQ(told.arguments.size(), 1u);
                EXPECT_EQ(told.arguments[0].name, "data");
                EXPECT_FALSE(told.arguments[0].sentence.empty());
                const auto launched = device.stream().launch({.mode = mode}, add_one, count, *buffer);
                if (told.refusal) {
                    ASSERT_TRUE(refused_as(launched, told.refusal->code()));
                    EXPECT_EQ(launched.error().text(), told.refusal->text());
                } else {
                    EXPECT_TRUE(worked(launched));
                }
            }
        }
        device.synchronize().value();
    });
}

// keeps L1: what a program gets that names no mode anywhere
TEST(LaunchMode, RelaxedIsWhatARuntimeOpensWith) {
    Runtime another = Runtime::open().value();
    for (std::size_t at = 0; at < another.device_count(); ++at) {
        Device& device = *another.device(at).value();
        EXPECT_EQ(device.stream().launch_mode(), LaunchMode::relaxed);
        EXPECT_EQ(device.create_stream().value().launch_mode(), LaunchMode::relaxed);
    }
    // Memory of unknown origin raises no warning there, as it does in checked mode.
    std::vector<std::int32_t> values(count, 1);
    const View<std::int32_t> raw{values.data(), values.size()};
    EXPECT_TRUE(worked(another.cpu().stream().launch(add_one, count, raw)));
    EXPECT_EQ(another.statistics().unverified_arguments, 0u);
    EXPECT_EQ(values.front(), 2);
}

}  // namespace
}  // namespace conformance
