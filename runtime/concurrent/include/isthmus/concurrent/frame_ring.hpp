// SPDX-License-Identifier: Apache-2.0
// FrameRing: buffers that circulate between one producer and one consumer, as a camera's frames do.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// Behaviour of begin_frame() while no buffer is free.
enum class WhenFull : std::uint8_t {
    wait,         // waits for the consumer, as long as the Wait of the call allows
    drop_oldest,  // takes back the oldest frame not yet consumed; waits where the consumer holds all frames
    drop_newest,  // answers Code::not_ready at once: the new frame is dropped
};

struct RingOptions {
    std::size_t frames = 3;  // buffers; at least 2
    WhenFull when_full = WhenFull::wait;
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};  // of buffers that the ring allocates
};

struct RingCounts {
    std::uint64_t produced = 0;  // published
    std::uint64_t dropped = 0;   // taken back, published after close(), or never begun (drop_newest)
    std::uint64_t consumed = 0;  // returned by the consumer
};

namespace detail {

// Circulates slot numbers. They pass through two lock-free rings; a lock is taken only to sleep and to wake. Allocates
// nothing after construction.
class ISTHMUS_API RingCore {
public:
    struct Taken {
        std::size_t slot;
        std::uint64_t frame;  // numbered from 0 in order of publication, dropped frames included
    };
    RingCore(std::size_t slots, WhenFull when_full, std::chrono::nanoseconds wait_timeout);
    RingCore(const RingCore&) = delete;
    RingCore& operator=(const RingCore&) = delete;
    ~RingCore();
    void be_observed(const Device& device);       // by its runtime's observer; before the first call
    Result<Taken> begin(Wait wait);               // producer only
    void publish(const Taken& taken) noexcept;    // producer only
    void abandon(std::size_t slot) noexcept;      // producer only
    std::uint64_t next_frame() const noexcept;    // producer only: the number that the next publish() assigns
    Result<Taken> take(Wait wait);                // consumer only
    void give_back(const Taken& taken) noexcept;  // consumer only
    void close() noexcept;                        // any thread
    bool ended() const noexcept;
    RingCounts counts() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

template <class T>
struct RingState {
    RingState(std::vector<Buffer<T>> given, WhenFull when_full, std::chrono::nanoseconds timeout)
        : buffers(std::move(given)), core(buffers.size(), when_full, timeout) {}
    std::vector<Buffer<T>> buffers;
    RingCore core;
};

ISTHMUS_API std::chrono::nanoseconds wait_timeout_of(const Device& device) noexcept;
ISTHMUS_API Result<void> check_ring(const std::size_t* bytes, std::size_t count) noexcept;

// A slot as a scope. Movable; empty after a move.
template <class T>
class RingSlot {
public:
    Buffer<T>& buffer() const noexcept { return ring_->buffers[taken_.slot]; }
    explicit operator bool() const noexcept { return ring_ != nullptr; }

protected:
    RingSlot(std::shared_ptr<RingState<T>> ring, RingCore::Taken taken) : ring_(std::move(ring)), taken_(taken) {}
    RingSlot(RingSlot&&) noexcept = default;
    RingSlot& operator=(RingSlot&&) noexcept = default;
    ~RingSlot() = default;
    std::shared_ptr<RingState<T>> ring_;
    RingCore::Taken taken_;
};

}  // namespace detail

// The producer's frame, filled by the host (write_on_host()) or by device work. If it is destroyed unpublished, the
// buffer returns to the ring.
template <class T>
class [[nodiscard]] FrameToFill : public detail::RingSlot<T> {
public:
    FrameToFill(std::shared_ptr<detail::RingState<T>> ring, detail::RingCore::Taken taken)
        : detail::RingSlot<T>(std::move(ring), taken) {}
    FrameToFill(FrameToFill&&) noexcept = default;
    FrameToFill& operator=(FrameToFill&& other) noexcept {
        if (this != &other) {
            abandon();
            detail::RingSlot<T>::operator=(std::move(other));
        }
        return *this;
    }
    ~FrameToFill() { abandon(); }
    // The number that the frame gets if it is published next. Grows when another frame is published or dropped in the
    // meantime, so all frames held at the same time answer the same number. 0 for an empty frame. Producer's thread
    // only.
    std::uint64_t number() const noexcept { return this->ring_ ? this->ring_->core.next_frame() : 0; }
    // Passes the frame to the consumer. Close its host views first. Device work that fills it may still run: the
    // consumer's uses of the buffer are ordered behind it as with any buffer (on another stream with Stream::wait).
    void publish() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.publish(this->taken_);
    }

private:
    void abandon() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.abandon(this->taken_.slot);
    }
};

