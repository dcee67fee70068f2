// SPDX-License-Identifier: Apache-2.0
// OutOfLine: what a buffer has beside its two cache lines: the piece of its memory, and two blocks that come when they
// are needed first.
#pragma once

#include <isthmus/allocator.hpp>

#include "buffer_sides.hpp"
#include "far_buffers.hpp"
#include "few.hpp"
#include "kept_blocks.hpp"
#include "order_book.hpp"
#include "part_book.hpp"
#include "stream_uses.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace isthmus::platform::os {
class DmaBuf;
}

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Piece;
struct PoolState;

using Seams = std::vector<std::size_t>;  // the bytes where the handles of mapped memory meet, ascending

// Gives such a block back to the blocks that it came from; nullptr: to the heap.
template <class Block>
void end_block(Block* block) noexcept {
    KeptBlocks* const from = block->from;
    std::destroy_at(block);
    if (from != nullptr) return from->give_back(block);
    ::operator delete (block, std::align_val_t{alignof(std::max_align_t)});
}
template <class Block>
Block* begin_block(KeptBlocks* from) {
    if (from != nullptr) return ::new (from->take(sizeof(Block))) Block(from);
    note_heap("operator new");
    return ::new (::operator new (sizeof(Block), std::align_val_t{alignof(std::max_align_t)})) Block(from);
}

// What only a staged buffer has. Its blocks are the device's own.
struct SecondSide {
    explicit SecondSide(KeptBlocks* kept) noexcept : from(kept) {}
    KeptBlocks* const from;
    MemoryBlock host_block;
    MemoryBlock adopted_block;  // adopted memory of a staged buffer; otherwise adopted memory is in BufferExtras::block
    Piece* piece = nullptr;     // of host_block
    std::mutex downloading;     // held for a copy to the host's side; taken before all other locks
    struct End {
        void operator()(SecondSide* side) const noexcept { end_block(side); }
    };
};

// A mark of a native scope: from mark() to unmark(), other code works on these bytes.
struct NativeMark {
    const void* scope;
    OpenUse use;
};

// What a buffer has once parts of it, or native scopes, use it.
struct BufferParts : PartBook {
    explicit BufferParts(KeptBlocks* kept) noexcept : from(kept) {}
    KeptBlocks* const from;
    Few<NativeMark, 2> natives;  // open native scopes; further ones lie on the heap
    struct End {
        void operator()(BufferParts* parts) const noexcept { end_block(parts); }
    };
};

// What few buffers have. The buffer's lock guards it, unless stated otherwise.
struct BufferExtras {
    explicit BufferExtras(KeptBlocks* kept) noexcept : from(kept) {}
    KeptBlocks* const from;
    // For copied or attached memory: which side is current. Made with the buffer.
    BufferSides sides;
    // Made with the buffer, read-only until its end. Memory that is no piece of the device's own, or whose release
    // failed.
    MemoryBlock block;
    Allocator allocator;         // empty: the block is the device's own, from whichever of its sources
    std::uint64_t users_id = 0;  // in the ledger, for a user's allocator that gave no identity
    std::unique_ptr<SecondSide, SecondSide::End> second;  // nullptr: not staged
    // Made with the buffer, read-only afterwards.
    std::size_t lead_bytes = 0;  // the driver's allocation begins so many bytes before it (alignment)
    // Of pool memory that is not of the device's own pool: its pool, which records which devices have access (A5);
    // nullptr: not known.
    bool of_other_pool = false;
    std::shared_ptr<const PoolState> pool;
    void* relay = nullptr;  // pinned memory that copies use in place of `host`; nullptr: they use `host`
    // Of a dma-buf: the cache operations around each use by the CPU. Part of the adopted memory, which ends behind the
    // last view.
    const platform::os::DmaBuf* dma_buf = nullptr;
    std::uint64_t recorded_in = 0;  // memory of a graph: the recording that allocated it

    Seams seams;                                           // of mapped host memory
    std::unique_ptr<BufferParts, BufferParts::End> parts;  // set once
    std::unique_ptr<OrderHistory> order;  // guarded by the order checker; nullptr: no use of it was checked
    FarPlace far;                         // whether a device uses it that may not reach it; ends first

    BufferParts& make_parts(KeptBlocks* kept) {  // nullptr: the heap
        if (!parts) parts.reset(begin_block<BufferParts>(kept));
        return *parts;
    }
    bool has_natives() const noexcept { return parts != nullptr && !parts->natives.empty(); }

