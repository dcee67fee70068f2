// SPDX-License-Identifier: Apache-2.0
// The block of a buffer's state, whose two parts end on different threads: part_with() (runtime/core/new_buffer.cpp) in
// the model's words, in every order of its steps. The second to end gives the block back, once, and neither part is
// touched after that.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <tuple>

namespace {

constexpr std::uint8_t both = 3;

struct Run {
    std::uint8_t ended = 0;
    std::array<int, 2> at{};  // the next step of each thread; -1: it is through
    std::array<std::uint8_t, 2> seen{};
    std::array<bool, 2> alive{true, true};  // the two parts
    int given_back = 0;
    bool early = false;  // given back beside a part that is alive
    auto all() const { return std::tie(ended, at, seen, alive, given_back, early); }
    bool operator<(const Run& other) const { return all() < other.all(); }
};

void give_back(Run& run) {
    ++run.given_back;
    run.early = run.early || run.alive[0] || run.alive[1];
}

// `whole`: the step that marks a part is one operation, as shipped; otherwise a load and a store.
void step(Run& run, std::size_t thread, bool whole) {
    const auto which = static_cast<std::uint8_t>(thread + 1);
    const auto through = [&](bool last) {
        if (last) give_back(run);
        run.at[thread] = -1;
    };
    switch (run.at[thread]++) {
        case 0: run.alive[thread] = false; return;
        case 1:
            if ((run.ended | which) == both) through(true);  // without a further operation
            return;
        case 2:
            run.seen[thread] = run.ended;
            if (!whole) return;
            run.ended = run.ended | which;
            return through((run.seen[thread] | which) == both);
        default: run.ended = run.seen[thread] | which; return through((run.seen[thread] | which) == both);
    }
}

struct Found {
    std::size_t ends = 0;
    bool lost = false, twice = false, early = false;
};

Found explored(bool whole) {
    Found found;
    std::set<Run> known;
    const std::function<void(const Run&)> from = [&](const Run& run) {
        if (!known.insert(run).second) return;
        found.twice = found.twice || run.given_back > 1;
        found.early = found.early || run.early;
        if (run.at[0] == -1 && run.at[1] == -1) {
            ++found.ends;
            found.lost = found.lost || run.given_back == 0;
        }
        for (std::size_t thread = 0; thread < 2; ++thread) {
            if (run.at[thread] == -1) continue;
            Run next = run;
            step(next, thread, whole);
            from(next);
        }
    };
    from({});
    return found;
}

TEST(LastPart, TheBlockGoesBackOnceBehindBothParts) {  // keeps M4
    const Found found = explored(true);
    EXPECT_GT(found.ends, 1u);
    EXPECT_FALSE(found.lost || found.twice || found.early);
}

TEST(LastPart, ALoadAndAStoreWouldLoseIt) {  // keeps M4
    const Found found = explored(false);
    EXPECT_TRUE(found.lost);
}

}  // namespace
