// SPDX-License-Identifier: Apache-2.0
// The order of operations in a capture, which streams have rejoined at its end, and what prevents a capture on a
// stream.
#include "fake_device.hpp"
#include "refused_with.hpp"

#include "buffer_state.hpp"
#include "graph_errors.hpp"
#include "graph_state.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

// Runs once on the host during the next run of the kernel: the fake GPU runs its work during a query of an event.
std::function<void()>& meanwhile() {
    static std::function<void()> what;
    return what;
}

ISTHMUS_KERNEL(negate, isthmus::Index i, isthmus::View<int> data) {
    data[i] = -data[i];
    if (i == 0 && meanwhile()) std::exchange(meanwhile(), nullptr)();
}

using isthmus::ArgumentUse;
using isthmus::Buffer;
using isthmus::Capture;
using isthmus::Code;
using isthmus::Device;
using isthmus::LaunchMode;
using isthmus::Stream;
using isthmus::detail::CaptureBranch;
using isthmus::detail::merged_uses;
using isthmus::detail::RecordedOperation;
using isthmus::detail::unjoined_streams;
using isthmus::testing::FakeRuntime;
using isthmus::testing::FakeWorld;
using isthmus::testing::refused_with;
namespace errors = isthmus::errors;

std::vector<RecordedOperation> operations(const std::vector<std::vector<std::uint32_t>>& after) {
    std::vector<RecordedOperation> made(after.size());
    for (std::size_t at = 0; at < after.size(); ++at) made[at].after = after[at];
    return made;
}
// The streams are 1, 2, 3 … in the order of their tails.
std::vector<std::uint64_t> unjoined(const std::vector<std::vector<std::uint32_t>>& after,
                                    const std::vector<std::vector<std::uint32_t>>& tails) {
    std::vector<CaptureBranch> branches;
    for (const auto& tail : tails) branches.push_back({nullptr, branches.size() + 1, tail});
    return unjoined_streams(operations(after), branches);
}

TEST(JoinedStreams, AStreamAloneIsJoined) {  // keeps S14
    EXPECT_TRUE(unjoined({}, {{}}).empty());
    EXPECT_TRUE(unjoined({{}, {0}}, {{1}}).empty());
}

TEST(JoinedStreams, WhoHasGivenNothingSinceItForkedIsBack) {  // keeps S14
    EXPECT_TRUE(unjoined({{}, {0}}, {{1}, {0}}).empty());
    EXPECT_TRUE(unjoined({{}}, {{0}, {}}).empty());
}

TEST(JoinedStreams, WhoseLastOperationTheOriginDoesNotFollowIsAway) {  // keeps S14
    const std::vector<std::uint64_t> second{2};
    EXPECT_EQ(unjoined({{}, {0}}, {{0}, {1}}), second);
    EXPECT_EQ(unjoined({{}, {}}, {{0}, {1}}), second);        // forked before any operation
    EXPECT_EQ(unjoined({{}, {0}, {1}}, {{1}, {2}}), second);  // rejoined, and continued
    EXPECT_EQ(unjoined({{}}, {{}, {0}}), second);             // the origin has no operation
}

TEST(JoinedStreams, TheWayBackMayLeadThroughOthers) {  // keeps S14
    // 0 origin; 1 on the second; 2 on the third after it; 3 origin after that.
    EXPECT_TRUE(unjoined({{}, {0}, {1}, {0, 2}}, {{3}, {1}, {2}}).empty());
    // A wait without a further operation rejoins, too.
    EXPECT_TRUE(unjoined({{}, {0}, {0}}, {{0, 1, 2}, {1}, {2}}).empty());
    const std::vector<std::uint64_t> third{3};
    EXPECT_EQ(unjoined({{}, {0}, {0}}, {{0, 1}, {1}, {1, 2}}), third);
}

struct Captures : testing::Test {
    FakeWorld world;
    FakeRuntime runtime;
    Device device{runtime.open(world)};
    Stream& stream = device.stream();
};

