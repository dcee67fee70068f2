// SPDX-License-Identifier: Apache-2.0
// PieceCache: whole pieces of one device that were released and are kept for the next request of their class.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <platform/driver.hpp>

#include "brief_mutex.hpp"
#include "cache_rules.hpp"
#include "lane_rules.hpp"
#include "piece.hpp"
#include "process.hpp"
#include "small_slabs.hpp"

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

// A kept piece is parked in the ledger, and its content is that of its last owner. Nothing uses it, except that pool
// memory may be kept behind the work of one stream, for allocations in the order of that stream. A simulator and
// AddressSanitizer take every access to it for an error. Thread-safe; calls neither the driver nor the system, and
// allocates only to hold more pieces than ever before.
class PieceCache {
    struct Kept {
        Piece* piece;
        std::uint64_t release;  // number of its release
    };
    // Of one kind and size class, or place of a slab, in the order of their releases. A ring: the oldest leaves, and
    // the newest comes and leaves, without a move of the others, however many they are.
    class Shelf {
    public:
        bool empty() const noexcept { return count_ == 0; }
        std::size_t size() const noexcept { return count_; }
        const Kept& operator[](std::size_t at) const noexcept { return ring_[place(at)]; }
        void add(const Kept& kept);
        Kept take(std::size_t at) noexcept;
        void make_room(std::size_t count);  // so many take nothing from the heap

    private:
        std::size_t place(std::size_t at) const noexcept {
            const std::size_t from_begin = first_ + at;
            return from_begin < room_ ? from_begin : from_begin - room_;
        }

        std::unique_ptr<Kept[]> ring_;
        std::size_t room_ = 0;
        std::size_t first_ = 0;
        std::size_t count_ = 0;
    };
    using Shelves = std::vector<Shelf>;
    static constexpr std::size_t shelf_count = std::size_t{rules::size_class_count} + std::size_t{rules::place_count};

public:
    // What is kept behind the work of one stream, which owns this. The stream's end calls ended().
    class Behind {
    public:
        // The stream has a handle from here on, and keeps pieces.
        void begin(std::weak_ptr<StreamState> stream, platform::StreamHandle handle) {
            stream_ = std::move(stream);
            handle_.store(handle, std::memory_order_release);
        }
        bool has_begun() const noexcept { return handle() != platform::StreamHandle::none; }

    private:
        friend class PieceCache;
        platform::StreamHandle handle() const noexcept { return handle_.load(std::memory_order_acquire); }

        std::weak_ptr<StreamState> stream_;
        std::atomic<platform::StreamHandle> handle_{platform::StreamHandle::none};
        Shelves shelves_;  // the cache's lock guards them
        std::size_t pieces_ = 0;
    };

    // What lies whole in one lane of the device (BufferLanes): kept memory, which counts here as handed out, so that a
    // lane changes its own line alone. Written under the lane's lock.
    struct alignas(64) InLane {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint64_t> asked_bytes{0};
        std::atomic<std::uint64_t> pieces{0};
        std::atomic<std::uint64_t> taken{0};       // requests that it served
        std::atomic<std::uint64_t> pool_bytes{0};  // of `bytes`, those of pools
        std::atomic<std::uint64_t> largest{0};     // request that came to rest here since the last trim
    };
    std::array<InLane, rules::lane_count> in_lanes;
    static std::size_t lane_of_thread() noexcept { return process::thread_number() % rules::lane_count; }

    // Small memory that shares pages. What is not cut of its slabs counts as kept.
    SmallSlabs small;

    PieceCache(platform::Memory& memory, std::uint64_t limit_bytes);
    PieceCache(const PieceCache&) = delete;
    PieceCache& operator=(const PieceCache&) = delete;

    // false: nothing is ever kept.
    bool keeps_anything() const noexcept { return limit_bytes_ != 0; }
    std::uint64_t limit_bytes() const noexcept { return limit_bytes_; }

