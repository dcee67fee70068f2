// SPDX-License-Identifier: Apache-2.0
// The progress of streams: marks, polls and completions.
#include "scenario.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace conformance {
namespace {

constexpr std::size_t count = 64;

struct Steps {
    explicit Steps(Device& device) : stream(device.create_stream().value()) {
        data = device.allocate<std::int32_t>(count).value();
        stream.fill_bytes(data, 0).value();
    }
    std::uint64_t next() {
        (void)stream.launch(add_one, count, data).value();
        return stream.mark().value();
    }
    // Returns when the device has done everything; the stream object does not learn of it.
    void let_finish(Device& device) const {
        Stream other = device.create_stream().value();
        other.wait(last_event()).value();
        other.synchronize().value();
    }
    Event last_event() const { return Stream(stream).record().value(); }
    Stream stream;
    Buffer<std::int32_t> data;
};

TEST(Progress, ThePositionRisesFromMarkToMarkAndWhatItProvesIsThere) {  // keeps S9
    on_every_device([](Device& device) {
        Steps steps(device);
        std::vector<std::uint64_t> marks;
        for (int i = 0; i < rounds(20); ++i) marks.push_back(steps.next());
        EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end()));
        std::uint64_t known = 0;
        while (!steps.stream.completed(marks.back())) {
            const std::uint64_t reached = steps.stream.poll().value();
            ASSERT_GE(reached, known);
            known = reached;
        }
        EXPECT_TRUE(steps.stream.completed(marks.front()));
        EXPECT_FALSE(steps.stream.completed(marks.back() + 1));
        EXPECT_EQ(isthmus::read_back(steps.data).value()[count - 1], static_cast<std::int32_t>(marks.size()));
    });
}

TEST(Progress, ManyMarksThatWerePassedCostFewQueries) {  // keeps S9
    on_every_device([](Device& device) {
        if (device.is_cpu() || driver_calls() < 0) return;
        Steps steps(device);
        const int marks = rounds(64);
        for (int i = 0; i < marks; ++i) (void)steps.next();
        steps.let_finish(device);
        long before = driver_calls();
        (void)steps.stream.poll().value();
        const long asked = driver_calls() - before;
        EXPECT_TRUE(unless_fault(asked >= 1 && asked <= 13)) << asked << " calls for " << marks << " marks";
        before = driver_calls();
        EXPECT_TRUE(unless_fault(steps.stream.poll().value() > static_cast<std::uint64_t>(marks)));
        EXPECT_TRUE(unless_fault(driver_calls() == before)) << "nothing is left to ask about";
    });
}

TEST(Progress, WithoutMarksAnIdleStreamIsKnownByOneQuery) {  // keeps S9
    on_every_device([](Device& device) {
        Steps steps(device);
        const std::uint64_t last = steps.stream.launch(add_one, count, steps.data).value().position;
        steps.let_finish(device);
        const long before = driver_calls();
        EXPECT_EQ(steps.stream.poll().value(), last);
        const bool counted = !device.is_cpu() && before >= 0;
        EXPECT_TRUE(unless_fault(!counted || driver_calls() - before == 1));
        EXPECT_TRUE(steps.stream.completed(last));
    });
}

TEST(Progress, ACapturedStreamTakesNoMark) {  // keeps S14
    NEEDS(graph);
    on_every_device([](Device& device) {
        if (device.is_cpu()) return;
        Steps steps(device);
        const std::uint64_t before = steps.next();
        Capture capture = steps.stream.begin_capture().value();
        EXPECT_TRUE(refused_as(steps.stream.mark(), Code::capture_error));
        while (steps.stream.poll().value() < before) {
        }
        (void)steps.stream.launch(add_one, count, steps.data).value();
        EXPECT_EQ(capture.end().value().size(), 1u) << "the capture was left alone";
    });
}

TEST(CompletionQueue, NameWhatHasFinishedWithOnePollPerStream) {  // keeps S9
    on_every_device([](Device& device) {
        Steps first(device);
        Steps second(device);
        CompletionQueue tracked;
        std::vector<std::uint64_t> finished;
        EXPECT_EQ(tracked.collect(finished).value(), 0u);
        const auto each = static_cast<std::uint64_t>(rounds(32));
        for (std::uint64_t i = 0; i < each; ++i) {
            tracked.add(first.stream, first.next(), i);
            tracked.add(second.stream, second.next(), each + i);
        }
        first.let_finish(device);
        second.let_finish(device);
        const long before = driver_calls("cuEventQuery") + driver_calls("cuStreamQuery");
        EXPECT_EQ(tracked.collect(finished).value(), 2 * each);
        if (!device.is_cpu() && before >= 0) {
            const long asked = driver_calls("cuEventQuery") + driver_calls("cuStreamQuery") - before;
            EXPECT_TRUE(unless_fault(asked >= 2 && asked <= 24)) << asked << " queries";
        }
        EXPECT_EQ(tracked.outstanding(), 0u);
        std::sort(finished.begin(), finished.end());
        for (std::uint64_t i = 0; i < 2 * each; ++i) ASSERT_EQ(finished[i], i);
    });
}

TEST(CompletionQueue, WorkIsCollectedAsItEnds) {  // keeps S9
    on_every_device([](Device& device) {
        Steps steps(device);
        CompletionQueue tracked;
        std::vector<std::uint64_t> finished;
        std::uint64_t given = 0;
        for (int round = 0; round < rounds(20); ++round) {
            for (int i = 0; i < 5; ++i) tracked.add(steps.stream, steps.next(), given++);
            (void)tracked.collect(finished).value();
        }
        while (tracked.outstanding() > 0) (void)tracked.collect(finished).value();
        ASSERT_EQ(finished.size(), given);
        for (std::uint64_t i = 0; i < given; ++i) ASSERT_EQ(finished[i], i) << "in the order of the stream";
        EXPECT_EQ(isthmus::read_back(steps.data).value()[0], static_cast<std::int32_t>(given));
    });
}

TEST(CompletionQueue, AnAbandonedStreamGivesBackWhatWasOutstanding) {
    on_every_device([](Device& device) {
        Steps steps(device);
        CompletionQueue tracked;
        tracked.add(steps.stream, ~std::uint64_t{0}, 7);  // a position that is never reached
        std::vector<std::uint64_t> tags;
        EXPECT_EQ(tracked.collect(tags).value(), 0u);
        tracked.abandon(steps.stream, tags);
        EXPECT_EQ(tags, std::vector<std::uint64_t>{7});
        EXPECT_EQ(tracked.outstanding(), 0u);
        tracked.abandon(steps.stream, tags);
        EXPECT_EQ(tags.size(), 1u);
    });
}

}  // namespace
}  // namespace conformance