TEST_F(Captures, ALaunchClaimsEachBufferOnceWithAllThatIsDoneWithIt) {  // keeps S15
    Buffer<int> one = device.allocate<int>(4).value();
    Buffer<int> two = device.allocate<int>(4).value();
    std::vector<RecordedOperation> recorded(2);
    recorded[0].uses.emplace_back(one.state(), ArgumentUse::read, 0);
    recorded[0].uses.emplace_back(two.state(), ArgumentUse::read, 1);
    recorded[1].uses.emplace_back(one.state(), ArgumentUse::write, 0);
    {
        const auto merged = merged_uses(recorded);
        ASSERT_EQ(merged.size(), 2u);
        EXPECT_EQ(merged[0].buffer, one.state());
        EXPECT_EQ(merged[0].use, ArgumentUse::read_write);
        EXPECT_EQ(merged[1].use, ArgumentUse::read);
    }
    EXPECT_EQ(one.release().code(), Code::in_use);
    recorded.clear();
    EXPECT_TRUE(one.release().ok());
}

TEST_F(Captures, OperationsKnowWhatTheyFollowAndUse) {
    Buffer<int> data = device.allocate<int>(4).value();
    Buffer<int> other = device.allocate<int>(4).value();
    Capture capture = stream.begin_capture().value();
    ASSERT_TRUE(stream.launch(negate, 4, data).ok());
    ASSERT_TRUE(stream.copy(other, data).ok());
    const auto graph = capture.end().value();
    const std::vector<RecordedOperation>& recorded = graph.state()->operations;
    ASSERT_EQ(recorded.size(), 2u);
    EXPECT_STREQ(recorded[0].name, "negate");
    ASSERT_NE(recorded[0].kernel, nullptr);
    EXPECT_STREQ(recorded[0].kernel->name, "negate");
    EXPECT_TRUE(recorded[0].after.empty());
    ASSERT_EQ(recorded[0].uses.size(), 1u);
    EXPECT_EQ(recorded[0].uses[0].use, ArgumentUse::read_write);
    EXPECT_EQ(recorded[1].stream_id, stream.id());
    EXPECT_EQ(recorded[1].kernel, nullptr);
    EXPECT_EQ(recorded[1].after, std::vector<std::uint32_t>{0});
    ASSERT_EQ(recorded[1].uses.size(), 2u);
    EXPECT_EQ(recorded[1].uses[0].buffer, data.state());
    EXPECT_EQ(recorded[1].uses[1].argument, 1u);
}

// On another thread, because this one is inside the call.
Code begin_elsewhere(Stream& stream) {
    Code answer = Code::ok;
    std::thread([&] {
        const auto begun = stream.begin_capture();
        answer = begun.code();
    }).join();
    return answer;
}

TEST_F(Captures, NoneBeginsBetweenAStagedLaunchAndItsCopiesBack) {  // keeps L4, S19
    std::vector<int> data{1, 2, 3, 4};
    Code answer = Code::ok;
    meanwhile() = [&] { answer = begin_elsewhere(stream); };
    ASSERT_TRUE(stream.launch({.mode = LaunchMode::staged}, negate, 4, std::span<int>(data)).ok());
    EXPECT_EQ(answer, Code::in_use);
    EXPECT_EQ(data, (std::vector<int>{-1, -2, -3, -4}));
    EXPECT_EQ(begin_elsewhere(stream), Code::ok);
}

TEST_F(Captures, NoneBeginsBetweenThePiecesOfACopy) {  // keeps K22, S19
    Buffer<int> on_device = device.allocate<int>(4).value();
    std::vector<int> data{1, 2, 3, 4};
    ASSERT_TRUE(stream.copy_from_host(on_device, std::span<const int>(data)).ok());
    Code answer = Code::ok;
    meanwhile() = [&] { answer = begin_elsewhere(stream); };
    ASSERT_TRUE(stream.launch(negate, 4, on_device).ok());
    ASSERT_TRUE(stream.copy_to_host(std::span<int>(data), on_device).ok());
    EXPECT_EQ(answer, Code::in_use);
    EXPECT_EQ(data, (std::vector<int>{-1, -2, -3, -4}));
    EXPECT_EQ(begin_elsewhere(stream), Code::ok);
}

