// SPDX-License-Identifier: Apache-2.0
// Two GPUs, one of which faults: its memory is refused to the other device, in every way of access. Each test has a
// process of its own, because a device stays lost.
#include "scenario.hpp"

#include <isthmus/graph.hpp>
#include <isthmus/mapping/growable_buffer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 256;
constexpr LaunchMode every_mode[] = {LaunchMode::relaxed, LaunchMode::strict, LaunchMode::checked, LaunchMode::staged,
                                     LaunchMode::verify};

void lose(Device& device) {
    // An unmapped address as a raw view, which relaxed mode lets through.
    const View<std::int32_t> nowhere{reinterpret_cast<std::int32_t*>(std::uintptr_t{0x10}), count};
    (void)device.stream().launch(LaunchOptions{.mode = LaunchMode::relaxed}, add_one, count, nowhere);
    EXPECT_FALSE(device.synchronize().ok());
    ASSERT_FALSE(device.healthy());
}

// keeps R2, L5
TEST(LostOwner, ItsMemoryIsRefusedToOtherDevicesInEveryModeByEveryWay) {
    if (runtime().device_count() < 3) GTEST_SKIP() << "one GPU, or none";
    Device& device = *runtime().device(0).value();
    Device& other = *runtime().device(1).value();
    const bool peers = device.enable_peer_access(other).ok();
    Stream& stream = device.stream();

    Buffer<std::int32_t> own = pinned(device, count, 3);
    Buffer<std::int32_t> out = pinned(device, count, 0);
    std::vector<Buffer<std::int32_t>> theirs;
    theirs.push_back(other.allocate<std::int32_t>(count).value());
    if (other.capabilities().has(Feature::pools)) {
        theirs.push_back(other.allocate<std::int32_t>(count, MemoryKind::pool).value());
    }
    theirs.push_back(other.allocate_shared<std::int32_t>(count).value());  // staged, or the machine's preferred kind
    theirs.push_back(pinned(other, count, 7));
    for (Buffer<std::int32_t>& buffer : theirs) other.stream().fill(buffer, 7).value();
    other.synchronize().value();
    const View<const std::int32_t> raw{
        reinterpret_cast<const std::int32_t*>(static_cast<std::uintptr_t>(theirs.front().device_address())), count};
    std::optional<GrowableBuffer<std::int32_t>> stripe;
    if (auto made = GrowableBuffer<std::int32_t>::create(device, std::size_t{1} << 21, {.stripe = {&device, &other}})) {
        stripe.emplace(std::move(made).value());
        stripe->resize(std::size_t{1} << 20).value();  // one granule on each
        stream.fill(*stripe, 5).value();
        (void)stream.launch(scale_into, count, out, *stripe, 2).value();
        EXPECT_EQ(out.read_on_host().value()[count - 1], 10);
    }
    std::optional<GraphInstance> graph;
    if (peers) {
        Stream captured = device.create_stream().value();
        Capture capture = captured.begin_capture().value();
        (void)captured.launch(scale_into, count, out, theirs.front(), 2).value();
        graph.emplace(capture.end().value().instantiate().value());
        stream.launch(*graph).value();
        EXPECT_EQ(out.read_on_host().value()[count - 1], 14) << "while the owner is well";
    }
    // In staged mode all buffers are used once while their device is healthy.
    for (const Buffer<std::int32_t>& buffer : theirs) {
        const LaunchOptions staged{.mode = LaunchMode::staged};
        ASSERT_TRUE(worked(stream.launch(staged, scale_into, count, out, buffer, 3)));
        EXPECT_EQ(out.read_on_host().value()[count - 1], 21);
    }
    stream.fill(out, 0).value();
    device.synchronize().value();

    lose(other);
    if (!device.healthy() || !device.synchronize().ok()) GTEST_SKIP() << "this driver loses all devices together";

    for (const Buffer<std::int32_t>& buffer : theirs) {
        SCOPED_TRACE(isthmus::name(buffer.kind()));
        for (const LaunchMode mode : every_mode) {
            const LaunchOptions options{.mode = mode};
            const auto launched = stream.launch(options, scale_into, count, out, buffer, 3);
            ASSERT_TRUE(refused_as(launched, Code::device_lost));
            EXPECT_NE(launched.error().message().find("'in'"), std::string_view::npos) << launched.error().text();
            EXPECT_FALSE(launched.error().remedy().empty());
            const auto explained = stream.explain(options, scale_into, count, out, buffer, 3);
            ASSERT_TRUE(explained.refusal.has_value());
            EXPECT_EQ(explained.refusal->code(), Code::device_lost);
        }
        Buffer<std::int32_t> copied = pinned(device, count, 1);
        EXPECT_TRUE(refused_as(stream.copy(copied, buffer), Code::device_lost));
        EXPECT_EQ(stream.explain_copy(copied, buffer).path, CopyPath::refuse);
        EXPECT_EQ(copied.read_on_host().value()[0], 1);
        EXPECT_TRUE(refused_as(stream.prefetch(buffer), Code::device_lost));
    }
    for (Buffer<std::int32_t>& buffer : theirs) {
        EXPECT_TRUE(refused_as(stream.fill(buffer, 1), Code::device_lost));
        EXPECT_TRUE(refused_as(stream.copy(buffer, own), Code::device_lost));
    }
    for (const LaunchMode mode : {LaunchMode::strict, LaunchMode::checked, LaunchMode::staged, LaunchMode::verify}) {
        const auto launched = stream.launch(LaunchOptions{.mode = mode}, scale_into, count, out, raw, 3);
        EXPECT_TRUE(refused_as(launched, Code::device_lost)) << "by its address";
    }
    if (stripe) {
        for (const LaunchMode mode : every_mode) {
            const LaunchOptions options{.mode = mode};
            EXPECT_TRUE(refused_as(stream.launch(options, scale_into, count, out, *stripe, 3), Code::device_lost));
        }
        EXPECT_TRUE(refused_as(stream.fill(*stripe, 1), Code::device_lost));
    }
    if (graph) {
        EXPECT_TRUE(refused_as(stream.launch(*graph), Code::device_lost));
    }
    {
        Stream captured = device.create_stream().value();
        Capture capture = captured.begin_capture().value();
        EXPECT_TRUE(refused_as(captured.launch(scale_into, count, out, theirs.front(), 2), Code::device_lost));
        EXPECT_TRUE(worked(capture.end()));
    }
    EXPECT_EQ(out.read_on_host().value()[count - 1], 0) << "nothing of it came out";
    // The other device continues with its own memory, and the host reads what is in host memory.
    ASSERT_TRUE(worked(stream.launch(scale_into, count, out, own, 4)));
    EXPECT_EQ(out.read_on_host().value()[count - 1], 12);
    EXPECT_EQ(theirs.back().read_on_host().value()[count - 1], 7);
    Stream& cpu = runtime().cpu().stream();
    Buffer<std::int32_t> on_cpu = runtime().cpu().allocate_shared<std::int32_t>(count).value();
    ASSERT_TRUE(worked(cpu.launch(scale_into, count, on_cpu, theirs.back(), 2)));
    EXPECT_EQ(on_cpu.read_on_host().value()[count - 1], 14);
}

