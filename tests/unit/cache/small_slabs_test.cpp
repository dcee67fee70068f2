// SPDX-License-Identifier: Apache-2.0
// Small pieces that share pages: which places they get, when a slab goes back, and what a simulator and
// AddressSanitizer are told.
#include <gtest/gtest.h>
#include <no_memory.hpp>
#include <piece_cache.hpp>
#include <sanitized.hpp>
#include <small_rules.hpp>
#include <small_slabs.hpp>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#if defined(ISTHMUS_ADDRESS_SANITIZED)
#include <sanitizer/asan_interface.h>
#endif

namespace {

using namespace isthmus;
using detail::Piece;
using detail::PieceCache;
using detail::SlabSort;
using detail::SmallSlabs;

Piece slab_of(MemoryKind kind, std::uint64_t address, std::size_t bytes, void* host = nullptr) {
    Piece piece;
    piece.make_own().allocation = {kind, host, address, bytes};
    return piece;
}

constexpr SlabSort sort{MemoryKind::pinned, {}, 256};

TEST(SmallSlabs, PlacesShareASlabAndNoLine) {  // keeps M2
    SmallSlabs slabs;
    Piece first;
    EXPECT_FALSE(slabs.cut(sort, first)) << "there is no slab yet";
    slabs.add(sort, slab_of(MemoryKind::pinned, 0x10000, 4096), first);
    std::vector<Piece> pieces;
    pieces.push_back(std::move(first));
    for (Piece piece; slabs.cut(sort, piece); piece = {}) pieces.push_back(std::move(piece));
    ASSERT_EQ(pieces.size(), 16u);
    std::set<std::uint64_t> lines;
    for (const Piece& piece : pieces) {
        EXPECT_EQ(piece.bytes(), 256u);
        EXPECT_GE(piece.allocation().device, 0x10000u);
        EXPECT_LE(piece.allocation().device + 256, 0x11000u);
        for (std::uint64_t at = 0; at < 256; at += 128) {
            EXPECT_TRUE(lines.insert((piece.allocation().device + at) / 128).second) << "two pieces share a line";
        }
    }
    EXPECT_EQ(slabs.slab_bytes(), 4096u);
    EXPECT_EQ(slabs.idle_bytes(), 0u);
    for (Piece& piece : pieces) {
        const bool last = &piece == &pieces.back();
        piece.unused = true;
        EXPECT_EQ(slabs.give_back(piece).bytes(), last ? 4096u : 0u) << "the slab goes back with its last place";
    }
    EXPECT_EQ(slabs.slab_bytes() + slabs.idle_bytes(), 0u);
}

TEST(SmallSlabs, APlaceThatSomethingMayStillUseIsNotCutAgain) {  // keeps M3
    SmallSlabs slabs;
    Piece stays;
    slabs.add(sort, slab_of(MemoryKind::pinned, 0x10000, 4096), stays);
    Piece used;
    ASSERT_TRUE(slabs.cut(sort, used));
    Piece unused;
    ASSERT_TRUE(slabs.cut(sort, unused));
    const std::uint64_t used_at = used.allocation().device;
    const std::uint64_t unused_at = unused.allocation().device;
    unused.unused = true;
    EXPECT_EQ(slabs.give_back(used).bytes(), 0u);
    EXPECT_EQ(slabs.give_back(unused).bytes(), 0u);
    std::set<std::uint64_t> cut;
    std::vector<Piece> pieces;
    for (Piece piece; slabs.cut(sort, piece); piece = {}) {
        cut.insert(piece.allocation().device);
        pieces.push_back(std::move(piece));
    }
    EXPECT_EQ(cut.size(), 14u);
    EXPECT_EQ(cut.count(used_at), 0u) << "only the driver's free of the slab waits for its uses";
    EXPECT_EQ(cut.count(unused_at), 1u);
    for (const Piece& piece : pieces) EXPECT_EQ(slabs.give_back(piece).bytes(), 0u);
    EXPECT_EQ(slabs.give_back(stays).bytes(), 4096u);
}

TEST(SmallSlabs, SortsDoNotShareASlab) {  // keeps M2, K2
    SmallSlabs slabs;
    Piece piece;
    slabs.add(sort, slab_of(MemoryKind::pinned, 0x10000, 4096), piece);
    Piece other;
    EXPECT_FALSE(slabs.cut({MemoryKind::registered, {}, 256}, other)) << "another kind";
    EXPECT_FALSE(slabs.cut({MemoryKind::pinned, {}, 512}, other)) << "another size";
    HostPlacement near;
    near.locality = Locality::near_device;
    EXPECT_FALSE(slabs.cut({MemoryKind::pinned, near, 256}, other)) << "another placement";
    EXPECT_TRUE(slabs.cut(sort, other));
    EXPECT_EQ(slabs.give_back(other).bytes(), 0u);
    EXPECT_EQ(slabs.give_back(piece).bytes(), 4096u);
}

TEST(SmallSlabs, WhateverIsCutAndGivenBackNoTwoPiecesOverlap) {  // keeps M2, M5
    std::mt19937 random(18);
    SmallSlabs slabs;
    std::map<std::uint64_t, Piece> live;
    std::map<std::uint64_t, std::size_t> reserved;
    std::uint64_t next = std::uint64_t{1} << 30;
    std::uint64_t reserved_bytes = 0;
    for (int step = 0; step < 20000; ++step) {
        const bool grows = live.empty() || random() % (step < 10000 ? 3 : 5) > 1;
        if (grows) {
            const SlabSort asked{MemoryKind::device, {}, 256u * (1 + random() % 8)};
            Piece piece;
            if (!slabs.cut(asked, piece)) {
                const std::size_t bytes = slabs.next_bytes(asked, 4096);
                slabs.add(asked, slab_of(MemoryKind::device, next, bytes), piece);
                reserved[next] = bytes;
                reserved_bytes += bytes;
                next += bytes;
            }
            const std::uint64_t begin = piece.allocation().device;
            const auto after = live.lower_bound(begin);
            EXPECT_TRUE(after == live.end() || after->first >= begin + piece.bytes());
            EXPECT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second.bytes() <= begin);
            live.emplace(begin, std::move(piece));
        } else {
            auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
            chosen->second.unused = random() % 8 != 0;
            if (const Piece whole = slabs.give_back(chosen->second); whole.bytes() != 0) {
                EXPECT_EQ(reserved.erase(whole.allocation().device), 1u);
                reserved_bytes -= whole.bytes();
            }
            live.erase(chosen);
        }
        ASSERT_EQ(slabs.slab_bytes(), reserved_bytes);
    }
    for (auto& [begin, piece] : live) reserved_bytes -= slabs.give_back(piece).bytes();
    EXPECT_EQ(reserved_bytes, 0u);
    EXPECT_EQ(slabs.slab_bytes() + slabs.idle_bytes(), 0u);
}

