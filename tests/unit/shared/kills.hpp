// SPDX-License-Identifier: Apache-2.0
// Shared by tests that kill a process: how soon a survivor has to notice, a page that both processes share, and a kill
// at every point of every way to play.
#pragma once

#include "sanitized.hpp"

#include <isthmus/result.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#if defined(ISTHMUS_SANITIZED)
inline constexpr std::chrono::nanoseconds max_after_a_kill = std::chrono::seconds(1);
inline constexpr long kills_in_a_sample = 40;
#else
inline constexpr std::chrono::nanoseconds max_after_a_kill = std::chrono::milliseconds(100);
inline constexpr long kills_in_a_sample = 100;
#endif
// A survivor that waited for its deadline instead of noticing would take far longer.
inline constexpr std::chrono::nanoseconds survivors_step = std::chrono::seconds(10);

inline std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

// A T in memory that is shared with processes forked later.
template <class T>
class SharedPage {
public:
    SharedPage()
        : page_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          shared_(new (page_) T) {}
    SharedPage(const SharedPage&) = delete;
    SharedPage& operator=(const SharedPage&) = delete;
    ~SharedPage() { ::munmap(page_, sizeof(T)); }
    T* operator->() const { return shared_; }

private:
    void* page_;
    T* shared_;
};

struct KillAt {
    long point = 0;          // 0: none
    unsigned dawdle_us = 0;  // before each point, at most
    unsigned seed = 0;
};
struct Seen {
    bool killed = false;
    long points = 0;
    isthmus::Result<void> survivor;
    std::chrono::nanoseconds after_the_kill{0};
};

// play(way, kill) → Seen, text(way, kill) → its description. ISTHMUS_KILLS=N: how many kills, shared among the ways;
// without it a sample. If N exceeds the number of points, the victim is delayed in every pass after the first one,
// differently each time. `lost_of`: at least one of so many survivors has an error.
template <class Play, class Text>
void kill_at_every_point(std::size_t ways, long lost_of, const Play& play, const Text& text) {
    const char* asked = std::getenv("ISTHMUS_KILLS");
    const long kills = asked ? std::strtol(asked, nullptr, 10) : kills_in_a_sample;
    ASSERT_GT(kills, 0);
    long killed = 0;
    long lost = 0;
    long again = 0;
    long late = 0;
    long points = 0;
    std::chrono::nanoseconds longest{0};
    const auto number_of_ways = static_cast<long>(ways);
    for (long way = 0; way < number_of_ways; ++way) {
        const Seen whole = play(static_cast<std::size_t>(way), KillAt{});
        if (testing::Test::HasFailure() || testing::Test::IsSkipped()) return;
        ASSERT_TRUE(whole.survivor.ok()) << whole.survivor.error().text();
        ASSERT_FALSE(whole.killed);
        ASSERT_GT(whole.points, 20);
        points += whole.points;
        const long share = kills / number_of_ways + (way < kills % number_of_ways ? 1 : 0);
        // The number of calls varies (some are repeated), so a late point may not be reached.
        const long kills_before = killed;
        // A side that waits for the other polls, so the play without a kill may have had many more of them.
        long reach = whole.points;
        for (long at = 0; killed < kills_before + share && at < 2 * share; ++at) {
            const long pass = at / reach;
            KillAt kill;
            kill.point = 1 + (share >= reach ? at : at * reach / share) % reach;
            kill.dawdle_us = pass == 0 ? 0 : 300;
            kill.seed = static_cast<unsigned>(1 + at);
            SCOPED_TRACE(text(static_cast<std::size_t>(way), kill));
            Seen seen = play(static_cast<std::size_t>(way), kill);
            // A machine that did not run the survivor for that long is no failure if it happens seldom; a survivor that
            // slept is one each time.
            late += seen.after_the_kill > max_after_a_kill ? 1 : 0;
            for (int tries = 0; seen.after_the_kill > max_after_a_kill && tries < 6; ++tries, ++again) {
                seen = play(static_cast<std::size_t>(way), kill);
            }
            EXPECT_LE(seen.after_the_kill.count(), max_after_a_kill.count());
            if (!seen.survivor.ok()) {
                EXPECT_EQ(seen.survivor.code(), isthmus::Code::peer_lost) << seen.survivor.error().text();
                ++lost;
            }
            killed += seen.killed ? 1 : 0;
            if (!seen.killed) reach = std::clamp(seen.points, 1L, reach);
            longest = std::max(longest, seen.after_the_kill);
            if (testing::Test::HasFailure()) return;
        }
    }
    EXPECT_EQ(killed, kills);
    EXPECT_LE(late * 4, kills);
    EXPECT_GE(lost * lost_of, kills);
    std::printf(
        "%ld kills at %ld points, %ld of the survivors with a typed error, after %ld us at most, %ld played again\n",
        killed, points, lost, static_cast<long>(longest.count() / 1000), again);
}
