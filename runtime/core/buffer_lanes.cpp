// SPDX-License-Identifier: Apache-2.0
// BufferLanes: buffers and blocks rest, and wake as others.
#include "buffer_lanes.hpp"

#include "alignment_rules.hpp"
#include "device_state.hpp"
#include "piece_release.hpp"
#include "process.hpp"
#include "state_block.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using InLane = PieceCache::InLane;
[[gnu::always_inline]] inline void change(std::atomic<std::uint64_t>& counted, std::uint64_t by) noexcept {
    counted.store(counted.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline rules::LaneNow now_of(const DeviceState& device, std::size_t lane, std::size_t buffers,
                                                    std::uint64_t large_bytes) noexcept {
    return {buffers, device.cache.in_lanes[lane].bytes.load(std::memory_order_relaxed) - large_bytes,
            device.cache.beside_bytes()};
}

// A buffer that rested, and does not any more: its memory goes where that of other buffers goes. `order`: the stream
// whose work may still use it; nullptr: none. Answers as keep_from_lane().
std::uint64_t end_resting(StateBlock& block, StreamState* order, std::optional<std::uint64_t> age = {},
                          bool frees = true) noexcept {
    BufferState& buffer = block.buffer();
    const std::shared_ptr<DeviceState> device = buffer.device;
    std::uint64_t went_bytes = 0;
    buffer.blocks().for_each_piece(
        [&](Piece& piece, const MemoryBlock&) { went_bytes += keep_from_lane(*device, piece, order, age, frees); });
    block.end_state();
    block.from().give_back(&block);
    return went_bytes;
}
template <class Resting>
std::uint64_t end_resting(DeviceState& device, const Resting& resting, StreamState* order, std::uint64_t age,
                          bool frees = true) noexcept {
    if (resting.piece != nullptr) return keep_from_lane(device, *resting.piece, order, age, frees);
    return end_resting(*resting.block, order, age, frees);
}

// Whether memory that rests may serve a request.
[[gnu::always_inline]] inline bool lanes_serve(const DeviceState& device) noexcept {
    return device.way_is_clear() && device.usable();
}

// The stream in whose order a request was made, where the buffer still holds it.
StreamState* order_of(const BufferState& buffer, const rules::SharedRequest& request) noexcept {
    if (!request.in_order()) return nullptr;
    for (const BufferState::Use& use : buffer.uses()) {
        if (use.stream->id == request.stream_id()) return use.stream.get();
    }
    return nullptr;
}

// Work of `order` comes before all later work of that stream, and before the memory is used again. A buffer that the
// host may view can be named by a stream's tail until its last use has ended; any other is nobody's by now, so that
// the lock is not needed.
void look_at_uses(BufferState& buffer, const StreamState* order, rules::Unheld& facts) {
    std::unique_lock lock(buffer.views, std::defer_lock);
    if (buffer.memory->host != nullptr) lock.lock();
    buffer.enter_first_use();
    for (const BufferState::Use& use : buffer.uses()) {
        const bool in_order = use.stream.get() == order && buffer.memory->host == nullptr;
        facts.running = facts.running || (!in_order && !use.stream->reached(use.last));
    }
    const BufferSides* const sides = buffer.sides();
    if (sides == nullptr) return;
    const StreamState* const brought_by = sides->brought_by();
    facts.attached =
        sides->attached_to() != nullptr || (brought_by != nullptr && !brought_by->reached(sides->brought_at()));
}

rules::Unheld facts_of_end(const BufferState& buffer, const OutOfLine::Parts& parts,
                           const rules::SharedRequest& request, const StreamState* order) {
    const DeviceState& device = *buffer.device;
    rules::Unheld facts;
    facts.of_request = static_cast<bool>(request);
    facts.own_memory = HeldBlocks::all_own(parts) && !buffer.memory->adopted;
    facts.in_order = request.in_order();
    facts.order_known =
        order != nullptr && order->device.get() == &device && !order->others() && order->kept_behind.has_begun();
    facts.exposed = buffer.memory.exposed.load(std::memory_order_relaxed);
    facts.in_parts = buffer.views.has_parts() || buffer.views.released();
    facts.in_graphs = parts.book != nullptr && parts.book->uses.in_graphs();
    facts.far = parts.extras != nullptr && (parts.extras->far.any() || parts.extras->order != nullptr);
    facts.watched = device.watched;
    facts.capture_open = device.books->captures.any();
    facts.device_usable = device.usable() && !device.unreturned.any_for_next_call();
    return facts;
}

}  // namespace

namespace {

// Of what rests by block, or as a buffer of one piece or two.
template <class Resting>
Piece& piece_of(const Resting& resting) noexcept {
    return resting.piece != nullptr ? *resting.piece : *resting.block->buffer().views.out_of_line.parts().piece;
}
template <class Resting>
bool is_loose(const Resting& resting) noexcept {
    return piece_of(resting).is_loose();
}

}  // namespace

// What came to rest here lately, and has left for the cache since, would have been found in a larger lane: such
// requests do not change. A loose piece was other requests before.
void BufferLanes::Lane::note_taken(const rules::SharedRequest& request, bool found) noexcept {
    const std::uint8_t now = missed.load(std::memory_order_relaxed);
    const bool loose = std::any_of(resting.begin(), resting.begin() + static_cast<std::ptrdiff_t>(count),
                                   [](const Resting& one) { return is_loose(one); });
    if (loose) return;
    if (found || std::find(lately.begin(), lately.end(), mark(request)) != lately.end()) {
        if (now != 0) missed.store(0, std::memory_order_relaxed);
    } else if (now < rules::misses_that_change) {
        missed.store(now + 1, std::memory_order_relaxed);
    }
}

[[gnu::always_inline]] inline BufferLanes::Size BufferLanes::size_of(const Piece& piece) noexcept {
    Size size;
    size.bytes = piece.bytes();
    // A place was asked for as it is, as the cache counts it.
    size.asked_bytes = piece.slab() != nullptr ? size.bytes : piece.is_loose() ? 0 : piece.asked_bytes();
    size.pieces = 1;
    size.pool_bytes = piece.pool() != nullptr ? size.bytes : 0;
    return size;
}
[[gnu::always_inline]] inline BufferLanes::Size BufferLanes::size_of(const HeldBlocks& held) noexcept {
    Size size;
    held.for_each_piece([&](const Piece& piece, const MemoryBlock&) {
        const Size one = size_of(piece);
        size.bytes += one.bytes;
        size.asked_bytes += one.asked_bytes;
        size.pieces += one.pieces;
        size.pool_bytes += one.pool_bytes;
    });
    return size;
}

// Expects the lane's lock, and room. What is not of a pool does not touch what counts those.
[[gnu::always_inline]] inline void BufferLanes::add(DeviceState& device, std::size_t at,
                                                    const Resting& resting) noexcept {
    Lane& lane = device.lanes.lanes_[at];
    lane.note_put(resting.request);
    Resting& place = lane.resting[lane.count++];
    place.request = resting.request;
    place.block = resting.block;
    place.piece = resting.piece;
    place.order = resting.order;
    place.size = resting.size;
    place.number = lane.put;
    InLane& counted = device.cache.in_lanes[at];
    change(counted.bytes, resting.size.bytes);
    change(counted.asked_bytes, resting.size.asked_bytes);
    change(counted.pieces, resting.size.pieces);
    if (resting.size.pool_bytes != 0) change(counted.pool_bytes, resting.size.pool_bytes);
}

[[gnu::always_inline]] inline void BufferLanes::take_at(DeviceState& device, std::size_t at, std::size_t one) {
    Lane& lane = device.lanes.lanes_[at];
    InLane& counted = device.cache.in_lanes[at];
    const Size& size = lane.resting[one].size;
    change(counted.bytes, 0 - size.bytes);
    change(counted.asked_bytes, 0 - size.asked_bytes);
    change(counted.pieces, 0 - size.pieces);
    if (size.pool_bytes != 0) change(counted.pool_bytes, 0 - size.pool_bytes);
    if (lane.large_bytes != 0 && rules::is_large(size.bytes, device.cache.limit_bytes())) {
        lane.large_bytes -= size.bytes;
        device.cache.large_left_lane(size.bytes);
    }
    --lane.count;
    if (one == lane.count) return;
    std::move(lane.resting.begin() + one + 1, lane.resting.begin() + lane.count + 1, lane.resting.begin() + one);
}

// The newest first: a program often asks for what it has just released.
[[gnu::always_inline]] inline BufferLanes::Found BufferLanes::take(DeviceState& device, std::size_t at,
                                                                   const rules::SharedRequest& request, Whose whose) {
    Lane& lane = device.lanes.lanes_[at];
    if (!lane.lock.try_lock()) return {};
    const std::lock_guard lock(lane.lock, std::adopt_lock);
    for (std::size_t one = lane.count; one-- > 0;) {
        const Resting& resting = lane.resting[one];
        if (!(resting.request == request)) continue;
        const Found found{resting.block, resting.piece};
        change(device.cache.in_lanes[at].taken, resting.size.pieces);
        take_at(device, at, one);
        if (whose == Whose::own && lane.missed.load(std::memory_order_relaxed) != 0 && !is_loose(found)) [[unlikely]] {
            lane.note_taken(request, true);
        }
        return found;
    }
    if (whose == Whose::own) lane.note_taken(request, false);
    return {};
}

template <class Serving>
BufferLanes::Exchanged BufferLanes::take_for_exchange(DeviceState& device, Serving serves) {
    const std::size_t at = PieceCache::lane_of_thread();
    Lane& lane = device.lanes.lanes_[at];
    if (!requests_change(device) || !lane.lock.try_lock()) return {};
    const std::lock_guard lock(lane.lock, std::adopt_lock);
    Serves how = Serves::not_at_all;
    std::size_t found = 0;
    for (std::size_t one = lane.count; one-- > 0 && how != Serves::as_it_is;) {
        const Serves it = serves(lane.resting[one]);
        if (it > how) how = it, found = one;
    }
    if (how == Serves::not_at_all) return {};
    Exchanged taken{lane.resting[found], how};
    if (how != Serves::as_it_is) {
        taken.age = lane.put - taken.resting.number;
        taken.untold = lane.tell();
    } else {
        change(device.cache.in_lanes[at].taken, 1);
    }
    take_at(device, at, found);
    return taken;
}

BufferLanes::Found BufferLanes::take_from_others(DeviceState& device, std::size_t own_lane,
                                                 const rules::SharedRequest& request) {
    for (std::size_t next = 1; next < rules::lane_count; ++next) {
        const std::size_t at = (own_lane + next) % rules::lane_count;
        if (device.cache.in_lanes[at].pieces.load(std::memory_order_relaxed) == 0) continue;
        const Found found = take(device, at, request, Whose::of_another);
        if (!found) continue;
        if (is_loose(found)) device.cache.take_over(piece_of(found));
        return found;
    }
    return {};
}

// The stream's memory is there while the lane names it: the end of a stream comes here for the lock.
bool BufferLanes::take_out(DeviceState& device, std::size_t at, std::size_t one, AllLeaving& leaving) {
    const Resting& resting = device.lanes.lanes_[at].resting[one];
    std::shared_ptr<StreamState> order;
    if (resting.order != nullptr) {
        order = resting.order->weak_from_this().lock();
        if (!order) return false;
    }
    leaving.push_back({resting, std::move(order), device.lanes.lanes_[at].put - resting.number});
    take_at(device, at, one);
    return true;
}

// What lies in the cache has waited for `fresh` releases more, of which those that leave the lane are some. Answers how
// many bytes went back.
std::uint64_t BufferLanes::keep_all(DeviceState& device, const AllLeaving& leaving, std::uint64_t fresh, bool frees) {
    if (fresh != 0) device.cache.released_elsewhere(fresh);
    std::uint64_t went_bytes = 0;
    for (const Leaving& one : leaving) went_bytes += end_resting(device, one.resting, one.order.get(), one.age, frees);
    return went_bytes;
}

[[gnu::always_inline]] inline bool BufferLanes::put(DeviceState& device, std::size_t at, const Resting& resting) {
    Lane& lane = device.lanes.lanes_[at];
    if (!lane.lock.try_lock()) return false;
    const rules::LaneNow now = now_of(device, at, lane.count, lane.large_bytes);
    if (lane.closed || !rules::lane_has_room(now, resting.size.bytes, device.cache.limit_bytes())) [[unlikely]]
        return put_instead(device, at, resting);
    add(device, at, resting);
    device.cache.note_rest(device.cache.in_lanes[at], resting.size.asked_bytes);
    lane.lock.unlock();
    return true;
}

// Whether a lane could take so much, if nothing of its own lay there.
bool BufferLanes::may_take(const DeviceState& device, std::uint64_t bytes) noexcept {
    const std::uint64_t limit = device.cache.limit_bytes();
    const std::uint64_t beside = device.cache.beside_bytes();
    if (!rules::is_large(bytes, limit)) return rules::lane_has_room({0, 0, beside}, bytes, limit);
    return rules::lanes_have_room_for_large(device.cache.lanes_bytes(), bytes, beside, limit);
}

// Where the lane is full, its oldest buffers make room: a program may never ask for those again.
bool BufferLanes::put_instead(DeviceState& device, std::size_t at, const Resting& resting) {
    Lane& lane = device.lanes.lanes_[at];
    // What leaves needs the device, which a buffer that is put here may be the last to hold: it is the lane's then.
    std::shared_ptr<DeviceSession> kept;
    AllLeaving leaving;
    std::uint64_t fresh = 0;
    bool room = true;
    {
        const std::lock_guard lock(lane.lock, std::adopt_lock);
        const std::uint64_t limit = device.cache.limit_bytes();
        const bool large = rules::is_large(resting.size.bytes, limit);
        if (lane.closed || !may_take(device, resting.size.bytes)) return false;
        if (large && !device.cache.large_goes_to_lane(resting.size.bytes)) return false;
        const auto has_room = [&] {
            if (large) return lane.count < rules::lane_buffers;
            return rules::lane_has_room(now_of(device, at, lane.count, lane.large_bytes), resting.size.bytes, limit);
        };
        while (room && lane.count != 0 && !has_room()) room = take_out(device, at, 0, leaving);
        if (!leaving.empty()) fresh = lane.tell();
        if (room && !leaving.empty()) kept = device.weak_from_this().lock();
        if (room) {
            add(device, at, resting);
            if (large) {
                lane.large_bytes += resting.size.bytes;
            } else {
                device.cache.note_rest(device.cache.in_lanes[at], resting.size.asked_bytes);
            }
        } else if (large) {
            device.cache.large_left_lane(resting.size.bytes);
        }
    }
    keep_all(device, leaving, fresh, true);
    return room;
}

// One thread at a time: a thread that finds no memory and comes here waits until what others take out is in the cache.
// What is too much then goes back without the lock: a free finds out that a service has ended on its own, and does what
// was put off until then, with code of users.
EmptiedLanes BufferLanes::empty(DeviceState& device, bool for_good) {
    EmptiedLanes emptied;
    {
        const std::lock_guard emptying(device.lanes.emptying_);
        for (std::size_t at = 0; at < rules::lane_count; ++at) emptied.bytes += empty_lane(device, at, for_good);
    }
    if (emptied.bytes != 0) emptied.went_bytes = free_surplus(device);
    return emptied;
}

std::uint64_t BufferLanes::empty_lane(DeviceState& device, std::size_t at, bool for_good) {
    Lane& lane = device.lanes.lanes_[at];
    const InLane& counted = device.cache.in_lanes[at];
    if (!for_good && counted.pieces.load(std::memory_order_relaxed) == 0) return 0;
    std::uint64_t bytes = 0;
    AllLeaving leaving;
    std::uint64_t fresh = 0;
    {
        const std::lock_guard lock(lane.lock);
        fresh = lane.tell();
        const std::uint64_t before = counted.bytes.load(std::memory_order_relaxed);
        for (std::size_t one = lane.count; one-- > 0;) (void)take_out(device, at, one, leaving);
        bytes = before - counted.bytes.load(std::memory_order_relaxed);
        lane.closed = lane.closed || for_good;
    }
    (void)keep_all(device, leaving, fresh, false);
    return bytes;
}

std::shared_ptr<BufferState> wake_buffer(DeviceState& device, const rules::SharedRequest& request, StreamState* order) {
    if (!request || !lanes_serve(device) || (order != nullptr && order->others())) return nullptr;
    const std::size_t own_lane = PieceCache::lane_of_thread();
    BufferLanes::Found found = BufferLanes::take(device, own_lane, request, BufferLanes::Whose::own);
    if (!found) found = BufferLanes::take_from_others(device, own_lane, request);
    StateBlock* const block = found.block;
    if (block == nullptr) return nullptr;
    if (!begin_again(*block, order)) {
        end_resting(*block, order);
        return nullptr;
    }
    return own(*block);
}

bool requests_change(const DeviceState& device) noexcept {
    const BufferLanes::Lane& lane = device.lanes.lanes_[PieceCache::lane_of_thread()];
    return lane.missed.load(std::memory_order_relaxed) >= rules::misses_that_change;
}

namespace {

// What serves the thread whatever it asks for does so as it is. What may do so is exchanged first of all; then what did
// so and is too small, for a larger one. `Serves`: of BufferLanes.
template <class Serves>
Serves serves_thread(const DeviceState& device, const Piece& piece, std::uint64_t bytes) noexcept {
    if (piece.slab() != nullptr) return Serves::in_exchange;
    const bool too_small = piece.bytes() < bytes;
    if (piece.is_loose()) return too_small ? Serves::before_others : Serves::as_it_is;
    return !too_small && device.cache.among_threads() ? Serves::first_of_all : Serves::in_exchange;
}

}  // namespace

std::shared_ptr<BufferState> exchange_buffer(DeviceState& device, const rules::SharedRequest& request,
                                             StreamState* order, const OtherBuffer& other) {
    if (!request || !requests_change(device) || !lanes_serve(device) || (order != nullptr && order->others())) {
        return nullptr;
    }
    using Serves = BufferLanes::Serves;
    // With extras it has a second side, an attachment, or memory that begins elsewhere in its piece.
    const auto serves = [&](const BufferLanes::Resting& resting) {
        if (resting.block == nullptr || !resting.request.of_sort(request)) return Serves::not_at_all;
        BufferState& buffer = resting.block->buffer();
        const OutOfLine::Parts parts = buffer.views.out_of_line.parts();
        const bool alike = other.kind == MemoryKind::unknown ||
                           (other.kind == buffer.memory->kind && other.path == buffer.memory->path);
        if (parts.extras != nullptr || !alike) return Serves::not_at_all;
        const bool is_its_place = parts.piece->slab() != nullptr && parts.piece->bytes() == other.place_bytes;
        if (is_its_place) return Serves::as_it_is;
        return other.place_bytes != 0 ? Serves::in_exchange
                                      : serves_thread<Serves>(device, *parts.piece, request.bytes);
    };
    const BufferLanes::Exchanged left = BufferLanes::take_for_exchange(device, serves);
    if (left.how == Serves::not_at_all) return nullptr;
    StateBlock& block = *left.resting.block;
    Piece& before = *block.buffer().views.out_of_line.piece();
    Piece* piece = &before;
    if (left.how == Serves::as_it_is) {
        before.set_asked_bytes(request.bytes);
        device.cache.open_from_lane(before, order != nullptr ? &order->kept_behind : nullptr);
    } else {
        piece = exchange_in_cache(device, {before, left.age, left.untold}, request.bytes, order, other.place_bytes);
    }
    if (piece != nullptr) piece->be_in_order_of(order != nullptr ? order->id : 0);
    if (piece != nullptr && begin_with(block, *piece, request.bytes, other.reason)) return own(block);
    if (piece != nullptr) keep_closed_again(device, *piece, order);
    const std::shared_ptr<DeviceState> owner = block.buffer().device;  // of the block, too
    block.end_state();
    block.from().give_back(&block);
    return nullptr;
}

Piece* exchange_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order) {
    if (!lanes_serve(device)) return nullptr;
    using Serves = BufferLanes::Serves;
    const auto serves = [&](const BufferLanes::Resting& resting) {
        const bool of_sort = resting.piece != nullptr && resting.request.of_sort(request);
        return of_sort ? serves_thread<Serves>(device, *resting.piece, request.bytes) : Serves::not_at_all;
    };
    const BufferLanes::Exchanged left = BufferLanes::take_for_exchange(device, serves);
    Piece* const piece = left.resting.piece;
    if (piece == nullptr) return nullptr;
    if (left.how == Serves::as_it_is) {
        piece->set_asked_bytes(request.bytes);
        device.cache.open_from_lane(*piece, order != nullptr ? &order->kept_behind : nullptr);
        return piece;
    }
    return exchange_in_cache(device, {*left.resting.piece, left.age, left.untold}, request.bytes, order);
}

