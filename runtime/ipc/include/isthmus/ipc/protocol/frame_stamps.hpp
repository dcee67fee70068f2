// SPDX-License-Identifier: Apache-2.0
// Words of a frame ring that one process writes and others read: stamps that reveal whether a frame was overwritten,
// cursors of readers, and the handshake before a sleep. Every word comes from an untrusted process, so it is read once
// and judged by a pure function against what the reading side knows.
#pragma once

#include <isthmus/concurrent/protocol/atomics.hpp>
#include <isthmus/detail/host_fence.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace protocol {

// Between processes of one machine, with CPUs on both sides. Each fence names the cell that it orders around, for the
// model in tests/protocols.
struct ProcessAtomics : SystemAtomics {
    void fence_acquire(Cell) const noexcept { v0::detail::host_fence<std::memory_order_acquire>(); }
    void fence_release(Cell) const noexcept { v0::detail::host_fence<std::memory_order_release>(); }
    void fence_sequential(Cell) const noexcept { v0::detail::host_fence<std::memory_order_seq_cst>(); }
    // Also orders streaming stores (movnt, which memcpy uses for large frames). On x86 the other fences emit no
    // instruction for streaming stores, or none at all, because ordinary stores stay in order there and streaming
    // stores do not (Intel SDM, volume 3, 9.2.2). Other architectures have no stores that their fences leave out.
    void fence_streaming(Cell) const noexcept {
#if defined(__x86_64__)
        __builtin_ia32_mfence();
#endif
    }
};

// The word `published`: the number of published frames, and this bit once no more come.
inline constexpr std::uint64_t ring_closed = std::uint64_t{1} << 63;
inline constexpr std::uint64_t max_frames = std::uint64_t{1} << 60;  // 36 years at one frame per nanosecond

// A slot's stamp: odd while frame `frame` is being written, even when it is complete; 0: never used.
constexpr std::uint64_t stamp_writing(std::uint64_t frame) noexcept {
    return 2 * frame + 1;
}
constexpr std::uint64_t stamp_whole(std::uint64_t frame) noexcept {
    return 2 * frame + 2;
}

enum class StampVerdict : std::uint8_t {
    whole,      // the slot holds that frame
    overtaken,  // the slot holds a later frame, or one that is being written
    lie,        // a producer that follows the protocol never leaves this stamp here
};
// Verdict on a stamp for a reader that knows that `frame` was published.
constexpr StampVerdict judge_stamp(std::uint64_t stamp, std::uint64_t frame, std::uint64_t slots) noexcept {
    if (stamp == stamp_whole(frame)) return StampVerdict::whole;
    if (stamp < stamp_whole(frame)) return StampVerdict::lie;  // the publication showed a stamp at least this new
    const std::uint64_t holder = (stamp - 1) / 2;
    return holder % slots == frame % slots && holder < max_frames ? StampVerdict::overtaken : StampVerdict::lie;
}

enum class PublishedVerdict : std::uint8_t {
    frame,      // a frame is there to be tried
    nothing,    // no frame that this reader has not had
    closed,     // no such frame, and no more come
    goes_back,  // invalid: the count was greater before, or the ring was closed before
    too_great,  // invalid: no producer can have published this many
};
struct PublishedLook {
    PublishedVerdict verdict = PublishedVerdict::nothing;
    std::uint64_t frame = 0;   // the frame to try
    std::uint64_t missed = 0;  // frames before it that the reader was due and that are overwritten
};
// `seen` is the word as it was last judged. `next` is the frame that the reader wants, at most the count in `seen`.
// `kept` is the number of newest frames that the producer does not overwrite.
constexpr PublishedLook judge_published(std::uint64_t word, std::uint64_t seen, std::uint64_t next,
                                        std::uint64_t kept) noexcept {
    const std::uint64_t count = word & ~ring_closed;
    if (count < (seen & ~ring_closed) || (word & ring_closed) < (seen & ring_closed)) {
        return {PublishedVerdict::goes_back};
    }
    if (count > max_frames) return {PublishedVerdict::too_great};
    if (count <= next) return {(word & ring_closed) != 0 ? PublishedVerdict::closed : PublishedVerdict::nothing};
    const std::uint64_t oldest = count > kept ? count - kept : 0;
    const std::uint64_t frame = oldest > next ? oldest : next;
    return {PublishedVerdict::frame, frame, frame - next};
}

