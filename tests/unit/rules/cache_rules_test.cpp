// SPDX-License-Identifier: Apache-2.0
// What is kept for the next allocation: every kind × placement, every size around the borders of classes, every way of
// release, every statement of the limit.
#include "some_devices.hpp"

#include <cache_rules.hpp>
#include <growth_rules.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST(Cache, KindsAreKeptThatNoUserPoolAndNoOtherProcessHas) {  // keeps M1, M6
    std::set<int> numbers;
    for_every_kind([&](K kind) {
        const bool keeps = kind == K::device || kind == K::pinned || kind == K::write_combined || kind == K::managed ||
                           kind == K::registered || kind == K::host || kind == K::host_numa || kind == K::pool;
        EXPECT_EQ(kept_kind(kind) >= 0, keeps) << name(kind);
        EXPECT_EQ(may_be_kept(kind, {}), keeps) << name(kind);
        if (kind == K::host_numa) {
            EXPECT_EQ(kept_kind(kind), kept_kind(K::host));
        } else if (keeps) {
            EXPECT_TRUE(numbers.insert(kept_kind(kind)).second);
        }
    });
    EXPECT_EQ(numbers.size(), static_cast<std::size_t>(kept_kind_count));
    EXPECT_EQ(*numbers.begin(), 0);
    EXPECT_EQ(*numbers.rbegin(), kept_kind_count - 1);
}

TEST(Cache, PlacementThatIsPromisedAnewIsNotKept) {  // keeps M1
    constexpr std::array localities = {Locality::anywhere, Locality::local,       Locality::near_device,
                                       Locality::node,     Locality::interleaved, Locality::unbound};
    for_every_kind([&](K kind) {
        for (const Locality locality : localities) {
            for (const bool strict : {false, true}) {
                HostPlacement placement;
                placement.locality = locality;
                placement.strict = strict;
                bool keeps = kept_kind(kind) >= 0;
                if (kind == K::host || kind == K::host_numa || kind == K::registered) {
                    keeps = !strict && locality != Locality::local;
                }
                EXPECT_EQ(may_be_kept(kind, placement), keeps) << name(kind) << ' ' << name(locality) << ' ' << strict;
            }
        }
    });
}

TEST(Cache, PlacementsAreTheSameIfEveryWishIs) {
    const HostPlacement one;
    EXPECT_TRUE(same_placement(one, one));
    std::vector<HostPlacement> others(6);
    others[0].locality = Locality::node;
    others[1].node = 1;
    others[2].strict = true;
    others[3].page_size = PageSize::huge;
    others[4].prefault = true;
    others[5].lock = true;
    for (const HostPlacement& other : others) {
        EXPECT_FALSE(same_placement(one, other));
        EXPECT_TRUE(same_placement(other, other));
    }
}

TEST(Cache, ClassesFollowOneAnotherWithoutAGap) {
    for (int at = 0; at + 1 < size_class_count; ++at) {
        const std::size_t largest = largest_of_class(at);
        EXPECT_EQ(size_class(largest), at);
        EXPECT_EQ(size_class(largest + 1), at + 1);
        EXPECT_EQ(size_class(largest - 1), at);
        if (largest > 4096) {
            EXPECT_LE((largest_of_class(at + 1) - largest) * 4, largest);
        }
    }
    EXPECT_EQ(size_class(1), 0);
    EXPECT_EQ(size_class(std::size_t{1} << 46), size_class_count - 2);
    EXPECT_EQ(size_class(std::numeric_limits<std::size_t>::max()), size_class_count - 1);
}

TEST(Cache, APieceServesItsClassAndTheNextFour) {
    for (int at = 0; at < 60; ++at) {
        const std::size_t piece = largest_of_class(at);
        EXPECT_TRUE(serves(piece, piece));
        EXPECT_FALSE(serves(piece, piece + 1));
        for (int asked = 0; asked <= at; ++asked) {
            const std::size_t least = asked == 0 ? 1 : largest_of_class(asked - 1) + 1;
            EXPECT_EQ(serves(piece, least), at - asked <= 4);
            if (serves(piece, least)) {
                EXPECT_LE(piece - least, std::max<std::size_t>(2559, piece * 3 / 5)) << piece << ' ' << least;
            }
        }
    }
}

