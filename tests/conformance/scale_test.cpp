// SPDX-License-Identifier: Apache-2.0
// What one operation costs in driver calls does not depend on how many streams and buffers there are.
#include "scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace conformance {
namespace {

// Queries are repeated as often as a wait takes, and an event is made when none of the earlier ones has ended yet.
constexpr const char* timed_calls[] = {"cuEventQuery", "cuStreamQuery", "cuEventCreate"};

long calls_that_do_not_depend_on_time() {
    long calls = driver_calls();
    for (const char* const function : timed_calls) calls -= driver_calls(function);
    return calls;
}

// Each round of a stream: a launch over a buffer that the host may view, and two fills of another buffer, the first of
// which needs a fence behind the launch.
constexpr long calls_of_a_round = 1 + 2 + 1;

struct Pair {
    Stream stream;
    Buffer<std::int32_t> viewable, own;
};

void go_round(std::vector<Pair>& pairs, std::size_t rounds_in_all) {
    for (std::size_t round = 0; round < rounds_in_all; ++round) {
        Pair& pair = pairs[round % pairs.size()];
        (void)pair.stream.launch(churn, pair.viewable.size(), pair.viewable, 1).value();
        pair.stream.fill_bytes(pair.own, 0).value();
        pair.stream.fill_bytes(pair.own, 1).value();
    }
}

// keeps S3, L7
TEST(Scale, LaunchesFillsAndFencesCostTheSameBesideManyStreamsAndBuffers) {
    Device& device = runtime().default_device();
    if (!counts_calls(device)) GTEST_SKIP() << "only the simulator counts calls";
    // Fewer streams and buffers where planned faults are played: else each of some ten thousand calls is played alone.
    const auto most = [](int asked) { return static_cast<std::size_t>(rounds(asked)); };
    const std::size_t rounds_in_all = most(64);
    std::vector<Buffer<std::int32_t>> beside;
    for (const std::size_t buffers : {std::size_t{0}, most(300)}) {
        while (beside.size() < buffers) {
            const MemoryKind kind = beside.size() % 2 == 0 ? MemoryKind::pinned : MemoryKind::device;
            beside.push_back(device.allocate<std::int32_t>(4, kind).value());
        }
        for (const std::size_t streams : {std::size_t{1}, most(16), most(64)}) {
            std::vector<Pair> pairs;
            for (std::size_t at = 0; at < streams; ++at) {
                pairs.push_back({device.create_stream().value(),
                                 device.allocate<std::int32_t>(16, MemoryKind::pinned).value(),
                                 device.allocate<std::int32_t>(16).value()});
            }
            go_round(pairs, rounds_in_all);  // makes the streams' handles and loads the kernel
            device.synchronize().value();
            const long before = calls_that_do_not_depend_on_time();
            go_round(pairs, rounds_in_all);
            const long made = calls_that_do_not_depend_on_time() - before;
            EXPECT_TRUE(unless_fault(made == calls_of_a_round * static_cast<long>(rounds_in_all)))
                << made << " calls on " << streams << " streams beside " << buffers << " buffers";
            device.synchronize().value();
        }
    }
}

}  // namespace
}  // namespace conformance
