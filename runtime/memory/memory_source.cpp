// SPDX-License-Identifier: Apache-2.0
// MemorySource: allocate, enter into the ledger, release.
#include "memory_source.hpp"

#include "access_rules.hpp"
#include "alignment_rules.hpp"
#include "cache_rules.hpp"
#include "device_state.hpp"
#include "memory_errors.hpp"
#include "memory_pool_state.hpp"
#include "memory_pressure.hpp"
#include "piece_release.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "small_rules.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// More than any machine has: the driver would search for long before it answers "out of memory".
constexpr std::size_t max_bytes = std::size_t{1} << 46;

// Whether the request's external stream is in a capture begun by other code. An error if the driver does not say:
// memory that becomes a captured graph's must not be taken for the stream's own.
Result<bool> captured_elsewhere(const AllocationRequest& request) {
    if (request.stream == nullptr || !request.stream->state()->external) return false;
    StreamState& stream = *request.stream->state();
    const std::lock_guard lock(stream.mutex);
    if (!stream.open_handle() || stream.recording != nullptr) return false;
    const Result<std::uint64_t> capture = stream.foreign_capture();
    if (!capture) return capture.error();
    return *capture != 0;
}

}  // namespace

Words allocating(std::size_t bytes, MemoryKind kind) {
    return worded("allocating {} bytes of {} memory", bytes, name(kind));
}

Result<void> offers(const DeviceState& device, MemoryKind kind) {
    const auto needs = [&](Feature feature) -> Result<void> {
        const Capability& capability = device.capabilities.feature(feature);
        if (capability) return {};
        return make_error<errors::kind_not_available>(name(kind), capability.reason);
    };
    switch (kind) {
        case MemoryKind::device:
        case MemoryKind::pinned:
        case MemoryKind::write_combined:
        case MemoryKind::host:
        case MemoryKind::host_numa: return {};
        case MemoryKind::pool:
        case MemoryKind::managed_pool:
            if (Result<void> pools = needs(Feature::pools); !pools) return pools;
            if (device.driver->pools() == nullptr) return make_error<errors::driver_without_pools>();
            return kind == MemoryKind::pool ? Result<void>() : needs(Feature::concurrent_managed);
        case MemoryKind::managed: return needs(Feature::managed);
        case MemoryKind::registered: return needs(Feature::host_register);
        default: break;
    }
    return make_error<errors::kind_not_allocated>(name(kind));
}

MemorySource::MemorySource(std::shared_ptr<DeviceState> device, MemoryKind kind, HostPlacement placement)
    : device_(std::move(device)),
      asked_(kind),
      kind_(device_->synchronous ? MemoryKind::host : kind),
      placement_(placement) {
    if (kind == MemoryKind::host_numa && placement_.locality == Locality::anywhere) {
        placement_.locality = Locality::near_device;
    }
    if (device_->cache.keeps_anything()) of_lanes_ = rules::block_sort(kind_, placement_);
}

MemorySource::MemorySource(std::shared_ptr<DeviceState> device, std::shared_ptr<PoolState> pool)
    : device_(std::move(device)), asked_(pool->kind), kind_(pool->kind), pool_(std::move(pool)) {}

Result<void> MemorySource::allowed(const AllocationRequest& request) const {
    DeviceState& device = *device_;
    const std::size_t most =
        rules::max_alignment(device.config->machine, is_of_pages(kind_) ? placement_.page_size : PageSize::ordinary);
    if (request.alignment > most) return make_error<errors::allocation_alignment_too_coarse>(request.alignment, most);
    if (request.bytes > max_bytes) {
        return make_error<errors::allocation_larger_than_any_machine>(request.bytes);
    }
    if (is_system(kind_)) {
        if (device.bars(rules::PublicCall::allocate_host)) return device.refusal(rules::PublicCall::allocate_host);
        return {};  // no driver involved: allowed on a lost device and inside a capture
    }
    if (device.bars(rules::PublicCall::allocate)) return device.refusal(rules::PublicCall::allocate);
    if (Result<void> offered = offers(device, asked_); !offered) return offered;
    if (device.services.any()) {
        const Words what = allocating(request.bytes, asked_);
        if (Result<void> fine = device.services.allow(rules::allocating(asked_), what); !fine) return fine;
    }
    if (request.stream != nullptr && rules::is_pooled(kind_) && request.stream->state()->device != device_) {
        return make_error<errors::pool_on_stream_of_another_device>();
    }
    const Result<bool> elsewhere = captured_elsewhere(request);
    if (!elsewhere) return elsewhere.error();
    if (device.books->captures.here() || *elsewhere) {
        const bool ready = pool_ != nullptr || (rules::is_pooled(kind_) && device.pools.has_own(kind_));
        if (!ready || request.stream == nullptr) return in_capture(composed("allocating {} memory", name(kind_)));
    }
    return {};
}

