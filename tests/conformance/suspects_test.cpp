// SPDX-License-Identifier: Apache-2.0
// A fault by memory that the device cannot reach, in a process of its own: the error names the buffer, its use and the
// rule.
#include "scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 1024;

// A buffer that the device has an address for and cannot reach; none: the machine lets it reach everything.
std::optional<Buffer<std::int32_t>> out_of_reach(Device& device) {
    for (Device& other : all_devices()) {
        if (&other == &device || other.is_cpu()) continue;
        if (auto theirs = other.allocate<std::int32_t>(count);
            theirs && device.can_access(*theirs).verdict == Verdict::no) {
            return std::move(theirs).value();
        }
    }
    if (auto host = device.allocate_host<std::int32_t>(count);
        host && device.can_access(*host).verdict == Verdict::no) {
        return std::move(host).value();
    }
    return std::nullopt;
}

// keeps L14, L8
TEST(StickySuspects, AFaultNamesTheBufferThatTheDeviceCannotReach) {
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "a fault on the CPU device is a fault of the process";
    std::optional<Buffer<std::int32_t>> far = out_of_reach(device);
    if (!far) GTEST_SKIP() << "this device reaches all memory that a buffer can have";
    Stream stream = device.create_stream().value();
    const AccessAnswer answer = device.can_access(*far);
    const auto launched = stream.launch(LaunchOptions{.mode = LaunchMode::relaxed}, add_one, count, *far);
    const std::string use = "'add_one' (operation " + std::to_string(launched ? launched->position : 1) +
                            " of stream " + std::to_string(stream.id()) + "): " + std::string(answer.reason);
    const Result<void> lost = device.synchronize();
    ASSERT_TRUE(refused_as(lost, Code::device_lost));
    EXPECT_EQ(lost.error().driver_code(), 700);
    const std::string text = lost.error().text();
    EXPECT_NE(text.find("may have been caused by a buffer of 4096 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find(use), std::string::npos) << text << "\n" << use;
    EXPECT_NE(text.find("raw views and addresses"), std::string::npos) << text;
    // Every later refusal says it, too.
    const auto later = stream.launch(add_one, count, *far);
    ASSERT_TRUE(refused_as(later, Code::device_lost));
    EXPECT_NE(later.error().text().find(use), std::string::npos) << later.error().text();
    EXPECT_FALSE(device.healthy());
    far.reset();  // released on a lost device, and gone from the records
}

}  // namespace
}  // namespace conformance
