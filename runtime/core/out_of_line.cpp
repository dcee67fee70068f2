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

// The block that there() finds, or one that publish() made known to other threads.
template <class Block, class There, class Publish>
Block& make_once(KeptBlocks* kept, There there, Publish publish) {
    const auto make = [&](void* memory) -> Block* {
        auto* const made = ::new (memory) Block(kept);
        if (publish(*made)) return made;
        std::destroy_at(made);
        return nullptr;
    };
    if (kept != nullptr) return *kept->make_once(sizeof(Block), there, make);
    Block* const made = begin_block<Block>(nullptr);
    if (publish(*made)) return *made;
    end_block(made);
    return *there();
}

}  // namespace

// Of two threads that make one at the same time, the first wins. Where blocks are kept, the second one does not even
// borrow one: a sealed scope has one for each buffer, and no more.
[[gnu::noinline]] BufferBook& OutOfLine::first_book(KeptBlocks* kept) {
    const auto there = [this] { return book(); };
    const auto publish = [&](BufferBook& made) {
        std::uintptr_t seen = word_.load(std::memory_order_acquire);
        do {
            if ((seen & is_book) != 0) return false;
            made.piece = reinterpret_cast<Piece*>(seen);
        } while (!word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&made) | is_book,
                                              std::memory_order_acq_rel, std::memory_order_acquire));
        return true;
    };
    return make_once<BufferBook>(kept, there, publish);
}

[[gnu::noinline]] BufferExtras& OutOfLine::first_extras(BufferBook& book, KeptBlocks* kept) {
    const auto there = [&] { return book.extras.load(std::memory_order_acquire); };
    const auto publish = [&](BufferExtras& made) {
        BufferExtras* none = nullptr;
        return book.extras.compare_exchange_strong(none, &made, std::memory_order_acq_rel, std::memory_order_acquire);
    };
    return make_once<BufferExtras>(kept, there, publish);
}

// The extras first, and of them the place among far buffers: until it has gone, another thread may look at the buffer.
[[gnu::noinline]] void OutOfLine::end(BufferBook* book) noexcept {
    if (BufferExtras* const extras = book->extras.load(std::memory_order_relaxed)) end_block(extras);
    end_block(book);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