namespace {

std::uint64_t id_of(const Stream* stream) {
    return stream != nullptr ? stream->state()->id : 0;
}

void tell_origin(const Piece& piece, const MemoryBlock& block, MemorySource::Origin* origin) {
    if (origin == nullptr) return;
    origin->pool = piece.shared_pool();
    origin->lead_bytes = 0;
    const platform::Allocation allocation = piece.allocation();
    if (allocation.bytes != 0) origin->lead_bytes = static_cast<std::size_t>(block.device - allocation.device);
}

}  // namespace

namespace {

struct SealedCall {
    SealedAct act;
    const char* call;
};
// What memory that was not kept takes; nothing that a sealed scope allows.
SealedCall fresh_memory(MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::device: return {SealedAct::allocate_memory, "cuMemAlloc"};
        case MemoryKind::pool:
        case MemoryKind::managed_pool: return {SealedAct::allocate_memory, "cuMemAllocFromPoolAsync"};
        case MemoryKind::managed: return {SealedAct::allocate_memory, "cuMemAllocManaged"};
        case MemoryKind::pinned:
        case MemoryKind::write_combined: return {SealedAct::allocate_memory, "cuMemHostAlloc"};
        case MemoryKind::registered: return {SealedAct::register_memory, "cuMemHostRegister"};
        default: return {SealedAct::map_memory, "mmap"};
    }
}

}  // namespace

std::size_t MemorySource::place_of(const AllocationRequest& request) const noexcept {
    if (!shares_pages_) return 0;
    return rules::small_place(device_->capabilities, kind_, placement_, request.bytes, request.alignment);
}

// What rests was judged when it was made: what may have changed since is looked at here and by the lanes.
rules::SharedRequest MemorySource::request_of_lanes(const AllocationRequest& request, StreamState*& order) const {
    if (!of_lanes_ || request.alignment > rules::driver_alignment || place_of(request) != 0) return {};
    DeviceState& device = *device_;
    if (device.bars(is_system(kind_) ? rules::PublicCall::allocate_host : rules::PublicCall::allocate)) return {};
    if (request.stream != nullptr) {
        StreamState& stream = *request.stream->state();
        if (stream.others()) return {};
        if (rules::is_pooled(kind_)) {
            if (stream.device != device_) return {};
            order = &stream;
        }
    }
    return of_lanes_.request(request.bytes, order != nullptr ? order->id : 0);
}

Piece* MemorySource::from_lane(const AllocationRequest& request, BufferLanes::Among lanes) const {
    StreamState* order = nullptr;
    const rules::SharedRequest resting = request_of_lanes(request, order);
    return resting ? wake_piece(*device_, resting, order, lanes) : nullptr;
}

Piece* MemorySource::in_exchange(const AllocationRequest& request) const {
    if (request.bytes > max_bytes || !requests_change(*device_)) return nullptr;
    StreamState* order = nullptr;
    const rules::SharedRequest resting = request_of_lanes(request, order);
    return resting ? exchange_piece(*device_, resting, order) : nullptr;
}

[[gnu::always_inline]] inline Result<MemoryBlock> MemorySource::hand_out(Piece& resting,
                                                                         const AllocationRequest& request,
                                                                         Origin* origin) {
    MemoryBlock block = resting.block;
    Stream* const order = rules::is_pooled(kind_) ? request.stream : nullptr;
    resting.be_in_order_of(id_of(order));
    tell_origin(resting, block, origin);
    Ledger& ledger = device_->books->ledger;
    if (ledger.wake(resting, block) == 0) return enter(block, ledger.take_parked(resting), order, origin);
    if (origin != nullptr) origin->piece = &resting;
    return block;
}

Result<MemoryBlock> MemorySource::hand_out_kept(Piece& kept, const AllocationRequest& request, Origin* origin) {
    MemoryBlock block;
    block.bytes = request.bytes;
    block.kind = kind_;
    Ledger& ledger = device_->books->ledger;
    Stream* const order = rules::is_pooled(kind_) ? request.stream : nullptr;
    kept.be_in_order_of(id_of(order));
    place(request, kept, block);
    tell_origin(kept, block, origin);
    if (ledger.wake(kept, block) == 0) return enter(block, ledger.take_parked(kept), order, origin);
    if (origin != nullptr) origin->piece = &kept;
    return block;
}

