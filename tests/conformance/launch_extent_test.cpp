// SPDX-License-Identifier: Apache-2.0
// Extents that no launch may have: the same answer on every device, for every index space and by every way of
// launching.
#include "scenario.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 64;
constexpr std::int64_t negative = -1;
constexpr std::uint64_t x = 2147483647, yz = 65535;  // CUDA's grid limits, in blocks

bool names(const Error& error, std::string_view part) {
    return error.message().find(part) != std::string_view::npos;
}

// keeps L12
TEST(LaunchExtent, ANegativeNumberOfItemsIsRefusedByNameOnEveryDevice) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 5);
        for (const std::int64_t number : {negative, std::numeric_limits<std::int64_t>::min()}) {
            const auto refused = stream.launch(add_one, number, data);
            ASSERT_TRUE(refused_as(refused, Code::invalid_argument));
            EXPECT_TRUE(unless_fault(names(refused.error(), "'add_one'")));
            EXPECT_TRUE(unless_fault(names(refused.error(), std::to_string(number) + " items")));
        }
        const int difference = 3 - 4;  // as programs get it
        EXPECT_TRUE(refused_as(stream.launch(add_one, difference, data), Code::invalid_argument));
        EXPECT_TRUE(refused_as(device.launch(add_one, difference, data), Code::invalid_argument));
        expect_all(data, 5);
        EXPECT_TRUE(worked(stream.launch(add_one, 0, data)));  // zero stays a no-op
        expect_all(data, 5);
        (void)stream.launch(add_one, count, data).value();
        expect_all(data, 6);
    });
}

// keeps L12
TEST(LaunchExtent, EachSpaceHasOneLimitForGpusAndTheCpu) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Buffer<std::uint64_t> places = device.allocate<std::uint64_t>(count).value();
        Buffer<std::int64_t> sums = device.allocate_shared<std::int64_t>(1).value();
        const auto no = Code::invalid_argument;
        EXPECT_TRUE(refused_as(stream.launch(add_one, x * 256 + 1, data), no));
        EXPECT_TRUE(refused_as(stream.launch(add_one, std::numeric_limits<std::uint64_t>::max() / 2, data), no));
        const auto minus = static_cast<std::uint64_t>(negative);
        for (const Extent2 extent : {Extent2{x * 32 + 1, 1}, Extent2{1, yz * 8 + 1}, Extent2{minus, 1},
                                     Extent2{1, minus}, Extent2{0, minus}}) {
            EXPECT_TRUE(refused_as(stream.launch(coordinates, extent, places, 8), no)) << extent.width;
        }
        for (const Extent3 extent :
             {Extent3{x * 8 + 1, 1, 1}, Extent3{1, yz * 8 + 1, 1}, Extent3{1, 1, yz * 4 + 1}, Extent3{1, 1, minus}}) {
            EXPECT_TRUE(refused_as(stream.launch(coordinates_3d, extent, places, 4, 4), no)) << extent.depth;
        }
        for (const Blocks blocks : {Blocks(x + 1), Blocks(1, yz + 1), Blocks(1, 1, yz + 1), Blocks(minus)}) {
            EXPECT_TRUE(refused_as(stream.launch(block_sums, blocks, sums, data), no)) << blocks.x;
        }
        EXPECT_TRUE(worked(stream.launch(coordinates, {8, 0}, places, 8)));
        EXPECT_TRUE(worked(stream.launch(coordinates_3d, {0, 4, 4}, places, 4, 4)));
        EXPECT_TRUE(worked(stream.launch(block_sums, 0, sums, data)));
        expect_all(data, 1);
        const auto height = stream.launch(coordinates, {1, yz * 8 + 1}, places, 8);
        ASSERT_TRUE(refused_as(height, no));
        EXPECT_TRUE(unless_fault(names(height.error(), "524281 items of height")));
        EXPECT_TRUE(unless_fault(names(height.error(), "at most 524280")));
        (void)stream.launch(block_sums, 1, sums, data).value();
        EXPECT_EQ(sums.read_on_host().value()[0], 64);
    });
}

// keeps L12
TEST(LaunchExtent, EveryModeAndTheExplanationRefuseAlike) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 2);
        for (const LaunchMode mode :
             {LaunchMode::relaxed, LaunchMode::checked, LaunchMode::strict, LaunchMode::staged, LaunchMode::verify}) {
            const LaunchOptions options{.mode = mode};
            EXPECT_TRUE(refused_as(stream.launch(options, add_one, negative, data), Code::invalid_argument));
            const LaunchExplanation told = stream.explain(options, add_one, negative, data);
            EXPECT_TRUE(unless_fault(told.refusal && told.refusal->code() == Code::invalid_argument));
            EXPECT_TRUE(unless_fault(told.driver_calls == 0));
        }
        expect_all(data, 2);
    });
}

// keeps L12, S16
TEST(LaunchExtent, GraphsTakeNoneWhenTheyAreMadeOrPatchedAndStayAsTheyWere) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 0);
        Capture capture = stream.begin_capture().value();
        EXPECT_TRUE(refused_as(capture.launch(add_one, negative, data), Code::invalid_argument));
        EXPECT_TRUE(refused_as(stream.launch(add_one, x * 256 + 1, data), Code::invalid_argument));
        const auto node = capture.launch(add_one, count, data);
        if (!node) {  // a driver that names no nodes
            (void)capture.end();
            return;
        }
        GraphInstance again = capture.end().value().instantiate().value();
        EXPECT_TRUE(refused_as(again.set_arguments(*node, negative, data), Code::invalid_argument));
        EXPECT_TRUE(refused_as(again.set_arguments(*node, x * 256 + 1, data), Code::invalid_argument));
        stream.launch(again).value();
        expect_all(data, 1);
    });
}

}  // namespace
}  // namespace conformance
