// SPDX-License-Identifier: Apache-2.0
// What is kept, which request takes it, what goes back first, and what a simulator is told.
#include <gtest/gtest.h>
#include <cache_rules.hpp>
#include <ledger.hpp>
#include <no_memory.hpp>
#include <piece_cache.hpp>
#include <process.hpp>
#include <sanitized.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using detail::HostPart;
using detail::Piece;
using detail::PieceCache;

// Remembers how much of each allocation may be accessed.
struct Lent final : isthmus::testing::NoMemory {
    bool lends() const noexcept override { return true; }
    void lend(std::uint64_t address, std::size_t bytes, platform::StreamHandle order) noexcept override {
        const std::lock_guard lock(mutex);
        lent[address] = bytes;
        lent_behind[address] = order;
    }

    std::mutex mutex;
    std::map<std::uint64_t, std::size_t> lent;
    std::map<std::uint64_t, platform::StreamHandle> lent_behind;
};

Piece piece_of(MemoryKind kind, std::uint64_t address, std::size_t bytes) {
    Piece piece;
    piece.make_own().allocation = {kind, nullptr, address, bytes};
    piece.may_be_kept = true;
    return piece;
}

Piece pages_of(std::size_t bytes, const HostPlacement& placement, bool registered) {
    Piece piece;
    HostPart& part = *(piece.make_own().host_part = std::make_unique<HostPart>());
    part.pages = platform::os::HostPages::allocate(bytes, placement, -1, {}).value();
    part.asked = placement;
    part.registered = registered;
    piece.block.host = part.pages.data();
    piece.block.device = reinterpret_cast<std::uintptr_t>(piece.block.host);
    return piece;
}

// Kept pieces stay where they are.
Piece& staying(Piece piece) {
    static std::deque<Piece> pieces;
    return pieces.emplace_back(std::move(piece));
}

std::uint64_t keep(PieceCache& cache, Piece piece) {
    std::uint64_t gone = 0;
    for (const Piece* const out : cache.keep(staying(std::move(piece)))) gone += out->bytes();
    return gone;
}

TEST(PieceCache, APieceServesTheNextRequestOfItsKindAndClass) {  // keeps M1
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    EXPECT_EQ(keep(cache, piece_of(MemoryKind::device, 0x10000, 5000)), 0u);
    ASSERT_EQ(memory.lent.count(0x10000), 1u);
    EXPECT_EQ(memory.lent[0x10000], 0u) << "kept memory is nobody's";
    EXPECT_FALSE(cache.take(MemoryKind::pinned, {}, 5000, 256)) << "another kind";
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 5001, 256)) << "too small";
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 512, 256)) << "too large";
    const Piece* const taken = cache.take(MemoryKind::device, {}, 4200, 256);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->allocation().device, 0x10000u);
    EXPECT_EQ(taken->allocation().bytes, 5000u) << "the driver's whole allocation";
    EXPECT_TRUE(taken->may_be_kept);
    EXPECT_EQ(memory.lent[0x10000], 4200u) << "and no more than was asked for";
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 4200, 256)) << "once";
    EXPECT_EQ(cache.usage().taken, 1u);
    EXPECT_EQ(cache.usage().missed, 0u) << "the driver was not asked";
    EXPECT_TRUE(cache.make_way(4200).empty());
    EXPECT_EQ(cache.usage().missed, 1u);
    EXPECT_EQ(cache.usage().bytes, 0u);
}

TEST(PieceCache, WhatWasReleasedLastServesFirst) {
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    for (const std::uint64_t address : {0x10000, 0x20000, 0x30000}) {
        (void)keep(cache, piece_of(MemoryKind::pinned, address, 4096));
    }
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 4096, 256)->allocation().device, 0x30000u);
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 4096, 256)->allocation().device, 0x20000u);
}

TEST(PieceCache, WhatIsShedForASegmentIsOfItsKind) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    (void)keep(cache, piece_of(MemoryKind::device, 0x10000, 4096));
    (void)keep(cache, piece_of(MemoryKind::pinned, 0x20000, 16384));
    (void)keep(cache, piece_of(MemoryKind::device, 0x30000, 8192));
    for (const std::uint64_t address : {0x10000, 0x30000}) {
        const Piece* const shed = cache.shed(MemoryKind::device);
        ASSERT_NE(shed, nullptr);
        EXPECT_EQ(shed->allocation().device, address);
        EXPECT_EQ(memory.lent[address], shed->allocation().bytes) << "the segment gets all of it";
    }
    EXPECT_EQ(cache.shed(MemoryKind::device), nullptr);
    EXPECT_EQ(cache.shed(MemoryKind::graph), nullptr) << "is never kept";
    EXPECT_EQ(cache.usage().pieces, 1u);
    EXPECT_TRUE(cache.take(MemoryKind::pinned, {}, 16384, 256));
}