// Remembers which bytes of which part may be accessed.
struct LentParts final : isthmus::testing::NoMemory {
    void lend_part(std::uint64_t address, std::size_t bytes, std::size_t usable) noexcept override {
        parts[address] = {bytes, usable};
    }
    std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> parts;
};

TEST(SmallSlabs, ASimulatorIsToldTheBoundsAndTheReleaseOfEachPlace) {  // keeps M2
    LentParts memory;
    PieceCache cache(memory, 1 << 20);
    Piece slab = slab_of(MemoryKind::pinned, 0x10000, 4096);
    cache.divided(slab);
    EXPECT_EQ(memory.parts[0x10000], std::make_pair(std::size_t{4096}, std::size_t{0}));
    Piece piece;
    cache.small.add(sort, std::move(slab), piece);
    piece.may_be_kept = true;
    cache.handed_out(piece, 64);
    EXPECT_EQ(memory.parts[0x10000], std::make_pair(std::size_t{256}, std::size_t{64}));
    EXPECT_TRUE(cache.keep(piece).empty());
    EXPECT_EQ(memory.parts[0x10000], std::make_pair(std::size_t{256}, std::size_t{0}));
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 64, 256), nullptr) << "asked for memory of its own";
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 300, 256, nullptr, 512), nullptr) << "another place";
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 200, 256, nullptr, 256), &piece);
    EXPECT_EQ(memory.parts[0x10000], std::make_pair(std::size_t{256}, std::size_t{200}));
    EXPECT_EQ(cache.usage().bytes, 4096u - 256u) << "what is not cut is kept";
    EXPECT_TRUE(cache.keep(piece).empty());
    const std::vector<Piece*> out = cache.take_out(0);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(memory.parts[0x10000], std::make_pair(std::size_t{256}, std::size_t{0})) << "its neighbours may live";
    piece.unused = true;
    EXPECT_EQ(cache.small.give_back(piece).bytes(), 4096u);
    EXPECT_EQ(cache.usage().bytes, 0u);
}

