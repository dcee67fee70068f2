// SPDX-License-Identifier: Apache-2.0
// How waits divide their time between spinning and sleeping, for every policy.
#include "wait_pause.hpp"

#include <gtest/gtest.h>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;

// keeps S9
TEST(WaitPolicies, DecideWhoSpinsAndWhoSleeps) {
    for (const std::chrono::nanoseconds waited :
         {0ns, 100000ns, 100001ns, 1000000ns, 2000000ns, 2000001ns, 60000000000ns}) {
        EXPECT_EQ(pause_after(WaitPolicy::spin, waited), 0ns);
        EXPECT_EQ(pause_after(WaitPolicy::adaptive, waited) == 0ns, waited <= 2ms);
        EXPECT_EQ(yields_after(WaitPolicy::adaptive, waited), waited > 100us && waited <= 2ms);
        EXPECT_FALSE(yields_after(WaitPolicy::spin, waited) || yields_after(WaitPolicy::sleep, waited));
        EXPECT_GE(pause_after(WaitPolicy::sleep, waited), 20us);
        EXPECT_LE(pause_after(WaitPolicy::sleep, waited), 500us);
    }
    EXPECT_EQ(pause_after(WaitPolicy::sleep, 1ms), 100us) << "a tenth of what it has lasted";
    EXPECT_EQ(pause_after(WaitPolicy::adaptive, 10ms), 50us) << "a 200th of what it has lasted";
    EXPECT_EQ(pause_after(WaitPolicy::adaptive, 3ms), 20us);
    EXPECT_EQ(pause_after(WaitPolicy::adaptive, 1s), 500us);
}

// keeps S9
TEST(Deadlines, AreOneForSeveralWaits) {
    const Deadline refusing(Wait::never(), 1h);
    EXPECT_TRUE(refusing.left().refuse);
    const Deadline over(Wait::at_most(0ns), 1h);
    EXPECT_FALSE(over.left().refuse);
    EXPECT_EQ(over.left().timeout, 0ns);
    const Deadline otherwise(Wait{}, 1h);
    EXPECT_LE(otherwise.left().timeout, 1h);
    EXPECT_GT(otherwise.left().timeout, 30min);
    const Deadline endless(Wait::at_most(std::chrono::nanoseconds::max()), 1h);
    EXPECT_GT(endless.left().timeout, 24h);
}

}  // namespace
}  // namespace detail
}  // namespace v0
}  // namespace isthmus
