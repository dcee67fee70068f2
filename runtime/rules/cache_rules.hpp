// SPDX-License-Identifier: Apache-2.0
// Which released memory is kept for the next allocation of its class, how much of it, and which request it serves.
// Pure.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/placement.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace isthmus::rules {

// Kinds whose memory may be kept, numbered for tables; -1: never kept. Of pool kinds: `pool`, of the device's own pool.
constexpr int kept_kind_count = 7;
constexpr int kept_kind(MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::device: return 0;
        case MemoryKind::pinned: return 1;
        case MemoryKind::write_combined: return 2;
        case MemoryKind::managed: return 3;
        case MemoryKind::registered: return 4;
        case MemoryKind::host:
        case MemoryKind::host_numa: return 5;  // the same memory, by two names
        case MemoryKind::pool: return 6;
        default: return -1;
    }
}

// Whether memory of this kind and placement means the same to its next owner. It does not where the place depends on
// the thread that touches it first (local) or is promised for each allocation (strict). Where pages have moved since is
// no part of that (unbound, managed): the next owner's uses move them again.
constexpr bool may_be_kept(MemoryKind kind, const HostPlacement& placement) noexcept {
    if (kept_kind(kind) < 0) return false;
    const bool placed_here = kind == MemoryKind::registered || kept_kind(kind) == kept_kind(MemoryKind::host);
    return !placed_here || (!placement.strict && placement.locality != Locality::local);
}
bool same_placement(const HostPlacement& one, const HostPlacement& other) noexcept;

// Size classes: steps of 512 bytes up to 4 KiB, above four steps for each power of two. A class ends where the next
// begins; bytes > 0.
namespace size_steps {
constexpr std::size_t bytes = 512;
constexpr int bits = 12;  // of the largest size in steps
constexpr int classes = (1 << bits) / static_cast<int>(bytes);
}  // namespace size_steps
constexpr int size_class_count = size_steps::classes + 4 * (46 - size_steps::bits) + 1;
constexpr int size_class(std::size_t bytes) noexcept {
    if (bytes == 0) return 0;
    const std::size_t below = bytes - 1;  // a power of two is the largest of its class
    const int bits = static_cast<int>(std::bit_width(below)) - 1;
    if (bits < size_steps::bits) return static_cast<int>(below / size_steps::bytes);
    const int step = static_cast<int>((below >> (bits - 2)) & 3);
    return std::min(size_steps::classes + 4 * (bits - size_steps::bits) + step, size_class_count - 1);
}
std::size_t largest_of_class(int size_class) noexcept;
// Whether a kept piece serves this request: it is large enough, and of the request's class or of one of the next four.
// Less than three fifths of it are then unused, or 2 559 bytes where that is more.
constexpr int classes_above = 4;
constexpr bool serves(std::size_t piece_bytes, std::size_t requested_bytes) noexcept {
    return piece_bytes >= requested_bytes && size_class(piece_bytes) - size_class(requested_bytes) <= classes_above;
}
// Of which classes a piece may be: near as above; any that is large enough, if it may serve alone: before the driver or
// the system is asked, and where a thread's requests change in size from one to the next.
enum class Reach : std::uint8_t { near, any };

