// SPDX-License-Identifier: Apache-2.0
// HeldBlocks: releases the blocks.
#include "held_blocks.hpp"

#include "cache_rules.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "piece_release.hpp"
#include "stream_state.hpp"

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

const MemoryBlock& HeldBlocks::block() const noexcept {
    static constexpr MemoryBlock none{};
    if (const Piece* const piece = all_.piece()) return piece->block;
    const BufferExtras* const extras = all_.extras();
    return extras != nullptr ? extras->block : none;
}

bool HeldBlocks::any() const noexcept {
    const SecondSide* const side = second();
    return block() || (side != nullptr && (side->host_block || side->adopted_block));
}

bool HeldBlocks::of_user() const noexcept {
    const BufferExtras* const extras = all_.extras();
    return extras != nullptr && (extras->allocator || extras->users_id != 0);
}

std::uint64_t HeldBlocks::users_id() const noexcept {
    const BufferExtras* const extras = all_.extras();
    return extras != nullptr ? extras->users_id : 0;
}

Result<void> HeldBlocks::give_back(DeviceState& device, Stream* behind) {
    // Only three releases can fail: of adopted memory, of a user allocator's block, and of memory behind work that
    // hangs. They come first.
    BufferExtras* const extras = all_.extras();
    SecondSide* const side = second();
    const bool staged_for_others = side != nullptr && side->adopted_block;
    if (staged_for_others) {
        Result<void> freed = release_block(device, side->adopted_block, nullptr);
        if (!freed) return freed;
        side->adopted_block = {};
    }
    // The record of a user allocator's block is removed before its release: right after it, the memory may have another
    // owner.
    const bool users = users_id() != 0;
    if (users) device.books->ledger.leave(std::exchange(extras->users_id, 0));
    const MemoryBlock block = this->block();
    Result<void> freed;
    if (block) {
        freed = extras != nullptr && extras->allocator ? extras->allocator.release(block, behind)
                                                       : release_block(device, block, behind);
    }
    if (!freed && !staged_for_others) {
        if (users) extras->users_id = device.books->ledger.enter_users(block, device.index);
        if (all_.piece() != nullptr) {  // the ledger may have it in another place by now
            all_.make_extras(device.buffer_books.get(), device.buffer_extras.get()).block = block;
            all_.set_piece(nullptr);
        }
        return freed;
    }
    all_.set_piece(nullptr);
    if (extras != nullptr) extras->block = {};
    if (freed && side != nullptr && side->host_block) {
        freed = release_block(device, std::exchange(side->host_block, {}), nullptr);
    }
    if (!freed)
        device.config->say(Severity::warning, composed("releasing one side of a buffer: {}", freed.error().text()));
    return {};
}

namespace {

bool park(DeviceState& device, Piece& piece, const MemoryBlock& block, const StreamState* order) {
    const rules::ReleaseOrder behind = order != nullptr ? rules::ReleaseOrder::own_stream : rules::ReleaseOrder::none;
    const rules::Released how{.order = behind, .device_usable = true};
    return device.books->ledger.rest(piece, block.id, how, device.cache.limit_bytes());
}
const PieceCache::Behind* behind(const StreamState* order) noexcept {
    return order != nullptr ? &order->kept_behind : nullptr;
}

}  // namespace

bool HeldBlocks::rest(DeviceState& device, const StreamState* order) {
    const OutOfLine::Parts parts = all_.parts();
    Piece& piece = *parts.piece;
    const SecondSide* const side = parts.second;
    if (!park(device, piece, piece.block, order)) return false;
    if (side != nullptr && !park(device, *side->piece, side->host_block, nullptr)) {
        MemoryBlock block = piece.block;
        if (device.books->ledger.wake(piece, block) != 0) return false;
        device.cache.close_in_lane(piece, nullptr);
        keep_from_lane(device, piece, nullptr);
        all_.set_piece(nullptr);
        return false;
    }
    device.cache.close_in_lane(piece, behind(order));
    if (side != nullptr) device.cache.close_in_lane(*side->piece, behind(order));
    return true;
}

bool HeldBlocks::wake(DeviceState& device, const StreamState* order) {
    Ledger& ledger = device.books->ledger;
    const OutOfLine::Parts parts = all_.parts();
    Piece& piece = *parts.piece;
    SecondSide* const side = parts.second;
    MemoryBlock block = piece.block;  // wake() writes the piece's own only where it succeeds
    if (ledger.wake(piece, block) == 0) return false;
    if (side != nullptr && ledger.wake(*side->piece, side->host_block) == 0) {
        (void)park(device, piece, piece.block, nullptr);
        return false;
    }
    device.cache.open_from_lane(piece, behind(order));
    if (side != nullptr) device.cache.open_from_lane(*side->piece, behind(order));
    return true;
}

void HeldBlocks::leave(DeviceState& device, bool adopted) {
    if (users_id() != 0) device.books->ledger.leave(std::exchange(all_.extras()->users_id, 0));
    if (!adopted) return;
    const SecondSide* const side = second();
    release_later(device, side != nullptr && side->adopted_block ? side->adopted_block : block());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