TEST(PieceCache, BeyondTheLimitTheLongestKeptGoesBack) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 10000);
    (void)keep(cache, piece_of(MemoryKind::device, 0x10000, 4000));
    (void)keep(cache, piece_of(MemoryKind::managed, 0x20000, 4000));
    const std::vector<Piece*> gone = cache.keep(staying(piece_of(MemoryKind::device, 0x30000, 3000)));
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0]->allocation().device, 0x10000u);
    EXPECT_EQ(memory.lent[0x10000], 4000u) << "the driver gets all of it";
    EXPECT_EQ(cache.usage().bytes, 7000u);
    EXPECT_EQ(cache.usage().pieces, 2u);
    EXPECT_EQ(cache.take_out(3000).size(), 1u);
    EXPECT_EQ(cache.usage().bytes, 3000u);
    EXPECT_EQ(cache.take_out(0).size(), 1u);
    EXPECT_EQ(cache.usage().bytes, 0u);
    EXPECT_TRUE(cache.take_out(0).empty());
}

TEST(PieceCache, WhatComesFromALaneHasTheAgeOfItsRelease) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    (void)keep(cache, piece_of(MemoryKind::device, 0x10000, 1000));
    EXPECT_TRUE(cache.keep_from_lane(staying(piece_of(MemoryKind::device, 0x20000, 1000)), nullptr, 5).empty());
    std::vector<Piece*> gone = cache.take_out(1000);
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0]->allocation().device, 0x20000u) << "it was released before the other one";
    (void)cache.take_out(0);
    (void)keep(cache, piece_of(MemoryKind::device, 0x30000, 400));
    cache.released_elsewhere(100);
    EXPECT_TRUE(cache.keep_from_lane(staying(piece_of(MemoryKind::device, 0x40000, 10000))).empty());
    gone = cache.take_out(10000);
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0]->allocation().device, 0x30000u) << "it has waited for a hundred releases";
}

constexpr std::uint64_t no_limit = std::uint64_t{1} << 40;

// A piece that the driver made for a request of `asked` bytes.
Piece handed_out(PieceCache& cache, std::uint64_t address, std::size_t bytes, std::size_t asked) {
    Piece piece = piece_of(MemoryKind::device, address, bytes);
    cache.handed_out(piece, asked);
    return piece;
}

// A shelf of one class, from which the oldest leave and to which newer come, and older ones out of lanes.
TEST(PieceCache, AFullShelfGivesBackItsOldestAndServesItsNewest) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 1 << 20);  // a small program keeps 64 KiB
    const auto address = [](std::uint64_t number) { return 0x100000 + number * 0x10000; };
    std::vector<std::uint64_t> gone;
    const auto note = [&](const std::vector<Piece*>& out) {
        for (const Piece* const piece : out) gone.push_back(piece->allocation().device);
    };
    for (std::uint64_t number = 0; number < 100; ++number) {
        note(cache.keep(staying(piece_of(MemoryKind::device, address(number), 4096))));
        if (number % 10 == 9) {  // was released before the last five, which are newer
            note(cache.keep_from_lane(staying(piece_of(MemoryKind::device, address(1000 + number), 4096)), nullptr, 5));
        }
    }
    std::vector<std::uint64_t> expected;
    for (std::uint64_t number = 0; number < 100; ++number) {
        expected.push_back(address(number));
        if (number % 10 == 4) expected.push_back(address(1000 + number + 5));
    }
    ASSERT_EQ(gone.size(), 110u - 16);
    EXPECT_TRUE(std::equal(gone.begin(), gone.end(), expected.begin())) << "in the order of their releases";
    for (std::size_t at = expected.size(); at > 100; --at) {
        const Piece* const newest = cache.take(MemoryKind::device, {}, 4096, 256);
        ASSERT_NE(newest, nullptr);
        EXPECT_EQ(newest->allocation().device, expected[at - 1]);
    }
    EXPECT_EQ(cache.usage().pieces, 6u);
}

// Where each that leaves moved all others, this would take minutes.
TEST(PieceCache, ManyPiecesOfOneClassGoBackInTheirOrder) {  // keeps M5
    constexpr std::uint64_t count = 400000;
    Lent memory;
    PieceCache cache(memory, std::uint64_t{1} << 40);
    std::deque<Piece> pieces;
    for (std::uint64_t number = 0; number < count; ++number) {
        pieces.push_back(piece_of(MemoryKind::device, 0x100000 + number * 0x1000, 512));
        cache.handed_out(pieces.back(), 512);
    }
    for (Piece& piece : pieces) ASSERT_TRUE(cache.keep(piece).empty());
    const std::vector<Piece*> out = cache.take_out(0);
    ASSERT_EQ(out.size(), count);
    for (std::uint64_t number = 0; number < count; ++number) ASSERT_EQ(out[number], &pieces[number]);
}