// The sizes of owners' memory around the bounds: nothing, small programs, large ones.
constexpr std::array<std::uint64_t, 8> amounts = {0, 1, 4096, 64 << 10, (64 << 10) + 1, 1 << 20, 3 << 20, 1 << 30};

TEST(Cache, WhatIsKeptAndHandedOutStaysWithinASixteenthAboveThePeak) {  // keeps M8
    for (const std::uint64_t peak : amounts) {
        for (const std::uint64_t bytes : amounts) {
            if (bytes > peak + peak / 16) continue;
            const std::uint64_t most = most_kept({bytes, bytes, peak}, std::numeric_limits<std::uint64_t>::max());
            EXPECT_EQ(most, std::max<std::uint64_t>(64 << 10, peak + peak / 16 - bytes)) << peak << ' ' << bytes;
            for (const std::uint64_t limit : amounts)
                EXPECT_EQ(most_kept({bytes, bytes, peak}, limit), std::min(most, limit));
        }
    }
    EXPECT_EQ(most_kept({5 << 20, 1 << 20, 1 << 20}, 1 << 30), std::uint64_t{64} << 10) << "more than the bound lives";
}

TEST(Cache, UnusedEndsStayWithinASixteenthOfThePeak) {  // keeps M8
    constexpr std::uint64_t peak = 16 << 20;
    EXPECT_TRUE(may_leave_unused({0, 0, peak}, 3 << 20, 2 << 20)) << "a sixteenth";
    EXPECT_FALSE(may_leave_unused({0, 0, peak}, (3 << 20) + 1, 2 << 20));
    EXPECT_TRUE(may_leave_unused({peak, peak, peak}, 2 << 20, 2 << 20)) << "no end is unused";
    EXPECT_TRUE(may_leave_unused({(4 << 20) + 1000, 4 << 20, peak}, (3 << 20) - 1000, 2 << 20)) << "with the others'";
    EXPECT_FALSE(may_leave_unused({(4 << 20) + 1000, 4 << 20, peak}, (3 << 20) - 999, 2 << 20));
    EXPECT_TRUE(may_leave_unused({0, 0, 0}, 51 << 20, 48 << 20)) << "the request makes the peak";
    EXPECT_TRUE(may_leave_unused({0, 0, 0}, 100 << 10, 36 << 10)) << "small programs: 64 KiB";
    EXPECT_FALSE(may_leave_unused({0, 0, 0}, 101 << 10, 36 << 10));
}

TEST(Cache, APieceOfAnySizeServesWhereOwnersHaveNextToNothing) {  // keeps M2, M8
    constexpr std::uint64_t peak = 16 << 20;
    for (const std::uint64_t owners : {std::uint64_t{0}, peak / 16}) {
        EXPECT_TRUE(may_serve_alone({peak, peak, peak}, owners, false)) << "the rest lies in lanes";
        EXPECT_FALSE(may_serve_alone({peak, peak, peak}, owners, true)) << "two were needed at one time before";
    }
    EXPECT_FALSE(may_serve_alone({peak, peak, peak}, peak / 16 + 1, false));
    EXPECT_TRUE(may_serve_alone({0, 0, 0}, 64 << 10, false)) << "small programs: 64 KiB";
    EXPECT_FALSE(may_serve_alone({0, 0, 0}, (64 << 10) + 1, false));
    EXPECT_TRUE(ends_are_small({peak, peak - peak / 16, peak}));
    EXPECT_FALSE(ends_are_small({peak + 1, peak - peak / 16, peak}));
    EXPECT_TRUE(ends_are_small({64 << 10, 0, 0}));
    EXPECT_FALSE(ends_are_small({(64 << 10) + 1, 0, 0}));
}