    // A piece of at least so many bytes, the one released last; nullptr: none is kept. `alignment`: of the first byte
    // of memory of the system. From here on the first `bytes` of it are accessible, and it counts as handed out. With
    // `behind`, first from what is kept there: the caller may use it in the order of that stream. `place_bytes`: first
    // a place of this size; only such a request gets one.
    Piece* take(MemoryKind kind, const HostPlacement& placement, std::size_t bytes, std::size_t alignment,
                Behind* behind = nullptr, std::size_t place_bytes = 0, rules::Reach reach = rules::Reach::near);
    // What leaves a lane for a request that it does not serve: a closed piece, released `age` releases ago. `untold`:
    // releases into the lane that the cache has not been told of.
    struct Left {
        Piece& piece;
        std::uint64_t age;
        std::uint64_t untold;
    };
    // released_elsewhere(), keep_from_lane() and take() of the same kind and placement with any reach, by one lock.
    // nullptr: none serves; `left` is kept all the same. `surplus`: as keep() yields. `place_bytes`: as of take(); what
    // left is a place then. Where what left is large enough and may be the thread's loose piece, it is that from here
    // on (rules::may_be_loose): it serves whatever the thread asks for without the cache, until it leaves a lane again.
    Piece* exchange(const Left& left, std::size_t bytes, Behind* behind, std::vector<Piece*>& surplus,
                    std::size_t place_bytes = 0);
    // Whether other threads use so much memory that a piece of the calling one may be loose.
    bool among_threads() const noexcept;
    // So much of one request comes to rest in a lane, whose lock the caller has.
    void note_rest(InLane& lane, std::uint64_t asked_bytes) noexcept {
        if (asked_bytes > lane.largest.load(std::memory_order_relaxed)) note_largest(lane, asked_bytes);
    }
    // Keeps it, and yields the pieces that are beyond what may be kept from now on (rules::most_kept). The caller frees
    // them, each behind the work of its `after`. The piece must be one that rules::keeping() keeps; it stays where it
    // is until it is taken. `behind`: of the stream whose work may still use it.
    std::vector<Piece*> keep(Piece& piece, Behind* behind = nullptr);
    // The stream ends. If its work has ended, what is kept behind it serves everybody from here on; otherwise yields
    // it, and the caller frees it in the order of the stream.
    std::vector<Piece*> ended(Behind& behind, bool work_has_ended);
    // Before the driver or the system is asked for so many bytes: yields the pieces that are too many beside them.
    // `headroom`: beyond what the request needs. Where the new piece is to be the thread's loose one, what is kept
    // behind the stream of `behind` goes first: the piece serves in its place.
    std::vector<Piece*> make_way(std::size_t bytes, std::size_t headroom = 0, Behind* behind = nullptr);
    // How much more than so many bytes to ask for, where the thread's requests change in size (rules::headroom).
    std::size_t headroom(std::size_t bytes) const;
    // Yields the piece of this kind that goes first by rules::goes_before(), of those that no stream's work may still
    // use; nullptr: none is kept.
    Piece* shed(MemoryKind kind);
    // How much memory a segment may have for what this counts, where `bytes` more are about to be handed out
    // (rules::most_reserved).
    std::uint64_t most_reserved(std::size_t bytes) const;
    // Counts a piece as handed out that the driver or the system made for a request of so many bytes; until keep() or
    // returned(), which does nothing for other pieces. Call returned() before the driver or the system gets the piece:
    // it makes all of it accessible, as they gave it. From here on keeping the piece takes nothing from the heap, also
    // not behind the stream of `behind`.
    void handed_out(Piece& piece, std::size_t bytes, Behind* behind = nullptr);
    void returned(Piece& piece);
    // Of a slab: nothing of it may be accessed but what is handed out of it; and all of it, before it is freed.
    void divided(const Piece& slab) const;
    void joined(const Piece& slab) const;
    // Counts a request that a place served which needed neither the driver nor the system.
    void served_by_slab();
    // Of a piece that goes into a lane, and comes from it to be used as it was: accessible to nobody, and as far as it
    // was asked for. `behind`: as in keep().
    void close_in_lane(const Piece& piece, const Behind* behind) const {
        if (bounds_are_told_) close(piece, order_of(behind));
    }
    void open_from_lane(const Piece& piece, const Behind* behind) const {
        if (bounds_are_told_) open(piece, piece.asked_bytes(), order_of(behind));
    }
    // Keeps a piece that is closed already, as keep() does. `age`: it was released into a lane, so many releases ago,
    // of all of which released_elsewhere() told; without it, it is released now.
    // `surplus`: what is too much goes now. Otherwise it goes with the next piece that is kept.
    std::vector<Piece*> keep_from_lane(Piece& piece, Behind* behind = nullptr, std::optional<std::uint64_t> age = {},
                                       bool surplus = true);
    // What is too much now, as keep() yields.
    std::vector<Piece*> surplus();
    // A loose piece came out of another thread's lane: it serves the calling thread from here on, and is its loose one
    // where it has none.
    void take_over(Piece& loose);
    // So many pieces were released into lanes: what is kept here has waited for longer.
    void released_elsewhere(std::uint64_t releases);
    // Of what lies in the lanes; may be out of date at once, as the next one.
    std::uint64_t lanes_bytes() const noexcept { return sum(in_lanes, &InLane::bytes); }
    // Outside the shares of lanes: of what is kept here, and of what is large in lanes.
    std::uint64_t beside_bytes() const noexcept { return beside_bytes_.load(std::memory_order_relaxed); }
    // Of what is large and about to lie in a lane, or does not lie there any more. false: others have taken the room.
    bool large_goes_to_lane(std::uint64_t bytes) noexcept {
        const std::uint64_t beside = beside_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        if (beside <= rules::most_beside_shares(limit_bytes_)) return true;
        large_left_lane(bytes);
        return false;
    }
    void large_left_lane(std::uint64_t bytes) noexcept { beside_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
    // Takes pieces out, in the order of rules::goes_before(), until at most so many bytes are kept. What is handed out
    // now is the peak from then on.
    std::vector<Piece*> take_out(std::uint64_t keep_bytes);
    // Takes out all pieces of this kind.
    std::vector<Piece*> take_out_kind(MemoryKind kind);
    std::uint64_t kept_bytes(MemoryKind kind) const;  // outside the lanes; of pools, in them too

    struct Usage {
        std::uint64_t bytes = 0;   // kept now
        std::uint64_t pieces = 0;  // kept now
        std::uint64_t taken = 0;   // requests that a kept piece served
        std::uint64_t missed = 0;  // requests that asked the driver or the system
    };
    Usage usage() const;

private:
    struct Asked {
        const HostPlacement& placement;
        std::size_t bytes;
        std::size_t alignment;
        std::size_t place_bytes;
        rules::Reach reach;
    };
    // Expect the lock.
    Piece* find(std::size_t of_kind, const Asked& asked, Behind* behind, platform::StreamHandle& order);
    Piece* take_near(Shelves& shelves, const Asked& asked);
    struct Sizes {
        std::size_t least;
        std::size_t most;
    };
    Piece* take_sized(Shelves& shelves, const Asked& asked, const Sizes& sizes);
    Piece* take_from(Shelf& shelf, const Asked& asked, const Sizes* sizes = nullptr);
    Piece* take_at(Shelf& shelf, std::size_t at);
    void put(Shelves& shelves, const Kept& kept);
    static std::size_t kind_of(const Piece& piece) noexcept;  // its rules::kept_kind()
    void begin_shelves(Behind& behind);
    void make_room(Shelves& shelves, const Piece& piece) const;
    struct Oldest {
        Shelf* shelf = nullptr;
        Behind* behind = nullptr;
        rules::Waiting waiting;
    };
    Oldest goes_first();
    void consider(Shelves& shelves, Behind* behind, Oldest& first) const;  // replaces it by what goes before it
    void give_out(Shelf& shelf, Behind* behind, std::shared_ptr<StreamState> after, std::vector<Piece*>& out);
    void take_out_until(std::uint64_t keep_bytes, std::vector<Piece*>& out);
    void take_out_of(Behind& behind, std::uint64_t keep_bytes, std::vector<Piece*>& out);
    void take_out_surplus(std::vector<Piece*>& out);
    void shelve(Piece& piece, Behind* behind, std::optional<std::uint64_t> age = {});
    std::uint64_t most_kept(const rules::HandedOut& now) const noexcept;
    std::uint64_t asked_by_owners(const rules::HandedOut& counted) const noexcept;  // without what lies in lanes
    void set_bytes(std::uint64_t bytes) noexcept;
    static std::uint64_t sum(const std::array<InLane, rules::lane_count>& lanes,
                             std::atomic<std::uint64_t> InLane::*member) noexcept;
    bool loosen(Piece& piece, std::size_t bytes) noexcept;
    rules::HandedOut now() const noexcept;
    rules::AmongThreads thread_among_others() const noexcept;
    std::uint64_t living_bytes() const noexcept;
    void note_asked() noexcept;
    void note_largest(InLane& lane, std::uint64_t bytes) noexcept;
    void count_loose(Piece& piece) noexcept;
    void count(Piece& piece, std::size_t bytes, bool loose = false) noexcept;
    void uncount(Piece& piece) noexcept;
    static platform::StreamHandle order_of(const Behind* behind) noexcept {
        return behind != nullptr ? behind->handle() : platform::StreamHandle::none;
    }
    // `order`: behind the work of this stream.
    void close(const Piece& piece, platform::StreamHandle order) const;                    // to every access
    void open(const Piece& piece, std::size_t bytes, platform::StreamHandle order) const;  // its first bytes
    void open_all(const Piece& piece, platform::StreamHandle order) const;  // for the driver or the system
    void bound(const Piece& piece, std::size_t bytes) const;  // of a new one, its first bytes stay accessible

    platform::Memory& memory_;
    const std::uint64_t limit_bytes_;
    const bool bounds_are_told_;  // to a simulator or AddressSanitizer
    mutable BriefMutex mutex_;
    std::array<Shelves, rules::kept_kind_count> shelves_;  // a kind's are made at its first release
    std::vector<Behind*> behinds_;                         // those that have kept a piece
    rules::HandedOut handed_out_;
    std::array<std::array<std::uint32_t, shelf_count>, rules::kept_kind_count> out_{};  // its pieces
    std::uint64_t bytes_ = 0;
    std::atomic<std::uint64_t> beside_bytes_{0};  // bytes_, and of what is large in lanes: for readers without the lock
    std::uint64_t pieces_ = 0;
    std::uint64_t releases_ = 0;
    bool crowded_ = false;  // rules::may_serve_alone()
    // rules::AmongThreads, by lanes.
    std::bitset<rules::lane_count> has_loose_;
    std::bitset<rules::lane_count> crowded_lanes_;
    // rules::AmongThreads::living_bytes, and the next one so far.
    std::uint64_t living_bytes_ = 0;
    std::uint64_t least_bytes_ = ~std::uint64_t{0};
    unsigned asks_ = 0;
    std::atomic<std::uint64_t> threads_bytes_{0};  // the sum of InLane::largest
    std::uint64_t taken_ = 0;
    std::uint64_t missed_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
