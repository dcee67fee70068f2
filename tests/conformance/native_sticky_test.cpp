// SPDX-License-Identifier: Apache-2.0
// Work of other code that answers a code from which the driver does not recover, in a process of its own.
#include "scenario.hpp"
#include "native_calls.hpp"

#include <cstdint>
#include <string_view>

namespace conformance {
namespace {

enum cudaError { cudaSuccess = 0, cudaErrorIllegalAddress = 700 };

// keeps W4, R2
TEST(NativeSticky, ACodeOfALostDeviceLosesIt) {
    Device& device = runtime().default_device();
    if (device.is_cpu()) GTEST_SKIP() << "no device is lost";
    Stream stream = device.create_stream().value();
    Buffer<std::int32_t> data = pinned(device, 64, 5);
    Buffer<std::int32_t> held = pinned(device, 64, 6);
    auto scope = stream.open_native_scope("inference", updates(held)).value();
    const auto lost = stream.enqueue_native(
        "faults", [](void*, std::int32_t*) { return cudaErrorIllegalAddress; }, updates(data));
    ASSERT_TRUE(refused_as(lost, Code::device_lost));
    EXPECT_TRUE(unless_fault(lost.error().driver_code() == 700));
    EXPECT_TRUE(unless_fault(lost.error().message().find("faults") != std::string_view::npos));
    EXPECT_FALSE(device.healthy());
    bool called = false;
    EXPECT_TRUE(refused_as(stream.enqueue_native("later", [&](void*) { called = true; }), Code::device_lost));
    EXPECT_FALSE(called);
    EXPECT_TRUE(refused_as(stream.open_native_scope("later", updates(data)), Code::device_lost));
    EXPECT_TRUE(refused_as(stream.wait_native(&called), Code::device_lost));
    // The scope ends all the same, and keeps nobody from salvaging.
    EXPECT_TRUE(refused_as(held.salvage_on_host(), Code::in_use));
    EXPECT_TRUE(refused_as(scope.close(), Code::device_lost));
    EXPECT_EQ(held.salvage_on_host().value()[0], 6);
    EXPECT_EQ(data.salvage_on_host().value()[0], 5);
}

}  // namespace
}  // namespace conformance
