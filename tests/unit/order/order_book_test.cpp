// SPDX-License-Identifier: Apache-2.0
// The order checker's records against a model that keeps the whole graph of predecessors.
#include "order_book.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using isthmus::detail::OrderBook;
using isthmus::detail::OrderClock;
using isthmus::detail::OrderHistory;
using isthmus::detail::OrderLine;
using isthmus::detail::OrderUse;
using isthmus::rules::ByteRange;
using isthmus::rules::contains;
using isthmus::rules::share_a_byte;

OrderClock clock_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> entries) {
    OrderClock clock;
    for (const auto& [stream, position] : entries) clock.raise(stream, position);
    return clock;
}

TEST(OrderClock, KnowsTheFurthestThatEitherKnew) {  // keeps S7
    OrderClock one = clock_of({{3, 7}, {1, 2}});
    one.join(clock_of({{2, 5}, {3, 6}, {1, 4}}));
    EXPECT_EQ(one.at(1), 4U);
    EXPECT_EQ(one.at(2), 5U);
    EXPECT_EQ(one.at(3), 7U);
    EXPECT_EQ(one.at(4), 0U);
    EXPECT_TRUE(one.covers(3, 7));
    EXPECT_FALSE(one.covers(3, 8));
    one.raise(3, 1);
    EXPECT_EQ(one.at(3), 7U) << "a clock never goes back";
    one.drop_if([](std::uint64_t stream, std::uint64_t) { return stream != 2; });
    EXPECT_EQ(one.size(), 1U);
}

TEST(OrderLine, AnswersForItsPastWithoutWhatItWaitedForSince) {  // keeps S7
    OrderLine line;
    line.wait(3, clock_of({{9, 1}}));
    line.wait(7, clock_of({{9, 5}, {8, 2}}));
    EXPECT_EQ(line.at(2).at(9), 0U);
    EXPECT_EQ(line.at(3).at(9), 1U);
    EXPECT_EQ(line.at(6).at(9), 1U);
    EXPECT_EQ(line.at(7).at(9), 5U);
    EXPECT_EQ(line.now().at(8), 2U);
    line.forget_before(6);
    EXPECT_EQ(line.at(6).at(9), 1U);
    line.forget_before(8);
    EXPECT_EQ(line.steps(), 1U);
}

TEST(OrderLine, StaysBoundedAndThenKnowsRatherTooMuch) {  // keeps S7
    OrderLine line;
    for (std::uint64_t at = 1; at <= 10 * OrderLine::max_steps; ++at) line.wait(2 * at, clock_of({{9, at}}));
    EXPECT_EQ(line.steps(), OrderLine::max_steps);
    for (std::uint64_t at = 1; at <= 10 * OrderLine::max_steps; ++at) EXPECT_GE(line.at(2 * at).at(9), at);
}

// All bytes of a small memory that the range touches.
std::bitset<256> bytes_of(const ByteRange& range) {
    std::bitset<256> bytes;
    for (std::size_t slice = 0; slice < range.slices; ++slice) {
        for (std::size_t row = 0; row < range.rows; ++row) {
            for (std::size_t x = 0; x < range.width; ++x) {
                bytes.set(range.offset + slice * range.slice_pitch + row * range.row_pitch + x);
            }
        }
    }
    return bytes;
}