TEST(PieceCache, WhatIsKeptAndHandedOutStaysNearThePeak) {  // keeps M8
    constexpr std::size_t size = 4 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    std::vector<Piece> pieces;
    for (std::uint64_t at = 1; at <= 4; ++at) pieces.push_back(handed_out(cache, at << 24, size, size));
    for (Piece& piece : pieces) EXPECT_TRUE(cache.keep(piece).empty()) << "the peak needed all four";
    EXPECT_EQ(cache.usage().bytes, 4 * size);
    EXPECT_TRUE(cache.make_way(size / 4).empty()) << "a sixteenth of the peak beside it";
    EXPECT_EQ(cache.usage().bytes, 4 * size);
    const std::vector<Piece*> gone = cache.make_way(size / 4 + 1);
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0]->allocation().device, std::uint64_t{1} << 24) << "kept longest";
    Piece other = handed_out(cache, 9 << 24, size / 4 + 1, size / 4 + 1);
    memory.lent.clear();
    cache.returned(other);
    EXPECT_EQ(memory.lent[other.allocation().device], size / 4 + 1) << "whole again for the driver";
    EXPECT_EQ(other.asked_bytes(), 0u);
    cache.returned(other);  // counts once
    EXPECT_TRUE(cache.make_way(5 * (size / 4)).empty()) << "3 + 5/4 of 4 + 4/16 pieces";
    EXPECT_EQ(cache.make_way(5 * (size / 4) + 1).size(), 1u);
    EXPECT_TRUE(cache.make_way(2 * size).empty());
    EXPECT_EQ(cache.take_out(2 * size).size(), 0u);
    EXPECT_EQ(cache.make_way(size).size(), 2u) << "the peak was left behind: take_out() begins anew";
}

TEST(PieceCache, WhatLiesInLanesIsKeptAndNoPartOfThePeak) {  // keeps M5, M8
    Lent memory;
    constexpr std::size_t size = 1 << 20;
    PieceCache cache(memory, 4 * size);
    Piece lying = piece_of(MemoryKind::device, 0x1000000, size);
    cache.handed_out(lying, size);
    PieceCache::InLane& lane = cache.in_lanes[3];
    lane.bytes.store(size);
    lane.asked_bytes.store(size);
    lane.pieces.store(1);
    lane.taken.store(5);
    memory.lent[0x1000000] = size;  // as the driver gave it
    cache.close_in_lane(lying, nullptr);
    EXPECT_EQ(memory.lent[0x1000000], 0u);
    cache.open_from_lane(lying, nullptr);
    EXPECT_EQ(memory.lent[0x1000000], size);
    PieceCache::Usage usage = cache.usage();
    EXPECT_EQ(usage.bytes, size);
    EXPECT_EQ(usage.pieces, 1u);
    EXPECT_EQ(usage.taken, 5u);
    lane.pool_bytes.store(size / 2);
    EXPECT_EQ(cache.kept_bytes(MemoryKind::pool), size / 2);
    EXPECT_EQ(cache.kept_bytes(MemoryKind::device), 0u);
    lane.pool_bytes.store(0);
    // Its owners have one more at a time, so that this and a sixteenth may be kept beside what lies in the lane.
    (void)cache.take_out(4 * size);
    Piece& other = staying(piece_of(MemoryKind::device, 0x3000000, size));
    cache.handed_out(other, size);
    EXPECT_EQ(cache.keep(other).size(), 1u) << "the peak is what owners had, and that lies in the lane";
    lane.bytes.store(0);
    lane.asked_bytes.store(0);
    lane.pieces.store(0);
    EXPECT_TRUE(cache.keep_from_lane(lying).empty());
    EXPECT_EQ(cache.usage().bytes, size);
    EXPECT_EQ(cache.beside_bytes(), size);
}

TEST(PieceCache, LanesAndShelvesShareTheLimit) {  // keeps M5
    Lent memory;
    constexpr std::size_t size = 1 << 20;
    PieceCache cache(memory, 4 * size);
    std::vector<Piece> pieces;
    for (std::uint64_t at = 1; at <= 5; ++at) {
        pieces.push_back(piece_of(MemoryKind::device, at << 24, size));
        cache.handed_out(pieces.back(), size);
    }
    cache.in_lanes[0].bytes.store(size);
    for (std::size_t at = 0; at < 3; ++at) EXPECT_TRUE(cache.keep(pieces[at]).empty());
    EXPECT_EQ(cache.keep(pieces[3]).size(), 1u);
    EXPECT_EQ(cache.usage().bytes, 4 * size);
}