TEST_F(Captures, AStagedLaunchAndACopyInPiecesAreRefusedWhereAnotherThreadCaptures) {  // keeps S19
    Buffer<int> on_device = device.allocate<int>(4).value();
    std::vector<int> data{1, 2, 3, 4};
    Capture capture = stream.begin_capture().value();
    std::thread([&] {
        EXPECT_EQ(stream.copy_to_host(std::span<int>(data), on_device).code(), Code::capture_error);
        EXPECT_EQ(stream.launch({.mode = LaunchMode::staged}, negate, 4, std::span<int>(data)).code(),
                  Code::capture_error);
    }).join();
    EXPECT_EQ(capture.end().value().size(), 0u);
}

TEST_F(Captures, AnEndThatFailsOnceIsTriedAgain) {  // keeps S14, R6
    Buffer<int> data = device.allocate<int>(4).value();
    std::optional<Capture> capture = stream.begin_capture().value();
    ASSERT_TRUE(stream.launch(negate, 4, data).ok());
    world.failing_ends = 1;
    EXPECT_TRUE(capture->end().ok());
    EXPECT_TRUE(world.capturing.empty());
    EXPECT_EQ(world.count("end capture"), 2u);
}

TEST_F(Captures, AnEndThatKeepsFailingIsTriedAgainWhenTheStreamIsNextUsed) {  // keeps S14, R6
    Buffer<int> data = device.allocate<int>(4).value();
    std::optional<Capture> capture = stream.begin_capture().value();
    ASSERT_TRUE(stream.launch(negate, 4, data).ok());
    world.failing_ends = 1000;
    EXPECT_EQ(capture->end().code(), Code::driver_error);
    capture.reset();
    EXPECT_FALSE(world.capturing.empty());
    EXPECT_EQ(stream.launch(negate, 4, data).code(), Code::driver_error) << "it would be recorded for nobody";
    world.failing_ends = 0;
    ASSERT_TRUE(stream.launch(negate, 4, data).ok());
    EXPECT_TRUE(world.capturing.empty());
    EXPECT_TRUE(stream.synchronize().ok());
}

// Nothing can be removed from an open capture, and the first of its driver calls may have become a node.
TEST_F(Captures, AFillThatFailsMidwayHoldsItsBuffer) {  // keeps S14, K6
    Buffer<std::uint64_t> data = device.allocate<std::uint64_t>(4).value();
    std::optional<Capture> capture = stream.begin_capture().value();
    world.fail_at = static_cast<int>(world.calls.size()) + 2;
    EXPECT_EQ(stream.fill(data, std::uint64_t{0x0123456789abcdef}).code(), Code::driver_error);
    EXPECT_EQ(world.count("fill"), 2u) << "the second failed";
    EXPECT_EQ(data.release().code(), Code::in_use);
    {
        const auto graph = capture->end().value();
        EXPECT_EQ(data.release().code(), Code::in_use);
    }
    EXPECT_TRUE(data.release().ok());
}

TEST_F(Captures, AnAppendThatNothingWouldWaitForLeavesNoGraph) {  // keeps S14, S15
    Capture inner = stream.begin_capture().value();
    const auto graph = inner.end().value();
    {
        Capture capture = stream.begin_capture().value();
        ASSERT_TRUE(capture.append(graph).ok());
        EXPECT_TRUE(capture.end().ok());
    }
    Capture capture = stream.begin_capture().value();
    world.fail_code = Code::capture_error;
    world.fail_at = static_cast<int>(world.calls.size()) + 1;
    EXPECT_EQ(capture.append(graph).code(), Code::capture_error);
    const auto ended = capture.end();
    ASSERT_EQ(ended.code(), Code::capture_error);
    EXPECT_NE(std::string(ended.error().message()).find("append"), std::string::npos);
    EXPECT_EQ(world.graphs.size(), 1u);
    EXPECT_TRUE(world.capturing.empty());
}

