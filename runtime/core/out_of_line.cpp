// SPDX-License-Identifier: Apache-2.0
// OutOfLine: makes and ends the blocks.
#include "out_of_line.hpp"

#include "piece.hpp"

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// docs/performance.md has what a buffer takes.
static_assert(sizeof(BufferBook) <= 112);
static_assert(sizeof(BufferExtras) <= 288);
static_assert(alignof(BufferBook) > 1 && alignof(Piece) > 1, "the lowest bit of their addresses says which it is");

}  // namespace

// Of two threads that make one at the same time, the first wins.
[[gnu::noinline]] BufferBook& OutOfLine::first_book(KeptBlocks* kept) {
    BufferBook* const made = begin_block<BufferBook>(kept);
    std::uintptr_t seen = word_.load(std::memory_order_acquire);
    do {
        if ((seen & is_book) != 0) {
            end_block(made);
            return *reinterpret_cast<BufferBook*>(seen & ~is_book);
        }
        made->piece = reinterpret_cast<Piece*>(seen);
    } while (!word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(made) | is_book,
                                          std::memory_order_acq_rel, std::memory_order_acquire));
    return *made;
}

[[gnu::noinline]] BufferExtras& OutOfLine::first_extras(BufferBook& book, KeptBlocks* kept) {
    BufferExtras* const made = begin_block<BufferExtras>(kept);
    BufferExtras* seen = nullptr;
    if (book.extras.compare_exchange_strong(seen, made, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return *made;
    }
    end_block(made);
    return *seen;
}

// The extras first, and of them the place among far buffers: until it has gone, another thread may look at the buffer.
[[gnu::noinline]] void OutOfLine::end(BufferBook* book) noexcept {
    if (BufferExtras* const extras = book->extras.load(std::memory_order_relaxed)) end_block(extras);
    end_block(book);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
