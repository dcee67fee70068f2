// SPDX-License-Identifier: Apache-2.0
// Which extents a launch may have: every rank, dimension and kind of number.
#include "extent_rules.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace {

using namespace isthmus;
using rules::ExtentVerdict;

// CUDA's grid limits times the threads of a block in each dimension, as the programming guide and launch_shape.hpp say.
constexpr std::uint64_t limits[4][3] = {{2147483647, 65535, 65535},
                                        {2147483647ull * 256, 1, 1},
                                        {2147483647ull * 32, 65535 * 8, 1},
                                        {2147483647ull * 8, 65535 * 8, 65535 * 4}};

ExtentVerdict verdict_of(std::uint8_t rank, std::array<std::uint64_t, 3> numbers) {
    return rules::judge_extent(rank, {numbers[0], numbers[1], numbers[2]}).verdict;
}

// keeps L12
TEST(Extents, EveryNumberOfEveryRankIsJudgedAlike) {
    for (std::uint8_t rank = 0; rank < 4; ++rank) {
        for (std::uint8_t d = 0; d < 3; ++d) {
            SCOPED_TRACE("rank " + std::to_string(rank) + ", dimension " + std::to_string(d));
            const auto with = [&](std::uint64_t number) {
                std::array<std::uint64_t, 3> numbers{1, 1, 1};
                numbers[d] = number;
                return numbers;
            };
            const std::uint64_t most = limits[rank][d];
            EXPECT_EQ(verdict_of(rank, with(0)), ExtentVerdict::empty);
            EXPECT_EQ(verdict_of(rank, with(1)), ExtentVerdict::runs);
            EXPECT_EQ(verdict_of(rank, with(most)), ExtentVerdict::runs);
            EXPECT_EQ(verdict_of(rank, with(most + 1)), ExtentVerdict::too_large);
            EXPECT_EQ(verdict_of(rank, with(INT64_MAX)), ExtentVerdict::too_large);
            for (const std::int64_t negative : {INT64_MIN, std::int64_t{INT32_MIN}, std::int64_t{-1}}) {
                const auto number = static_cast<std::uint64_t>(negative);
                const rules::ExtentAnswer answer =
                    rules::judge_extent(rank, {with(number)[0], with(number)[1], with(number)[2]});
                EXPECT_EQ(answer.verdict, ExtentVerdict::negative) << negative;
                EXPECT_EQ(answer.dimension, d);
                EXPECT_EQ(answer.number, number);
                EXPECT_EQ(answer.most, most);
                EXPECT_TRUE(answer.refused());
            }
        }
    }
}

// keeps L12
TEST(Extents, AZeroExcusesNoRefusedNumberBesideIt) {
    const auto negative = static_cast<std::uint64_t>(-1);
    EXPECT_EQ(verdict_of(2, {0, negative, 1}), ExtentVerdict::negative);
    EXPECT_EQ(verdict_of(3, {0, 0, negative}), ExtentVerdict::negative);
    EXPECT_EQ(verdict_of(0, {UINT32_MAX, 0, 0}), ExtentVerdict::too_large);
    EXPECT_EQ(verdict_of(3, {0, 0, 0}), ExtentVerdict::empty);
}

// keeps L12: what the launch asks inline is the same decision
TEST(Extents, TheNumberOfBlocksOfNoLaunchOverflows) {
    const Extent most = largest_extent(0);
    EXPECT_LE(most.x, UINT64_MAX / most.y / most.z);
    EXPECT_FALSE(rules::is_negative(most.x * most.y * most.z));
}

TEST(Extents, TheWordsSayWhatIsCounted) {
    EXPECT_STREQ(rules::extent_words(1, 0), "items");
    EXPECT_STREQ(rules::extent_words(2, 1), "items of height");
    EXPECT_STREQ(rules::extent_words(3, 2), "items of depth");
    EXPECT_STREQ(rules::extent_words(0, 1), "blocks in y");
}

}  // namespace