TEST(Cache, WhatThreadsMayHaveAtOneTimeCountsAsThePeak) {  // keeps M8
    constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t peak : amounts) {
        for (const std::uint64_t threads : amounts) {
            for (const std::uint64_t bytes : amounts) {
                for (const std::uint64_t loose : amounts) {
                    const HandedOut now{bytes, bytes, peak, loose, threads};
                    const std::uint64_t most = std::max(peak, threads) + std::max(peak, threads) / 16;
                    EXPECT_EQ(now.peak(), std::max(peak, threads));
                    EXPECT_EQ(most_reserved(now), most);
                    const std::uint64_t left = most - std::min(most, bytes + loose);
                    EXPECT_EQ(most_kept(now, no_limit), std::max(small_program_bytes, left));
                    EXPECT_EQ(most_kept(now, 5000), 5000u);
                    const std::uint64_t share = std::max(small_program_bytes, std::max(peak, threads) / 16);
                    EXPECT_EQ(may_serve_alone(now, share, false), true);
                    EXPECT_EQ(may_serve_alone(now, share + 1, false), false);
                    EXPECT_TRUE(ends_are_small(now));
                }
            }
        }
    }
}

TEST(Cache, AThreadHasOnePieceForAllItsRequestsWhereOthersHaveOneEach) {  // keeps M2, M8
    for (const std::uint64_t peak : amounts) {
        for (const std::uint64_t largest : amounts) {
            for (const std::uint64_t others : amounts) {
                for (const std::uint64_t owners : amounts) {
                    for (const std::uint64_t piece : amounts) {
                        for (int bits = 0; bits < 8; ++bits) {
                            const std::uint64_t living = (bits & 4) != 0 ? owners / 2 + 1 : 0;
                            const AmongThreads thread{largest, others,          owners,
                                                      living,  (bits & 1) != 0, (bits & 2) != 0};
                            const bool several = others != 0 && others >= largest / 4;
                            const bool own_size = piece <= largest + largest / 4;
                            const bool nothing_else =
                                owners <= std::max({small_program_bytes, peak / 16, living + others});
                            EXPECT_EQ(may_be_loose({0, 0, peak}, thread, piece),
                                      (bits & 3) == 0 && several && own_size && nothing_else);
                            EXPECT_EQ(among_threads(largest, others), several);
                            EXPECT_EQ(most_loose(thread), largest + largest / 4);
                            EXPECT_EQ(peak_of_threads(largest, others, living),
                                      largest + others + others / 4 + (several ? living : 0));
                        }
                    }
                }
            }
        }
    }
}

TEST(Cache, TheDriverIsAskedForMoreWithinTheBoundOfUnusedEnds) {  // keeps M8
    for (const std::uint64_t peak : amounts) {
        for (const std::uint64_t asked : amounts) {
            for (const std::uint64_t unused : amounts) {
                for (const std::uint64_t requested : amounts) {
                    const HandedOut now{asked + unused, asked, peak};
                    const auto bytes = static_cast<std::size_t>(requested);
                    const std::size_t more = headroom(now, bytes);
                    const std::uint64_t most = std::max(peak, asked + requested) / 16;
                    const std::uint64_t left = most - std::min(most, unused);
                    EXPECT_EQ(more, std::min<std::uint64_t>(left, bytes / 8) / 512 * 512);
                    EXPECT_TRUE(more == 0 || may_leave_unused(now, bytes + more, bytes)) << peak << ' ' << asked;
                    const HandedOut then{now.bytes + bytes + more, asked + bytes, std::max(peak, asked + bytes)};
                    EXPECT_TRUE(more == 0 || then.bytes <= most_reserved(then)) << "it is kept after its release";
                }
            }
        }
    }
    EXPECT_EQ(headroom({0, 0, 0}, 16 << 20), std::size_t{1} << 20) << "a sixteenth where it is alone";
    EXPECT_EQ(headroom({1 << 30, 1 << 30, 1 << 30}, 16 << 20), std::size_t{2} << 20) << "an eighth";
}