TEST(OrderRange, TwoShapesShareAByteExactlyWhenTheirBytesDo) {  // keeps S7
    std::mt19937 random(1);
    const auto up_to = [&](std::size_t most) { return random() % (most + 1); };
    int shared = 0;
    for (int round = 0; round < 200000; ++round) {
        const auto any = [&] {
            ByteRange range;
            range.width = up_to(6);
            range.rows = 1 + up_to(3);
            range.slices = 1 + up_to(2);
            range.row_pitch = range.rows > 1 ? range.width + up_to(9) : 0;
            range.slice_pitch = range.slices > 1 ? (range.rows - 1) * range.row_pitch + range.width + up_to(20) : 0;
            range.offset = up_to(60);
            return range;
        };
        const ByteRange one = any();
        const ByteRange other = any();
        const bool expected = (bytes_of(one) & bytes_of(other)).any();
        shared += expected;
        ASSERT_EQ(share_a_byte(one, other), expected) << "round " << round;
        if (contains(one, other)) {
            ASSERT_EQ(bytes_of(other) & ~bytes_of(one), std::bitset<256>()) << "round " << round;
        }
        ASSERT_EQ(share_a_byte(ByteRange{}, other), other.width > 0);
    }
    EXPECT_GT(shared, 20000);
}

// Keeps whole what the order book drops and compresses: every operation, and its direct predecessors.
class Model {
public:
    static constexpr std::size_t max_operations = 512;
    using Set = std::bitset<max_operations>;

    struct Operation {
        std::uint64_t stream = 0;
        Set before;  // itself included
    };
    struct Use {
        std::size_t operation = 0;
        ByteRange range;
        bool writes = false;
    };

    // The stream's next operation comes after its last one, what the stream waited for, and what the host saw.
    std::size_t issue(std::uint64_t stream) {
        Operation operation;
        operation.stream = stream;
        operation.before = arriving(stream);
        operation.before.set(operations.size());
        operations.push_back(operation);
        tails_[stream] = operation.before;
        return operations.size() - 1;
    }
    void wait(std::uint64_t later, std::size_t operation) { tails_[later] |= operations[operation].before; }
    void seen(std::size_t operation) { host_ |= operations[operation].before; }
    Set arriving(std::uint64_t stream) { return tails_[stream] | host_; }
    bool host_knows(std::size_t operation) const { return host_.test(operation); }

    std::vector<Operation> operations;

private:
    std::map<std::uint64_t, Set> tails_;
    Set host_;
};

// One random program: streams that come and go, uses of parts of buffers, waits for any earlier point, and host
// queries. The book gets the runtime's reports; the model judges every use.
struct Program {
    struct Stream {
        std::uint64_t id = 0;
        std::uint64_t issued = 0;
        std::vector<std::size_t> operations;  // at position 1, 2, …: in the model
    };

    explicit Program(std::uint64_t seed) : random(seed) {
        for (int i = 0; i < 3; ++i) begin_stream();
    }
    std::size_t up_to(std::size_t most) { return random() % (most + 1); }

    void begin_stream() {
        streams.push_back({next_id++, 0, {}});
        book.began(streams.back().id);
    }
    std::uint64_t issue(Stream& stream) {
        stream.operations.push_back(model.issue(stream.id));
        return ++stream.issued;
    }

    void use() {
        Stream& stream = streams[up_to(streams.size() - 1)];
        const std::size_t which = up_to(buffers.size() - 1);
        OrderUse next;
        next.stream = stream.id;
        next.position = stream.issued + 1;
        next.writes = up_to(1) == 0;
        if (up_to(2) == 0) {
            next.range.offset = up_to(3) * 10;
            next.range.width = 10;
        }
        bool expected = false;
        for (const Model::Use& earlier : model_uses[which]) {
            if (!earlier.writes && !next.writes) continue;
            if (!share_a_byte(earlier.range, next.range)) continue;
            if (model.operations[earlier.operation].stream == stream.id) continue;
            expected |= !model.arriving(stream.id).test(earlier.operation);
        }
        bool found = false;
        book.conflicts(buffers[which], next, {}, [&](const OrderUse&) { found = true; });
        ASSERT_EQ(found, expected) << next.writes << " by stream " << stream.id << " at " << next.position;
        violations += found;
        ++judged;
        if (found && refuse) return;
        const std::uint64_t position = issue(stream);
        ASSERT_EQ(position, next.position);
        book.add(buffers[which], next);
        model_uses[which].push_back({stream.operations.back(), next.range, next.writes});
    }

