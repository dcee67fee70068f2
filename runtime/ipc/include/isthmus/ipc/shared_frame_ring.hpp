// SPDX-License-Identifier: Apache-2.0
// SharedFrameRing: frames from one process to several others, in memory that all of them map.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/detail/own_mapping.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/ipc/protocol/frame_stamps.hpp>
#include <isthmus/ipc/shared_ring_descriptor.hpp>
#include <isthmus/result.hpp>
#include <isthmus/share_method.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/wait.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// What the producer does when a reader has not finished the frame in the slot of the next frame.
enum class SlowReaderPolicy : std::uint8_t {
    overwrite,  // overwrites it: the producer never waits. The overtaken reader is told
    wait,       // waits until SharedRingOptions::reader_deadline, then gives that reader up
};
// A reader's access to the frames' memory. No reader can write the header or the words of another reader.
enum class ReaderRights : std::uint8_t {
    read_only,   // sealed against writing: only the producer's own mapping can write (Linux 5.1)
    read_write,  // every reader can overwrite every frame: for trusted readers, and for GPUs whose driver cannot
                 // register memory read-only
};

struct SharedRingOptions {
    std::size_t slots = 4;  // 2 to 256
    SlowReaderPolicy policy = SlowReaderPolicy::overwrite;
    ReaderRights rights = ReaderRights::read_only;
    SeenBy seen_by = SeenBy::cpus_and_gpus;
    std::size_t max_readers = 16;  // at the same time; 1 to 64
    // How long a reader may block the producer without finishing a frame (SlowReaderPolicy::wait).
    std::chrono::nanoseconds reader_deadline = std::chrono::seconds(1);
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};  // by the producer's process
    WaitPolicy waiting = WaitPolicy::adaptive;  // how begin_frame() waits; spin yields, and never sleeps
};
struct SharedReaderOptions {
    SharedUse use{.host = Use::reads_once, .device = Use::reads_once};  // by this process
    WaitPolicy waiting = WaitPolicy::adaptive;                          // how next_frame() waits
    // Limit for the memory that this process maps and registers for the producer; a larger ring is refused before any
    // of it is accepted.
    std::uint64_t max_bytes = std::uint64_t{4} << 30;
    std::size_t elements = 0;  // per frame; a ring with another number is refused. 0: any
};

// State of an admitted reader.
enum class ReaderState : std::uint8_t {
    live,
    gone,        // its end of the line is closed: the process ended, was killed, or never opened the ring
    too_slow,    // it blocked the producer for longer than the deadline
    broke_rules  // it wrote an impossible word; SharedReaderInfo::why names the word
};
ISTHMUS_API std::string_view name(ReaderState state) noexcept;
struct SharedReaderInfo {
    std::uint32_t number = 0;  // in the order of admission
    ReaderState state = ReaderState::live;
    std::string why;  // empty while live
};

