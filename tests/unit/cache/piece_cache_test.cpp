// SPDX-License-Identifier: Apache-2.0
// What is kept, which request takes it, what goes back first, and what a simulator is told.
#include <gtest/gtest.h>
#include <piece_cache.hpp>
#include <sanitized.hpp>

#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using detail::HostPart;
using detail::Piece;
using detail::PieceCache;

// Remembers how much of each allocation may be accessed.
struct Lent final : platform::Memory {
    platform::Status allocate(MemoryKind, std::size_t, platform::Attachment, platform::StreamHandle,
                              platform::Allocation&) override {
        return refused();
    }
    platform::Status release(const platform::Allocation&, platform::StreamHandle) override { return refused(); }
    platform::Status register_host(void*, std::size_t, bool, std::uint64_t&) override { return refused(); }
    platform::Status unregister_host(void*) override { return refused(); }
    platform::Status copy(std::uint64_t, std::uint64_t, std::size_t, platform::CopyDirection,
                          platform::StreamHandle) override {
        return refused();
    }
    platform::Status fill(std::uint64_t, std::uint8_t, std::size_t, platform::StreamHandle) override {
        return refused();
    }
    platform::Status attach(const platform::Allocation&, platform::Attachment, platform::StreamHandle) override {
        return refused();
    }
    platform::Status pointer_facts(std::uint64_t, platform::PointerFacts&) override { return refused(); }
    platform::Status memory_info(std::uint64_t&, std::uint64_t&) override { return refused(); }
    void lend(std::uint64_t address, std::size_t bytes) noexcept override {
        const std::lock_guard lock(mutex);
        lent[address] = bytes;
    }

    static platform::Status refused() {
        ADD_FAILURE() << "the cache called the driver";
        return {Code::unsupported, 0, "none"};
    }
    std::mutex mutex;
    std::map<std::uint64_t, std::size_t> lent;
};

Piece piece_of(MemoryKind kind, std::uint64_t address, std::size_t bytes) {
    Piece piece;
    piece.allocation = {kind, nullptr, address, bytes};
    piece.may_be_kept = true;
    return piece;
}

Piece pages_of(std::size_t bytes, const HostPlacement& placement, bool registered) {
    Piece piece;
    piece.host_part = std::make_unique<HostPart>();
    piece.host_part->pages = platform::os::HostPages::allocate(bytes, placement, -1, {}).value();
    piece.host_part->asked = placement;
    piece.host_part->registered = registered;
    piece.block.host = piece.host_part->pages.data();
    piece.block.device = reinterpret_cast<std::uintptr_t>(piece.block.host);
    return piece;
}

std::uint64_t keep(PieceCache& cache, Piece piece) {
    std::uint64_t gone = 0;
    for (const Piece& out : cache.keep(piece)) gone += out.bytes();
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
    const std::optional<Piece> taken = cache.take(MemoryKind::device, {}, 4200, 256);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->allocation.device, 0x10000u);
    EXPECT_EQ(taken->allocation.bytes, 5000u) << "the driver's whole allocation";
    EXPECT_TRUE(taken->may_be_kept);
    EXPECT_EQ(memory.lent[0x10000], 4200u) << "and no more than was asked for";
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 4200, 256)) << "once";
    EXPECT_EQ(cache.usage().taken, 1u);
    EXPECT_EQ(cache.usage().missed, 4u);
    EXPECT_EQ(cache.usage().bytes, 0u);
}

TEST(PieceCache, WhatWasReleasedLastServesFirst) {
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    for (const std::uint64_t address : {0x10000, 0x20000, 0x30000}) {
        (void)keep(cache, piece_of(MemoryKind::pinned, address, 4096));
    }
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 4096, 256)->allocation.device, 0x30000u);
    EXPECT_EQ(cache.take(MemoryKind::pinned, {}, 4096, 256)->allocation.device, 0x20000u);
}

TEST(PieceCache, BeyondTheLimitTheOldestGoesBack) {  // keeps M5
    Lent memory;
    PieceCache cache(memory, 10000);
    (void)keep(cache, piece_of(MemoryKind::device, 0x10000, 4000));
    (void)keep(cache, piece_of(MemoryKind::managed, 0x20000, 4000));
    Piece third = piece_of(MemoryKind::device, 0x30000, 3000);
    const std::vector<Piece> gone = cache.keep(third);
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0].allocation.device, 0x10000u);
    EXPECT_EQ(memory.lent[0x10000], 4000u) << "the driver gets all of it";
    EXPECT_EQ(cache.usage().bytes, 7000u);
    EXPECT_EQ(cache.usage().pieces, 2u);
    EXPECT_EQ(cache.take_out(3000).size(), 1u);
    EXPECT_EQ(cache.usage().bytes, 3000u);
    EXPECT_EQ(cache.take_out(0).size(), 1u);
    EXPECT_EQ(cache.usage().bytes, 0u);
    EXPECT_TRUE(cache.take_out(0).empty());
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

TEST(PieceCache, ItKnowsTheAddressesThatItKeeps) {
    Lent memory;
    PieceCache cache(memory, 1 << 20);
    (void)keep(cache, piece_of(MemoryKind::device, 0x10000, 4096));
    Piece pages = pages_of(4096, {}, false);
    const auto host = reinterpret_cast<std::uintptr_t>(pages.block.host);
    (void)keep(cache, std::move(pages));
    EXPECT_TRUE(cache.holds(0x10000));
    EXPECT_TRUE(cache.holds(0x10fff));
    EXPECT_FALSE(cache.holds(0x11000));
    EXPECT_FALSE(cache.holds(0xffff));
    EXPECT_TRUE(cache.holds(host + 4095));
    (void)cache.take_out(0);
    EXPECT_FALSE(cache.holds(0x10000));
    EXPECT_FALSE(cache.holds(host));
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
    const std::optional<Piece> taken = cache.take(MemoryKind::host, {}, 7000, 256);
    ASSERT_TRUE(taken);
    bytes[6999] = 1;
    EXPECT_DEATH(bytes[7008] = 1, "use-after-poison") << "beyond what was asked for";
    (void)keep(cache, pages_of(8192, {}, false));
    const std::vector<Piece> out = cache.take_out(0);
    static_cast<volatile char*>(out[0].block.host)[8191] = 1;  // the system gets it as it was
}
#endif

TEST(PieceCache, ALimitOfNothingKeepsNothing) {
    Lent memory;
    PieceCache cache(memory, 0);
    EXPECT_FALSE(cache.keeps_anything());
    EXPECT_FALSE(cache.take(MemoryKind::device, {}, 4096, 256));
    EXPECT_EQ(cache.usage().missed, 0u) << "not asked at all";
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
            std::optional<Piece> piece = cache.take(MemoryKind::device, {}, 4096, 256);
            if (!piece) continue;
            std::atomic<int>& owner = owners[(piece->allocation.device >> 16) - 1];
            EXPECT_EQ(owner.fetch_add(1), 0);
            owner.fetch_sub(1);
            EXPECT_EQ(keep(cache, *std::move(piece)), 0u);
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 6; ++thread) threads.emplace_back(churn);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cache.usage().pieces, 4u);
    EXPECT_EQ(cache.usage().bytes, 4u * 4096);
}

}  // namespace
