// SPDX-License-Identifier: Apache-2.0
// RingCore: two rings of slot numbers, and sleeping until the other side moves.
#include <isthmus/concurrent/frame_ring.hpp>

#include "concurrent_errors.hpp"
#include "device_state.hpp"
#include "futex.hpp"
#include "wait_pause.hpp"

#include <algorithm>
#include <atomic>
#include <climits>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Ring of slot numbers: one thread pushes, up to two pop. Positions only grow and numbers never exceed places, so what
// pop() has read is not overwritten before it wins the position.
class NumberRing {
public:
    struct Number {
        std::atomic<std::size_t> slot{0};
        std::atomic<std::uint64_t> frame{0};
    };
    explicit NumberRing(std::size_t places) : numbers_(std::make_unique<Number[]>(places)), places_(places) {}

    // false: already closed.
    bool push(std::size_t slot, std::uint64_t frame) noexcept {
        std::uint64_t at = last_.load(std::memory_order_relaxed);
        if ((at & closed) != 0) return false;
        Number& number = numbers_[at % places_];
        number.slot.store(slot, std::memory_order_relaxed);
        number.frame.store(frame, std::memory_order_relaxed);
        // Pairs with the load in pop(). Sequentially consistent, like the sleeper count: either the sleeper sees the
        // number or the pusher sees the sleeper.
        return last_.compare_exchange_strong(at, at + 1, std::memory_order_seq_cst);  // fails if closed meanwhile
    }
    void close() noexcept { last_.fetch_or(closed, std::memory_order_seq_cst); }
    bool pop(RingCore::Taken& out) noexcept {
        std::uint64_t at = first_.load(std::memory_order_acquire);
        while (at != (last_.load(std::memory_order_seq_cst) & ~closed)) {
            const Number& number = numbers_[at % places_];
            out = {number.slot.load(std::memory_order_relaxed), number.frame.load(std::memory_order_relaxed)};
            // Release: a pusher that finds the place free is ordered after the loads above.
            if (first_.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_acquire))
                return true;
        }
        return false;
    }
    bool empty() const noexcept {
        return first_.load(std::memory_order_acquire) == (last_.load(std::memory_order_seq_cst) & ~closed);
    }

private:
    static constexpr std::uint64_t closed = std::uint64_t{1} << 63;  // flag in last_: no push succeeds after the close
    std::unique_ptr<Number[]> numbers_;
    const std::size_t places_;
    alignas(64) std::atomic<std::uint64_t> first_{0};
    alignas(64) std::atomic<std::uint64_t> last_{0};
};

// Threads that sleep until the other side moves. That side takes no lock, which a thread that has lost its core might
// hold: it changes a word, and wakes those that sleep on the word.
class Sleepers {
public:
    // Waits until moved() or the deadline; false: the deadline passed.
    template <class Moved>
    bool sleep(std::chrono::nanoseconds timeout, Moved moved) noexcept {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point begin = Clock::now();
        count_.fetch_add(1, std::memory_order_seq_cst);
        bool done = false;
        for (;;) {
            // Before moved(): a later move changes the word, so that the kernel does not let this thread sleep.
            const std::uint32_t seen = moves_.load(std::memory_order_acquire);  // pairs with the release in wake()
            done = moved();
            if (done) break;
            const std::chrono::nanoseconds waited = Clock::now() - begin;
            if (waited >= timeout) break;
            sleep_while(&moves_, seen, std::min(timeout - waited, longest));
        }
        count_.fetch_sub(1, std::memory_order_relaxed);
        return done;
    }
    void wake() noexcept {
        if (count_.load(std::memory_order_seq_cst) == 0) return;
        moves_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in sleep()
        wake_sleepers(&moves_, INT_MAX);
    }

private:
    // A thread that could not be woken looks again after this time.
    static constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(100);

    std::atomic<std::uint32_t> moves_{0};  // a futex
    static_assert(sizeof(moves_) == 4);
    std::atomic<int> count_{0};
};

// The error of a take without a frame: ring closed, or wait over.
Error nothing(bool closed, const Wait& wait, const char* what) {
    if (closed) return make_error<errors::frame_ring_is_closed>();
    if (wait.refuse) return make_error<errors::frame_ring_not_ready>(what);
    return make_error<errors::frame_ring_timed_out>(what);
}

}  // namespace

struct RingCore::Parts {
    Parts(std::size_t slots, WhenFull full, std::chrono::nanoseconds timeout)
        : ready(slots), free(slots), when_full(full), wait_timeout(timeout) {}
    NumberRing ready;  // pushed by the producer, popped by the consumer, and by the producer to drop frames
    NumberRing free;   // pushed by the consumer
    const WhenFull when_full;
    const std::chrono::nanoseconds wait_timeout;
    std::shared_ptr<DeviceState> observed;  // nullptr: there is no observer
    // The producer's own: buffers never used or abandoned, and the number of the next frame.
    std::unique_ptr<std::size_t[]> unused;
    std::size_t unused_count = 0;
    std::uint64_t next_frame = 0;
    Sleepers producer;
    Sleepers consumer;
    std::atomic<bool> closed{false};
    std::atomic<std::uint64_t> produced{0};
    std::atomic<std::uint64_t> dropped{0};
    std::atomic<std::uint64_t> consumed{0};

