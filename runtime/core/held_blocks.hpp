// SPDX-License-Identifier: Apache-2.0
// HeldBlocks: the blocks of memory that a buffer has to give back, and their allocators.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/result.hpp>

#include "out_of_line.hpp"
#include "piece.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>

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

// A handle. Each block is given back once. Not thread-safe: used only while a buffer is made, released or ended.
class HeldBlocks {
public:
    explicit HeldBlocks(OutOfLine& all) noexcept : all_(all) {}

    // The first block, of two if the buffer is staged. Empty: given back, or none.
    const MemoryBlock& block() const noexcept;
    // Whether a block has not been given back yet.
    bool any() const noexcept;
    bool of_user() const noexcept;  // of a user's allocator, or an adaptor
    std::uint64_t users_id() const noexcept;
    SecondSide* second() const noexcept {  // nullptr: not staged
        const BufferExtras* const extras = all_.extras();
        return extras != nullptr ? extras->second.get() : nullptr;
    }
    // Whether all blocks are the device's own pieces.
    static bool all_own(const OutOfLine::Parts& of) noexcept {
        return of.piece != nullptr &&
               (of.second == nullptr || (of.second->piece != nullptr && !of.second->adopted_block));
    }
    // This and the next one expect all_own().
    std::size_t pieces() const noexcept { return second() != nullptr ? 2 : 1; }
    template <class Visit>
    void for_each_piece(Visit visit) const {
        const OutOfLine::Parts parts = all_.parts();
        visit(*parts.piece, parts.piece->block);
        if (const SecondSide* const side = parts.second) visit(*side->piece, side->host_block);
    }
    // For BufferLanes: parks all pieces, and closes them. false: they are not kept. `order`: the stream in whose order
    // the memory was allocated; nullptr: none.
    bool rest(DeviceState& device, const StreamState* order);
    // Hands the parked pieces out again, each with a new identity. false: they stay parked.
    bool wake(DeviceState& device, const StreamState* order);

    // Expects the buffer to be staged.
    std::mutex& downloading() const noexcept { return second()->downloading; }

    // Gives everything back; the device's block in the order of `behind` (nullptr: nothing uses it any more). On an
    // error nothing has changed.
    Result<void> give_back(DeviceState& device, Stream* behind);
    // Called if give_back() failed and the caller does not try again: a user's allocator keeps its block, and adopted
    // memory is released when the driver unregisters it.
    void leave(DeviceState& device, bool adopted);

private:
    OutOfLine& all_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