TEST(PieceCache, UnusedEndsOfPiecesAreBounded) {  // keeps M8
    constexpr std::size_t size = 4 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    std::vector<Piece> pieces;
    for (std::uint64_t at = 1; at <= 4; ++at) pieces.push_back(handed_out(cache, at << 24, size, size));
    for (Piece& piece : pieces) (void)cache.keep(piece);
    constexpr std::size_t asked = 7 * (size / 8);
    EXPECT_TRUE(cache.take(MemoryKind::device, {}, asked, 256)) << "an eighth of a piece is unused";
    Piece* const second = cache.take(MemoryKind::device, {}, asked, 256);
    ASSERT_TRUE(second) << "a sixteenth of the peak";
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, asked, 256)) << "more than that";
    EXPECT_TRUE(cache.take(MemoryKind::device, {}, size, 256)) << "no end is unused";
    (void)cache.keep(*second);
    EXPECT_TRUE(cache.take(MemoryKind::device, {}, asked, 256)) << "one was returned";
}

// One owner at a time, whose sizes change: one piece serves all of them, until two are needed at one time.
TEST(PieceCache, ALargePieceServesASmallRequestWhereItWouldLieIdle) {  // keeps M2, M8
    constexpr std::size_t size = 8 << 20;
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{5000}, std::size_t{1} << 20}) {
        Lent memory;
        PieceCache cache(memory, no_limit);
        const auto take = [&](std::size_t asked) {
            return cache.take(MemoryKind::device, {}, asked, 256, nullptr, 0, rules::Reach::any);
        };
        Piece large = handed_out(cache, 1 << 24, size, size);
        Piece beside = handed_out(cache, 2 << 24, size / 16, size / 16);
        (void)cache.keep(large);
        EXPECT_FALSE(cache.take(MemoryKind::device, {}, bytes, 256)) << "near ones alone";
        ASSERT_EQ(take(bytes), &large) << bytes;
        EXPECT_EQ(memory.lent[1 << 24], bytes);
        EXPECT_EQ(large.asked_bytes(), bytes);
        EXPECT_FALSE(take(64));
        EXPECT_TRUE(cache.make_way(64).empty());  // the driver is asked
        EXPECT_TRUE(cache.keep(large).empty());
        EXPECT_FALSE(take(bytes)) << "two were needed at one time";
        EXPECT_EQ(take(size - size / 16), &large) << "within the bound of unused ends";
        EXPECT_TRUE(cache.keep(large).empty());
        cache.returned(beside);
        EXPECT_FALSE(take(bytes));
        (void)cache.take_out(no_limit);  // the peak begins anew
        EXPECT_EQ(take(bytes), &large);
    }
}

// What rested in a lane, for another size: one step of the cache.
TEST(PieceCache, APieceOfALaneIsExchangedForOneThatServes) {  // keeps M2, M5
    constexpr std::size_t size = 1 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    Piece large = handed_out(cache, 1 << 24, size, size);
    Piece small = handed_out(cache, 2 << 24, 70000, 70000);
    Piece oldest = handed_out(cache, 3 << 24, 300, 300);
    (void)cache.keep(oldest);
    (void)cache.keep(large);
    const PieceCache::Usage before = cache.usage();
    cache.close_in_lane(small, nullptr);
    std::vector<Piece*> surplus;
    EXPECT_EQ(cache.exchange({small, 0, 3}, size - 5, nullptr, surplus), &large);
    EXPECT_TRUE(surplus.empty());
    EXPECT_EQ(memory.lent[1 << 24], size - 5);
    EXPECT_EQ(memory.lent[2 << 24], 0u);
    EXPECT_EQ(cache.usage().taken, before.taken + 1);
    EXPECT_EQ(cache.usage().bytes, before.bytes - size + 70000);
    // Its own piece, where that serves; and where none does, it is kept all the same.
    (void)cache.keep(large);
    Piece* const again = cache.take(MemoryKind::device, {}, 70000, 256);
    ASSERT_EQ(again, &small);
    cache.close_in_lane(small, nullptr);
    EXPECT_EQ(cache.exchange({small, 1, 1}, 69000, nullptr, surplus), &small);
    EXPECT_EQ(memory.lent[2 << 24], 69000u);
    cache.close_in_lane(small, nullptr);
    EXPECT_EQ(cache.exchange({small, 0, 1}, 2 * size, nullptr, surplus), nullptr);
    EXPECT_EQ(cache.take(MemoryKind::device, {}, 70000, 256), &small);
    EXPECT_EQ(cache.take_out(0).size(), 2u);
}

