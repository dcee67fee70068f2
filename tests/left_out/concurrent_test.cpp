// SPDX-License-Identifier: Apache-2.0
// A library without the component concurrent: no mailboxes, services and frame rings, and no waiting for a word.
#include "left_out.hpp"

#include "mailbox_kernels.hpp"

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("concurrent", answer);
}

TEST(ConcurrentLeftOut, WaitingForAWordIsRefused) {
    std::int32_t word = 1;
    EXPECT_TRUE(refused(wait_while(AtomicRef<std::int32_t>(word), 0)));  // changed already
}

TEST(ConcurrentLeftOut, NothingIsMade) {
    conformance::on_every_device([](Device& device) {
        EXPECT_TRUE(refused(FrameRing<std::int32_t>::create(device, 16)));
        EXPECT_TRUE(refused(FrameRing<std::int32_t>::create(device, 0, {.frames = 1})));
        EXPECT_TRUE(refused(FrameRing<std::int32_t>::create(device, {}, WhenFull::wait)));
        EXPECT_TRUE(refused(Mailbox<std::int32_t, std::int32_t>::create(device)));
        EXPECT_TRUE(refused(Mailbox<std::int32_t, std::int32_t>::create(device, 3)));
        EXPECT_TRUE(refused(
            Service<conformance::Question, conformance::Answer>::start(device, conformance::answer_until_stopped)));
        EXPECT_TRUE(refused(prepare(device, conformance::add_one)));
    });
}

// They use the core only.
TEST(ConcurrentLeftOut, ShardedCountersCount) {
    conformance::on_every_device([](Device& device) {
        ShardedCounter counter = ShardedCounter::create(device).value();
        counter.add(0, 3);
        device.launch(conformance::count_items, 5, counter).value();
        EXPECT_EQ(counter.read().value(), 3U + 1 + 2 + 3 + 4 + 5);
    });
}

}  // namespace
}  // namespace left_out
