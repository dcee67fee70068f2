// SPDX-License-Identifier: Apache-2.0
// Releasing memory: behind its uses, beside services, after captures, and again after driver errors (ADR 78).
#include "piece_release.hpp"

#include "access_rules.hpp"
#include "buffer_lanes.hpp"
#include "cache_rules.hpp"
#include "composed.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"
#include "memory_pool_state.hpp"
#include "process.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Answers the pool's own stream, ordered behind the work of `after` so far; if that order cannot be made, the host
// waits. An error: that work still runs.
Result<platform::StreamHandle> own_order(DeviceState& device, PoolState& pool, StreamState* after) {
    const Result<platform::StreamHandle> own = pool.own_stream(device);
    const platform::StreamHandle order = own ? *own : platform::StreamHandle::none;
    if (after == nullptr || after->device->synchronous) return order;
    std::uint64_t last = 0;
    if (Result<FenceEvent*> fence = after->fence_behind_all(last)) {
        if (*fence == nullptr) return order;
        const bool ordered = own && device.driver->execution().wait_event(order, (*fence)->handle).ok();
        after->device->drop_event(*fence);
        if (ordered) return order;
    }
    if (Result<void> waited = after->wait_for_all(Wait{}); !waited && !after->device->is_lost()) {
        return std::move(waited).error();
    }
    return order;
}

// Frees in the order of `after`. If that stream is another device's or does not take the free, frees in the pool's own
// order behind it. An error: the work of `after` still runs. Otherwise the piece may be freed at any time from then on.
Result<platform::Status> release_pooled(DeviceState& device, const Piece& piece, StreamState* after) {
    platform::Memory& memory = device.driver->memory();
    if (after != nullptr && after->device.get() == &device) {
        // Under the lock: a captured stream does not free memory that is not its graph's (1), and a capture may begin
        // at any moment.
        Wait wait;
        const Result<StreamLock> lock = after->lock_within(wait, "releasing memory behind a stream");
        if (!lock) return lock.error();
        const Result<HeldCapture> captured = after->capture();
        if (captured && !*captured && after->open_handle() && !after->captured_elsewhere()) {
            const platform::Status status = memory.release(piece.allocation(), after->handle);
            if (status.ok()) return status;
        }
    }
    const Result<platform::StreamHandle> order = own_order(device, *piece.pool(), after);
    if (!order) return order.error();
    return memory.release(piece.allocation(), *order);
}

}  // namespace