// A thread among others, which has one owner at a time: one piece serves all its sizes, until it needs two at one time.
TEST(PieceCache, AmongThreadsAPieceServesWhateverItsThreadAsksFor) {  // keeps M2, M8
    constexpr std::size_t size = 1 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    const std::size_t own = process::thread_number() % rules::lane_count;
    const std::size_t other = (own + 1) % rules::lane_count;
    std::vector<Piece*> surplus;
    Piece large = handed_out(cache, 1 << 24, size, size);
    Piece beside = handed_out(cache, 2 << 24, size, size);  // the other thread's
    const auto exchanged = [&](Piece& left, std::size_t bytes) {
        cache.close_in_lane(left, nullptr);
        return cache.exchange({left, 0, 0}, bytes, nullptr, surplus);
    };
    const auto take = [&](std::size_t bytes) {
        return cache.take(MemoryKind::device, {}, bytes, 256, nullptr, 0, rules::Reach::any);
    };
    cache.note_rest(cache.in_lanes[own], size);
    EXPECT_FALSE(cache.among_threads());
    EXPECT_EQ(exchanged(large, 64), nullptr) << "no other thread has anything";
    EXPECT_EQ(take(64), nullptr);
    ASSERT_EQ(take(size), &large);
    cache.note_rest(cache.in_lanes[other], size);
    EXPECT_TRUE(cache.among_threads());
    EXPECT_EQ(exchanged(large, 64), &large);
    EXPECT_EQ(large.own()->loose_of, own + 1);
    EXPECT_EQ(memory.lent[1 << 24], 64u);
    EXPECT_EQ(cache.usage().bytes, 0u) << "the caller has it";
    Piece second = handed_out(cache, 3 << 24, size, size);
    EXPECT_EQ(exchanged(second, 64), nullptr) << "one of each thread";
    EXPECT_EQ(surplus, std::vector<Piece*>{&second}) << "no two had three pieces at one time";
    surplus.clear();
    EXPECT_TRUE(cache.keep(large).empty());
    EXPECT_EQ(large.own()->loose_of, 0) << "in the cache it is everybody's";
    EXPECT_EQ(take(64), &large) << "from there, too";
    EXPECT_EQ(large.own()->loose_of, own + 1);
    (void)cache.make_way(64);  // the thread asks the driver although an owner has its piece
    EXPECT_TRUE(cache.keep(large).empty());
    EXPECT_EQ(take(64), nullptr) << "it needed two at one time";
    EXPECT_TRUE(surplus.empty());
    (void)cache.take_out(no_limit);  // all begins anew
    EXPECT_FALSE(cache.among_threads());
}

// Who released it last has it in its lane, and may be another thread than the one that it was of.
TEST(PieceCache, ALoosePieceIsThatOfTheThreadThatTakesItOver) {  // keeps M8
    constexpr std::size_t size = 1 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    const std::size_t own = process::thread_number() % rules::lane_count;
    std::vector<Piece*> surplus;
    const auto exchanged = [&](Piece& left) {
        cache.close_in_lane(left, nullptr);
        return cache.exchange({left, 0, 0}, 64, nullptr, surplus);
    };
    Piece first = handed_out(cache, 1 << 24, size, size), second = handed_out(cache, 2 << 24, size, size);
    for (PieceCache::InLane& lane : cache.in_lanes) cache.note_rest(lane, size);
    ASSERT_EQ(exchanged(first), &first);
    std::thread([&] {
        cache.take_over(first);
        EXPECT_EQ(first.own()->loose_of, 1 + process::thread_number() % rules::lane_count);
        EXPECT_NE(first.own()->loose_of, 1 + own);
    }).join();
    EXPECT_EQ(exchanged(second), &second) << "the thread has none any more";
    EXPECT_EQ(second.own()->loose_of, 1 + own);
    cache.take_over(first);
    EXPECT_EQ(first.own()->loose_of, 0) << "one of each thread: this one counts as any other";
    EXPECT_EQ(first.asked_bytes(), 64u);
    EXPECT_TRUE(cache.keep(first).empty());
    EXPECT_TRUE(cache.keep(second).empty());
    EXPECT_EQ(cache.usage().bytes, 2 * size);
}

// Other threads would have had as much at the same time: what each of them had rests while one asks the driver.
TEST(PieceCache, WhatEachThreadHadIsKeptWhereNoTwoHadItAtOneTime) {  // keeps M2, M8
    constexpr std::size_t size = 1 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    std::deque<Piece> pieces;
    std::uint64_t address = 1;
    const auto pair = [&] {  // on a thread of its own
        for (Piece* const gone : cache.make_way(size)) *gone = {};
        pieces.push_back(handed_out(cache, address++ << 24, size, size));
        cache.note_rest(cache.in_lanes[process::thread_number() % rules::lane_count], size);
        for (Piece* const gone : cache.keep(pieces.back())) *gone = {};
    };
    for (std::size_t thread = 1; thread <= rules::lane_count; ++thread) {
        std::thread(pair).join();
        EXPECT_EQ(cache.usage().bytes, thread * size);
    }
    for (std::size_t thread = 0; thread < 2 * rules::lane_count; ++thread) std::thread(pair).join();
    EXPECT_EQ(cache.usage().bytes, 20 * size) << "17/16 of sixteen, and of a quarter of the fifteen others";
}

