// SPDX-License-Identifier: Apache-2.0
// BufferLanes: shared buffers rest, and wake as others.
#include "buffer_lanes.hpp"

#include "device_state.hpp"
#include "piece_release.hpp"
#include "process.hpp"
#include "state_block.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

std::size_t lane_of_thread() noexcept {
    return process::thread_number() % rules::lane_count;
}

// What its memory counts for in a lane.
struct Size {
    std::uint64_t bytes = 0;
    std::uint64_t asked_bytes = 0;
    std::uint64_t pieces = 0;
};
Size size_of(const HeldBlocks& held) noexcept {
    Size size;
    held.for_each_piece([&](const Piece& piece, const MemoryBlock&) {
        size.bytes += piece.bytes();
        size.asked_bytes += piece.asked_bytes;
        ++size.pieces;
    });
    return size;
}

using InLane = PieceCache::InLane;
void change(std::atomic<std::uint64_t>& counted, std::uint64_t by) noexcept {
    counted.store(counted.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
void add(InLane& lane, const Size& size) noexcept {
    change(lane.bytes, size.bytes);
    change(lane.asked_bytes, size.asked_bytes);
    change(lane.pieces, size.pieces);
}
void subtract(InLane& lane, const Size& size) noexcept {
    change(lane.bytes, 0 - size.bytes);
    change(lane.asked_bytes, 0 - size.asked_bytes);
    change(lane.pieces, 0 - size.pieces);
}

rules::LaneNow now_of(const DeviceState& device, std::size_t lane, std::size_t buffers) noexcept {
    return {buffers, device.cache.in_lanes[lane].bytes.load(std::memory_order_relaxed), device.cache.shelved_bytes()};
}

// A buffer that rested, and does not any more: its memory goes where that of other buffers goes.
void end_resting(StateBlock& block) noexcept {
    BufferState& buffer = block.buffer();
    const std::shared_ptr<DeviceState> device = buffer.device;
    buffer.held.for_each_piece([&](Piece& piece, const MemoryBlock&) { keep_from_lane(*device, piece); });
    KeptBlocks& from = *block.from;
    std::destroy_at(&buffer);
    from.give_back(&block);
}

bool watched(const DeviceState& device) noexcept {
    return static_cast<bool>(device.observer()) || device.books->order != nullptr;
}

rules::Unheld facts_of_end(BufferState& buffer) {
    const DeviceState& device = *buffer.device;
    rules::Unheld facts;
    facts.of_request = static_cast<bool>(StateBlock::of(buffer).request());
    facts.own_memory = buffer.held.all_own() && !buffer.memory->adopted && buffer.memory->pool == nullptr;
    facts.used = buffer.uses.size() != 0 || buffer.first_use.stream() != nullptr;
    facts.exposed = buffer.exposed.load(std::memory_order_relaxed);
    facts.in_parts = buffer.views.has_parts() || buffer.views.released();
    facts.in_graphs = buffer.uses.in_graphs();
    facts.far = buffer.far.any() || buffer.order != nullptr;
    facts.watched = watched(device);
    facts.capture_open = device.books->captures.any();
    facts.device_usable = device.usable() && !device.unreturned.any();
    return facts;
}

}  // namespace

StateBlock* BufferLanes::take(DeviceState& device, std::size_t at, const rules::SharedRequest& request) {
    Lane& lane = device.lanes.lanes_[at];
    if (!lane.lock.try_lock()) return nullptr;
    const std::lock_guard lock(lane.lock, std::adopt_lock);
    for (std::size_t one = lane.count; one-- > 0;) {
        if (!(lane.requests[one] == request)) continue;
        StateBlock* const block = lane.blocks[one];
        take_at(device, at, one);
        change(device.cache.in_lanes[at].taken, block->buffer().held.pieces());
        return block;
    }
    return nullptr;
}

void BufferLanes::take_at(DeviceState& device, std::size_t at, std::size_t one) {
    Lane& lane = device.lanes.lanes_[at];
    subtract(device.cache.in_lanes[at], size_of(lane.blocks[one]->buffer().held));
    std::move(lane.requests.begin() + one + 1, lane.requests.begin() + lane.count, lane.requests.begin() + one);
    std::move(lane.blocks.begin() + one + 1, lane.blocks.begin() + lane.count, lane.blocks.begin() + one);
    --lane.count;
}

// Where the lane is full, its oldest buffers make room: a program may never ask for those again.
bool BufferLanes::put(DeviceState& device, std::size_t at, StateBlock& block) {
    Lane& lane = device.lanes.lanes_[at];
    std::array<StateBlock*, rules::lane_buffers> left{};
    std::size_t leaving = 0;
    {
        if (!lane.lock.try_lock()) return false;
        const std::lock_guard lock(lane.lock, std::adopt_lock);
        if (lane.closed) return false;
        const Size size = size_of(block.buffer().held);
        const std::uint64_t limit = device.cache.limit_bytes();
        while (lane.count != 0 && !rules::lane_has_room(now_of(device, at, lane.count), size.bytes, limit)) {
            left[leaving++] = lane.blocks[0];
            take_at(device, at, 0);
        }
        lane.requests[lane.count] = block.request();
        lane.blocks[lane.count] = &block;
        ++lane.count;
        add(device.cache.in_lanes[at], size);
    }
    for (std::size_t one = 0; one < leaving; ++one) end_resting(*left[one]);
    return true;
}

std::uint64_t BufferLanes::empty(DeviceState& device, bool for_good) {
    std::uint64_t bytes = 0;
    for (std::size_t at = 0; at < rules::lane_count; ++at) {
        Lane& lane = device.lanes.lanes_[at];
        InLane& counted = device.cache.in_lanes[at];
        if (!for_good && counted.pieces.load(std::memory_order_relaxed) == 0) continue;
        std::array<StateBlock*, rules::lane_buffers> blocks{};
        std::size_t count = 0;
        {
            const std::lock_guard lock(lane.lock);
            blocks = lane.blocks;
            count = std::exchange(lane.count, std::size_t{0});
            bytes += counted.bytes.load(std::memory_order_relaxed);
            counted.bytes.store(0, std::memory_order_relaxed);
            counted.asked_bytes.store(0, std::memory_order_relaxed);
            counted.pieces.store(0, std::memory_order_relaxed);
            lane.closed = lane.closed || for_good;
        }
        for (std::size_t one = 0; one < count; ++one) end_resting(*blocks[one]);
    }
    return bytes;
}

std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request) {
    if (!request || device.books->captures.any() || device.services.any() || device.unreturned.any() ||
        watched(device)) {
        return nullptr;
    }
    const std::size_t own_lane = lane_of_thread();
    StateBlock* block = BufferLanes::take(device, own_lane, request);
    for (std::size_t next = 1; block == nullptr && next < rules::lane_count; ++next) {
        const std::size_t at = (own_lane + next) % rules::lane_count;
        if (device.cache.in_lanes[at].pieces.load(std::memory_order_relaxed) == 0) continue;
        block = BufferLanes::take(device, at, request);
    }
    if (block == nullptr) return nullptr;
    if (!begin_again(*block)) {
        end_resting(*block);
        return nullptr;
    }
    return own(*block);
}

bool rest_buffer(BufferState& buffer) {
    if (!rules::may_rest(facts_of_end(buffer))) return false;
    DeviceState& device = *buffer.device;
    const rules::LaneNow empty_lane{0, 0, device.cache.shelved_bytes()};
    const std::uint64_t bytes = size_of(buffer.held).bytes;
    if (!rules::lane_has_room(empty_lane, bytes, device.cache.limit_bytes())) return false;
    if (!buffer.held.rest(device)) return false;
    StateBlock::of(buffer).from = nullptr;
    buffer.forget_itself();  // the last reference, unless one is left for a moment: lay_down() follows
    return true;
}

void lay_down(StateBlock& block) noexcept {
    DeviceState& device = *block.buffer().device;
    block.from = device.buffer_states.get();
    if (!BufferLanes::put(device, lane_of_thread(), block)) end_resting(block);
}

std::uint64_t empty_lanes(DeviceState& device) {
    return BufferLanes::empty(device, false);
}

void close_lanes(DeviceState& device) {
    (void)BufferLanes::empty(device, true);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