namespace {
rules::DriverUse free_use(const Piece& piece) {
    if (piece.pool() != nullptr) return rules::DriverUse::free_pooled;
    if (piece.adopted() != nullptr)
        return piece.adopted()->registered ? rules::DriverUse::unregister_host : rules::DriverUse::free_host;
    if (piece.slab() != nullptr) return rules::DriverUse::free_host;  // the slab is freed on its own
    if (piece.host_part() == nullptr) return rules::freeing(piece.allocation().kind);
    return piece.host_part()->registered ? rules::DriverUse::unregister_host : rules::DriverUse::free_host;
}

// When to offer the driver memory again that it did not take.
UnreturnedPieces::Until until(Code refusal) noexcept {
    const bool captured = refusal == Code::capture_error;
    return captured ? UnreturnedPieces::Until::end_of_capture : UnreturnedPieces::Until::next_call;
}

// Logs an error whose caller is gone, and keeps the piece.
void keep(DeviceState& device, Piece piece, const Error& why, std::string_view when) {
    if (device.config->log) {
        ErrorLine line;
        line.append("releasing memory ").append(when).append(": ").append(text_in_words(why));
        device.config->say(Severity::warning, line);
    }
    if (piece.pool() != nullptr) {
        // Work that the free cannot be ordered behind still runs: the ledger keeps the piece until the device closes
        // (R5).
        if (piece.block.id != 0) return device.books->ledger.put_back(device.index, piece);
        return process::keep_until_exit(std::make_shared<Piece>(std::move(piece)));
    }
    if (piece.adopted() != nullptr) device.books->ledger.enter_unreturned(device.index, piece);
    device.unreturned.add(std::move(piece), until(why.code()));
}

// Frees now if no service runs, otherwise when the last one has stopped.
Result<void> free_beside_services(DeviceState& device, Piece& piece, const std::shared_ptr<StreamState>& after) {
    const rules::DriverUse use = free_use(piece);
    CallInFlight call;
    if (rules::while_serving(use).waits && !device.is_lost()) {
        std::optional<CallInFlight> entered = device.services.enter(use);
        while (!entered) {
            const auto kept = std::make_shared<Piece>(std::move(piece));
            const auto later = [owner = device.shared_from_this(), kept, after] {
                if (Result<void> freed = free_piece(*owner, *kept, after); !freed) {
                    keep(*owner, std::move(*kept), freed.error(), "after a service");
                }
            };
            if (device.services.put_off(use, later)) return {};
            piece = std::move(*kept);
            entered = device.services.enter(use);
        }
        call = *std::move(entered);
    }
    return free_now(device, piece, after.get(), std::move(call));
}

// A place goes back to its slab, and the slab with its last one: behind everything that may still use a place, because
// the driver waits for that. Answers the bytes of the slab that went.
std::uint64_t give_back_place(DeviceState& device, const Piece& piece, bool at_end) {
    Piece slab = device.cache.small.give_back(piece);
    const std::uint64_t bytes = slab.bytes();
    if (bytes == 0) return 0;
    device.cache.joined(slab);
    if (at_end) {
        free_at_end(device, std::move(slab));
    } else {
        free_or_keep(device, std::move(slab), "that small buffers shared");
    }
    return bytes;
}

// Pieces from the cache, which nothing uses and no buffer waits for.
std::uint64_t free_all(DeviceState& device, const std::vector<Piece*>& pieces) {
    std::uint64_t bytes = 0;
    for (Piece* const parked : pieces) {
        Piece piece = device.books->ledger.take_parked(*parked);
        piece.block.id = 0;  // its last owner's, which has released it
        piece.may_be_kept = false;
        piece.unused = true;
        if (piece.slab() != nullptr) {
            bytes += give_back_place(device, piece, false);  // calls no driver, but for a slab that goes
            continue;
        }
        bytes += piece.bytes();
        free_or_keep(device, std::move(piece), "that was kept for a later allocation");
    }
    return bytes;
}

constinit std::atomic<std::uint64_t> freed_pieces{0};
constinit thread_local std::uint64_t freed_by_this_thread [[gnu::tls_model("initial-exec")]] = 0;

// Counts a piece as freed when it ends.
struct CountsFreed {
    CountsFreed() = default;
    CountsFreed(const CountsFreed&) = delete;
    CountsFreed& operator=(const CountsFreed&) = delete;
    ~CountsFreed() {
        ++freed_by_this_thread;
        freed_pieces.fetch_add(1, std::memory_order_release);  // pairs with the load in freed_by_others()
    }
};

// One attempt, which leaves the piece unchanged. A destroyed context took its memory with it, and after a fault every
// call fails: then only the records are updated (K11). Pool memory survives its context.
Result<platform::Status> give_to_driver(DeviceState& device, const Piece& piece, StreamState* after) {
    if (piece.slab() != nullptr) return platform::Status{};
    const CountsFreed counts;
    platform::Memory& memory = device.driver->memory();
    const platform::Allocation allocation = piece.allocation();
    AdoptedPart* const adopted = piece.adopted();
    if (piece.pool() != nullptr || rules::is_pooled(allocation.kind)) {
        if (device.is_lost() && !device.driver->context_died()) return platform::Status{};
        if (piece.pool() != nullptr) return release_pooled(device, piece, after);
        return memory.release(piece.allocation(), platform::StreamHandle::none);
    }
    void* registered = nullptr;
    if (HostPart* const part = piece.host_part(); part != nullptr && part->registered) registered = part->pages.data();
    if (adopted != nullptr && adopted->registered) registered = adopted->pointer;
    if (allocation.kind == MemoryKind::device && device.segment.owns(allocation.device)) {
        if (device.is_lost() && !device.driver->context_died()) return platform::Status{};
        // cuMemFree waits for all work, cuMemUnmap for none. A wait for the whole context ends each capture that is
        // open in it: the piece is kept until there is none.
        if (!piece.unused && !device.context_gone()) {
            const DeviceState::OthersCaptures others = device.external_captures();
            if (others != DeviceState::OthersCaptures::none) {
                const bool open = others == DeviceState::OthersCaptures::open;
                return platform::Status{open ? Code::capture_error : Code::not_ready, 0, "cuCtxSynchronize"};
            }
            const platform::Status ended = device.driver->execution().synchronize_context();
            if (!ended.ok()) return ended;
        }
        return device.segment.release(allocation);  // mapped memory survives its context
    }
    if ((allocation.bytes == 0 && registered == nullptr) || device.context_gone()) return platform::Status{};
    if (adopted != nullptr && adopted->imported) return memory.release_dma_buf(adopted->imported);
    return registered != nullptr ? memory.unregister_host(registered)
                                 : memory.release(piece.allocation(), platform::StreamHandle::none);
}

// Whether the driver still has the memory after this answer. Memory that it does not know was given back by other code.
bool still_has(const platform::Status& status) noexcept {
    return !status.ok() && status.code != Code::invalid_argument && status.code != Code::invalid_handle &&
           status.code != Code::unsupported;
}

// After the driver has released the memory, or is lost: frees the pages, and calls the release function of adopted
// memory.
Result<void> finish(DeviceState& device, Piece& piece, bool at_end = false) {
    if (piece.slab() != nullptr) (void)give_back_place(device, piece, at_end);
    if (PoolState* const pool = piece.pool()) {
        pool->live_bytes.fetch_sub(piece.allocation().bytes, std::memory_order_relaxed);
    }
    Result<void> cut_back;
    if (const HostPart* const part = piece.host_part(); part != nullptr && part->slabs) {
        cut_back = part->slabs->release(part->cut.data);
    }
    if (const AdoptedPart* const adopted = piece.adopted(); adopted != nullptr && adopted->registered) {
        Ledger& ledger = device.books->ledger;
        ledger.forget_foreign(adopted->pointer);  // another thread may have asked the driver meanwhile
        const bool for_good = device.is_lost() && !device.driver->context_died();
        if (for_good) ledger.leave_registered(adopted->pointer, adopted->bytes);
    }
    piece = {};
    return cut_back;
}

// After a call that failed with a fault, the driver releases nothing any more. Addresses that the runtime mapped must
// not be reused. Memory of other owners belongs to them again, because a lost device uses nothing.
void keep_mappings(Piece& piece) {
    if (const HostPart* const part = piece.host_part(); part != nullptr && part->registered) {
        process::keep_until_exit(std::shared_ptr<HostPart>(std::move(piece.own()->host_part)));
    }
    const AdoptedPart* const adopted = piece.adopted();
    if (adopted != nullptr && adopted->own_mapping) process::keep_until_exit(adopted->own_mapping);
}
}  // namespace