// The next requests may be larger: beyond the bytes that were asked for it is nobody's.
TEST(PieceCache, WhatWasObtainedWithHeadroomIsBounded) {  // keeps M2, M8
    constexpr std::size_t size = 1 << 20;
    Lent memory;
    PieceCache cache(memory, no_limit);
    EXPECT_EQ(cache.headroom(size), 0u);
    for (std::size_t less = 4; less-- > 0;) (void)cache.headroom(size - less);
    EXPECT_EQ(cache.headroom(size + 1), size / 16) << "they grow";
    EXPECT_TRUE(cache.make_way(size, size / 16).empty());
    Piece piece = handed_out(cache, 1 << 24, size + size / 16, size);
    EXPECT_EQ(memory.lent[1 << 24], size);
    EXPECT_TRUE(cache.keep(piece).empty()) << "17/16 of the peak";
    EXPECT_EQ(cache.take(MemoryKind::device, {}, size + 512, 256), &piece);
    EXPECT_EQ(memory.lent[1 << 24], size + 512);
    EXPECT_TRUE(cache.keep(piece).empty());
    const std::vector<Piece*> gone = cache.make_way(size + size / 16 + 1, size / 16);
    EXPECT_EQ(gone.size(), 1u) << "no two of them beside a peak of one";
}

TEST(PieceCache, PagesServeRequestsOfTheirPlacementAndAlignment) {  // keeps M1
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    HostPlacement touched;
    touched.prefault = true;
    (void)keep(cache, pages_of(8192, touched, false));
    EXPECT_FALSE(cache.take(MemoryKind::host, {}, 8192, 256)) << "another placement";
    EXPECT_FALSE(cache.take(MemoryKind::registered, touched, 8192, 256)) << "not registered";
    EXPECT_FALSE(cache.take(MemoryKind::host, touched, 8192, std::size_t{1} << 46)) << "not aligned";
    EXPECT_TRUE(cache.take(MemoryKind::host, touched, 8192, 256));
    (void)keep(cache, pages_of(8192, {}, true));
    EXPECT_FALSE(cache.take(MemoryKind::host, {}, 8192, 256)) << "a driver has it registered";
    EXPECT_TRUE(cache.take(MemoryKind::registered, {}, 8192, 256));
    EXPECT_TRUE(cache.take_out(0).empty());
}

#if defined(ISTHMUS_ADDRESS_SANITIZED)
// keeps M2
TEST(PieceCache, AddressSanitizerTakesKeptMemoryForFreed) {
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    Piece pages = pages_of(8192, {}, false);
    auto* const bytes = static_cast<volatile char*>(pages.block.host);
    bytes[8191] = 1;
    (void)keep(cache, std::move(pages));
    EXPECT_DEATH(bytes[0] = 1, "use-after-poison");
    const Piece* const taken = cache.take(MemoryKind::host, {}, 7000, 256);
    ASSERT_TRUE(taken);
    bytes[6999] = 1;
    EXPECT_DEATH(bytes[7008] = 1, "use-after-poison") << "beyond what was asked for";
    (void)keep(cache, pages_of(8192, {}, false));
    const std::vector<Piece*> out = cache.take_out(0);
    static_cast<volatile char*>(out[0]->block.host)[8191] = 1;  // the system gets it as it was
    Piece made = pages_of(5001, {}, false);
    auto* const fresh = static_cast<volatile char*>(made.block.host);
    cache.handed_out(made, 5001);
    fresh[5000] = 1;
    EXPECT_DEATH(fresh[5001] = 1, "use-after-poison") << "so is what the system gives beyond that";
    Piece& kept = staying(std::move(made));
    EXPECT_TRUE(cache.keep(kept).empty());
    EXPECT_DEATH(fresh[5000] = 1, "use-after-poison") << "to its last byte";
    for (const Piece* const gone : cache.take_out(0)) static_cast<volatile char*>(gone->block.host)[5001] = 1;
}
#endif

TEST(PieceCache, ALimitOfNothingKeepsNothing) {
    Lent memory;
    PieceCache cache(memory, 0);
    EXPECT_FALSE(cache.keeps_anything());
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 4096, 256));
    EXPECT_EQ(cache.usage().missed, 0u) << "not asked at all";
}

// A stream that keeps pool memory. The cache only owns it.
struct KeepingStream {
    explicit KeepingStream(std::uintptr_t number) : handle(static_cast<platform::StreamHandle>(number)) {
        behind.begin(state, handle);
    }
    platform::StreamHandle handle;
    std::shared_ptr<detail::StreamState> state{std::make_shared<int>(0), reinterpret_cast<detail::StreamState*>(this)};
    PieceCache::Behind behind;
};