// The places' own sizes count: a buffer of 64 bytes leaves no end that another piece would save.
TEST(SmallSlabs, KeptPlacesServeHoweverManyThereAre) {  // keeps M2, M8
    LentParts memory;
    PieceCache cache(memory, 1 << 20);
    std::vector<Piece> pieces(1024);
    for (std::size_t at = 0; at < pieces.size(); ++at) {
        if (!cache.small.cut(sort, pieces[at])) {
            cache.small.add(sort, slab_of(MemoryKind::pinned, (at + 1) << 20, 4096), pieces[at]);
        }
        cache.handed_out(pieces[at], 64);
    }
    for (Piece& piece : pieces) EXPECT_TRUE(cache.keep(piece).empty());
    for (std::size_t at = 0; at < pieces.size(); ++at) {
        EXPECT_NE(cache.take(MemoryKind::pinned, {}, 64, 256, nullptr, 256), nullptr) << at;
    }
    for (Piece& piece : pieces) {
        cache.returned(piece);
        (void)cache.small.give_back(piece);
    }
}

#if defined(ISTHMUS_ADDRESS_SANITIZED)
// Whether these bytes may be accessed, and the one behind them and before them not.
bool exactly(const std::byte* first, std::size_t bytes) {
    auto* const begin = const_cast<std::byte*>(first);
    return __asan_region_is_poisoned(begin, bytes) == nullptr && __asan_address_is_poisoned(begin + bytes) != 0;
}

TEST(SmallSlabs, AddressSanitizerSeesTheBoundsAndTheReleaseOfEachPlace) {  // keeps M2
    LentParts memory;
    PieceCache cache(memory, 1 << 20);
    auto* const pages = static_cast<std::byte*>(std::aligned_alloc(4096, 4096));
    Piece slab = slab_of(MemoryKind::pinned, reinterpret_cast<std::uintptr_t>(pages), 4096, pages);
    cache.divided(slab);
    std::vector<Piece> pieces(16);
    cache.small.add(sort, std::move(slab), pieces[0]);
    for (std::size_t at = 1; at < pieces.size(); ++at) ASSERT_TRUE(cache.small.cut(sort, pieces[at]));
    for (Piece& piece : pieces) {
        const auto* const host = static_cast<const std::byte*>(piece.allocation().host);
        EXPECT_NE(__asan_address_is_poisoned(host), 0) << "not handed out yet";
        cache.handed_out(piece, 255);
        EXPECT_TRUE(exactly(host, 255)) << "an overrun by one byte is seen, although a neighbour follows";
    }
    for (Piece& piece : pieces) {
        EXPECT_TRUE(cache.keep(piece).empty());
        EXPECT_NE(__asan_address_is_poisoned(piece.allocation().host), 0) << "released";
    }
    EXPECT_EXIT(*static_cast<volatile std::byte*>(pieces[3].allocation().host) = std::byte{1},
                ::testing::ExitedWithCode(1), "use-after-poison");
    (void)cache.take_out(0);
    for (Piece& piece : pieces) {
        piece.unused = true;
        if (const Piece whole = cache.small.give_back(piece); whole.bytes() != 0) cache.joined(whole);
    }
    EXPECT_EQ(__asan_region_is_poisoned(pages, 4096), nullptr) << "the driver gets it as it gave it";
    std::free(pages);
}
#endif

}  // namespace