TEST(Cache, RequestsGrowThatAreLittleLargerSeveralTimes) {  // keeps M2, M8
    for (const std::uint64_t last : amounts) {
        for (unsigned times = 0; times <= times_that_grow; ++times) {
            const Growth before{last, times};
            for (const std::uint64_t bytes :
                 {std::uint64_t{0}, last / 2, last, last + 1, last + last / 4, last + last / 4 + 1, 2 * last + 1}) {
                const bool larger = bytes > last && bytes <= last + last / 4;
                const Growth after = grown(before, bytes);
                EXPECT_EQ(after.last_bytes, bytes);
                EXPECT_EQ(after.times, larger ? std::min(times + 1, times_that_grow) : 0);
                EXPECT_EQ(grows(before), times == 3);
            }
        }
    }
}

TEST(Cache, OnlyMemoryThatNothingUsesIsKeptOrPoolMemoryBehindOneStream) {  // keeps M3, M7
    int kept = 0;
    for (const ReleaseOrder order : {ReleaseOrder::none, ReleaseOrder::own_stream, ReleaseOrder::other_stream}) {
        for (int facts = 0; facts < 16; ++facts) {
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{101}}) {
                for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{100}}) {
                    Released piece;
                    piece.made_for_it = (facts & 1) != 0;
                    piece.pooled = (facts & 2) != 0;
                    piece.allocated_in_order = (facts & 4) != 0;
                    piece.device_usable = (facts & 8) != 0;
                    piece.order = order;
                    piece.bytes = bytes;
                    bool may = !piece.allocated_in_order;
                    if (order == ReleaseOrder::own_stream) may = piece.pooled;
                    if (order == ReleaseOrder::other_stream) may = false;
                    may = may && piece.made_for_it && piece.device_usable && bytes > 0 && bytes <= limit;
                    kept += static_cast<int>(may);
                    EXPECT_EQ(keeping(piece, limit) == Keeping::keep, may) << facts << ' ' << bytes << ' ' << limit;
                }
            }
        }
    }
    EXPECT_EQ(kept, 8);
    EXPECT_EQ(keeping({.order = ReleaseOrder::own_stream, .device_usable = false, .bytes = 1}, 10),
              Keeping::free_not_made_for_it);
    EXPECT_EQ(keeping({.made_for_it = true, .order = ReleaseOrder::own_stream, .device_usable = false, .bytes = 1}, 10),
              Keeping::free_in_stream);
    EXPECT_EQ(keeping({.made_for_it = true, .device_usable = false, .bytes = 1}, 10), Keeping::free_unusable);
    EXPECT_EQ(keeping({.made_for_it = true, .bytes = 11}, 10), Keeping::free_too_large);
}

TEST(Cache, WhatKeptMostBytesForLongestGoesFirst) {  // keeps M5
    EXPECT_TRUE(goes_before({2, 100}, {1, 100}));
    EXPECT_FALSE(goes_before({1, 100}, {2, 100}));
    EXPECT_FALSE(goes_before({2, 100}, {2, 100}));
    EXPECT_TRUE(goes_before({1, 1000}, {9, 100})) << "large";
    EXPECT_TRUE(goes_before({11, 100}, {1, 1000})) << "long kept";
    EXPECT_TRUE(goes_before({10, 100}, {1, 1000})) << "of the same product the older";
    EXPECT_FALSE(goes_before({1, 1000}, {10, 100}));
    EXPECT_TRUE(goes_before({std::uint64_t{1} << 40, std::size_t{1} << 46}, {1, std::size_t{1} << 46}))
        << "no overflow";
}

