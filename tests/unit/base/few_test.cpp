// SPDX-License-Identifier: Apache-2.0
// Few: the same elements on the stack and on the heap.
#include "few.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using Numbers = Few<std::unique_ptr<int>, 4>;

std::vector<int> in(const Numbers& numbers) {
    std::vector<int> all;
    for (const std::unique_ptr<int>& one : numbers) all.push_back(one ? *one : -1);
    return all;
}
Numbers up_to(int count) {
    Numbers numbers;
    for (int at = 0; at < count; ++at) numbers.push_back(std::make_unique<int>(at));
    return numbers;
}
std::vector<int> expected(int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

TEST(Few, KeepsItsElementsWhereverTheyLie) {
    for (const int count : {0, 1, 4, 5, 8, 9, 100}) {
        Numbers numbers = up_to(count);
        EXPECT_EQ(in(numbers), expected(count));
        EXPECT_EQ(numbers.size(), static_cast<std::size_t>(count));
        EXPECT_EQ(numbers.empty(), count == 0);
        Numbers moved = std::move(numbers);
        EXPECT_EQ(in(moved), expected(count));
        EXPECT_TRUE(numbers.empty());  // NOLINT(bugprone-use-after-move)
        numbers.push_back(std::make_unique<int>(7));
        EXPECT_EQ(in(numbers), std::vector<int>{7});
        numbers = std::move(moved);
        EXPECT_EQ(in(numbers), expected(count));
        numbers.clear();
        EXPECT_TRUE(numbers.empty());
    }
}

TEST(Few, ErasesInOrder) {
    for (const int count : {3, 6}) {
        Numbers numbers = up_to(count);
        numbers.erase(numbers.begin() + 1);
        std::vector<int> left = expected(count);
        left.erase(left.begin() + 1);
        EXPECT_EQ(in(numbers), left);
        while (!numbers.empty()) numbers.erase(numbers.end() - 1);
        EXPECT_EQ(numbers.size(), 0u);
    }
}

TEST(Few, LiesOnTheStackWhileThereIsRoom) {
    Few<int, 4> few;
    const auto here = [&](const int* element) {
        const auto* const begin = reinterpret_cast<const char*>(&few);
        const auto* const at = reinterpret_cast<const char*>(element);
        return at >= begin && at < begin + sizeof few;
    };
    for (int at = 0; at < 4; ++at) few.push_back(at);
    EXPECT_TRUE(here(few.begin()));
    few.push_back(4);
    EXPECT_FALSE(here(few.begin()));
    EXPECT_EQ(few.back(), 4);
    EXPECT_EQ(few[2], 2);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