TEST_F(Captures, ADriverWithoutConditionalNodesSaysSoAndTheCaptureGoesOn) {  // keeps S14
    Buffer<std::int32_t> word = device.allocate<std::int32_t>(1).value();
    Capture inner = stream.begin_capture().value();
    (void)stream.launch(negate, 1, word).value();
    const auto body = inner.end().value();
    Capture capture = stream.begin_capture().value();
    for (const bool loops : {true, false}) {
        const auto refused = loops ? capture.loop_while(word, body) : capture.run_if(word, body);
        ASSERT_EQ(refused.code(), Code::unsupported);
        EXPECT_NE(std::string(refused.error().remedy()).find("CUDA 12.3"), std::string::npos);
    }
    (void)stream.launch(negate, 1, word).value();
    EXPECT_TRUE(capture.end().value().instantiate().ok());
}

// A graph that does not free what it allocates can be launched once only.
TEST_F(Captures, AGraphWhoseMemoryCannotBeFreedIsNone) {  // keeps K13, S14
    for (const int failing : {2, 3}) {
        Capture capture = stream.begin_capture().value();
        { const Buffer<int> data = stream.allocate<int>(4).value(); }
        world.failing_releases = failing;
        EXPECT_EQ(capture.end().ok(), failing < 3) << "a free is tried again";
        EXPECT_EQ(world.failing_releases, 0);
        EXPECT_TRUE(world.graphs.empty());
        EXPECT_TRUE(world.capturing.empty());
    }
}

TEST_F(Captures, ADeviceWhoseDriverHasNoneRefusesToBeginOne) {  // keeps S14
    Buffer<int> data = device.allocate<int>(4).value();
    world.has_captures = false;
    EXPECT_TRUE(refused_with<errors::device_without_captures>(stream.begin_capture()));
    EXPECT_TRUE(stream.launch(negate, 4, data).ok());
    EXPECT_TRUE(stream.synchronize().ok());
    world.has_captures = true;
    EXPECT_TRUE(stream.begin_capture().ok());
}

// A driver that does not return the node of a launch still records it.
TEST_F(Captures, AKernelWithoutANameKeepsItsArguments) {  // keeps S16
    Buffer<int> data = device.allocate_shared<int>(4, {.kind = isthmus::MemoryKind::pinned}).value();
    Buffer<int> other = device.allocate_shared<int>(4, {.kind = isthmus::MemoryKind::pinned}).value();
    data.write_on_host().value()[0] = 5;
    other.write_on_host().value()[0] = 7;
    Capture capture = stream.begin_capture().value();
    const auto node = capture.launch(negate, 4, data).value();
    auto instance = capture.end().value().instantiate().value();
    EXPECT_TRUE(refused_with<errors::node_without_name>(instance.set_arguments(node, 4, other)));
    ASSERT_TRUE(stream.launch(instance).ok());
    EXPECT_EQ(data.read_on_host().value()[0], -5);
    EXPECT_EQ(other.read_on_host().value()[0], 7);
}

TEST_F(Captures, ANodeTakesNothingThatALaunchOfItsGraphCouldNotUse) {  // keeps S16, S15
    world.names_nodes = true;
    Buffer<int> data = device.allocate<int>(4).value();
    Capture others = stream.begin_capture().value();
    Buffer<int> of_others = stream.allocate<int>(4).value();
    ASSERT_TRUE(stream.launch(negate, 4, of_others).ok());
    const auto first = others.end().value();
    Capture capture = stream.begin_capture().value();
    const auto node = capture.launch(negate, 4, data).value();
    const auto graph = capture.end().value();
    auto instance = graph.instantiate().value();
    world.calls.clear();
    using errors::node_argument_of_another_graph;
    EXPECT_TRUE(refused_with<node_argument_of_another_graph>(instance.set_arguments(node, 4, of_others)));
    runtime.config->launch_mode = LaunchMode::staged;
    std::vector<int> plain{1, 2, 3, 4};
    const auto copied = instance.set_arguments(node, 4, std::span<int>(plain));
    EXPECT_TRUE(refused_with<errors::node_argument_needs_copies>(copied));
    EXPECT_EQ(world.count("launch"), 0u);
    EXPECT_EQ(data.release().code(), Code::in_use) << "the graph uses it still";
}

}  // namespace