enum class CursorVerdict : std::uint8_t { fine, goes_back, too_great };
// A reader's cursor: every frame before it may be overwritten. `seen` is its last value.
constexpr CursorVerdict judge_cursor(std::uint64_t cursor, std::uint64_t seen, std::uint64_t published) noexcept {
    if (cursor < seen) return CursorVerdict::goes_back;
    return cursor <= published ? CursorVerdict::fine : CursorVerdict::too_great;
}
// May frame `frame` be written when this is the slowest cursor?
constexpr bool has_room(std::uint64_t frame, std::uint64_t cursor, std::uint64_t slots) noexcept {
    return frame - cursor < slots;
}

// How many frames may be begun at once. A reader that holds the newest frame alone then stands in nobody's way, and
// two whole frames stay (one, where there are two slots).
constexpr std::uint64_t frames_ahead(std::uint64_t slots) noexcept {
    return slots > 3 ? slots - 2 : 1;
}

// The producer's accesses. One thread.
template <class Atomics>
class FrameStamper {
public:
    using Cell = typename Atomics::Cell;
    FrameStamper(const Atomics& atomics, Cell published) : atomics_(atomics), published_(published) {}

    // From here on the slot's bytes may be written. The fence orders the stamp before the bytes: a reader that reads
    // one of those bytes, then fences and reads the stamp again (FrameFollower::stamp_again), finds this stamp or a
    // later one.
    void begin(Cell stamp, std::uint64_t frame) const {
        atomics_.store_stamped_relaxed(stamp, stamp_writing(frame));
        atomics_.fence_release(stamp);
        atomics_.fence_streaming(stamp);
    }
    // The slot's bytes are written. The release pairs with the acquire in FrameFollower::published(): a reader that
    // sees the count sees the bytes, and a stamp at least this new. The stamp needs no ordering of its own.
    void publish(Cell stamp, std::uint64_t frame) const {
        atomics_.fence_streaming(stamp);
        atomics_.store_stamped_relaxed(stamp, stamp_whole(frame));
        atomics_.store_stamped_release(published_, frame + 1);
    }
    // Counts a frame that never became whole, and behind which another was begun. The stamp is that of the slot's next
    // frame, so that a reader takes this one for overwritten, which its bytes may be.
    void leave_out(Cell stamp, std::uint64_t frame, std::uint64_t slots) const {
        const std::uint64_t count = frame + 1;
        atomics_.store_stamped_relaxed(stamp, stamp_writing(frame + slots));
        atomics_.store_stamped_release(published_, count);
    }
    void close(std::uint64_t frames) const { atomics_.store_stamped_release(published_, frames | ring_closed); }
    // Acquire, pairs with the release in FrameFollower::let_go(): the reader's loads from the frames before the cursor
    // come before those frames are overwritten. (A branch on the cursor would suffice on every machine, but not in
    // C++.)
    std::uint64_t cursor(Cell cell) const { return atomics_.load_stamped_acquire(cell); }

private:
    Atomics atomics_;
    Cell published_;
};

// A reader's accesses. One thread.
template <class Atomics>
class FrameFollower {
public:
    using Cell = typename Atomics::Cell;
    FrameFollower(const Atomics& atomics, Cell published, Cell cursor)
        : atomics_(atomics), published_(published), cursor_(cursor) {}

    std::uint64_t published() const { return atomics_.load_stamped_acquire(published_); }
    // Before the slot's bytes are read: avoids reading a frame that is already overtaken. Relaxed: what was published
    // became visible with the count, and later changes show in stamp_again().
    std::uint64_t stamp(Cell cell) const { return atomics_.load_stamped_relaxed(cell); }
    // After the bytes were read. The fence keeps the stamp's load behind them and pairs with the fence in
    // FrameStamper::begin(): if any byte belongs to a later frame, so does this stamp.
    std::uint64_t stamp_again(Cell cell) const {
        atomics_.fence_acquire(cell);
        return atomics_.load_stamped_relaxed(cell);
    }
    void let_go(std::uint64_t cursor) const { atomics_.store_stamped_release(cursor_, cursor); }

private:
    Atomics atomics_;
    Cell published_;
    Cell cursor_;
};

// Before a sleep: announces it, then checks the awaited word once more. The side that changes a word afterwards checks
// for a sleeper. With both fences, at least one side sees the other's store.
template <class Atomics>
void announce_sleep(const Atomics& atomics, typename Atomics::Cell asleep) {
    atomics.store_relaxed(asleep, 1);
    atomics.fence_sequential(asleep);
}
template <class Atomics>
bool sleeper_to_wake(const Atomics& atomics, typename Atomics::Cell asleep) {
    atomics.fence_sequential(asleep);
    return atomics.load_relaxed(asleep) != 0;
}

}  // namespace protocol
}  // namespace v0
}  // namespace isthmus
