// The words of a ring of frames that one process writes and others read: stamps that tell a frame that was overwritten
// from one that was not, cursors of readers, and the handshake before a sleep. Every word was written by somebody who
// may lie, so that each is read once and judged by a pure function against what the judge knows himself.
#pragma once

#include <isthmus/detail/host_fence.hpp>
#include <isthmus/protocol/atomics.hpp>

#include <cstdint>

namespace isthmus::inline v0::protocol {

// Between processes of one machine, CPUs on both sides. Fences name the cell that they order around, for the model in
// tests/protocols.
struct ProcessAtomics : SystemAtomics {
    void fence_acquire(Cell) const noexcept { v0::detail::host_fence<std::memory_order_acquire>(); }
    void fence_release(Cell) const noexcept { v0::detail::host_fence<std::memory_order_release>(); }
    void fence_sequential(Cell) const noexcept { v0::detail::host_fence<std::memory_order_seq_cst>(); }
    // Orders streaming stores, too (movnt: what memcpy uses for large frames). On x86 the other fences emit nothing for
    // them, or nothing at all, because ordinary stores stay in order there (Intel SDM, volume 3, 9.2.2: streaming
    // stores do not). Other machines have no stores that their fences leave out.
    void fence_streaming(Cell) const noexcept {
#if defined(__x86_64__)
        __builtin_ia32_mfence();
#endif
    }
};

// The word `published`: how many frames were published, and whether more come.
inline constexpr std::uint64_t ring_closed = std::uint64_t{1} << 63;
inline constexpr std::uint64_t most_frames = std::uint64_t{1} << 60;  // 36 years at a frame each nanosecond

// A slot's stamp: odd while frame `frame` is being written, even when it is whole; 0: never used.
constexpr std::uint64_t stamp_writing(std::uint64_t frame) noexcept {
    return 2 * frame + 1;
}
constexpr std::uint64_t stamp_whole(std::uint64_t frame) noexcept {
    return 2 * frame + 2;
}

enum class StampVerdict : std::uint8_t {
    whole,      // the slot holds that frame
    overtaken,  // … a later one, or one that is being written
    lie,        // no producer that keeps to the protocol leaves this here
};
// What a stamp says to a reader who knows that `frame` was published.
constexpr StampVerdict judge_stamp(std::uint64_t stamp, std::uint64_t frame, std::uint64_t slots) noexcept {
    if (stamp == stamp_whole(frame)) return StampVerdict::whole;
    if (stamp < stamp_whole(frame)) return StampVerdict::lie;  // the publication showed a stamp at least as new
    const std::uint64_t holder = (stamp - 1) / 2;
    return holder % slots == frame % slots && holder < most_frames ? StampVerdict::overtaken : StampVerdict::lie;
}

enum class PublishedVerdict : std::uint8_t {
    frame,      // one is there to be tried
    nothing,    // none that this reader has not had
    closed,     // … and none will come
    goes_back,  // a lie: it was greater before, or the ring was closed before
    too_great,  // a lie: nobody publishes so many
};
struct PublishedLook {
    PublishedVerdict verdict = PublishedVerdict::nothing;
    std::uint64_t frame = 0;   // to be tried
    std::uint64_t missed = 0;  // that the reader was to have before it and that are overwritten
};
// `seen` is the word as it was judged before, `next` the frame that the reader wants, at most what `seen` says; `kept`
// is how many of the newest frames the producer leaves alone.
constexpr PublishedLook judge_published(std::uint64_t word, std::uint64_t seen, std::uint64_t next,
                                        std::uint64_t kept) noexcept {
    const std::uint64_t count = word & ~ring_closed;
    if (count < (seen & ~ring_closed) || (word & ring_closed) < (seen & ring_closed)) {
        return {PublishedVerdict::goes_back};
    }
    if (count > most_frames) return {PublishedVerdict::too_great};
    if (count <= next) return {(word & ring_closed) != 0 ? PublishedVerdict::closed : PublishedVerdict::nothing};
    const std::uint64_t oldest = count > kept ? count - kept : 0;
    const std::uint64_t frame = oldest > next ? oldest : next;
    return {PublishedVerdict::frame, frame, frame - next};
}

enum class CursorVerdict : std::uint8_t { fine, goes_back, too_great };
// A reader's cursor: every frame before it may be overwritten. `seen` is what it was before.
constexpr CursorVerdict judge_cursor(std::uint64_t cursor, std::uint64_t seen, std::uint64_t published) noexcept {
    if (cursor < seen) return CursorVerdict::goes_back;
    return cursor <= published ? CursorVerdict::fine : CursorVerdict::too_great;
}
// May frame `frame` be written where this cursor is the slowest?
constexpr bool has_room(std::uint64_t frame, std::uint64_t cursor, std::uint64_t slots) noexcept {
    return frame - cursor < slots;
}

// The producer's accesses. One thread.
template <class Atomics>
class FrameStamper {
public:
    using Cell = typename Atomics::Cell;
    FrameStamper(const Atomics& atomics, Cell published) : atomics_(atomics), published_(published) {}

    // From here on the slot's bytes may be written. The fence orders the stamp before them: who read one of those
    // bytes, and then fences and reads the stamp again (FrameFollower::stamp_again), finds this stamp or a later one.
    void begin(Cell stamp, std::uint64_t frame) const {
        atomics_.store_stamped_relaxed(stamp, stamp_writing(frame));
        atomics_.fence_release(stamp);
        atomics_.fence_streaming(stamp);
    }
    // The slot's bytes are written. The release pairs with the acquire in FrameFollower::published(): who sees the
    // count sees the bytes, and a stamp at least as new. The stamp needs no order of its own.
    void publish(Cell stamp, std::uint64_t frame) const {
        atomics_.fence_streaming(stamp);
        atomics_.store_stamped_relaxed(stamp, stamp_whole(frame));
        atomics_.store_stamped_release(published_, frame + 1);
    }
    void close(std::uint64_t frames) const { atomics_.store_stamped_release(published_, frames | ring_closed); }
    // Acquire, pairs with the release in FrameFollower::let_go(): what the reader read of the frames before the cursor
    // was read before they are overwritten. (The branch on it would do on every machine, but not in C++.)
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
    // Before the slot's bytes are read: saves reading what is overtaken already. Relaxed: what was published came with
    // the count, and what comes later shows in stamp_again().
    std::uint64_t stamp(Cell cell) const { return atomics_.load_stamped_relaxed(cell); }
    // After they were read: the fence keeps the look at the stamp behind them, and pairs with the one in
    // FrameStamper::begin(): were any of the bytes of a later frame, then so is this stamp.
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

// Before a sleep: says so, then looks once more at the word that will change. Whoever changes a word looks behind it
// whether somebody sleeps. With both fences at least one of the two sees the other's store.
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

}  // namespace isthmus::inline v0::protocol
