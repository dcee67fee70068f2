// What both halves of a shared frame ring stand on: its memory, its words, and the line between two processes.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/protocol/frame_stamps.hpp>
#include <isthmus/result.hpp>

#include "sealed_memory.hpp"
#include "shared_ring_shape.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace isthmus::inline v0::detail {

// The frames' mapping; held by every buffer that stands in it, and without a descriptor: what a device may still use
// when everybody else has gone keeps memory and nothing else.
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
    // Of a reader's page.
    static std::uint32_t* cursor(const SealedMemory& page) noexcept { return word(page, rules::cursor_at); }
    static std::uint32_t* asleep(const SealedMemory& page) noexcept { return word(page, rules::reader_asleep_at); }

private:
    static std::uint32_t* word(const SealedMemory& memory, std::size_t at) noexcept {
        return reinterpret_cast<std::uint32_t*>(memory.data() + at);
    }
    SealedMemory memory_;
    const rules::RingShape shape_;
};

// What travels over a line, a byte each. They wake; what they say is for messages only.
enum class LineWord : char {
    wake = 'w',
    too_slow = 's',     // the producer gave this reader up
    broke_rules = 'b',  // …
};
// Never blocks, whatever the other side does to the socket: full, there is enough in it to wake the other side; and
// flags of the open file are no part of it (a blocking eventfd that somebody filled would hold the writer).
void send_on_line(const platform::os::ProcessCalls& calls, int line, LineWord word) noexcept;
struct LineState {
    bool ended = false;            // the other end is closed
    std::optional<LineWord> last;  // that came
};
// Takes what came, a bounded number of bytes. Never blocks.
LineState drain_line(const platform::os::ProcessCalls& calls, int line) noexcept;

// Time that a Wait leaves, from its beginning on.
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

// How a side that waits spends its time: looks again at once, or sleeps.
constexpr std::chrono::nanoseconds ring_spin_time(WaitPolicy policy) noexcept {
    if (policy == WaitPolicy::spin) return std::chrono::nanoseconds::max();
    return policy == WaitPolicy::adaptive ? std::chrono::nanoseconds(std::chrono::microseconds(100))
                                          : std::chrono::nanoseconds(0);
}
// Every so many looks while spinning come the clock and the scheduler, for there may be one core only.
inline constexpr std::uint32_t ring_looks_between_clocks = 16;
// Between two looks at the line while spinning: a system call, and a dead peer is to be noticed soon.
inline constexpr std::chrono::nanoseconds ring_line_look = std::chrono::milliseconds(1);
// Longest sleep without a look: what it bounds is a wake-up that the other side withheld.
inline constexpr std::chrono::nanoseconds ring_longest_sleep = std::chrono::milliseconds(100);

timespec ring_timespec(std::chrono::nanoseconds time) noexcept;

}  // namespace isthmus::inline v0::detail