namespace {

[[gnu::always_inline]] inline rules::ReleaseOrder order_of(const DeviceState& device, const StreamState* after) {
    if (after == nullptr) return rules::ReleaseOrder::none;
    const bool own = after->device.get() == &device && !after->others() && after->kept_behind.has_begun();
    return own ? rules::ReleaseOrder::own_stream : rules::ReleaseOrder::other_stream;
}

// Keeps a piece that was released behind this work, and frees what is too much then.
void keep_parked(DeviceState& device, Piece& parked, StreamState* after) {
    free_all(device, device.cache.keep(parked, after != nullptr ? &after->kept_behind : nullptr));
}

// Before the driver is asked: needs no call, so that neither a service nor other work delays it.
Result<void> keep_or_free(DeviceState& device, Piece& piece, const std::shared_ptr<StreamState>& after) {
    rules::Released released;
    released.made_for_it = piece.may_be_kept;
    released.pooled = piece.pool() != nullptr;
    released.allocated_in_order = piece.allocated_in_order;
    released.order = order_of(device, after.get());
    released.device_usable = device.usable();
    released.bytes = piece.bytes();
    const bool keeps = rules::keeping(released, device.cache.limit_bytes()) == rules::Keeping::keep;
    if (Piece* const parked = keeps ? device.books->ledger.park_again(device.index, piece) : nullptr) {
        keep_parked(device, *parked, after.get());
        return {};
    }
    // What was waited for may be cut again, also where it is not kept.
    if (released.made_for_it && released.order == rules::ReleaseOrder::none) piece.unused = true;
    const std::size_t asked_bytes = piece.asked_bytes();
    device.cache.returned(piece);
    Result<void> freed = free_beside_services(device, piece, after);
    if (!freed && asked_bytes != 0) {
        piece.unused = false;  // its owner has it again
        device.cache.handed_out(piece, asked_bytes);
    }
    return freed;
}

}  // namespace