namespace detail {

class RingFiles;

// The producer's half without element types: words, readers, waiting. See shared_ring_producer.cpp.
class ISTHMUS_API RingProducerCore {
public:
    static Result<std::shared_ptr<RingProducerCore>> create(const Device& device, std::size_t elements,
                                                            std::size_t element_bytes,
                                                            const SharedRingOptions& options);
    ~RingProducerCore();
    RingProducerCore(const RingProducerCore&) = delete;
    RingProducerCore& operator=(const RingProducerCore&) = delete;
    void* slot(std::size_t slot) const noexcept;
    const std::shared_ptr<RingFiles>& files() const noexcept;
    OwnMapping mapping() const noexcept;
    Result<SharedRingDescriptor> admit();
    Result<std::uint64_t> begin(Wait wait);
    Result<void> publish(std::uint64_t frame, BufferState& buffer, Wait wait);
    static Error published_before();
    void abandon(std::uint64_t frame) noexcept;
    void close() noexcept;
    std::uint64_t published() const noexcept;
    std::vector<SharedReaderInfo> readers();

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit RingProducerCore(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// The reader's half. See shared_ring_reader.cpp.
class ISTHMUS_API RingReaderCore {
public:
    struct Taken {
        std::uint64_t frame = 0;
        std::uint64_t missed = 0;
        std::size_t slot = 0;
    };
    static Result<std::shared_ptr<RingReaderCore>> open(const Device& device, SharedRingDescriptor descriptor,
                                                        std::size_t element_bytes, const SharedReaderOptions& options);
    ~RingReaderCore();
    RingReaderCore(const RingReaderCore&) = delete;
    RingReaderCore& operator=(const RingReaderCore&) = delete;
    std::size_t slots() const noexcept;
    std::size_t elements() const noexcept;
    SlowReaderPolicy policy() const noexcept;
    void* slot(std::size_t slot) const noexcept;
    const std::shared_ptr<RingFiles>& files() const noexcept;
    OwnMapping mapping() const noexcept;
    Result<Taken> take(Wait wait);
    void arrived(BufferState& buffer) noexcept;
    Result<void> finish(std::uint64_t frame, BufferState& buffer, Wait wait);
    static Error finished_before();
    // Finishes the frame, now or in a later call of take() or finish().
    void give_back(std::uint64_t frame, const std::shared_ptr<BufferState>& buffer) noexcept;

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit RingReaderCore(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// The slots as buffers of this device: registered and used in place where the machine can, copied elsewhere.
template <class T, class Core>
Result<std::vector<Buffer<T>>> adopt_slots(Device& device, const Core& core, std::size_t slots, std::size_t elements,
                                           const SharedUse& use) {
    std::vector<Buffer<T>> buffers;
    for (std::size_t at = 0; at < slots; ++at) {
        // The mapping stays until the last use of the buffer has ended, on any thread or stream.
        Result<std::shared_ptr<BufferState>> made =
            adopt_mapping(device.state(), core.slot(at), elements * sizeof(T), use, core.mapping());
        if (!made) return std::move(made).error();
        buffers.emplace_back(std::move(made).value());
    }
    return buffers;
}

template <class T, class Core>
struct SharedRingState {
    SharedRingState(std::shared_ptr<Core> made, std::vector<Buffer<T>> slots)
        : core(std::move(made)), buffers(std::move(slots)) {}
    std::shared_ptr<Core> core;
    std::vector<Buffer<T>> buffers;  // declared last, destroyed first: their memory belongs to the core
};

struct SharedRingParts;  // below

}  // namespace detail

// The producer's frame, filled by the host (write_on_host()) or by device work. If it is destroyed unpublished, its
// number goes to the next frame; but if a later frame was begun already, readers count this one as missed.
template <class T>
class [[nodiscard]] SharedFrameToFill {
    using State = detail::SharedRingState<T, detail::RingProducerCore>;

public:
    SharedFrameToFill(std::shared_ptr<State> ring, std::uint64_t number) : ring_(std::move(ring)), number_(number) {}
    SharedFrameToFill(SharedFrameToFill&&) noexcept = default;
    SharedFrameToFill& operator=(SharedFrameToFill&& other) noexcept {
        if (this != &other) {
            abandon();
            ring_ = std::move(other.ring_);
            number_ = other.number_;
        }
        return *this;
    }
    ~SharedFrameToFill() { abandon(); }
    Buffer<T>& buffer() const noexcept { return ring_->buffers[number_ % ring_->buffers.size()]; }
    std::uint64_t number() const noexcept { return number_; }  // from 0, without gaps
    // Waits for device work that writes the frame, then makes it visible to all readers: at once if all frames that
    // were begun before are published or destroyed, otherwise together with the last of those. Errors after which the
    // call can be repeated: in_use (a host view of it is open), timed_out, not_ready (Wait::never()), device_lost. Also
    // invalid_handle (already published).
    Result<void> publish(Wait wait = {}) {
        if (!ring_) return detail::RingProducerCore::published_before();
        Result<void> done = ring_->core->publish(number_, *buffer().state(), wait);
        if (done) ring_.reset();
        return done;
    }

private:
    void abandon() noexcept {
        if (auto ring = std::move(ring_)) ring->core->abandon(number_);
    }
    std::shared_ptr<State> ring_;
    std::uint64_t number_;
};

// The producer. One thread at a time. No call waits for a reader longer than its Wait and the ring's deadline: a reader
// that dies, hangs or writes invalid words is given up, and the others continue. Where the host fills the frames,
// begin_frame() and publish() allocate nothing and make no driver call (I7).
template <class T>
class SharedFrameRing {
    using State = detail::SharedRingState<T, detail::RingProducerCore>;

public:
    // Frames of `elements` elements each, initially zero. Errors: invalid_argument (SharedRingOptions), unsupported
    // (SeenBy::gpus_only: the error names the share method to use; sealing against writing on older kernels),
    // out_of_memory, system_limit (file descriptors), and those of Device::adopt.
    static Result<SharedFrameRing> create(Device& device, std::size_t elements, const SharedRingOptions& options = {}) {
        auto core = detail::RingProducerCore::create(device, elements, sizeof(T), options);
        if (!core) return std::move(core).error();
        auto buffers = detail::adopt_slots<T>(device, **core, options.slots, elements, options.use);
        if (!buffers) return std::move(buffers).error();
        return SharedFrameRing(std::make_shared<State>(std::move(core).value(), std::move(buffers).value()));
    }

    // Admits one more reader process, which reads from the next published frame on. Authorise before sending the
    // descriptor: the right cannot be revoked (I3). Errors: in_use (max_readers are admitted), ended (the ring is
    // closed), system_limit, out_of_memory, system_error.
    Result<SharedRingDescriptor> admit() { return state_->core->admit(); }
    // A frame to fill. Several may be held, frames_ahead(), and are published in the order in which they were begun.
    // Under SlowReaderPolicy::overwrite each one held is a frame less that readers can still take. Errors: timed_out,
    // not_ready (Wait::never()), ended (the ring is closed), in_use (as many as may be are held).
    Result<SharedFrameToFill<T>> begin_frame(Wait wait = {}) {
        Result<std::uint64_t> number = state_->core->begin(wait);
        if (!number) return std::move(number).error();
        return SharedFrameToFill<T>(state_, *number);
    }
    // No more frames come: readers get the remaining frames, and then Code::ended. Frames that are still being filled
    // count as destroyed. Destroying the ring and all its frames does the same.
    void close() noexcept { state_->core->close(); }
    std::uint64_t published() const noexcept { return state_->core->published(); }
    // The admitted readers. A reader that is no longer live stays in the list until its place is given to another.
    std::vector<SharedReaderInfo> readers() const { return state_->core->readers(); }
    std::size_t slots() const noexcept { return state_->buffers.size(); }
    // How many frames may be begun at once: two less than the slots, and at least one.
    std::size_t frames_ahead() const noexcept { return static_cast<std::size_t>(protocol::frames_ahead(slots())); }
    // For queries (kind(), explain()).
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    friend struct detail::SharedRingParts;
    explicit SharedFrameRing(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

// A reader's frame. Another process wrote its bytes: validate them. Under SlowReaderPolicy::overwrite they may change
// while they are read: kernels and code must tolerate any bytes, and finish() says whether they changed.
template <class T>
class [[nodiscard]] SharedFrame {
    using State = detail::SharedRingState<T, detail::RingReaderCore>;

public:
    SharedFrame(std::shared_ptr<State> ring, const detail::RingReaderCore::Taken& taken)
        : ring_(std::move(ring)), taken_(taken) {}
    SharedFrame(SharedFrame&&) noexcept = default;
    SharedFrame& operator=(SharedFrame&& other) noexcept {
        if (this != &other) {
            release();
            ring_ = std::move(other.ring_);
            taken_ = other.taken_;
        }
        return *this;
    }
    // Finishes the frame. Where that is not possible yet (a view is still open, device work takes too long), the
    // reader's next calls finish it, and the producer waits meanwhile.
    ~SharedFrame() { release(); }
    const Buffer<T>& buffer() const noexcept { return ring_->buffers[taken_.slot]; }
    std::uint64_t number() const noexcept { return taken_.frame; }
    // Number of frames due to this reader that were overwritten between its previous frame and this one.
    std::uint64_t missed() const noexcept { return taken_.missed; }
    // Waits for device work that reads the frame, then checks that the frame was intact throughout. Success: results
    // from it are valid. Code::overtaken: it was overwritten meanwhile, and results from it are invalid. Other errors:
    // peer_broke_rules (an impossible stamp); repeatable: in_use (a host view of it is open), timed_out, not_ready
    // (Wait::never()), device_lost; invalid_handle (already finished).
    Result<void> finish(Wait wait = {}) {
        if (!ring_) return detail::RingReaderCore::finished_before();
        Result<void> done = ring_->core->finish(taken_.frame, *ring_->buffers[taken_.slot].state(), wait);
        if (done || done.code() == Code::overtaken || done.code() == Code::peer_broke_rules) ring_.reset();
        return done;
    }

private:
    void release() noexcept {
        if (auto ring = std::move(ring_)) ring->core->give_back(taken_.frame, ring->buffers[taken_.slot].state());
    }
    std::shared_ptr<State> ring_;
    detail::RingReaderCore::Taken taken_;
};

// A reader. One thread at a time. It trusts nothing that the producer writes: every input yields a frame or a typed
// error. next_frame() and finish() import nothing; for frames that the device did not use they allocate nothing and
// make no driver call (I7).
template <class T>
class SharedFrameReader {
    using State = detail::SharedRingState<T, detail::RingReaderCore>;

public:
    // Checks the descriptor and the seals and sizes of its files, maps them and makes the frames usable by the device.
    // Takes the descriptor in every case. Errors: invalid_argument (not a descriptor; frames of another size),
    // peer_broke_rules (the files differ from the descriptor), out_of_memory (more than max_bytes, or than available),
    // and those of Device::adopt.
    static Result<SharedFrameReader> open(Device& device, SharedRingDescriptor descriptor,
                                          SharedReaderOptions options = {}) {
        auto core = detail::RingReaderCore::open(device, std::move(descriptor), sizeof(T), options);
        if (!core) return std::move(core).error();
        auto buffers = detail::adopt_slots<T>(device, **core, (*core)->slots(), (*core)->elements(), options.use);
        if (!buffers) return std::move(buffers).error();
        return SharedFrameReader(std::make_shared<State>(std::move(core).value(), std::move(buffers).value()));
    }

    // The next frame; under SlowReaderPolicy::overwrite the oldest one still there. Several may be held, up to the
    // number of slots. Errors: timed_out, not_ready (Wait::never()), ended (the ring was closed, and no frame is left),
    // peer_lost (the producer is gone, and no frame is left; or it gave this reader up, and no frame is left that
    // follows without a gap), peer_broke_rules (names the word), in_use (the slot's frame is still held). Under
    // SlowReaderPolicy::wait the ring's deadline runs against this reader while the producer waits for a slot that it
    // holds: with all slots held at the latest, and with more than slots() - frames_ahead() held also where the
    // producer waits for frames ahead. A producer that holds frames and asks with Wait::never() does not wait. With
    // Wait::never() the producer's death is noticed up to a millisecond late: looking for it is a system call.
    Result<SharedFrame<T>> next_frame(Wait wait = {}) {
        Result<detail::RingReaderCore::Taken> taken = state_->core->take(wait);
        if (!taken) return std::move(taken).error();
        state_->core->arrived(*state_->buffers[taken->slot].state());
        return SharedFrame<T>(state_, *taken);
    }
    std::size_t slots() const noexcept { return state_->buffers.size(); }
    std::size_t elements() const noexcept { return state_->core->elements(); }  // per frame
    SlowReaderPolicy policy() const noexcept { return state_->core->policy(); }
    // For queries (kind(), explain()).
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    friend struct detail::SharedRingParts;
    explicit SharedFrameReader(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

namespace detail {

// For libraries over this one: a ring or a reader of parts that exist.
struct SharedRingParts {
    template <class T>
    static SharedFrameRing<T> ring(std::shared_ptr<SharedRingState<T, RingProducerCore>> state) {
        return SharedFrameRing<T>(std::move(state));
    }
    template <class T>
    static SharedFrameReader<T> reader(std::shared_ptr<SharedRingState<T, RingReaderCore>> state) {
        return SharedFrameReader<T>(std::move(state));
    }
};

}  // namespace detail

}  // namespace v0
}  // namespace isthmus
