// SPDX-License-Identifier: Apache-2.0
// HeldBlocks: the blocks of memory that a buffer has to give back, and their allocators.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/result.hpp>

#include "kept_blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

namespace isthmus {
inline namespace v0 {
class Stream;
}  // namespace v0
}  // namespace isthmus

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;
struct Piece;
struct StreamState;

// What only a staged buffer has. Its blocks are the device's own.
struct SecondSide {
    explicit SecondSide(KeptBlocks& kept) noexcept : from(kept) {}
    KeptBlocks& from;
    MemoryBlock host_block;
    MemoryBlock adopted_block;  // adopted memory of a staged buffer; otherwise adopted memory is in `block`
    Piece* piece = nullptr;     // of host_block
    std::mutex downloading;     // held for a copy to the host's side; taken before all other locks
    struct End {
        void operator()(SecondSide* side) const noexcept {
            KeptBlocks& kept = side->from;
            std::destroy_at(side);
            kept.give_back(side);
        }
    };
};

// What the maker of a buffer fills in; two blocks if the buffer is staged.
struct BufferBlocks {
    Allocator allocator;  // empty: the block is the device's own, from whichever of its sources
    MemoryBlock block;
    std::unique_ptr<SecondSide, SecondSide::End> second;  // nullptr: not staged
    std::uint64_t users_id = 0;                           // in the ledger, for a user's allocator that gave no identity
    Piece* piece = nullptr;                               // of `block` in the ledger, where it is the device's own

    SecondSide& make_second(KeptBlocks& kept) {
        if (!second) second.reset(::new (kept.take(sizeof(SecondSide))) SecondSide(kept));
        return *second;
    }
};

// Each block is given back once. Not thread-safe: used only while a buffer is made, released or ended.
class HeldBlocks {
public:
    HeldBlocks() = default;
    HeldBlocks(const HeldBlocks&) = delete;
    HeldBlocks& operator=(const HeldBlocks&) = delete;

    const BufferBlocks* operator->() const noexcept { return &blocks_; }
    // Whether a block has not been given back yet.
    bool any() const noexcept {
        return blocks_.block || (blocks_.second && (blocks_.second->host_block || blocks_.second->adopted_block));
    }
    // Whether all blocks are the device's own pieces.
    bool all_own() const noexcept {
        const bool side = !blocks_.second || (blocks_.second->piece != nullptr && !blocks_.second->adopted_block);
        return blocks_.piece != nullptr && blocks_.block && !blocks_.allocator && side;
    }
    // Expects all_own(), as the next two.
    std::size_t pieces() const noexcept { return blocks_.second ? 2 : 1; }
    template <class Visit>
    void for_each_piece(Visit visit) const {
        visit(*blocks_.piece, blocks_.block);
        if (blocks_.second) visit(*blocks_.second->piece, blocks_.second->host_block);
    }
    // For BufferLanes: parks all pieces, and closes them. false: they are not kept. `order`: the stream in whose order
    // the memory was allocated; nullptr: none.
    bool rest(DeviceState& device, const StreamState* order);
    // Hands the parked pieces out again, each with a new identity. false: they stay parked.
    bool wake(DeviceState& device, const StreamState* order);

    // Expects the buffer to be staged.
    std::mutex& downloading() noexcept { return blocks_.second->downloading; }

    // Gives everything back; the device's block in the order of `behind` (nullptr: nothing uses it any more). On an
    // error nothing has changed.
    Result<void> give_back(DeviceState& device, Stream* behind);
    // Called if give_back() failed and the caller does not try again: a user's allocator keeps its block, and adopted
    // memory is released when the driver unregisters it.
    void leave(DeviceState& device, bool adopted);

private:
    friend class NewBuffer;

    BufferBlocks blocks_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