// A stream may end while the thread holds the lock of another one, which uses a buffer next: no memory goes back then,
// because it may be kept behind that stream, whose lock its return takes.
std::uint64_t keep_from_lane(DeviceState& device, Piece& piece, StreamState* behind, std::optional<std::uint64_t> age,
                             bool frees) {
    PieceCache::Behind* const order = behind != nullptr ? &behind->kept_behind : nullptr;
    return free_all(device, device.cache.keep_from_lane(piece, order, age, frees && !process::here.on_stream));
}

std::uint64_t free_surplus(DeviceState& device) {
    return free_all(device, device.cache.surplus());
}

Piece* exchange_in_cache(DeviceState& device, const PieceCache::Left& left, std::size_t bytes, StreamState* order,
                         std::size_t place_bytes) {
    std::vector<Piece*> surplus;
    PieceCache::Behind* const behind = order != nullptr ? &order->kept_behind : nullptr;
    Piece* const found = device.cache.exchange(left, bytes, behind, surplus, place_bytes);
    free_all(device, surplus);
    return found;
}

void keep_closed_again(DeviceState& device, Piece& parked, StreamState* order) {
    keep_parked(device, parked, order);
}

std::uint64_t trim_cache(DeviceState& device, std::uint64_t keep_bytes) {
    return_unreturned(device);
    std::uint64_t bytes = empty_lanes(device).went_bytes;
    bytes += free_all(device, device.cache.take_out(keep_bytes));
    if (!device.usable() || device.books->captures.any()) return bytes;
    if (const auto call = device.services.enter(rules::DriverUse::change_mapping)) device.segment.trim();
    return bytes;
}

std::uint64_t trim_cache_of(DeviceState& device, MemoryKind kind) {
    return_unreturned(device);
    const std::uint64_t bytes = empty_lanes(device).went_bytes;
    return bytes + free_all(device, device.cache.take_out_kind(kind));
}

// Also of a stream that never had a handle: the cache knows each that took kept memory in its order.
void free_kept_behind(StreamState& stream) {
    empty_lanes_of(stream);
    DeviceState& device = *stream.device;
    const bool work_has_ended = device.is_lost() || stream.reached(stream.issued);
    for (Piece* const parked : device.cache.ended(stream.kept_behind, work_has_ended)) {
        Piece piece = device.books->ledger.take_parked(*parked);
        piece.block.id = 0;  // its last owner's, which has released it
        // Not put off: the stream's handle ends with it, and no capture and no service can be about to use the memory.
        if (Result<void> freed = free_now(device, piece, &stream); !freed) {
            keep(device, std::move(piece), freed.error(), "as its stream ends");
        }
    }
}

