// SPDX-License-Identifier: Apache-2.0
// The uses of parts of a buffer, and sets of byte ranges.
#include "part_book.hpp"
#include "span_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using isthmus::detail::LastUse;
using isthmus::detail::PartBook;
using U = ArgumentUse;

constexpr U uses[] = {U::read, U::write, U::read_write, U::concurrent};

TEST(Parts, AHostViewWaitsForWhatMayNotRunBesideItAndForNothingElse) {  // keeps G8
    for (const U device : uses) {
        LastUse use;
        use.raise(7, device);
        for (const U host : uses) {
            EXPECT_EQ(use.before(host) != 0, !together(host, device)) << purpose(host) << " beside " << purpose(device);
        }
    }
}

TEST(Parts, OpenScopesRefuseWhatOverlapsThemAndNothingElse) {  // keeps G9, G14
    for (const U open : {U::read, U::read_write, U::concurrent}) {
        PartBook book;
        book.opened({open, {10, 20}});
        for (const U use : uses) {
            EXPECT_EQ(static_cast<bool>(book.open_against(use, {19, 30})), !together(open, use));
            EXPECT_EQ(static_cast<bool>(book.open_against(use, {})), !together(open, use));
            EXPECT_FALSE(book.open_against(use, {20, 30}));
            EXPECT_FALSE(book.open_against(use, {0, 10}));
        }
        EXPECT_TRUE(book.any_open({}));
        book.closed({open, {10, 20}});
        EXPECT_FALSE(book.any_open({}));
        EXPECT_FALSE(book.open_against(U::read_write, {}));
    }
}

// Compared with a full list of uses: never too early, and exact while ranges are kept apart.
TEST(Parts, AViewFindsTheLastUseOfItsBytes) {  // keeps G8
    std::mt19937 random(11);
    const auto below = [&](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    struct Happened {
        std::size_t stream;
        std::uint64_t position;
        ByteSpan span;
        U use;
    };
    const int streams[3] = {};
    for (int round = 0; round < 200; ++round) {
        PartBook book;
        std::vector<Happened> all;
        LastUse before_parts;
        before_parts.raise(1, U::read_write);
        book.touched(&streams[0], before_parts);
        all.push_back({0, 1, {}, U::read_write});
        for (std::uint64_t position = 2; position < 60; ++position) {
            const std::size_t begin = below(12);
            const ByteSpan span = below(8) == 0 ? ByteSpan{} : ByteSpan{begin, begin + 1 + below(4)};
            const Happened next{below(3), position, span, uses[below(4)]};
            all.push_back(next);
            book.touch(&streams[next.stream], position, next.use, span,
                       [](const void*, std::uint64_t) { return false; });
        }
        for (std::size_t at = 0; at < 16; ++at) {
            const ByteSpan asked{at, at + 2};
            for (std::size_t stream = 0; stream < 3; ++stream) {
                for (const U host : uses) {
                    std::uint64_t wanted = 0;
                    for (const Happened& one : all) {
                        if (one.stream != stream || !overlap(one.span, asked) || together(one.use, host)) continue;
                        wanted = std::max(wanted, one.position);
                    }
                    ASSERT_EQ(book.last_use(&streams[stream], asked).before(host), wanted) << round << " at " << at;
                }
            }
        }
        book.forget(&streams[1]);
        EXPECT_EQ(book.last_use(&streams[1], {}).last, 0u);
    }
}

TEST(Parts, TheBookStaysSmallHoweverManyRangesThereAre) {  // keeps G8
    const int stream = 0;
    PartBook ending;
    PartBook running;
    for (std::uint64_t position = 1; position < 3000; ++position) {
        const auto begin = static_cast<std::size_t>(position);
        ending.touch(&stream, position, U::write, {begin, begin + 1},
                     [&](const void*, std::uint64_t end) { return end + 5 < position; });
        running.touch(&stream, position, U::write, {begin, begin + 1},
                      [](const void*, std::uint64_t) { return false; });
        ASSERT_LE(ending.size(), 64u);
        ASSERT_LE(running.size(), PartBook::most);
        ASSERT_EQ(ending.last_use(&stream, {begin, begin + 1}).last_write, position);
        ASSERT_GE(running.last_use(&stream, {begin / 2, begin / 2 + 1}).last_write, position / 2) << "never too early";
    }
}

// A set of bytes compared with one flag per byte, for all short sequences of two operations.
TEST(SpanSets, HoldWhatWasAddedAndNotRemoved) {  // keeps G8
    constexpr std::size_t bytes = 6;
    std::vector<rules::ByteSpan> spans;
    for (std::size_t begin = 0; begin < bytes; ++begin) {
        for (std::size_t end = begin + 1; end <= bytes; ++end) spans.push_back({begin, end});
    }
    for (const rules::ByteSpan& first : spans) {
        for (const rules::ByteSpan& second : spans) {
            for (const rules::ByteSpan& third : spans) {
                for (const bool removes : {false, true}) {
                    rules::SpanSet set;
                    std::array<bool, bytes> flags{};
                    const auto apply = [&](const rules::ByteSpan& span, bool add) {
                        add ? set.add(span) : set.remove(span);
                        for (std::size_t at = span.begin; at < span.end; ++at) flags[at] = add;
                    };
                    apply(first, true);
                    apply(second, !removes);
                    apply(third, removes);
                    for (std::size_t at = 0; at < bytes; ++at) ASSERT_EQ(set.meets({at, at + 1}), flags[at]);
                    for (std::size_t at = 1; at < set.spans().size(); ++at) {
                        ASSERT_LT(set.spans()[at - 1].end, set.spans()[at].begin);
                    }
                }
            }
        }
    }
}

TEST(SpanSets, OfManyPiecesHoldTooMuchRatherThanTooLittle) {  // keeps G8
    rules::SpanSet set;
    for (std::size_t at = 0; at < 1000; ++at) set.add({at * 10, at * 10 + 1});
    EXPECT_LE(set.spans().size(), rules::SpanSet::most);
    for (std::size_t at = 0; at < 1000; ++at) EXPECT_TRUE(set.meets({at * 10, at * 10 + 1}));
    EXPECT_FALSE(set.meets({9992, 20000}));
    set.remove({});
    EXPECT_TRUE(set.spans().empty());
    set.add({});
    for (std::size_t at = 0; at < 1000; ++at) set.remove({at * 10, at * 10 + 1});
    EXPECT_LE(set.spans().size(), rules::SpanSet::most);
    EXPECT_TRUE(set.meets({5, 6}) && set.meets({20000, 20001}));
}

}  // namespace