// What owners have of a device's memory that may be kept later.
struct HandedOut {
    std::uint64_t bytes = 0;        // of whole pieces
    std::uint64_t asked_bytes = 0;  // of these, as their owners asked for
    std::uint64_t peak_bytes = 0;   // the most that asked_bytes has been
    // Of pieces that serve one thread each, whatever it asks for (may_be_loose()): in none of the others.
    std::uint64_t loose_bytes = 0;
    // Of peak_of_threads(). Threads run at the same time, so that owners may have so much at one time, whether or not
    // they did so far: it counts as the peak where it is more.
    std::uint64_t threads_bytes = 0;
    std::uint64_t peak() const noexcept { return std::max(peak_bytes, threads_bytes); }
};
// What kept pieces and unused ends of pieces may add to the peak: a sixteenth of it each time, but small programs keep
// their pieces. With both rules below, handed out and kept bytes together stay below 17/16 of the peak, or below the
// peak, its sixteenth and 128 KiB where the peak is small (M8).
constexpr std::uint64_t peak_share = 16;
constexpr std::uint64_t small_program_bytes = std::uint64_t{64} << 10;
// How much may be kept beside what is handed out: memory that the peak needed, and a sixteenth of the peak.
std::uint64_t most_kept(const HandedOut& now, std::uint64_t limit_bytes) noexcept;
// How much memory a segment has at most before kept pieces are given back to it: the peak and a sixteenth. Holes
// between blocks count, which kept pieces cannot fill.
std::uint64_t most_reserved(const HandedOut& now) noexcept;
// Whether a piece may serve although its end is unused: the unused ends of all pieces stay within a sixteenth.
bool may_leave_unused(const HandedOut& now, std::size_t piece_bytes, std::size_t requested_bytes) noexcept;
// Whether the unused ends of all pieces are within that.
bool ends_are_small(const HandedOut& now) noexcept;
// Whether a piece of any size may serve, however much of it is unused then: owners have `owners_bytes`, next to
// nothing, so that the piece would lie idle otherwise. `crowded`: a request found no memory beside such a piece since
// the peak was counted anew. So that happens once, and adds the unused end of that piece to what is reserved.
bool may_serve_alone(const HandedOut& now, std::uint64_t owners_bytes, bool crowded) noexcept;

// A thread whose requests change in size, among others that use memory of the device at the same time.
struct AmongThreads {
    std::uint64_t largest_bytes = 0;  // its largest request that came to rest
    std::uint64_t others_bytes = 0;   // those of the other threads together
    std::uint64_t owners_bytes = 0;   // what owners have, without loose pieces
    std::uint64_t living_bytes = 0;   // of this, what they have all the time
    bool has_loose = false;           // a piece is its loose one already
    bool crowded = false;             // it asked the driver while an owner had its loose piece
};
// Whether a piece may become loose: the thread's own, which serves whatever it asks for from then on, however much of
// the piece is unused. What owners have is no more than what lives all the time and one request of each other thread,
// so that the thread has nothing, and the piece would lie idle otherwise. So what is reserved may exceed 17/16 of the
// peak by one piece of each thread, until its owner releases it. Where the other threads use little, may_serve_alone()
// decides.
bool may_be_loose(const HandedOut& now, const AmongThreads& thread, std::size_t piece_bytes) noexcept;
constexpr bool among_threads(std::uint64_t largest_bytes, std::uint64_t others_bytes) noexcept {
    return others_bytes != 0 && others_bytes >= largest_bytes / 4;
}
// What counts for threads: the largest request of each that came to rest in its lane, and of the others a quarter more,
// because a loose piece may be so large; and what lives beside. For a thread alone it is no more than the peak.
constexpr std::uint64_t peak_of_threads(std::uint64_t largest_bytes, std::uint64_t others_bytes,
                                        std::uint64_t living_bytes) noexcept {
    const std::uint64_t beside = among_threads(largest_bytes, others_bytes) ? living_bytes : 0;
    return largest_bytes + others_bytes + others_bytes / 4 + beside;
}
// The least that owners had, of so many times that the driver was asked, counts as living all the time.
constexpr unsigned asks_to_know_living = 32;
// The largest piece that may be loose: none of another thread, which asks for more.
constexpr std::size_t most_loose(const AmongThreads& thread) noexcept {
    return static_cast<std::size_t>(thread.largest_bytes + thread.largest_bytes / 4);
}

// How much more than `requested_bytes` the driver is asked for where a thread's requests change in size: the next
// one may be larger. At most an eighth, and what the bound of all unused ends leaves.
std::size_t headroom(const HandedOut& now, std::size_t requested_bytes) noexcept;

// What decides whether device memory may lie in segments of the runtime (ADR 125).
struct SegmentFacts {
    bool asked = false;           // by the environment
    bool virtual_memory = false;  // attribute 102, and the driver has the functions
    bool separate = false;        // the device's memory is its own, and the CPU does not reach it
    std::size_t gpus = 0;         // of the runtime
};
// Why it may not; empty: it may. With several GPUs peers would need access to each mapping; memory that the CPU may
// reach has not been observed to be reached through mappings too.
std::string_view why_no_segments(const SegmentFacts& facts) noexcept;
// Whether the environment asks for segments: 1 yes, 0 and nothing no. nullopt: it says neither.
std::optional<bool> segments_asked(std::string_view environment) noexcept;