bool rest_buffer(BufferState& buffer) {
    const rules::SharedRequest request = StateBlock::of(buffer).request();
    const StreamState* const order = order_of(buffer, request);
    const OutOfLine::Parts parts = buffer.views.out_of_line.parts();
    rules::Unheld facts = facts_of_end(buffer, parts, request, order);
    if (!rules::may_rest(facts)) return false;
    if (!buffer.unused_at_end()) {
        look_at_uses(buffer, order, facts);
        if (!rules::may_rest(facts)) return false;
    }
    DeviceState& device = *buffer.device;
    const std::uint64_t bytes = parts.piece->bytes() + (parts.second != nullptr ? parts.second->piece->bytes() : 0);
    if (!BufferLanes::may_take(device, bytes)) return false;
    if (!buffer.blocks().rest(device, order)) return false;
    // lay_down() follows, here or where the last reference ends.
    part_with(StateBlock::of(buffer), StateBlock::without_state | StateBlock::rests);
    return true;
}

// Until the lane has it, the buffer's uses hold its stream. Where they are the last to do so, the stream ends in here.
void lay_down(StateBlock& block) noexcept {
    BufferState& buffer = block.buffer();
    DeviceState& device = *buffer.device;
    const rules::SharedRequest request = block.request();
    StreamState* const order = order_of(buffer, request);
    const bool unused = buffer.unused_at_end();
    const StreamUses::Uses uses = unused ? StreamUses::Uses() : buffer.take_uses();
    if (!unused) buffer.first_use.end();
    const BufferLanes::Resting resting{request, &block, nullptr, order, BufferLanes::size_of(buffer.blocks())};
    if (!BufferLanes::put(device, PieceCache::lane_of_thread(), resting)) end_resting(block, order);
}