    ObservedSpan span(Span what, const char* name) const noexcept {
        static constexpr Observer nobody{};
        return ObservedSpan(observed ? observed->observer() : nobody, what, name, [&] { return observed->observed(); });
    }
    bool find(Taken& out) noexcept {
        if (unused_count > 0) {
            out.slot = unused[--unused_count];
            return true;
        }
        if (free.pop(out)) return true;
        if (when_full != WhenFull::drop_oldest || !ready.pop(out)) return false;
        dropped.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
};

RingCore::RingCore(std::size_t slots, WhenFull when_full, std::chrono::nanoseconds wait_timeout)
    : parts_(std::make_unique<Parts>(slots, when_full, wait_timeout)) {
    parts_->unused = std::make_unique<std::size_t[]>(slots);
    for (std::size_t at = 0; at < slots; ++at) parts_->unused[at] = slots - 1 - at;
    parts_->unused_count = slots;
}
RingCore::~RingCore() = default;

void RingCore::be_observed(const Device& device) {
    if (device.state()->observer()) parts_->observed = device.state();
}

Result<RingCore::Taken> RingCore::begin(Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span = parts.span(Span::ring_begin, "a frame to fill");
    const auto untold = [&]() -> Result<Taken> {
        Taken taken{};
        if (parts.closed.load(std::memory_order_seq_cst)) return make_error<errors::frame_ring_is_closed>();
        bool found = parts.find(taken);
        if (!found && parts.when_full == WhenFull::drop_newest) {
            parts.dropped.fetch_add(1, std::memory_order_relaxed);
            ++parts.next_frame;
            return make_error<errors::newest_frame_dropped>();
        }
        if (!found && !wait.refuse) {
            (void)parts.producer.sleep(wait.timeout.value_or(parts.wait_timeout), [&] {
                found = parts.find(taken);
                return found || parts.closed.load(std::memory_order_seq_cst);
            });
        }
        if (!found) return nothing(parts.closed.load(std::memory_order_seq_cst), wait, "no buffer came back");
        taken.frame = parts.next_frame;
        return taken;
    };
    Result<Taken> done = untold();
    span.over(done);
    return done;
}

void RingCore::publish(const Taken& taken) noexcept {
    Parts& parts = *parts_;
    const ObservedSpan span = parts.span(Span::ring_publish, "a frame");
    parts.produced.fetch_add(1, std::memory_order_relaxed);
    // Numbered here: an abandoned buffer was no frame.
    if (!parts.ready.push(taken.slot, parts.next_frame++)) {
        parts.dropped.fetch_add(1, std::memory_order_relaxed);
        abandon(taken.slot);
        return;
    }
    parts.consumer.wake();
}

void RingCore::abandon(std::size_t slot) noexcept {
    parts_->unused[parts_->unused_count++] = slot;
}

std::uint64_t RingCore::next_frame() const noexcept {
    return parts_->next_frame;
}

Result<RingCore::Taken> RingCore::take(Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span = parts.span(Span::ring_next, "a frame to read");
    const auto untold = [&]() -> Result<Taken> {
        Taken taken{};
        bool found = parts.ready.pop(taken);
        // Loads `closed` first: frames published before the close are visible then.
        const auto moved = [&] {
            const bool over = parts.closed.load(std::memory_order_seq_cst);
            found = parts.ready.pop(taken);
            return found || over;
        };
        bool over = false;
        if (!found)
            over = (wait.refuse ? moved() : parts.consumer.sleep(wait.timeout.value_or(parts.wait_timeout), moved));
        if (found) return taken;
        return nothing(over, wait, "no frame was published");
    };
    Result<Taken> done = untold();
    span.over(done);
    return done;
}

void RingCore::give_back(const Taken& taken) noexcept {
    const ObservedSpan span = parts_->span(Span::ring_finish, "a frame");
    parts_->consumed.fetch_add(1, std::memory_order_relaxed);
    (void)parts_->free.push(taken.slot, 0);  // never closed
    parts_->producer.wake();
}

void RingCore::close() noexcept {
    parts_->ready.close();  // first: after `closed` is seen, nothing can be pushed
    parts_->closed.store(true, std::memory_order_seq_cst);
    parts_->producer.wake();
    parts_->consumer.wake();
}

bool RingCore::ended() const noexcept {
    return parts_->closed.load(std::memory_order_seq_cst) && parts_->ready.empty();
}

RingCounts RingCore::counts() const noexcept {
    return {parts_->produced.load(std::memory_order_relaxed), parts_->dropped.load(std::memory_order_relaxed),
            parts_->consumed.load(std::memory_order_relaxed)};
}

std::chrono::nanoseconds wait_timeout_of(const Device& device) noexcept {
    return device.state()->config->wait_timeout;
}

Result<void> check_ring(const std::size_t* bytes, std::size_t count) noexcept {
    bool equal = count > 0 && bytes[0] > 0;
    for (std::size_t at = 1; at < count; ++at) equal = equal && bytes[at] == bytes[0];
    if (count >= 2 && equal) return {};
    if (count < 2) return make_error<errors::frame_ring_too_short>();
    return make_error<errors::frame_ring_sizes>();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
