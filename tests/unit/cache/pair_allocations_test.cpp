// SPDX-License-Identifier: Apache-2.0
// How often a pair of allocation and release allocates from the heap.
#include <gtest/gtest.h>
#include <sanitized.hpp>
#include <isthmus/isthmus.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}  // namespace

#ifndef ISTHMUS_ADDRESS_SANITIZED  // which has operators of its own
// Counts all allocations of this program. Not inlined: compilers would see memory of new in free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* made = std::malloc(bytes); made != nullptr) return made;
    std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    const auto align = static_cast<std::size_t>(alignment);
    if (void* made = std::aligned_alloc(align, (bytes + align - 1) / align * align); made != nullptr) return made;
    std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
#endif

namespace {

using namespace isthmus;

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
    RuntimeOptions options;
    options.use_cuda = false;
    options.cache_bytes = 64 << 20;
    Runtime runtime = Runtime::open(options).value();
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

}  // namespace
