// SPDX-License-Identifier: Apache-2.0
// Sharded counters: one lane per side, exact sums on every machine.
#include "scenario.hpp"

#include <vector>

namespace conformance {
namespace {

TEST(ShardedCounter, SumsAreExactWhileBothSidesCount) {  // keeps G5
    NEEDS(concurrent);
    if (!work_runs_by_itself()) GTEST_SKIP() << "a kernel waits for the host";
    on_every_device([](Device& device) {
        ShardedCounter counter = ShardedCounter::create(device, 3).value();
        SharedUse use;
        use.kind = MemoryKind::pinned;
        auto buffer = device.allocate_shared<std::uint32_t>(64, use).value();
        for (std::uint32_t& word : buffer.write_on_host().value()) word = 0;
        const auto control = buffer.concurrent_on_host().value();
        const auto word = [&](std::size_t index) { return AtomicRef<std::uint32_t>(control.data()[index]); };
        constexpr std::uint32_t items = 5;
        Thread launcher([&] {
            const auto launched = device.stream().launch(count_until_told, items, counter, buffer);
            if (!launched) word(0).store_release(1);
            EXPECT_TRUE(worked(launched));
        });
        (void)wait_while(word(0), 0).value();
        const auto mine = static_cast<std::uint64_t>(rounds(20000));
        for (std::uint64_t round = 0; round < mine; ++round) counter.add(round % 3, 2);
        word(1).store_release(1);
        launcher.join();
        std::uint64_t seen = 0, expected = 2 * mine;
        for (std::size_t slot = 0; slot < counter.size(); ++slot) seen += counter.read(slot).value();
        for (std::uint32_t item = 0; item < items; ++item) expected += word(2 + item).load_acquire();
        EXPECT_GE(expected, 2 * mine + items);
        EXPECT_EQ(seen, expected);
    });
}

TEST(ShardedCounter, CountsKernelsOfSeveralStreamsAndThreadsOfTheHost) {  // keeps G5
    on_every_device([](Device& device) {
        ShardedCounter counter = ShardedCounter::create(device, 20).value();
        Stream other = device.create_stream().value();
        constexpr std::uint64_t items = 1000;
        EXPECT_TRUE(worked(device.stream().launch(count_items, items, counter)));
        EXPECT_TRUE(worked(other.wait_stream(device.stream())));
        EXPECT_TRUE(worked(other.launch(count_items, items, counter)));
        Thread first([&] { counter.add(0, 1000000); });
        Thread second([&] { counter.add(0, 2000000); });
        first.join();
        second.join();
        std::vector<std::uint64_t> expected(20, 0);
        expected[0] = 3000000;
        for (std::uint64_t i = 0; i < items; ++i) expected[i % 20] += 2 * (i + 1);
        for (std::size_t slot = 0; slot < 20; ++slot) EXPECT_EQ(counter.read(slot).value(), expected[slot]) << slot;
    });
}

TEST(ShardedCounter, BeginsAtZeroAndKnowsItsSlots) {
    on_every_device([](Device& device) {
        const ShardedCounter counter = ShardedCounter::create(device).value();
        EXPECT_EQ(counter.size(), 1u);
        EXPECT_EQ(counter.read().value(), 0u);
        EXPECT_TRUE(refused_as(counter.read(1), Code::invalid_argument));
        EXPECT_TRUE(refused_as(ShardedCounter::create(device, 0), Code::invalid_argument));
    });
}

TEST(ShardedCounter, IsForTheDeviceThatItWasMadeFor) {  // keeps G2: the scope of one GPU on one side
    if (runtime().device_count() < 2) GTEST_SKIP() << "there is one device";
    on_every_device([](Device& device) {
        ShardedCounter counter = ShardedCounter::create(device).value();
        for (Device& other : all_devices()) {
            if (&other == &device) continue;
            EXPECT_TRUE(refused_as(other.stream().launch(count_items, 10, counter), Code::wrong_device));
        }
        EXPECT_TRUE(worked(device.stream().launch(count_items, 10, counter)));
        EXPECT_EQ(counter.read().value(), 55u);
    });
}

}  // namespace
}  // namespace conformance
