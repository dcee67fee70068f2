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

namespace {

Result<void> release(const Allocator& allocator, DeviceState& device, const MemoryBlock& block, Stream* after) {
    if (!block) return {};
    return allocator ? allocator.release(block, after) : release_block(device, block, after);
}

}  // namespace

Result<void> HeldBlocks::give_back(DeviceState& device, Stream* behind) {
    // Only three releases can fail: of adopted memory, of a user allocator's block, and of memory behind work that
    // hangs. They come first.
    const bool staged_for_others = blocks_.second && blocks_.second->adopted_block;
    if (staged_for_others) {
        Result<void> freed = release_block(device, blocks_.second->adopted_block, nullptr);
        if (!freed) return freed;
        blocks_.second->adopted_block = {};
    }
    // The record of a user allocator's block is removed before its release: right after it, the memory may have another
    // owner.
    const bool users = blocks_.users_id != 0;
    if (users) device.books->ledger.leave(std::exchange(blocks_.users_id, 0));
    Result<void> freed = release(blocks_.allocator, device, blocks_.block, behind);
    if (!freed && !staged_for_others) {
        if (users) blocks_.users_id = device.books->ledger.enter_users(blocks_.block, device.index);
        return freed;
    }
    blocks_.block = {};
    if (freed && blocks_.second) {
        freed = release({}, device, std::exchange(blocks_.second->host_block, {}), nullptr);
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
    if (!park(device, *blocks_.piece, blocks_.block, order)) return false;
    if (blocks_.second && !park(device, *blocks_.second->piece, blocks_.second->host_block, nullptr)) {
        if (device.books->ledger.wake(*blocks_.piece, blocks_.block) != 0) return false;
        device.cache.close_in_lane(*blocks_.piece, nullptr);
        keep_from_lane(device, *std::exchange(blocks_.piece, nullptr), nullptr);
        blocks_.block = {};
        return false;
    }
    for_each_piece([&](const Piece& piece, const MemoryBlock&) { device.cache.close_in_lane(piece, behind(order)); });
    return true;
}

bool HeldBlocks::wake(DeviceState& device, const StreamState* order) {
    Ledger& ledger = device.books->ledger;
    if (ledger.wake(*blocks_.piece, blocks_.block) == 0) return false;
    if (blocks_.second && ledger.wake(*blocks_.second->piece, blocks_.second->host_block) == 0) {
        (void)park(device, *blocks_.piece, blocks_.block, nullptr);
        return false;
    }
    for_each_piece([&](const Piece& piece, const MemoryBlock&) { device.cache.open_from_lane(piece, behind(order)); });
    return true;
}

void HeldBlocks::leave(DeviceState& device, bool adopted) {
    if (blocks_.users_id != 0) device.books->ledger.leave(std::exchange(blocks_.users_id, 0));
    if (!adopted) return;
    const bool staged = blocks_.second && blocks_.second->adopted_block;
    release_later(device, staged ? blocks_.second->adopted_block : blocks_.block);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