// The request of before once more, in a loop that nothing disturbs.
[[gnu::always_inline]] inline Piece* MemorySource::at_once(const AllocationRequest& request, bool& looked) const {
    DeviceState& device = *device_;
    if (!of_lanes_ || shares_pages_ || request.alignment > rules::driver_alignment || !device.undisturbed())
        return nullptr;
    StreamState* const stream = request.stream != nullptr ? request.stream->state().get() : nullptr;
    StreamState* const order = rules::is_pooled(kind_) ? stream : nullptr;
    if (stream != nullptr && (stream->others() || (order != nullptr && order->device != device_))) return nullptr;
    looked = true;
    return wake_piece_here(device, of_lanes_.request(request.bytes, order != nullptr ? order->id : 0), order);
}

Result<MemoryBlock> MemorySource::allocate(const AllocationRequest& request, Origin* origin) {
    bool looked = false;
    if (Piece* const resting = at_once(request, looked)) [[likely]] {
        return hand_out(*resting, request, origin);
    }
    return allocate_looking(request, origin, looked);
}

[[gnu::noinline]] Result<MemoryBlock> MemorySource::allocate_looking(const AllocationRequest& request, Origin* origin,
                                                                     bool looked) {
    if (Piece* const resting = looked ? nullptr : from_lane(request, BufferLanes::Among::own_lane)) {
        return hand_out(*resting, request, origin);
    }
    if (Piece* const other = in_exchange(request)) return hand_out_kept(*other, request, origin);
    ObservedSpan span(device_->observer(), Span::allocate, name(kind_), [&] {
        ObservedFacts facts = request.stream != nullptr ? request.stream->state()->observed() : device_->observed();
        facts.bytes = request.bytes;
        facts.kind = kind_;
        return facts;
    });
    bool kept = false;
    Result<MemoryBlock> made = allocate_untold(request, origin, kept);
    if (ObservedFacts* const facts = span.facts(); facts != nullptr && made) {
        facts->address = made->device != 0 ? made->device : reinterpret_cast<std::uintptr_t>(made->host);
        facts->reason = kept ? "kept memory: no call of the driver" : "new memory: none of this size was kept";
    }
    span.over(made);
    return made;
}

Result<MemoryBlock> MemorySource::allocate_untold(const AllocationRequest& request, Origin* origin, bool& was_kept) {
    if (Result<void> fine = allowed(request); !fine) return std::move(fine).error();
    return_unreturned(*device_);
    MemoryBlock block;
    block.bytes = request.bytes;
    block.kind = kind_;
    AllocationRequest whole = request;
    whole.bytes = rules::bytes_to_obtain(request.bytes, request.alignment,
                                         is_of_pages(kind_) ? request.alignment : rules::driver_alignment);
    const bool keeps = may_keep(request);
    const bool in_order = rules::is_pooled(kind_) && request.stream != nullptr;
    const std::size_t place_bytes = keeps ? place_of(request) : 0;
    PieceCache::Behind* const behind = in_order ? &request.stream->state()->kept_behind : nullptr;
    if (keeps) {
        const auto take = [&](rules::Reach reach) {
            return device_->cache.take(kind_, placement_, whole.bytes, request.alignment, behind, place_bytes, reach);
        };
        Piece* kept = take(requests_change(*device_) ? rules::Reach::any : rules::Reach::near);
        if (kept == nullptr) {
            if (Piece* const resting = from_lane(request, BufferLanes::Among::other_lanes)) {
                was_kept = true;
                return hand_out(*resting, request, origin);
            }
            // Memory of the driver is the last resort.
            (void)end_dropped_buffers(*device_, true);
            (void)empty_lanes(*device_);
            kept = take(rules::Reach::any);  // also what another thread has put into the cache since
        }
        if (kept != nullptr) {
            was_kept = true;
            return hand_out_kept(*kept, request, origin);
        }
    }
    const SealedCall fresh = fresh_memory(kind_);
    if (const platform::Status fine = device_->may_now(fresh.act, fresh.call); !fine.ok()) {
        return device_->failure(fine, allocating(request.bytes, asked_));
    }
    Piece piece;
    if (place_bytes != 0) {
        if (Result<void> cut = from_slab(place_bytes, request.bytes, piece); !cut) return std::move(cut).error();
        place(request, piece, block);
    } else {
        // Pages of the system cost less than what the headroom keeps from others.
        const bool grows = keeps && !is_of_pages(kind_) && requests_change(*device_);
        const std::size_t headroom = grows ? device_->cache.headroom(whole.bytes) : 0;
        if (keeps) make_way(*device_, whole.bytes, headroom, behind);
        // Memory for other processes, for a thread with an open capture and for an uncached device is the driver's own.
        const bool in_segment = keeps && kind_ == MemoryKind::device && device_->segment.enabled() &&
                                !device_->books->captures.any() && !device_->services.any();
        const Amounts amounts{request.bytes, whole.bytes};
        AllocationRequest obtained = whole;
        obtained.bytes += headroom;
        if (in_segment) make_way_in_segment(*device_, obtained.bytes);
        if (Result<void> made = within_memory(obtained, amounts, block, piece, in_segment); !made) {
            return std::move(made).error();
        }
    }
    piece.may_be_kept = keeps;
    piece.allocated_in_order = in_order;
    if (in_order && piece.own() != nullptr) piece.be_in_order_of(id_of(request.stream));  // memory of a graph has none
    piece.block = block;
    if (keeps) device_->cache.handed_out(piece, whole.bytes, behind);
    if (HostPart* const part = piece.host_part()) part->asked = placement_;
    tell_origin(piece, block, origin);
    return enter(block, std::move(piece), request.stream, origin);
}

