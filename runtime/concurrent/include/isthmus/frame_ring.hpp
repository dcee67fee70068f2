// FrameRing: buffers that go round between one producer and one consumer, as a camera's frames do.
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

namespace isthmus::inline v0 {

// What begin_frame() does while no buffer is free.
enum class WhenFull : std::uint8_t {
    wait,         // for the consumer, as long as its Wait allows
    drop_oldest,  // takes the frame that waits longest for the consumer; where the consumer holds them all, waits
    drop_newest,  // answers Code::not_ready at once: the frame to come is dropped
};

struct RingOptions {
    std::size_t frames = 3;  // buffers; at least 2
    WhenFull when_full = WhenFull::wait;
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};  // of buffers that the ring allocates
};

struct RingCounts {
    std::uint64_t produced = 0;  // published
    std::uint64_t dropped = 0;   // published and taken back, or after close(), or never begun (drop_newest)
    std::uint64_t consumed = 0;  // given back by the consumer
};

namespace detail {

// Numbers of buffers going round. Slots pass through two rings of numbers without a lock; a lock is taken only to sleep
// and to wake. Allocates nothing after its construction.
class ISTHMUS_API RingCore {
public:
    struct Taken {
        std::size_t slot;
        std::uint64_t frame;  // numbered from 0 as they are published, dropped ones included
    };
    RingCore(std::size_t slots, WhenFull when_full, std::chrono::nanoseconds wait_timeout);
    RingCore(const RingCore&) = delete;
    RingCore& operator=(const RingCore&) = delete;
    ~RingCore();
    Result<Taken> begin(Wait wait);               // the producer's
    void publish(const Taken& taken) noexcept;    // …
    void abandon(std::size_t slot) noexcept;      // …
    std::uint64_t next_frame() const noexcept;    // …: the number that the next publish() gives
    Result<Taken> take(Wait wait);                // the consumer's
    void give_back(const Taken& taken) noexcept;  // …
    void close() noexcept;                        // any thread's
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

// A slot as a scope. Movable; gone from, it is empty.
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

// The producer's: to be filled by the host (write_on_host()), or by device work. Destroyed unpublished, the buffer goes
// back to the ring.
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
    // The number that the frame gets if it is published next. It grows whenever another frame is published or dropped
    // meanwhile, so that the frames that are held at the same time all answer the same. 0 where the frame is empty.
    // For the producer's thread.
    std::uint64_t number() const noexcept { return this->ring_ ? this->ring_->core.next_frame() : 0; }
    // Hands the frame to the consumer. Host views of it are closed; device work that fills it may still run: what the
    // consumer does with the buffer is ordered behind it as with any buffer (on another stream with Stream::wait).
    void publish() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.publish(this->taken_);
    }

private:
    void abandon() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.abandon(this->taken_.slot);
    }
};

// The consumer's, who may hold several. Destroyed, the buffer goes back to the producer, whose write view waits for
// device work that still reads it.
template <class T>
class [[nodiscard]] ReadyFrame : public detail::RingSlot<T> {
public:
    ReadyFrame(std::shared_ptr<detail::RingState<T>> ring, detail::RingCore::Taken taken)
        : detail::RingSlot<T>(std::move(ring), taken) {}
    ReadyFrame(ReadyFrame&&) noexcept = default;
    ReadyFrame& operator=(ReadyFrame&& other) noexcept {
        if (this != &other) {
            give_back();
            detail::RingSlot<T>::operator=(std::move(other));
        }
        return *this;
    }
    ~ReadyFrame() { give_back(); }
    // As it was published; what is missing between two was dropped.
    std::uint64_t number() const noexcept { return this->taken_.frame; }
    void give_back() noexcept {
        if (auto ring = std::move(this->ring_)) ring->core.give_back(this->taken_);
    }
};

// One thread produces and one consumes at a time; both may be the same one. Frames come out in the order in which they
// were published. begin_frame(), publish(), next_frame() and giving back allocate nothing and call no driver.
template <class T>
class FrameRing {
public:
    // Buffers of `elements` elements each. Errors: invalid_argument (fewer than 2 frames, no elements), and those of
    // Device::allocate_shared.
    static Result<FrameRing> create(Device& device, std::size_t elements, RingOptions options = {}) {
        // Before anything is allocated; of() looks at all of them.
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
        return of(device, std::move(buffers), options.when_full);
    }
    // … of these buffers: a camera's own, adopted, say. All of one size.
    static Result<FrameRing> of(const Device& device, std::vector<Buffer<T>> buffers, WhenFull when_full) {
        std::vector<std::size_t> bytes;
        for (const Buffer<T>& buffer : buffers) bytes.push_back(buffer.size_bytes());
        if (Result<void> fine = detail::check_ring(bytes.data(), bytes.size()); !fine) return std::move(fine).error();
        return FrameRing(
            std::make_shared<detail::RingState<T>>(std::move(buffers), when_full, detail::wait_timeout_of(device)));
    }

    // A buffer to fill. Errors: timed_out; not_ready (Wait::never(), drop_newest); invalid_handle (the ring is closed).
    Result<FrameToFill<T>> begin_frame(Wait wait = {}) {
        Result<detail::RingCore::Taken> taken = state_->core.begin(wait);
        if (!taken) return std::move(taken).error();
        return FrameToFill<T>(state_, *taken);
    }
    // The oldest frame that was published. Errors: timed_out, not_ready (Wait::never()), invalid_handle (the ring is
    // closed, and no frame is left).
    Result<ReadyFrame<T>> next_frame(Wait wait = {}) {
        Result<detail::RingCore::Taken> taken = state_->core.take(wait);
        if (!taken) return std::move(taken).error();
        return ReadyFrame<T>(state_, *taken);
    }
    // No frame comes any more; wakes both sides. Frames that were published can still be taken; one that is published
    // afterwards is dropped.
    void close() noexcept { state_->core.close(); }
    bool ended() const noexcept { return state_->core.ended(); }  // closed, and nothing is left to take
    RingCounts counts() const noexcept { return state_->core.counts(); }
    std::size_t frames() const noexcept { return state_->buffers.size(); }
    // For queries (kind(), explain(), staged_bytes()); who uses one otherwise holds its slot.
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    explicit FrameRing(std::shared_ptr<detail::RingState<T>> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::RingState<T>> state_;
};

}  // namespace isthmus::inline v0