namespace {

// Behind what a piece is freed that is released behind no stream. Where it was allocated in the order of one and not
// used, nobody has waited for what that stream did before: work of an earlier owner may still use the memory.
Result<std::shared_ptr<StreamState>> order_of_allocation(DeviceState& device, const Piece& piece) {
    std::shared_ptr<StreamState> order;
    if (piece.pool() == nullptr || !piece.allocated_in_order || device.is_lost()) return order;
    for (std::shared_ptr<StreamState>& stream : device.live_streams()) {
        if (stream->id != piece.own()->allocated_on) continue;
        if (!stream->reached(stream->issued)) order = std::move(stream);
        return order;
    }
    if (Result<void> ended = device.wait_for_ended_streams(Wait{}); !ended) return std::move(ended).error();
    return order;
}

[[gnu::noinline]] Result<void> release_untold(DeviceState& device, const MemoryBlock& block, Stream* after) {
    if (device.bars(rules::PublicCall::release_memory)) return device.refusal(rules::PublicCall::release_memory);
    if (device.unreturned.any_for_next_call()) return_unreturned(device);
    Ledger& ledger = device.books->ledger;
    const bool of_kept_kind = rules::kept_kind(block.kind) >= 0;
    if (of_kept_kind && device.cache.keeps_anything() && !device.books->captures.any()) {
        StreamState* const order = after != nullptr ? after->state().get() : nullptr;
        const rules::Released how{.order = order_of(device, order), .device_usable = device.usable()};
        const Result<Piece*> parked = ledger.park(block, device.index, how, device.cache.limit_bytes());
        if (!parked) return parked.error();
        if (*parked != nullptr) {
            keep_piece(device, **parked, order);
            return {};
        }
    }
    return_unreturned(device);
    Result<Piece> piece = ledger.take(block, device.index);
    if (!piece) return std::move(piece).error();
    // Passes the StreamState, not a Stream: a Stream counts as a wrapper and would keep an external stream in use.
    Result<std::shared_ptr<StreamState>> order =
        after != nullptr ? after->state()->weak_from_this().lock() : order_of_allocation(device, *piece);
    Result<void> freed = order ? free_piece(device, *piece, *std::move(order)) : std::move(order).error();
    if (!freed) ledger.put_back(device.index, *piece);
    return freed;
}
}  // namespace

Result<void> release_block(DeviceState& device, const MemoryBlock& block, Stream* after) {
    if (rules::kept_kind(block.kind) >= 0 && device.undisturbed() && device.cache.keeps_anything()) [[likely]] {
        StreamState* const order = after != nullptr ? after->state().get() : nullptr;
        const rules::Released how{.order = order_of(device, order), .device_usable = true};
        Ledger& ledger = device.books->ledger;
        if (Piece* const parked = ledger.park_at_once(block, device.index, how, device.cache.limit_bytes())) {
            keep_piece(device, *parked, order, true);
            return {};
        }
    }
    if (!device.observer()) return release_untold(device, block, after);
    ObservedSpan span(device.observer(), Span::release, name(block.kind), [&] {
        ObservedFacts facts = after != nullptr ? after->state()->observed() : device.observed();
        facts.bytes = block.bytes;
        facts.address = block.device != 0 ? block.device : reinterpret_cast<std::uintptr_t>(block.host);
        facts.kind = block.kind;
        return facts;
    });
    Result<void> done = release_untold(device, block, after);
    span.over(done);
    return done;
}

void make_way(DeviceState& device, std::size_t bytes, std::size_t headroom, PieceCache::Behind* behind) {
    free_all(device, device.cache.make_way(bytes, headroom, behind));
}

void make_way_in_segment(DeviceState& device, std::size_t bytes) {
    const std::uint64_t most = device.cache.most_reserved(bytes);
    while (!device.segment.fits_within(bytes, most)) {
        Piece* const shed = device.cache.shed(MemoryKind::device);  // others leave nothing in the segment
        if (shed == nullptr) return;
        free_all(device, {shed});
    }
}

std::uint64_t freed_by_others() noexcept {
    return freed_pieces.load(std::memory_order_acquire) - freed_by_this_thread;
}

Result<void> free_piece(DeviceState& device, Piece& piece, std::shared_ptr<StreamState> after) {
    OpenCaptures& captures = device.books->captures;
    if (!captures.any()) return keep_or_free(device, piece, after);
    // The driver would accept some of these frees, although a graph may be about to use the memory (K10).
    const auto kept = std::make_shared<Piece>(std::move(piece));
    const std::uint64_t bytes = kept->bytes();
    device.put_off_bytes.fetch_add(bytes, std::memory_order_relaxed);
    captures.when_none_is_open([owner = device.shared_from_this(), kept, after = std::move(after), bytes] {
        owner->put_off_bytes.fetch_sub(bytes, std::memory_order_relaxed);
        if (Result<void> freed = keep_or_free(*owner, *kept, after); !freed) {
            keep(*owner, std::move(*kept), freed.error(), "after a capture");
        }
    });
    return {};
}