// keeps R2: also where nothing is left of the runtime that met the fault
TEST(LostOwner, ARuntimeOpenedAfterwardsTakesAnotherDefault) {
    {
        Runtime first = Runtime::open().value();
        if (first.default_device().is_cpu()) GTEST_SKIP() << "no GPU";
        EXPECT_EQ(first.default_device().index(), 0u);
        lose(first.default_device());
        EXPECT_NE(first.default_device().index(), 0u);
    }
    std::vector<std::string> lines;
    RuntimeOptions options;
    options.log = [&](Severity, std::string_view line) { lines.emplace_back(line); };
    Runtime second = Runtime::open(options).value();
    EXPECT_FALSE(second.device(0).value()->healthy());
    ASSERT_FALSE(lines.empty());
    EXPECT_NE(lines.front().find("device lost"), std::string::npos) << lines.front();
    Device& next = second.default_device();
    EXPECT_NE(next.index(), 0u) << "the next GPU that answers, or the CPU where there is none";
    EXPECT_TRUE(next.healthy());
    Buffer<std::int32_t> data = pinned(next, count, 1);
    EXPECT_TRUE(worked(next.stream().launch(add_one, count, data)));
    EXPECT_EQ(data.read_on_host().value()[0], 2);
    const auto refused = second.device(0).value()->allocate<std::int32_t>(count);
    ASSERT_TRUE(refused_as(refused, Code::device_lost));
    EXPECT_NE(refused.error().driver_code(), 0);
}

}  // namespace
}  // namespace conformance