TEST(PieceCache, WhatIsKeptBehindAStreamServesThatStream) {  // keeps M3
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    KeepingStream one(1);
    KeepingStream other(2);
    Piece& piece = staying(piece_of(MemoryKind::pool, 0x10000, 4096));
    EXPECT_TRUE(cache.keep(piece, &one.behind).empty());
    EXPECT_EQ(memory.lent[0x10000], 0u);
    EXPECT_EQ(memory.lent_behind[0x10000], one.handle) << "work of the stream may still use it";
    EXPECT_EQ(cache.kept_bytes(MemoryKind::pool), 4096u);
    EXPECT_FALSE(cache.take(MemoryKind::pool, {}, 4096, 256));
    EXPECT_FALSE(cache.take(MemoryKind::pool, {}, 4096, 256, &other.behind));
    EXPECT_FALSE(cache.take(MemoryKind::pool, {}, 8192, 256, &one.behind)) << "too large";
    EXPECT_EQ(cache.take(MemoryKind::pool, {}, 4000, 256, &one.behind), &piece);
    EXPECT_EQ(memory.lent[0x10000], 4000u);
    EXPECT_EQ(memory.lent_behind[0x10000], one.handle);
    EXPECT_EQ(cache.kept_bytes(MemoryKind::pool), 0u);
    EXPECT_EQ(piece.own()->after, nullptr);
    EXPECT_FALSE(cache.take(MemoryKind::pool, {}, 4000, 256, &one.behind)) << "once";
}

TEST(PieceCache, AStreamTakesItsOwnFirstAndThenWhatNothingUses) {  // keeps M3
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    KeepingStream one(1);
    Piece& own = staying(piece_of(MemoryKind::pool, 0x10000, 4096));
    Piece& idle = staying(piece_of(MemoryKind::pool, 0x20000, 4096));
    EXPECT_TRUE(cache.keep(own, &one.behind).empty());
    EXPECT_TRUE(cache.keep(idle).empty());
    EXPECT_EQ(cache.take(MemoryKind::pool, {}, 4096, 256, &one.behind), &own);
    EXPECT_EQ(cache.take(MemoryKind::pool, {}, 4096, 256, &one.behind), &idle);
    EXPECT_EQ(memory.lent_behind[0x20000], platform::StreamHandle::none);
}

TEST(PieceCache, AtAStreamsEndItsMemoryServesOthersIfItsWorkHasEnded) {  // keeps M3, M7
    for (const bool work_has_ended : {true, false}) {
        Lent memory;
        PieceCache cache(memory, 1 << 20);
        KeepingStream one(1);
        Piece& first = staying(piece_of(MemoryKind::pool, 0x10000, 4096));
        Piece& between = staying(piece_of(MemoryKind::pool, 0x20000, 4096));
        Piece& last = staying(piece_of(MemoryKind::pool, 0x30000, 4096));
        EXPECT_TRUE(cache.keep(first, &one.behind).empty());
        EXPECT_TRUE(cache.keep(between).empty());
        EXPECT_TRUE(cache.keep(last, &one.behind).empty());
        one.state.reset();
        EXPECT_EQ(cache.take_out_kind(MemoryKind::pool), std::vector<Piece*>{&between}) << "its end is under way";
        EXPECT_TRUE(cache.take_out(0).empty());
        const std::vector<Piece*> out = cache.ended(one.behind, work_has_ended);
        if (work_has_ended) {
            EXPECT_TRUE(out.empty());
            EXPECT_EQ(cache.take(MemoryKind::pool, {}, 4096, 256), &last);
            EXPECT_EQ(cache.take(MemoryKind::pool, {}, 4096, 256), &first) << "in the order of their releases";
        } else {
            EXPECT_EQ(out.size(), 2u);
            EXPECT_EQ(memory.lent[0x10000], 4096u) << "whole";
            EXPECT_EQ(memory.lent_behind[0x10000], one.handle);
        }
        EXPECT_EQ(cache.usage().bytes, 0u);
        EXPECT_EQ(cache.usage().pieces, 0u);
        EXPECT_TRUE(cache.ended(one.behind, work_has_ended).empty());
    }
}