Result<void> free_now(DeviceState& device, Piece& piece, StreamState* after, CallInFlight call) {
    if (device.bars(rules::PublicCall::free_memory)) return device.refusal(rules::PublicCall::free_memory);
    const Result<platform::Status> given = give_to_driver(device, piece, after);
    call.leave();  // the release function of adopted memory may start a service
    if (!given) return given.error();
    if (!given->ok()) {
        const Error why = device.failure(*given, "releasing memory");
        if (device.is_lost()) {
            keep_mappings(piece);
        } else if (!still_has(*given)) {
            if (device.config->log) {
                device.config->say(Severity::warning,
                                   ErrorLine().append("released memory was gone already: ").append(text_in_words(why)));
            }
        } else {
            if (piece.adopted() != nullptr && piece.adopted()->registered) {
                return make_error_as<errors::adopted_memory_still_registered>(why.code(), why.message())
                    .from_call(why.call(), why.driver_code());
            }
            if (device.config->log) {
                ErrorLine line;
                line.append("released memory is kept until the driver takes it: ").append(text_in_words(why));
                device.config->say(Severity::warning, line);
            }
            device.unreturned.add(std::exchange(piece, {}), until(why.code()));
            return {};
        }
    }
    return finish(device, piece);
}

void free_or_keep(DeviceState& device, Piece piece, std::string_view when) {
    std::shared_ptr<StreamState> after = piece.own() != nullptr ? std::exchange(piece.own()->after, nullptr) : nullptr;
    if (Result<void> freed = free_piece(device, piece, std::move(after)); !freed) {
        keep(device, std::move(piece), freed.error(), when);
    }
}

void release_later(DeviceState& device, const MemoryBlock& block) {
    Result<Piece> piece = device.books->ledger.take(block, device.index);
    if (piece) free_or_keep(device, *std::move(piece), "of a buffer that is gone");
}

void return_unreturned(DeviceState& device) {
    if (!device.unreturned.any() || device.bars(rules::PublicCall::release_memory) || device.books->captures.any())
        return;
    while (std::optional<Piece> piece = device.unreturned.next()) {
        const rules::DriverUse use = free_use(*piece);
        std::optional<CallInFlight> call{std::in_place};
        if (rules::while_serving(use).waits && !device.is_lost()) call = device.services.enter(use);
        if (!call) return device.unreturned.add(*std::move(piece));
        const Result<platform::Status> given = give_to_driver(device, *piece, nullptr);
        call->leave();
        if (given && !given->ok()) (void)device.failure(*given, "releasing memory again");
        if (!given || still_has(*given)) {
            if (!device.is_lost()) {
                return device.unreturned.add(*std::move(piece), until(given ? given->code : given.code()));
            }
            keep_mappings(*piece);
        }
        if (piece->adopted() != nullptr) device.books->ledger.leave(piece->block.id);
        (void)finish(device, *piece);
    }
}

void free_at_end(DeviceState& device, Piece piece) {
    constexpr int tries = 3;
    device.cache.returned(piece);
    Result<platform::Status> given = platform::Status{};
    for (int attempt = 0; attempt < tries; ++attempt) {
        given = give_to_driver(device, piece, nullptr);
        if (given && !still_has(*given)) break;
    }
    if (!given || !given->ok()) {
        const Error why = given ? device.failure(*given, "releasing memory") : given.error();
        device.config->say(Severity::warning, composed("closing a device: {}", why.text()));
        const bool still = !given || still_has(*given);
        if (still && !device.is_lost() && piece.adopted() != nullptr && piece.adopted()->registered) {
            device.config->say(Severity::error,
                               "closing a device: the driver still has adopted memory registered. Its owner is not "
                               "told, and the memory must stay as it is until the process ends");
            return process::keep_until_exit(std::make_shared<Piece>(std::move(piece)));
        }
        if (still) keep_mappings(piece);
    }
    if (Result<void> done = finish(device, piece, true); !done) {
        device.config->say(Severity::warning, composed("closing a device: {}", done.error().text()));
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
