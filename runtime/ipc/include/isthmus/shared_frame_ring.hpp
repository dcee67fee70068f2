// SharedFrameRing: frames from one process to several others, in memory that all of them have mapped.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/detail/own_mapping.hpp>
#include <isthmus/device.hpp>
#include <isthmus/export.hpp>
#include <isthmus/result.hpp>
#include <isthmus/shared_ring_descriptor.hpp>
#include <isthmus/sharing_rung.hpp>
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

namespace isthmus::inline v0 {

// What the producer does about a reader that has not finished the frame which stands where the next one goes.
enum class RingPolicy : std::uint8_t {
    drop,  // overwrites it: the producer waits for nobody. A reader that was overtaken is told
    wait,  // waits for it, until SharedRingOptions::reader_deadline; then gives that reader up
};
// What a reader may do with the frames' memory. The header and the words of a reader are never another reader's to
// write.
enum class ReaderRights : std::uint8_t {
    read_only,   // sealed against writing: nobody but the producer's own mapping can (Linux 5.1)
    read_write,  // every reader can overwrite every frame: for GPUs whose driver cannot register memory for reading
                 // only, and readers that are trusted
};

struct SharedRingOptions {
    std::size_t slots = 4;  // 2 to 256
    RingPolicy policy = RingPolicy::drop;
    ReaderRights rights = ReaderRights::read_only;
    SeenBy seen_by = SeenBy::cpus_and_gpus;
    std::size_t most_readers = 16;  // at a time; 1 to 64
    // How long a reader may stand in the way without finishing a frame (RingPolicy::wait).
    std::chrono::nanoseconds reader_deadline = std::chrono::seconds(1);
    SharedUse use{.host = Use::writes_often, .device = Use::reads_once};  // of the producer's process
    WaitPolicy waiting = WaitPolicy::adaptive;  // how begin_frame() spends its time; spin makes no system call
};
struct SharedReaderOptions {
    SharedUse use{.host = Use::reads_once, .device = Use::reads_once};  // of this process
    WaitPolicy waiting = WaitPolicy::adaptive;                          // how next_frame() spends its time
    // What the producer may have this process map, and register with its device; a ring that takes more is refused
    // before anything of it is accepted.
    std::uint64_t most_bytes = std::uint64_t{4} << 30;
    std::size_t elements = 0;  // of a frame; a ring of others is refused. 0: any
};

// What became of a reader that was admitted.
enum class ReaderState : std::uint8_t {
    live,
    gone,        // its end of the line is closed: it ended, was killed, or never opened the ring
    too_slow,    // it stood in the way for longer than the deadline
    broke_rules  // a word of its was impossible; SharedReaderInfo::why names it
};
ISTHMUS_API std::string_view name(ReaderState state) noexcept;
struct SharedReaderInfo {
    std::uint32_t number = 0;  // as they were admitted
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
    Result<void> publish(BufferState& buffer, Wait wait);
    static Error published_before();
    void abandon() noexcept;
    void close() noexcept;
    std::uint64_t published() const noexcept;
    std::vector<SharedReaderInfo> readers();

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit RingProducerCore(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// A reader's half. See shared_ring_reader.cpp.
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
    RingPolicy policy() const noexcept;
    void* slot(std::size_t slot) const noexcept;
    const std::shared_ptr<RingFiles>& files() const noexcept;
    OwnMapping mapping() const noexcept;
    Result<Taken> take(Wait wait);
    void arrived(BufferState& buffer) noexcept;
    Result<void> finish(std::uint64_t frame, BufferState& buffer, Wait wait);
    static Error finished_before();
    // Finishes it, now or by a later call of take() or finish().
    void give_back(std::uint64_t frame, const std::shared_ptr<BufferState>& buffer) noexcept;

private:
    struct [[gnu::visibility("hidden")]] Parts;
    explicit RingReaderCore(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

// A slot as a buffer of this device: registered and used in place where the machine can, copied elsewhere.
template <class T, class Core>
Result<std::vector<Buffer<T>>> adopt_slots(Device& device, const Core& core, std::size_t slots, std::size_t elements,
                                           const SharedUse& use) {
    std::vector<Buffer<T>> buffers;
    for (std::size_t at = 0; at < slots; ++at) {
        // The mapping stays until the last use of the buffer has ended, wherever that is.
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
    std::vector<Buffer<T>> buffers;  // goes first: its memory is the core's
};

}  // namespace detail

// The producer's: to be filled by the host (write_on_host()), or by device work. Destroyed unpublished, the frame was
// none, and its number is the next one's.
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
    std::uint64_t number() const noexcept { return number_; }  // from 0 on, without gaps
    // Waits for device work that writes the frame, and shows it to all readers. Errors, with which it can be tried
    // again: in_use (a host view of it is open), timed_out, not_ready (Wait::never()), device_lost; invalid_handle
    // (done before).
    Result<void> publish(Wait wait = {}) {
        if (!ring_) return detail::RingProducerCore::published_before();
        Result<void> done = ring_->core->publish(*buffer().state(), wait);
        if (done) ring_.reset();
        return done;
    }

private:
    void abandon() noexcept {
        if (auto ring = std::move(ring_)) ring->core->abandon();
    }
    std::shared_ptr<State> ring_;
    std::uint64_t number_;
};

// The producer. One thread at a time. No call waits for a reader longer than its Wait and the deadline of the ring: a
// reader that dies, hangs or writes nonsense into its words is given up, and the others go on.
// Where the host fills the frames, begin_frame() and publish() allocate nothing and call no driver (I7).
template <class T>
class SharedFrameRing {
    using State = detail::SharedRingState<T, detail::RingProducerCore>;

public:
    // Frames of `elements` elements each, zero at first. Errors: invalid_argument (SharedRingOptions), unsupported
    // (SeenBy::gpus_only, with the rung that would be right; sealing against writing on older kernels), out_of_memory,
    // system_limit (file descriptors), and those of Device::adopt.
    static Result<SharedFrameRing> create(Device& device, std::size_t elements, const SharedRingOptions& options = {}) {
        auto core = detail::RingProducerCore::create(device, elements, sizeof(T), options);
        if (!core) return std::move(core).error();
        auto buffers = detail::adopt_slots<T>(device, **core, options.slots, elements, options.use);
        if (!buffers) return std::move(buffers).error();
        return SharedFrameRing(std::make_shared<State>(std::move(core).value(), std::move(buffers).value()));
    }

    // What one more process needs to read along, from the next frame that is published on. Decide before whom it is
    // given to: it cannot be taken back (I3). Errors: in_use (most_readers are there), invalid_handle (the ring is
    // closed), system_limit, out_of_memory, system_error.
    Result<SharedRingDescriptor> admit() { return state_->core->admit(); }
    // A frame to fill; one at a time. Errors: timed_out, not_ready (Wait::never()), invalid_handle (the ring is
    // closed), in_use (the last one is neither published nor abandoned).
    Result<SharedFrameToFill<T>> begin_frame(Wait wait = {}) {
        Result<std::uint64_t> number = state_->core->begin(wait);
        if (!number) return std::move(number).error();
        return SharedFrameToFill<T>(state_, *number);
    }
    // No frame comes any more: readers get what they have not had, and then Code::invalid_handle. So does the end of
    // the ring and of all its frames.
    void close() noexcept { state_->core->close(); }
    std::uint64_t published() const noexcept { return state_->core->published(); }
    // Those that were admitted; who is no longer live stays in the list until its place is given to another one.
    std::vector<SharedReaderInfo> readers() const { return state_->core->readers(); }
    std::size_t slots() const noexcept { return state_->buffers.size(); }
    // For queries (kind(), explain()).
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    explicit SharedFrameRing(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

// A frame that a reader has. What its bytes say was written by another process: judge them as such. Under
// RingPolicy::drop they may change while they are read, so that kernels and code must stand any bytes; finish() says
// whether they did.
template <class T>
class [[nodiscard]] SharedFrame {
    using State = detail::SharedRingState<T, detail::RingReaderCore>;

public:
    SharedFrame(std::shared_ptr<State> ring, const detail::RingReaderCore::Taken& taken)
        : ring_(std::move(ring)), taken_(taken) {}
    SharedFrame(SharedFrame&&) noexcept = default;
    SharedFrame& operator=(SharedFrame&& other) noexcept {
        if (this != &other) {
            give_back();
            ring_ = std::move(other.ring_);
            taken_ = other.taken_;
        }
        return *this;
    }
    // Finishes it. Where that cannot be done yet (a view of it is still open, device work takes too long), the reader's
    // next calls do it, and the producer waits meanwhile.
    ~SharedFrame() { give_back(); }
    const Buffer<T>& buffer() const noexcept { return ring_->buffers[taken_.slot]; }
    std::uint64_t number() const noexcept { return taken_.frame; }
    // Frames before this one that this reader was to have and that were overwritten before it came.
    std::uint64_t missed() const noexcept { return taken_.missed; }
    // Waits for device work that reads the frame, then says whether it was whole all the time. Success: what was made
    // of it counts. Code::overtaken: it was overwritten meanwhile, and what was made of it means nothing. Other errors:
    // peer_broke_rules (the stamp names what no producer writes); with these it can be tried again: in_use (a host view
    // of it is open), timed_out, not_ready (Wait::never()), device_lost; invalid_handle (done before).
    Result<void> finish(Wait wait = {}) {
        if (!ring_) return detail::RingReaderCore::finished_before();
        Result<void> done = ring_->core->finish(taken_.frame, *ring_->buffers[taken_.slot].state(), wait);
        if (done || done.code() == Code::overtaken || done.code() == Code::peer_broke_rules) ring_.reset();
        return done;
    }

private:
    void give_back() noexcept {
        if (auto ring = std::move(ring_)) ring->core->give_back(taken_.frame, ring->buffers[taken_.slot].state());
    }
    std::shared_ptr<State> ring_;
    detail::RingReaderCore::Taken taken_;
};

// A reader. One thread at a time. It believes nothing that the producer writes: whatever comes is a frame or a typed
// error. next_frame() and finish() import nothing; for frames that the device did not use they allocate nothing and
// call no driver (I7).
template <class T>
class SharedFrameReader {
    using State = detail::SharedRingState<T, detail::RingReaderCore>;

public:
    // Checks the descriptor, the seals and sizes of its files, maps them and lets the device have the frames. Takes the
    // descriptor, whatever the answer. Errors: invalid_argument (not a descriptor; frames of another size),
    // peer_broke_rules (the files are not what it says), out_of_memory (more than most_bytes, or than there is), and
    // those of Device::adopt.
    static Result<SharedFrameReader> open(Device& device, SharedRingDescriptor descriptor,
                                          SharedReaderOptions options = {}) {
        auto core = detail::RingReaderCore::open(device, std::move(descriptor), sizeof(T), options);
        if (!core) return std::move(core).error();
        auto buffers = detail::adopt_slots<T>(device, **core, (*core)->slots(), (*core)->elements(), options.use);
        if (!buffers) return std::move(buffers).error();
        return SharedFrameReader(std::make_shared<State>(std::move(core).value(), std::move(buffers).value()));
    }

    // The next frame; under RingPolicy::drop the oldest that is still there. Several may be held, as many as there are
    // slots. Errors: timed_out, not_ready (Wait::never()), invalid_handle (the ring was closed, and no frame is left),
    // peer_lost (the producer is gone, and no frame is left; or gave this reader up, and no frame is left that follows
    // without a gap), peer_broke_rules (names the word), in_use (the frame's slot is that of one which is still held).
    Result<SharedFrame<T>> next_frame(Wait wait = {}) {
        Result<detail::RingReaderCore::Taken> taken = state_->core->take(wait);
        if (!taken) return std::move(taken).error();
        state_->core->arrived(*state_->buffers[taken->slot].state());
        return SharedFrame<T>(state_, *taken);
    }
    std::size_t slots() const noexcept { return state_->buffers.size(); }
    std::size_t elements() const noexcept { return state_->core->elements(); }  // of a frame
    RingPolicy policy() const noexcept { return state_->core->policy(); }
    // For queries (kind(), explain()).
    const Buffer<T>& buffer(std::size_t slot) const noexcept { return state_->buffers[slot]; }

private:
    explicit SharedFrameReader(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace isthmus::inline v0
