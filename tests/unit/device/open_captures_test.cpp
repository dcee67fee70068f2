// SPDX-License-Identifier: Apache-2.0
// OpenCaptures: actions that wait for captures to end, and the threads of open captures.
#include "open_captures.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using isthmus::detail::OpenCaptures;

// keeps K10
TEST(OpenCaptures, WorkIsPutOffUntilTheLastCaptureEndsAndThenDoneInItsOrder) {
    OpenCaptures captures;
    std::vector<int> done;
    captures.when_none_is_open([&] { done.push_back(0); });
    EXPECT_EQ(done, std::vector<int>{0});  // none is open: at once
    captures.begun();
    std::thread other([&] { captures.begun(); });
    other.join();
    captures.when_none_is_open([&] { done.push_back(1); });
    captures.when_none_is_open([&] {
        done.push_back(2);
        captures.when_none_is_open([&] { done.push_back(4); });
        done.push_back(3);
    });
    captures.ended();
    EXPECT_EQ(done.size(), 1u);  // the other thread's is still open
    EXPECT_TRUE(captures.any());
    EXPECT_FALSE(captures.here());
}

// keeps K13
TEST(OpenCaptures, AThreadKnowsItsOwn) {
    OpenCaptures captures;
    EXPECT_FALSE(captures.any());
    captures.begun();
    EXPECT_TRUE(captures.here());
    std::thread([&] { EXPECT_FALSE(captures.here()); }).join();
    captures.begun();
    captures.ended();
    EXPECT_TRUE(captures.here());  // one thread may capture two streams
    captures.ended();
    EXPECT_FALSE(captures.here());
    EXPECT_FALSE(captures.any());
}

// keeps K10
TEST(OpenCaptures, WhatPutsFurtherWorkOffWhileDrainingIsDoneInOrder) {
    OpenCaptures captures;
    std::vector<int> done;
    captures.begun();
    captures.when_none_is_open([&] {
        done.push_back(1);
        captures.when_none_is_open([&] { done.push_back(2); });
    });
    captures.when_none_is_open([&] { done.push_back(3); });
    captures.ended();
    EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

}  // namespace
