// SPDX-License-Identifier: Apache-2.0
// What a sealed scope counts, and from many threads.
#include "seal_book.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace isthmus;
using isthmus::detail::SealBook;

// keeps T2
TEST(SealBooks, CountEachCallAndEachAct) {
    SealBook book;
    book.begin(true);
    constexpr std::string_view call = "creating a stream";
    EXPECT_TRUE(book.stops(SealedAct::make_object, call));
    EXPECT_TRUE(book.stops(SealedAct::make_object, call));
    EXPECT_TRUE(book.stops(SealedAct::use_heap, call));
    EXPECT_EQ(book.count(), 3u);
    const std::vector<SealedPlace> expected = {{call, SealedAct::make_object, 2}, {call, SealedAct::use_heap, 1}};
    EXPECT_EQ(book.places(), expected);
    book.begin(false);
    EXPECT_FALSE(book.stops(SealedAct::make_object, call));
    EXPECT_EQ(book.count(), 1u);
    EXPECT_EQ(book.places().size(), 1u);
}

TEST(SealBooks, CountCallsBeyondTheirRoomTogether) {
    SealBook book;
    book.begin(true);
    std::array<std::string, SealBook::most_places + 20> calls;
    for (std::size_t at = 0; at < calls.size(); ++at) calls[at] = "call " + std::to_string(at);
    for (int times = 0; times < 3; ++times) {
        for (const std::string& call : calls) (void)book.stops(SealedAct::use_heap, call);
    }
    EXPECT_EQ(book.count(), 3 * calls.size());
    std::uint64_t sum = 0;
    const std::vector<SealedPlace> places = book.places();
    for (const SealedPlace& place : places) sum += place.times;
    EXPECT_EQ(sum, book.count());
    ASSERT_EQ(places.size(), SealBook::most_places);
    EXPECT_EQ(places.back().call, "others");
    EXPECT_EQ(places.back().times, 3u * 21u);
}

TEST(SealBooks, LoseNoCountOfManyThreads) {
    SealBook book;
    book.begin(false);
    constexpr const char* calls[] = {"one", "two", "three"};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (int times = 0; times < 3000; ++times) (void)book.stops(SealedAct::enter_system, calls[times % 3]);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(book.count(), 12000u);
    const std::vector<SealedPlace> places = book.places();
    ASSERT_EQ(places.size(), 3u);
    for (const SealedPlace& place : places) EXPECT_EQ(place.times, 4000u) << place.call;
}

}  // namespace
