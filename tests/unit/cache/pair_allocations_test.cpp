// SPDX-License-Identifier: Apache-2.0
// How often a pair of allocation and release allocates from the heap, and how much memory a small buffer takes.
#include <gtest/gtest.h>
#include <no_memory.hpp>
#include <piece_cache.hpp>
#include <sanitized.hpp>
#include <small_slabs.hpp>
#include <isthmus/isthmus.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <malloc.h>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {
std::atomic<long> allocations{0};
std::atomic<long> live_bytes{0};  // of the heap, with what its blocks leave unused
}  // namespace

#ifndef ISTHMUS_ADDRESS_SANITIZED  // which has operators of its own
namespace {
void* counted(void* made) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    live_bytes.fetch_add(static_cast<long>(malloc_usable_size(made)), std::memory_order_relaxed);
    return made;
}
void freed(void* memory) {
    live_bytes.fetch_sub(static_cast<long>(malloc_usable_size(memory)), std::memory_order_relaxed);
    std::free(memory);
}
}  // namespace

// Counts all allocations of this program. Not inlined: compilers would see memory of new in free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (void* made = std::malloc(bytes); made != nullptr) return counted(made);
    std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto align = static_cast<std::size_t>(alignment);
    if (void* made = std::aligned_alloc(align, (bytes + align - 1) / align * align); made != nullptr)
        return counted(made);
    std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    freed(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    freed(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    freed(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    freed(memory);
}
#endif

namespace {

using namespace isthmus;

// Keeps up to 64 MiB on the CPU device.
Runtime cpu_alone() {
    RuntimeOptions options;
    options.use_cuda = false;
    options.cache_bytes = 64 << 20;
    return Runtime::open(options).value();
}

template <class Pair>
double per_pair(Pair pair) {
    constexpr int pairs = 100;
    for (int warm = 0; warm < 3; ++warm) pair();
    const long before = allocations.load();
    for (int times = 0; times < pairs; ++times) pair();
    return static_cast<double>(allocations.load() - before) / pairs;
}

// keeps M2
TEST(PairAllocations, APairNeedsNoHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    Runtime runtime = cpu_alone();
    Device& device = runtime.cpu();
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{8} << 20}) {
        AllocationRequest request;
        request.bytes = bytes;
        const Allocator allocator = device.allocator(MemoryKind::pinned);
        const double block = per_pair([&] { (void)allocator.release(allocator.allocate(request).value()); });
        const double buffer = per_pair([&] { (void)device.allocate_shared<std::uint8_t>(bytes).value(); });
        RecordProperty("block_" + std::to_string(bytes), std::to_string(block));
        RecordProperty("buffer_" + std::to_string(bytes), std::to_string(buffer));
        std::printf("%zu bytes: %.2f allocations a pair by block, %.2f as Buffer\n", bytes, block, buffer);
        EXPECT_EQ(block, 0.0) << bytes;
        EXPECT_EQ(buffer, 0.0) << bytes;
    }
    EXPECT_EQ(device.cache_usage().kept_pieces, 3u);
}

long resident_bytes() {
    std::ifstream file("/proc/self/statm");
    long all = 0;
    long resident = 0;
    file >> all >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

// The state of a buffer, its ledger entry and its records come from the heap; its memory shares pages with others.
TEST(SmallBuffers, OneOf64BytesTakesLessThanAPage) {  // keeps M1
#ifdef ISTHMUS_SANITIZED
    GTEST_SKIP() << "a sanitizer's memory counts, too";
#endif
    Runtime runtime = cpu_alone();
    constexpr long count = 100000;
    std::vector<Buffer<std::uint8_t>> buffers;
    buffers.reserve(count);
    const auto make = [&] {
        buffers.push_back(runtime.cpu().allocate_shared<std::uint8_t>(64).value());
        buffers.back().write_on_host().value()[0] = 1;
    };
    for (int warm = 0; warm < 100; ++warm) make();
    const long heap_before = live_bytes.load();
    const long resident_before = resident_bytes();
    while (buffers.size() < count) make();
    const double made = count - 100;
    const double heap = static_cast<double>(live_bytes.load() - heap_before) / made;
    const double resident = static_cast<double>(resident_bytes() - resident_before) / made;
    RecordProperty("heap_bytes", std::to_string(heap));
    RecordProperty("resident_bytes", std::to_string(resident));
    std::printf("a shared buffer of 64 bytes: %.0f bytes of the heap, %.0f resident\n", heap, resident);
    EXPECT_LE(heap, 256.0);
    EXPECT_LE(resident, 704.0);
}

// keeps M2
TEST(PairAllocations, KeepingWhatWasHandedOutNeedsNoHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    Runtime runtime = cpu_alone();
    std::vector<Buffer<std::uint8_t>> buffers;
    for (std::size_t at = 1; at <= 60; ++at) {  // some classes have several, and a lane has no room for all
        buffers.push_back(runtime.cpu().allocate_shared<std::uint8_t>((at % 2 == 0 ? 4000u : 700u) * at).value());
    }
    const long before = allocations.load();
    while (!buffers.empty()) buffers.pop_back();
    EXPECT_EQ(allocations.load() - before, 0);
    EXPECT_EQ(runtime.cpu().cache_usage().kept_pieces, 60u);
}

// keeps M2: whatever slabs they come back to
TEST(PairAllocations, PlacesComeBackWithoutTheHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    const detail::SlabSort sort{MemoryKind::pinned, {}, 256};
    detail::SmallSlabs slabs;
    std::vector<detail::Piece> pieces;
    for (std::uint64_t slab = 1; slab <= 40; ++slab) {
        detail::Piece whole;
        whole.make_own().allocation = {MemoryKind::pinned, nullptr, slab << 16, 4096};
        detail::Piece piece;
        slabs.add(sort, std::move(whole), piece);
        do {
            piece.unused = true;
            pieces.push_back(std::move(piece));
            piece = {};
        } while (slabs.cut(sort, piece));
    }
    ASSERT_EQ(pieces.size(), 640u);
    const long before = allocations.load();
    for (std::size_t first = 0; first < pieces.size(); first += 16) (void)slabs.give_back(pieces[first]);
    EXPECT_EQ(allocations.load() - before, 0);
    for (std::size_t at = 0; at < pieces.size(); ++at) {
        if (at % 16 != 0) (void)slabs.give_back(pieces[at]);
    }
    EXPECT_EQ(slabs.slab_bytes(), 0u);
}

// keeps M2: also for a stream that takes pieces which others released
TEST(PairAllocations, WhatAStreamTookIsKeptBehindItWithoutTheHeap) {
#ifdef ISTHMUS_ADDRESS_SANITIZED
    GTEST_SKIP() << "allocations are not counted";
#endif
    isthmus::testing::NoMemory memory;
    detail::PieceCache cache(memory, std::uint64_t{1} << 30);
    std::vector<detail::Piece> pieces(20);
    for (std::size_t at = 0; at < pieces.size(); ++at) {
        pieces[at].make_own().allocation = {MemoryKind::pool, nullptr, (at + 1) << 16, 4096};
        pieces[at].may_be_kept = true;
        cache.handed_out(pieces[at], 4096);
    }
    for (detail::Piece& piece : pieces) EXPECT_TRUE(cache.keep(piece).empty());
    detail::PieceCache::Behind behind;
    behind.begin({}, platform::StreamHandle{7});
    for (std::size_t taken = 0; taken < pieces.size(); ++taken) {
        ASSERT_NE(cache.take(MemoryKind::pool, {}, 4096, 256, &behind), nullptr);
    }
    const long before = allocations.load();
    for (detail::Piece& piece : pieces) EXPECT_TRUE(cache.keep(piece, &behind).empty());
    EXPECT_EQ(allocations.load() - before, 0);
    EXPECT_EQ(cache.ended(behind, true).size(), 0u);
}

}  // namespace