    void wait() {
        Stream& later = streams[up_to(streams.size() - 1)];
        const Stream& earlier = streams[up_to(streams.size() - 1)];
        if (earlier.issued == 0 || &later == &earlier) return;
        const std::uint64_t position = up_to(3) == 0 ? 1 + up_to(earlier.issued - 1) : earlier.issued;
        book.wait(later.id, later.issued + 1, earlier.id, position);
        model.wait(later.id, earlier.operations[position - 1]);
        issue(later);  // a wait is a separate operation
    }

    void look() {
        const Stream& stream = streams[up_to(streams.size() - 1)];
        if (stream.issued == 0) return;
        const std::uint64_t position = 1 + up_to(stream.issued - 1);
        book.seen(stream.id, position);
        model.seen(stream.operations[position - 1]);
    }

    // A stream whose uses the host has all seen complete may end, with work that still runs.
    void end_stream() {
        if (streams.size() < 3) return;
        const std::size_t which = up_to(streams.size() - 1);
        const Stream& stream = streams[which];
        for (const std::vector<Model::Use>& uses : model_uses) {
            for (const Model::Use& use : uses) {
                if (model.operations[use.operation].stream == stream.id && !model.host_knows(use.operation)) return;
            }
        }
        book.ended(stream.id, stream.issued, 0);
        if (stream.issued > 0) gone.push_back(stream.operations.back());
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(which));
    }

    void look_at_those_that_ended() {
        book.seen_ended(0, book.ended_on(0));
        for (const std::size_t operation : gone) model.seen(operation);
        gone.clear();
    }

    void step() {
        switch (up_to(15)) {
            case 0: begin_stream(); break;
            case 1: end_stream(); break;
            case 2: look(); break;
            case 3:
                if (up_to(5) == 0) look_at_those_that_ended();
                break;
            case 4:
            case 5:
            case 6:
            case 7: wait(); break;
            default: use(); break;
        }
    }

    std::mt19937_64 random;
    OrderBook book;
    Model model;
    std::vector<Stream> streams;
    std::vector<std::size_t> gone;
    std::vector<OrderHistory> buffers = std::vector<OrderHistory>(2);
    std::vector<std::vector<Model::Use>> model_uses = std::vector<std::vector<Model::Use>>(2);
    std::uint64_t next_id = 1;
    bool refuse = false;
    int violations = 0;
    int judged = 0;
};

// 120000 programs; ISTHMUS_TEST_SEED changes the first seed.
TEST(OrderBook, FindsExactlyTheUsesThatNothingOrders) {  // keeps S7
    const char* given = std::getenv("ISTHMUS_TEST_SEED");
    const std::uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
    long violations = 0;
    long judged = 0;
    for (std::uint64_t seed = first; seed < first + 120000; ++seed) {
        Program program(seed);
        program.refuse = seed % 2 == 0;
        const std::size_t steps = 10 + program.up_to(30);
        for (std::size_t step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) program.step();
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
        violations += program.violations;
        judged += program.judged;
    }
    EXPECT_GT(violations, judged / 20) << "the programs must make mistakes …";
    EXPECT_LT(violations, judged / 2) << "… and do without";
}

TEST(OrderBook, LongProgramsAreJudgedAsShortOnesAre) {  // keeps S7
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Program program(seed);
        program.refuse = true;
        for (int step = 0; step < 450; ++step) {
            program.step();
            ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
        }
    }
}

TEST(OrderBook, KeepsNothingOfStreamsThatCameAndWent) {  // keeps S7
    OrderBook book;
    OrderHistory history;
    book.began(1);
    for (std::uint64_t id = 2; id < 5000; ++id) {
        book.began(id);
        book.wait(id, 1, 1, id - 1);
        book.add(history, {id, 1, {}, true});
        book.wait(1, id, id, 1);
        book.seen(1, id);
        book.ended(id, 1, 0);
    }
    EXPECT_EQ(book.streams(), 1U);
    EXPECT_LE(history.uses.size(), 2U);
    EXPECT_LE(book.line(1)->now().size(), 2U);
    EXPECT_LE(book.line(1)->steps(), 2U);
}

