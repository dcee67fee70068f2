// SPDX-License-Identifier: Apache-2.0
// A graph of two devices, one of which faults while it runs, in a process of its own.
#include "scenario.hpp"

#include <isthmus/graph.hpp>

#include <cstdint>

namespace conformance {
namespace {

TEST(LostInAGraph, ADeviceThatFaultsEndsTheGraphForAllWhoTakePart) {  // keeps R2, R5, S14
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU only";
    Device& device = *runtime().device(0).value();
    Device& other = *runtime().device(1).value();
    SharedUse pinned;
    pinned.kind = MemoryKind::pinned;
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(64, pinned).value();
    {
        auto view = data.write_on_host().value();
        for (std::int32_t& value : view) value = 7;
    }
    Stream stream = device.create_stream().value();
    Stream beside = other.create_stream().value();
    beside.set_launch_mode(LaunchMode::relaxed);
    // An unmapped address as a raw view, which relaxed mode lets through.
    const View<std::int32_t> nowhere{reinterpret_cast<std::int32_t*>(std::uintptr_t{0x10}), 64};
    Capture capture = stream.begin_capture().value();
    stream.launch(add_one, 64, data).value();
    beside.wait_stream(stream).value();
    beside.launch(add_one, 64, nowhere).value();
    stream.wait_stream(beside).value();
    {
        const GraphInstance instance = capture.end().value().instantiate().value();
        stream.launch(instance).value();
        const auto here = stream.synchronize();
        if (!here) {
            EXPECT_TRUE(refused_as(here, Code::device_lost));
        }
        const auto there = other.synchronize();
        if (there.ok()) {  // no work of its own to wait for: the next call reports the fault
            EXPECT_TRUE(refused_as(other.allocate<std::int32_t>(64), Code::device_lost));
        }
        EXPECT_TRUE(refused_as(stream.launch(instance), Code::device_lost));
    }
    EXPECT_FALSE(other.healthy() && device.healthy());
    EXPECT_EQ(data.salvage_on_host().value().size(), 64u);
}

}  // namespace
}  // namespace conformance