    // Of memory that became smaller.
    void drop_seams_from(std::size_t byte) noexcept {
        while (!seams.empty() && seams.back() >= byte) seams.pop_back();
    }
};

// What a buffer has once a stream, a graph or a concurrent view uses it.
struct BufferBook {
    explicit BufferBook(KeptBlocks* kept) noexcept : from(kept) {}
    KeptBlocks* const from;
    Piece* piece = nullptr;
    std::atomic<BufferExtras*> extras{nullptr};
    StreamUses uses;
    int concurrents = 0;  // open concurrent views of the whole buffer; the buffer's lock guards it
};

// One word: the piece, or the book that has it. Blocks are made by whoever needs them first, with the buffer's lock or
// without it, and stay until the buffer ends, also while it rests.
class OutOfLine {
public:
    OutOfLine() = default;
    OutOfLine(const OutOfLine&) = delete;
    OutOfLine& operator=(const OutOfLine&) = delete;
    ~OutOfLine() {
        if (BufferBook* const there = book()) end(there);
    }

    // nullptr: not needed so far. Acquire, in all of them: pairs with the release of who made the block.
    BufferBook* book() const noexcept {
        const std::uintptr_t word = word_.load(std::memory_order_acquire);
        return (word & is_book) != 0 ? reinterpret_cast<BufferBook*>(word & ~is_book) : nullptr;
    }
    BufferExtras* extras() const noexcept {
        const BufferBook* const there = book();
        return there != nullptr ? there->extras.load(std::memory_order_acquire) : nullptr;
    }
    // `kept`: the blocks that give one; nullptr: the heap does, and the thread's sealed scope counts it. Threads that
    // come at the same time take one block together.
    BufferBook& make_book(KeptBlocks* kept = nullptr) {
        if (BufferBook* const there = book()) return *there;
        return first_book(kept);
    }
    BufferExtras& make_extras(KeptBlocks* kept_books = nullptr, KeptBlocks* kept_extras = nullptr) {
        BufferBook& there = make_book(kept_books);
        if (BufferExtras* const made = there.extras.load(std::memory_order_acquire)) return *made;
        return first_extras(there, kept_extras);
    }

    // All of it by one look.
    struct Parts {
        const BufferBook* book = nullptr;
        const BufferExtras* extras = nullptr;
        Piece* piece = nullptr;
        SecondSide* second = nullptr;
    };
    Parts parts() const noexcept {
        const std::uintptr_t word = word_.load(std::memory_order_acquire);
        if ((word & is_book) == 0) return {nullptr, nullptr, reinterpret_cast<Piece*>(word), nullptr};
        const auto* const there = reinterpret_cast<BufferBook*>(word & ~is_book);
        const BufferExtras* const made = there->extras.load(std::memory_order_acquire);
        return {there, made, there->piece, made != nullptr ? made->second.get() : nullptr};
    }

    // The memory where it is the device's own, in the ledger; nullptr: it is not, or was given back. Only while a
    // buffer is made, released or ended, or by its owner.
    Piece* piece() const noexcept {
        const std::uintptr_t word = word_.load(std::memory_order_acquire);
        if ((word & is_book) == 0) return reinterpret_cast<Piece*>(word);
        return reinterpret_cast<BufferBook*>(word & ~is_book)->piece;
    }
    void set_piece(Piece* piece) noexcept {
        std::uintptr_t seen = word_.load(std::memory_order_acquire);
        while ((seen & is_book) == 0) {  // another thread may make the book meanwhile
            if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(piece), std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
                return;
            }
        }
        reinterpret_cast<BufferBook*>(seen & ~is_book)->piece = piece;
    }
    // The same for a buffer that nobody else knows.
    void begin(Piece& piece) noexcept {
        if (BufferBook* const there = book()) {
            there->piece = &piece;
        } else {
            word_.store(reinterpret_cast<std::uintptr_t>(&piece), std::memory_order_relaxed);
        }
    }

private:
    static constexpr std::uintptr_t is_book = 1;  // in the word, beside the address
    BufferBook& first_book(KeptBlocks* kept);
    static BufferExtras& first_extras(BufferBook& book, KeptBlocks* kept);
    static void end(BufferBook* book) noexcept;

    std::atomic<std::uintptr_t> word_{0};
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