TEST(OrderBook, AStreamThatEndedUnseenIsKnownOnceItsDeviceIsWaitedFor) {  // keeps S7
    OrderBook book;
    OrderHistory history;
    for (std::uint64_t id = 1; id <= 3; ++id) book.began(id);
    const OrderUse write{1, 1, {}, true};
    book.add(history, write);
    book.wait(2, 1, 1, 1);
    const OrderClock before = book.ended_on(0);
    book.ended(2, 1, 0);
    book.seen_ended(0, before);  // it ended while the host waited for others
    const OrderUse later{3, 1, {}, false};
    int found = 0;
    book.conflicts(history, later, {}, [&](const OrderUse& earlier) { found += earlier.stream == 1; });
    EXPECT_EQ(found, 1);
    book.seen_ended(1, book.ended_on(1));
    book.conflicts(history, later, {}, [&](const OrderUse&) { ++found; });
    EXPECT_EQ(found, 2) << "another device's";
    book.seen_ended(0, book.ended_on(0));
    book.conflicts(history, later, {}, [&](const OrderUse&) { ++found; });
    EXPECT_EQ(found, 2) << "the ended stream waited for the write, and the host for the ended stream";
}

TEST(OrderBook, WhatWasShownToOtherProcessesMayComeBeforeWhatIsWaitedForThere) {  // keeps S7, I2
    OrderBook book;
    for (std::uint64_t id = 1; id <= 4; ++id) book.began(id);
    book.wait(1, 3, 4, 5);
    book.shown(1, 3);
    book.wait_for_others(2, 7);
    EXPECT_TRUE(book.ordered(2, 1, 3, {}));
    EXPECT_TRUE(book.ordered(2, 4, 5, {})) << "what came before it, too";
    EXPECT_FALSE(book.ordered(2, 1, 4, {})) << "shown is what the event stood behind";
    EXPECT_FALSE(book.ordered(3, 1, 3, {}));
    book.seen_others();
    EXPECT_TRUE(book.ordered(3, 1, 3, {})) << "the host waited";
    EXPECT_FALSE(book.ordered(3, 1, 4, {}));
}

TEST(OrderBook, ConcurrentUsesNeedNoOrderAmongThemselves) {  // keeps S7, G14
    const auto use = [](std::uint64_t stream, std::uint64_t position, bool writes, bool concurrent) {
        OrderUse made{stream, position, {}, writes};
        made.concurrent = concurrent;
        return made;
    };
    const auto conflicts = [](const OrderBook& book, const OrderHistory& history, const OrderUse& later) {
        int found = 0;
        book.conflicts(history, later, {}, [&](const OrderUse&) { ++found; });
        return found;
    };
    OrderBook book;
    OrderHistory history;
    for (std::uint64_t id = 1; id <= 3; ++id) book.began(id);
    book.add(history, use(1, 1, true, true));
    EXPECT_EQ(conflicts(book, history, use(2, 1, true, true)), 0);
    EXPECT_EQ(conflicts(book, history, use(2, 1, false, false)), 1) << "a reader could see half of it";
    EXPECT_EQ(conflicts(book, history, use(2, 1, true, false)), 1);

    // A concurrent use after a plain one does not replace it: the next concurrent one conflicts with the plain one.
    OrderHistory plain;
    book.add(plain, use(1, 1, true, false));
    book.add(plain, use(1, 2, true, true));
    EXPECT_EQ(conflicts(book, plain, use(3, 1, true, true)), 1);
    EXPECT_EQ(plain.uses.size(), 2u);
    book.add(plain, use(1, 3, true, false));
    EXPECT_EQ(plain.uses.size(), 1u) << "a plain write stands for both";
}

}  // namespace