// What a release is ordered behind.
enum class ReleaseOrder : std::uint8_t {
    none,          // nothing uses the memory
    own_stream,    // work of a stream of the device, which only the runtime gives work
    other_stream,  // work of another device's stream, or of one that other code gives work, too
};

// How a piece was released.
struct Released {
    bool made_for_it = false;         // allocated as memory that may be kept, and not excluded since
    bool pooled = false;              // from a pool, which allocates and frees in the order of a stream
    bool allocated_in_order = false;  // of a stream, whose work before the allocation may still use the memory
    ReleaseOrder order = ReleaseOrder::none;
    bool device_usable = true;  // neither lost nor of a forked parent, and not in a host function
    std::size_t bytes = 0;
};
enum class Keeping : std::uint8_t { keep, free_not_made_for_it, free_in_stream, free_unusable, free_too_large };
// What happens with it where `limit_bytes` may be kept; 0 keeps nothing. Pool memory that the work of a stream may
// still use is kept for later allocations in the order of that stream. Other memory that something may still use is not
// kept: the driver waits as it frees it, or, where it is pool memory, orders the free.
constexpr Keeping keeping(const Released& piece, std::uint64_t limit_bytes) noexcept {
    if (!piece.made_for_it || piece.bytes == 0) return Keeping::free_not_made_for_it;
    const bool of_one_stream = piece.pooled && piece.order == ReleaseOrder::own_stream;
    const bool of_none = piece.order == ReleaseOrder::none && !piece.allocated_in_order;
    if (!of_one_stream && !of_none) return Keeping::free_in_stream;
    if (!piece.device_usable) return Keeping::free_unusable;
    return piece.bytes > limit_bytes ? Keeping::free_too_large : Keeping::keep;
}

// How a buffer was dropped that work may still use.
struct Dropped {
    bool own_memory = false;    // all of it the device's own, of a kind that is kept and that no stream's order frees
    bool known_uses = false;    // only work of the device's own streams, which the runtime alone gives work
    bool attached = false;      // to a stream: work behind the last use gives it back to the host
    bool device_usable = true;  // neither lost nor of a forked parent, and not in a host function
    std::uint64_t bytes = 0;
};
// Buffers that were dropped before, and whose work is not known to have ended.
struct Outstanding {
    std::size_t buffers = 0;
    std::uint64_t bytes = 0;
    std::size_t since_asked = 0;  // dropped since the driver was asked how far the streams have come
};
enum class Ending : std::uint8_t {
    now,                 // the buffer ends in the call, which waits for the work
    later,               // as soon as the work is known to have ended
    later_after_asking,  // the same; but the driver is asked first, so that earlier buffers end
    later_after_oldest,  // the same; but the call first waits for the work of the oldest, so that it does not run ahead
};
// One question serves so many buffers.
constexpr std::size_t dropped_for_a_question = 64;
constexpr std::size_t most_outstanding = 64;
// When the buffer ends, where `limit_bytes` of released memory may be kept: outstanding buffers have at most as much.
Ending ending(const Dropped& buffer, const Outstanding& earlier, std::uint64_t limit_bytes) noexcept;

// A kept piece: how many releases ago its own was, and its size.
struct Waiting {
    std::uint64_t age = 1;
    std::size_t bytes = 0;
};
// An order of giving back: what kept most bytes for longest goes first, of the same product the older. By age alone,
// one large piece would push out many small ones, each of which saves a call as well.
bool goes_before(const Waiting& one, const Waiting& other) noexcept;

// How much a device keeps. The option decides; without one, the environment (digits; bytes); without that, 256 MiB or a
// sixteenth of the host's memory, whichever is less. nullopt: the environment does not state a number.
std::optional<std::uint64_t> cache_limit(std::optional<std::uint64_t> option, std::string_view environment,
                                         std::uint64_t host_total_bytes) noexcept;

}  // namespace isthmus::rules
