// SPDX-License-Identifier: Apache-2.0
// Which uses of the same bytes may overlap in time, where the host may use them beside a device, and which ranges
// overlap.
#include "some_devices.hpp"

#include <atomic_rules.hpp>
#include <sharing_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using U = ArgumentUse;

constexpr U uses[] = {U::read, U::write, U::read_write, U::concurrent};

TEST(Sharing, ReadersGoTogetherAndConcurrentUsersDo) {  // keeps G8, G14
    for (const U one : uses) {
        for (const U other : uses) {
            const bool lawful = one == other && (one == U::read || one == U::concurrent);
            EXPECT_EQ(together(one, other), lawful) << purpose(one) << ", " << purpose(other);
        }
    }
    for (const U one : uses) EXPECT_EQ(writes(one), one != U::read);
    for (const U one : uses) EXPECT_EQ(reads(one), one != U::write);
}

// keeps W3
TEST(Sharing, AScopeOfOtherCodeSharesOnlyWhatIsReadInPlace) {
    for (const LaunchPath path :
         {LaunchPath::pass, LaunchPath::prefetch, LaunchPath::attach, LaunchPath::stage, LaunchPath::refuse}) {
        const bool in_place = path != LaunchPath::attach && path != LaunchPath::stage;
        for (const U use : {U::read, U::write, U::read_write}) {
            const U marked = scope_use(use, path);
            for (const U other : uses) {
                EXPECT_EQ(together(marked, other), in_place && use == U::read && other == U::read)
                    << purpose(use) << ", " << purpose(other) << ", " << name(path);
            }
        }
    }
}

// As documented in PLATFORMS: plain loads and stores by both sides are lawful where both can access the memory.
bool shareable(unsigned bits, K kind) {
    switch (kind) {
        case K::pinned: return bit(bits, 41);
        case K::registered: return bit(bits, 41) && bit(bits, 99);
        case K::host:
        case K::host_numa: return bit(bits, 88);
        case K::managed:
        case K::managed_pool: return bit(bits, 83) && bit(bits, 89);
        default: return false;
    }
}

TEST(Sharing, AConcurrentViewExistsExactlyWhereBothSidesMayTouchTheMemoryAtOnce) {  // keeps G8
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities device = of_bits(bits);
        for_every_kind([&](K kind) {
            const AccessAnswer answer = concurrent_view(device, kind, LaunchPath::pass);
            ASSERT_EQ(static_cast<bool>(answer), shareable(bits, kind)) << bits << " " << name(kind);
            EXPECT_FALSE(answer.reason.empty());
            EXPECT_EQ(answer.remedy.empty(), static_cast<bool>(answer)) << answer.remedy;
            const AccessAnswer staged = concurrent_view(device, kind, LaunchPath::stage);
            EXPECT_FALSE(staged) << "each side has its own";
            EXPECT_NE(staged.remedy.find("pinned"), std::string_view::npos);
        });
    }
    for (const K kind : {K::host, K::pinned, K::registered}) {
        EXPECT_TRUE(concurrent_view(cpu(), kind, LaunchPath::pass)) << name(kind);
    }
}

TEST(Sharing, PhaseGuardedManagedMemoryIsRefusedWithPinnedAsTheWay) {  // keeps G8, K6
    for (const K kind : {K::managed, K::managed_pool}) {
        const AccessAnswer answer = concurrent_view(of_machine("orin"), kind, LaunchPath::attach);
        EXPECT_FALSE(answer);
        // The rule for plain access would recommend a host view that waits, which is no alternative to a concurrent
        // view.
        EXPECT_EQ(answer.remedy.find("use pinned memory"), 0u) << answer.remedy;
    }
    EXPECT_TRUE(concurrent_view(of_machine("orin"), K::pinned, LaunchPath::pass));
    EXPECT_TRUE(concurrent_view(of_machine("h200"), K::managed, LaunchPath::prefetch));
}

TEST(Sharing, WhereMemoryGoesByTurnsAPartIsTheWholeAndAConcurrentUserHasItToHimself) {  // keeps G8
    constexpr ByteSpan part{4, 8};
    for (const LaunchPath path : {LaunchPath::stage, LaunchPath::attach}) {
        EXPECT_TRUE(claimed_span(path, part).whole());
        EXPECT_EQ(claimed_use(U::concurrent, path), U::read_write);
        EXPECT_EQ(claimed_use(U::write, path, part), U::read_write) << "the rest is to stay";
        EXPECT_EQ(claimed_use(U::write, path), U::write);
        EXPECT_EQ(claimed_use(U::read, path, part), U::read);
    }
    EXPECT_EQ(claimed_span(LaunchPath::pass, part), part);
    for (const U use : uses) EXPECT_EQ(claimed_use(use, LaunchPath::pass, part), use);
    EXPECT_EQ(recorded_use(U::write, part), U::read_write);
    EXPECT_EQ(recorded_use(U::write, {}), U::write);
}

TEST(Sharing, RangesOverlapWhereTheyHaveAByteInCommon) {  // keeps G8
    for (std::size_t a = 0; a < 6; ++a) {
        for (std::size_t b = a; b < 6; ++b) {
            for (std::size_t c = 0; c < 6; ++c) {
                for (std::size_t d = c; d < 6; ++d) {
                    bool common = false;
                    for (std::size_t at = 0; at < 6; ++at) common |= at >= a && at < b && at >= c && at < d;
                    ASSERT_EQ(overlap({a, b}, {c, d}), common) << a << "-" << b << " " << c << "-" << d;
                }
            }
        }
    }
    EXPECT_TRUE(overlap({}, {3, 4}));
    EXPECT_FALSE(overlap({}, {3, 3}));
}

// Uses opened one after the other are disjoint, and together cover what was requested, with the same access.
TEST(Sharing, JoinedUsesAreDisjointAndCoverWhatTheyWereMadeOf) {  // keeps G9
    std::mt19937 random(7);
    const auto below = [&](std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
    };
    for (int round = 0; round < 2000; ++round) {
        std::vector<SpanUse> asked;
        for (std::size_t n = below(6); n > 0; --n) {
            const std::size_t begin = below(20);
            asked.push_back({{begin, begin + below(6)}, uses[below(4)]});
        }
        SpanUses joined;
        for (const SpanUse& one : asked) joined.push_back(one);
        join(joined);
        for (std::size_t i = 0; i < joined.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) ASSERT_FALSE(overlap(joined[i].span, joined[j].span)) << round;
        }
        for (std::size_t at = 0; at < 26; ++at) {
            const ByteSpan byte{at, at + 1};
            const auto covering =
                std::find_if(joined.begin(), joined.end(), [&](const SpanUse& one) { return overlap(one.span, byte); });
            for (const SpanUse& one : asked) {
                if (!overlap(one.span, byte)) continue;
                ASSERT_NE(covering, joined.end()) << round;
                ASSERT_TRUE(covering->use == one.use || covering->use == U::read_write) << round;
            }
        }
    }
}

}  // namespace