// The consumer's frame; the consumer may hold several. When it is destroyed, the buffer returns to the producer, whose
// write view waits for device work that still reads the buffer.
template <class T>
class [[nodiscard]] ReadyFrame : public detail::RingSlot<T> {
public:
    ReadyFrame(std::shared_ptr<detail::RingState<T>> ring, detail::RingCore::Taken taken)
        : detail::RingSlot<T>(std::move(ring), taken) {}
    ReadyFrame(ReadyFrame&&) noexcept = default;
    ReadyFrame& operator=(ReadyFrame&& other) noexcept {
        if (this != &other) {
            release();
            detail::RingSlot<T>::operator=(std::move(other));
        }
        return *this;
    }
    ~ReadyFrame() { release(); }
    // As published; numbers missing between two frames were dropped.
    std::uint64_t number() const noexcept { return this->taken_.frame; }
    void release() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.give_back(this->taken_);
    }
};

// One thread produces and one consumes at a time; both may be the same thread. Frames come out in the order of
// publication. begin_frame(), publish(), next_frame() and release() allocate nothing and make no driver call.
template <class T>
class FrameRing {
public:
    // Buffers of `elements` elements each. Errors: invalid_argument (fewer than 2 frames, no elements), and those of
    // Device::allocate_shared.
    static Result<FrameRing> create(Device& device, std::size_t elements, RingOptions options = {}) {
        // Checked before anything is allocated; the other create() checks all buffers.
        const std::size_t two[2] = {elements, elements};
        if (Result<void> fine = detail::check_ring(two, options.frames < 2 ? options.frames : 2); !fine) {
            return std::move(fine).error();
        }
        std::vector<Buffer<T>> buffers;
        for (std::size_t at = 0; at < options.frames; ++at) {
            Result<Buffer<T>> made = device.allocate_shared<T>(elements, options.use);
            if (!made) return std::move(made).error();
            buffers.push_back(std::move(made).value());
        }
        return create(device, std::move(buffers), options.when_full);
    }
    // The same with given buffers, for example adopted camera buffers. All have the same size.
    static Result<FrameRing> create(const Device& device, std::vector<Buffer<T>> buffers, WhenFull when_full) {
        std::vector<std::size_t> bytes;
        for (const Buffer<T>& buffer : buffers) bytes.push_back(buffer.size_bytes());
        if (Result<void> fine = detail::check_ring(bytes.data(), bytes.size()); !fine) return std::move(fine).error();
        auto ring =
            std::make_shared<detail::RingState<T>>(std::move(buffers), when_full, detail::wait_timeout_of(device));
        ring->core.be_observed(device);
        return FrameRing(std::move(ring));
    }

    // A buffer to fill. Errors: timed_out; not_ready (Wait::never(), drop_newest); ended (the ring is closed).
    Result<FrameToFill<T>> begin_frame(Wait wait = {}) {
        Result<detail::RingCore::Taken> taken = state_->core.begin(wait);
        if (!taken) return std::move(taken).error();
        return FrameToFill<T>(state_, *taken);
    }
    // The oldest frame that was published. Errors: timed_out, not_ready (Wait::never()), ended (the ring is closed,
    // and no frame is left).
    Result<ReadyFrame<T>> next_frame(Wait wait = {}) {
        Result<detail::RingCore::Taken> taken = state_->core.take(wait);
        if (!taken) return std::move(taken).error();
        return ReadyFrame<T>(state_, *taken);
    }
    // No more frames come; wakes both sides. Frames published before can still be taken; a frame published afterwards
    // is dropped.
    void close() noexcept { state_->core.close(); }
    bool ended() const noexcept { return state_->core.ended(); }  // closed, and no frame is left to take
    RingCounts counts() const noexcept { return state_->core.counts(); }
    std::size_t frames() const noexcept { return state_->buffers.size(); }
    // For queries (kind(), explain(), staged_bytes()). Any other use needs the slot.
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    explicit FrameRing(std::shared_ptr<detail::RingState<T>> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::RingState<T>> state_;
};

}  // namespace v0
}  // namespace isthmus