TEST(Cache, TheLimitIsTheOptionsThenTheEnvironmentsThenAShareOfTheHost) {  // keeps M5
    EXPECT_EQ(cache_limit(7, "9", 64 * mib), 7u);
    EXPECT_EQ(cache_limit(0, "9", 64 * mib), 0u);
    EXPECT_EQ(cache_limit({}, "9", 64 * mib), 9u);
    EXPECT_EQ(cache_limit({}, "0", 64 * mib), 0u);
    EXPECT_EQ(cache_limit({}, "", 64 * mib), 4 * mib);
    EXPECT_EQ(cache_limit({}, "", 64 * 1024 * mib), 256 * mib);
    EXPECT_EQ(cache_limit({}, "", 0), 0u);
    for (const char* wrong : {"-1", "1M", " 1", "1 ", "0x10", "99999999999999999999", "many"}) {
        EXPECT_FALSE(cache_limit({}, wrong, 64 * mib)) << wrong;
        EXPECT_EQ(cache_limit(1, wrong, 64 * mib), 1u) << "the environment is not looked at";
    }
}

TEST(Cache, ADroppedBufferEndsLaterOnlyWhereTheRuntimeKnowsAllOfItsWork) {  // keeps M3
    for (int facts = 0; facts < 16; ++facts) {
        Dropped dropped;
        dropped.own_memory = (facts & 1) != 0;
        dropped.known_uses = (facts & 2) != 0;
        dropped.attached = (facts & 4) != 0;
        dropped.device_usable = (facts & 8) != 0;
        dropped.bytes = mib;
        const bool later = dropped.own_memory && dropped.known_uses && !dropped.attached && dropped.device_usable;
        EXPECT_EQ(ending(dropped, {}, mib), later ? Ending::later : Ending::now) << facts;
        EXPECT_EQ(ending(dropped, {}, mib - 1), Ending::now) << "more than may be kept";
        const Outstanding much{1, 1, 0};
        EXPECT_EQ(ending(dropped, much, mib), later ? Ending::later_after_oldest : Ending::now) << facts;
    }
}

TEST(Cache, TheDriverIsAskedOnceForManyDroppedBuffers) {  // keeps M2, M3
    const Dropped dropped{.own_memory = true, .known_uses = true, .bytes = 1};
    for (std::size_t since = 0; since < 2 * dropped_for_a_question; ++since) {
        const bool asks = since >= dropped_for_a_question;
        for (std::size_t buffers = 0; buffers < 2 * most_outstanding; ++buffers) {
            const Ending otherwise = buffers < most_outstanding ? Ending::later : Ending::later_after_oldest;
            EXPECT_EQ(ending(dropped, {buffers, buffers, since}, mib), asks ? Ending::later_after_asking : otherwise);
        }
    }
    EXPECT_EQ(ending(dropped, {1, mib - 1, 0}, mib), Ending::later);
    EXPECT_EQ(ending(dropped, {1, mib, 0}, mib), Ending::later_after_oldest) << "their memory is bounded";
}

// keeps M5, A16: over all rows
TEST(Cache, SegmentsServeOnlyWhereNoAnswerOfTheRuntimeWouldChange) {
    for (int row = 0; row < 8; ++row) {
        for (std::size_t gpus = 0; gpus < 4; ++gpus) {
            const SegmentFacts facts{(row & 1) != 0, (row & 2) != 0, (row & 4) != 0, gpus};
            EXPECT_EQ(why_no_segments(facts).empty(), row == 7 && gpus == 1) << row << ", " << gpus;
        }
    }
}

TEST(Cache, TheEnvironmentAsksForSegmentsByOneDigit) {  // keeps M5
    EXPECT_EQ(segments_asked(""), false);
    EXPECT_EQ(segments_asked("0"), false);
    EXPECT_EQ(segments_asked("1"), true);
    for (const char* const wrong : {"2", "10", "yes", " 1", "true"}) EXPECT_EQ(segments_asked(wrong), std::nullopt);
}

// keeps M8
TEST(Cache, ASegmentHasThePeakAndASixteenth) {
    EXPECT_EQ(most_reserved({0, 0, 1600}), 1700u);
    EXPECT_EQ(most_reserved({900, 800, 1600}), 1700u) << "what is handed out now does not count";
}

}  // namespace