TEST(PieceCache, WhatGoesBackFromBehindAStreamOwnsTheStream) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    KeepingStream one(1);
    KeepingStream other(2);
    Piece& piece = staying(piece_of(MemoryKind::pool, 0x10000, 4096));
    Piece& second = staying(piece_of(MemoryKind::pool, 0x20000, 8192));
    Piece& idle = staying(piece_of(MemoryKind::device, 0x30000, 512));
    EXPECT_TRUE(cache.keep(piece, &one.behind).empty());
    EXPECT_TRUE(cache.keep(second, &other.behind).empty());
    EXPECT_TRUE(cache.keep(idle).empty());
    EXPECT_EQ(cache.take_out(5000), std::vector<Piece*>{&second}) << "what keeps most";
    EXPECT_EQ(second.own()->after, other.state);
    EXPECT_EQ(memory.lent[0x20000], 8192u);
    EXPECT_EQ(memory.lent_behind[0x20000], other.handle);
    EXPECT_EQ(cache.take_out_kind(MemoryKind::pool), std::vector<Piece*>{&piece});
    EXPECT_EQ(piece.own()->after, one.state);
    EXPECT_TRUE(cache.take_out_kind(MemoryKind::pool).empty());
    EXPECT_TRUE(cache.take_out_kind(MemoryKind::graph).empty()) << "of no kept kind";
    EXPECT_EQ(cache.take_out(0), std::vector<Piece*>{&idle});
    EXPECT_EQ(idle.own()->after, nullptr);
}

TEST(PieceCache, NoTwoThreadsGetOnePiece) {  // keeps M7
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    constexpr int pieces = 4;
    std::array<std::atomic<int>, pieces> owners{};
    for (std::uint64_t at = 0; at < pieces; ++at) {
        (void)keep(cache, piece_of(MemoryKind::device, (at + 1) << 16, 4096));
    }
    const auto churn = [&] {
        for (int round = 0; round < 2000; ++round) {
            Piece* const piece = cache.take(MemoryKind::device, {}, 4096, 256);
            if (piece == nullptr) continue;
            std::atomic<int>& owner = owners[(piece->allocation().device >> 16) - 1];
            EXPECT_EQ(owner.fetch_add(1), 0);
            owner.fetch_sub(1);
            EXPECT_TRUE(cache.keep(*piece).empty());
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 6; ++thread) threads.emplace_back(churn);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cache.usage().pieces, 4u);
    EXPECT_EQ(cache.usage().bytes, 4u * 4096);
}

// Blocks go round between threads through cache and ledger, and readers look their addresses up meanwhile.
TEST(PieceCache, AKeptPieceIsOneThreadsUnderOneIdentity) {  // keeps M4, M7
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    provenance::AddressMap addresses;
    detail::Ledger ledger(addresses);
    constexpr std::uint64_t pieces = 3;
    for (std::uint64_t at = 1; at <= pieces; ++at) {
        Piece piece = piece_of(MemoryKind::device, at << 16, 4096);
        MemoryBlock block;
        block.device = at << 16;
        block.bytes = 4096;
        block.id = ledger.enter(block, 0, piece).value();
        EXPECT_TRUE(cache.keep(*ledger.park(block, 0, {}, 1 << 20).value()).empty());
    }
    std::atomic<bool> done{false};
    const auto churn = [&](std::size_t bytes) {
        for (int round = 0; round < 2000; ++round) {
            Piece* const kept = cache.take(MemoryKind::device, {}, bytes, 256);
            if (kept == nullptr) continue;
            MemoryBlock block;
            block.device = kept->allocation().device;
            block.bytes = bytes;
            block.kind = MemoryKind::device;
            ASSERT_NE(ledger.wake(*kept, block), 0u);
            const provenance::Record found = addresses.find(block.device + bytes - 1);
            ASSERT_EQ(found.id, block.id);
            ASSERT_EQ(found.bytes, bytes);
            ASSERT_FALSE(addresses.find(block.device + bytes));
            const Result<Piece*> parked = ledger.park(block, 0, {}, 1 << 20);
            ASSERT_EQ(parked.value(), kept);
            ASSERT_EQ(ledger.park(block, 0, {}, 1 << 20).code(), Code::already_released);
            EXPECT_TRUE(cache.keep(*kept).empty());
        }
    };
    const auto look = [&] {
        while (!done.load()) {
            for (std::uint64_t at = 1; at <= pieces; ++at) {
                const provenance::Record found = addresses.find((at << 16) + 100);
                if (!found) continue;
                EXPECT_EQ(found.base, at << 16);
                EXPECT_TRUE(found.bytes == 3700 || found.bytes == 3800 || found.bytes == 4096) << found.bytes;
            }
        }
    };
    std::thread reader(look);
    std::vector<std::thread> threads;
    for (const std::size_t bytes : {3700, 3800, 4096}) threads.emplace_back(churn, bytes);
    for (std::thread& thread : threads) thread.join();
    done.store(true);
    reader.join();
    EXPECT_EQ(cache.usage().pieces, pieces);
    EXPECT_EQ(ledger.size(), 0u);
    for (Piece* const kept : cache.take_out(0)) (void)ledger.take_parked(*kept);
    EXPECT_FALSE(addresses.is_parked(1 << 16));
}

}  // namespace
