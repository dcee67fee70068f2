// SPDX-License-Identifier: Apache-2.0
// Which unfinished handshake a listener closes when too many are open.
#include <greeting_rules.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

using namespace isthmus::rules;

std::vector<std::uint32_t> users(std::initializer_list<std::pair<std::uint32_t, std::size_t>> counts) {
    std::vector<std::uint32_t> all;
    for (const auto& [user, count] : counts) all.insert(all.end(), count, user);
    return all;
}

// keeps I4
TEST(Greetings, ThereIsRoomBelowBothQuotas) {
    EXPECT_EQ(greeting_to_give_up({}, 7), std::nullopt);
    EXPECT_EQ(greeting_to_give_up(users({{7, max_greetings_of_a_user - 1}}), 7), std::nullopt);
    EXPECT_EQ(greeting_to_give_up(users({{7, max_greetings_of_a_user}}), 8), std::nullopt);
    EXPECT_EQ(greeting_to_give_up(users({{1, 30}, {2, 30}, {3, 3}}), 3), std::nullopt);
}

// keeps I4
TEST(Greetings, AUserBeyondItsQuotaLosesItsOwnOldest) {
    EXPECT_EQ(greeting_to_give_up(users({{7, max_greetings_of_a_user}}), 7), 0u);
    EXPECT_EQ(greeting_to_give_up(users({{1, 5}, {7, max_greetings_of_a_user}, {1, 5}}), 7), 5u);
    EXPECT_EQ(greeting_to_give_up(users({{1, 20}, {7, max_greetings_of_a_user}, {2, 12}}), 7), 20u);
}

// keeps I4
TEST(Greetings, BeyondAllRoomTheUserWithTheMostLosesItsOldest) {
    EXPECT_EQ(greeting_to_give_up(users({{1, 10}, {2, 31}, {3, 23}}), 4), 10u);
    EXPECT_EQ(greeting_to_give_up(users({{1, 10}, {2, 31}, {3, 23}}), 1), 10u);
    EXPECT_EQ(greeting_to_give_up(users({{1, 32}, {2, 32}}), 3), 0u);
}

}  // namespace
