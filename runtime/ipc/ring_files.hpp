// SPDX-License-Identifier: Apache-2.0
// Shared by both halves of a shared frame ring: its memory, its words, and the socket (line) between two processes.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/ipc/protocol/frame_stamps.hpp>
#include <isthmus/result.hpp>

#include "sealed_memory.hpp"
#include "shared_ring_shape.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// The mapping of the frames, without its descriptor. Every buffer on it holds it: memory that a device may still use
// outlives both halves, and keeps no other resource.
class RingFiles {
public:
    RingFiles(SealedMemory memory, const rules::RingShape& shape) noexcept
        : memory_(std::move(memory)), shape_(shape) {}
    const rules::RingShape& shape() const noexcept { return shape_; }
    std::byte* frame(std::size_t slot) const noexcept { return memory_.data() + shape_.frame_at(slot); }
    std::byte* header() const noexcept { return memory_.data(); }
    std::uint32_t* published() const noexcept { return word(memory_, rules::ring_published_at); }
    std::uint32_t* producer_asleep() const noexcept { return word(memory_, rules::ring_producer_asleep_at); }
    std::uint32_t* stamp(std::uint64_t frame) const noexcept { return word(memory_, shape_.stamp_at(frame)); }
    // Words of a reader's page.
    static std::uint32_t* cursor(const SealedMemory& page) noexcept { return word(page, rules::cursor_at); }
    static std::uint32_t* asleep(const SealedMemory& page) noexcept { return word(page, rules::reader_asleep_at); }

private:
    static std::uint32_t* word(const SealedMemory& memory, std::size_t at) noexcept {
        return reinterpret_cast<std::uint32_t*>(memory.data() + at);
    }
    SealedMemory memory_;
    const rules::RingShape shape_;
};

// One byte each over a line. They wake the peer; their meaning is used for messages only.
enum class LineWord : char {
    wake = 'w',
    too_slow = 's',     // the producer gave up this reader
    broke_rules = 'b',  // the producer gave up this reader
};
// Never blocks, whatever the peer does to the socket: a full socket already holds enough to wake the peer, and flags of
// the open file have no effect (a blocking eventfd that was filled would block the writer).
void send_on_line(const platform::os::ProcessCalls& calls, int line, LineWord word) noexcept;
struct LineState {
    bool ended = false;            // the peer has closed
    std::optional<LineWord> last;  // last word received
};
// Takes the bytes received, up to a bound. Never blocks.
LineState drain_line(const platform::os::ProcessCalls& calls, int line) noexcept;

// Time left of a Wait, from construction on.
class RingDeadline {
public:
    RingDeadline(const Wait& wait, std::chrono::nanoseconds otherwise) noexcept
        : refuse_(wait.refuse), timeout_(wait.timeout.value_or(otherwise)) {}
    bool refuses() const noexcept { return refuse_; }
    std::chrono::nanoseconds left() const noexcept {
        const std::chrono::nanoseconds waited = passed();
        return refuse_ || waited >= timeout_ ? std::chrono::nanoseconds(0) : timeout_ - waited;
    }
    std::chrono::nanoseconds passed() const noexcept { return std::chrono::steady_clock::now() - begin_; }

private:
    const bool refuse_;
    const std::chrono::nanoseconds timeout_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// How long a waiting side spins before it sleeps.
constexpr std::chrono::nanoseconds ring_spin_time(WaitPolicy policy) noexcept {
    if (policy == WaitPolicy::spin) return std::chrono::nanoseconds::max();
    return policy == WaitPolicy::adaptive ? std::chrono::nanoseconds(std::chrono::microseconds(100))
                                          : std::chrono::nanoseconds(0);
}
// Spinning checks the clock and yields every so many polls: there may be one core only.
inline constexpr std::uint32_t ring_looks_between_clocks = 16;
// Interval between polls of the line while spinning: each is a system call, and a dead peer must be noticed soon.
inline constexpr std::chrono::nanoseconds ring_line_look = std::chrono::milliseconds(1);
// Longest sleep without a poll: bounds the effect of a wake-up that the peer withheld.
inline constexpr std::chrono::nanoseconds ring_longest_sleep = std::chrono::milliseconds(100);

timespec ring_timespec(std::chrono::nanoseconds time) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