Result<void> MemorySource::within_memory(const AllocationRequest& request, const Amounts& amounts, MemoryBlock& block,
                                         Piece& piece, bool in_segment) {
    const auto attempt = [&](std::size_t bytes) {
        AllocationRequest of_bytes = request;
        of_bytes.bytes = bytes;
        Result<void> within = within_budget(*device_, kind_, bytes, amounts.asked_bytes);
        return within ? obtain(of_bytes, block, piece, in_segment) : within;
    };
    // Around the budget too: cached memory counts against it, so making room helps.
    return with_room(*device_, kind_, amounts.asked_bytes, [&] {
        const std::uint64_t before = freed_by_others();
        Result<void> made = attempt(request.bytes);
        const auto smaller = [&] { return made.code() == Code::out_of_memory && amounts.least_bytes < request.bytes; };
        // Before a page serves: else each further page would, and what is kept would stay so.
        if (smaller() && give_back_kept(*device_, before)) made = attempt(request.bytes);
        return smaller() ? attempt(amounts.least_bytes) : made;
    });
}

// Where memory for a larger slab is missing, one of a page serves.
Result<void> MemorySource::from_slab(std::size_t place_bytes, std::size_t asked_bytes, Piece& piece) {
    PieceCache& cache = device_->cache;
    const SlabSort sort{kind_, placement_, place_bytes};
    if (cache.small.cut(sort, piece)) {
        cache.served_by_slab();
        return {};
    }
    const std::size_t page_bytes = device_->config->machine.page_size_bytes;
    AllocationRequest request;
    request.bytes = cache.small.next_bytes(sort, page_bytes);
    Piece slab;
    MemoryBlock at;
    make_way(*device_, request.bytes);
    if (Result<void> made = within_memory(request, {asked_bytes, rules::slab_bytes(0, page_bytes)}, at, slab); !made) {
        return made;
    }
    slab.block = at;
    if (HostPart* const part = slab.host_part()) part->asked = placement_;
    cache.divided(slab);
    cache.small.add(sort, std::move(slab), piece);
    return {};
}

// Whether memory for this source may come from the cache, and go back there. Memory that the thread allocates while it
// has a capture open does neither, nor does memory for a stream that may be captured (K13).
bool MemorySource::may_keep(const AllocationRequest& request) const {
    if (!cached_ || pool_ || !device_->cache.keeps_anything() || !rules::may_be_kept(kind_, placement_)) return false;
    const OpenCaptures& captures = device_->books->captures;
    if (!rules::is_pooled(kind_) || request.stream == nullptr) return !captures.here();
    return !captures.any() && !request.stream->state()->others();
}

Result<MemoryBlock> MemorySource::enter(MemoryBlock block, Piece piece, Stream* stream, Origin* origin) {
    Result<std::uint64_t> id =
        device_->books->ledger.enter(block, device_->index, piece, origin != nullptr ? &origin->piece : nullptr);
    if (!id) {
        piece.may_be_kept = false;
        piece.unused = true;
        const auto after = stream != nullptr ? stream->state()->weak_from_this().lock() : nullptr;
        if (!free_piece(*device_, piece, after)) process::keep_until_exit(std::make_shared<Piece>(std::move(piece)));
        return std::move(id).error();
    }
    block.id = *id;
    return block;
}

Result<void> MemorySource::release(const MemoryBlock& block, Stream* after) {
    return release_block(*device_, block, after);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