namespace {

// nullptr: nothing was found.
[[gnu::always_inline]] inline Piece* opened(const DeviceState& device, Piece* found, const StreamState* order) {
    if (found != nullptr) device.cache.open_from_lane(*found, order != nullptr ? &order->kept_behind : nullptr);
    return found;
}

}  // namespace

Piece* wake_piece_here(DeviceState& device, const rules::SharedRequest& request, StreamState* order) {
    return opened(
        device, BufferLanes::take(device, PieceCache::lane_of_thread(), request, BufferLanes::Whose::own).piece, order);
}

Piece* wake_piece(DeviceState& device, const rules::SharedRequest& request, StreamState* order,
                  BufferLanes::Among lanes) {
    if (!lanes_serve(device)) return nullptr;
    if (lanes == BufferLanes::Among::own_lane) return wake_piece_here(device, request, order);
    return opened(device, BufferLanes::take_from_others(device, PieceCache::lane_of_thread(), request).piece, order);
}

// Requests are recognized by their size, kind and placement. A coarser alignment than every source keeps is none of
// these, so that such requests go to the cache; what was made for one serves others, if it begins and ends as they do.
void keep_piece(DeviceState& device, Piece& parked, StreamState* order, bool undisturbed) {
    device.cache.close_in_lane(parked, order != nullptr ? &order->kept_behind : nullptr);
    const MemoryBlock& block = parked.block;
    const std::uint64_t first = block.host != nullptr ? reinterpret_cast<std::uintptr_t>(block.host) : block.device;
    // A stream has made room in the cache for what was allocated in its order.
    const bool in_its_order = order == nullptr || parked.allocated_in_order;
    // What was made for a coarser alignment is larger than what was asked for, and may begin behind its first byte: as
    // a block of this size, more of it would be accessible than was asked for.
    const bool as_asked = parked.asked_bytes() == block.bytes && first % rules::driver_alignment == 0;
    if ((undisturbed || lanes_serve(device)) && in_its_order && parked.slab() == nullptr && as_asked) {
        const HostPart* const part = parked.host_part();
        const rules::BlockSort sort =
            part != nullptr ? rules::block_sort(block.kind, part->asked) : rules::block_sort_of_driver(block.kind);
        const BufferLanes::Resting resting{sort.request(block.bytes, order != nullptr ? order->id : 0), nullptr,
                                           &parked, order, BufferLanes::size_of(parked)};
        if (sort && BufferLanes::put(device, PieceCache::lane_of_thread(), resting)) return;
    }
    keep_from_lane(device, parked, order);
}

EmptiedLanes empty_lanes(DeviceState& device) {
    return BufferLanes::empty(device, false);
}

void empty_lanes_of(StreamState& stream) {
    DeviceState& device = *stream.device;
    for (std::size_t at = 0; at < rules::lane_count; ++at) {
        // Who put a buffer of the stream there had a reference to it: its count is seen.
        if (device.cache.in_lanes[at].pieces.load(std::memory_order_relaxed) == 0) continue;
        BufferLanes::Lane& lane = device.lanes.lanes_[at];
        BufferLanes::AllLeaving leaving;
        std::uint64_t fresh = 0;
        {
            const std::lock_guard lock(lane.lock);
            for (std::size_t one = lane.count; one-- > 0;) {
                if (lane.resting[one].order != &stream) continue;
                leaving.push_back({lane.resting[one], nullptr, lane.put - lane.resting[one].number});
                BufferLanes::take_at(device, at, one);
            }
            if (!leaving.empty()) fresh = lane.tell();
        }
        if (fresh != 0) device.cache.released_elsewhere(fresh);
        for (const BufferLanes::Leaving& one : leaving) end_resting(device, one.resting, &stream, one.age);
    }
}

void close_lanes(DeviceState& device) {
    (void)BufferLanes::empty(device, true);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
