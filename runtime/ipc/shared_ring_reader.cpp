// SPDX-License-Identifier: Apache-2.0
// A reader's half. Sizes come from the descriptor, checked once against the files. Of what the producer writes, one
// count and one stamp at a time are copied and checked against this side's state.
#include <isthmus/ipc/shared_frame_ring.hpp>

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "ipc_errors.hpp"
#include "ring_files.hpp"

#include <platform/os.hpp>

#include <algorithm>
#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using platform::os::ProcessCalls;
using protocol::ProcessAtomics;
using protocol::PublishedLook;
using protocol::PublishedVerdict;
using protocol::StampVerdict;
using Follower = protocol::FrameFollower<ProcessAtomics>;

// A line must be a stream socket between processes of this machine: nothing on which reading could block.
Result<void> check_line(const ProcessCalls& calls, int line) {
    int domain = 0, type = 0;
    socklen_t bytes = sizeof domain;
    const bool socket = calls.getsockopt(line, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
                        calls.getsockopt(line, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
    if (socket && domain == AF_UNIX && type == SOCK_STREAM) return {};
    return make_error<errors::ring_line_is_no_socket>();
}

}  // namespace

struct RingReaderCore::Parts {
    Parts(std::shared_ptr<DeviceState> owner, std::shared_ptr<RingFiles> opened, SealedMemory own, FileDescriptor end,
          std::uint64_t first, WaitPolicy policy, const ProcessCalls& used)
        : device(std::move(owner)),
          files(std::move(opened)),
          page(std::move(own)),
          line(std::move(end)),
          waiting(policy),
          wait_timeout(device->config->wait_timeout),
          calls(used),
          follower(atomics, files->published(), RingFiles::cursor(page)),
          next(first) {
        held.reserve(files->shape().slots);
        given_back.reserve(files->shape().slots);
    }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    // Signals the end to the producer even if a forked child holds a copy of the line.
    ~Parts() {
        if (!device->config->forked()) calls.shutdown(line.get(), SHUT_RDWR);
    }
    const std::shared_ptr<DeviceState> device;
    const std::shared_ptr<RingFiles> files;
    const SealedMemory page;
    const FileDescriptor line;
    const WaitPolicy waiting;
    const std::chrono::nanoseconds wait_timeout;
    const ProcessCalls& calls;
    const ProcessAtomics atomics{};
    const Follower follower;
    std::uint64_t next;               // next frame to take
    std::uint64_t seen = 0;           // last accepted count of the producer
    std::uint64_t missed = 0;         // since the last frame taken
    std::vector<std::uint64_t> held;  // taken and not finished, in order
    // A frame given back before it could be finished: a view of it was open, or device work continued.
    struct GivenBack {
        std::uint64_t frame = 0;
        std::weak_ptr<BufferState> buffer;
    };
    std::vector<GivenBack> given_back;
    bool doubtful = false;       // a held frame was overwritten
    bool producer_gone = false;  // or has given up this reader
    std::optional<LineWord> farewell;
    std::chrono::steady_clock::time_point line_seen{};
    std::optional<Error> broken;  // permanent

    Error broke(Error error) {
        broken = std::move(error);
        return *broken;
    }
    void let_go() {
        follower.let_go(held.empty() ? next : held.front());
        if (files->shape().policy == SlowReaderPolicy::overwrite || producer_gone) return;
        if (protocol::sleeper_to_wake(atomics, files->producer_asleep())) {
            send_on_line(calls, line.get(), LineWord::wake);
        }
    }
    void look_at_line() {
        if (producer_gone) return;
        line_seen = std::chrono::steady_clock::now();
        const LineState state = drain_line(calls, line.get());
        if (state.last && *state.last != LineWord::wake) farewell = state.last;
        producer_gone = state.ended || farewell.has_value();
    }
    // A look is a system call: a caller that asks again and again without waiting pays for one each millisecond.
    bool saw_line_lately() const { return std::chrono::steady_clock::now() - line_seen < ring_line_look; }
    // Under SlowReaderPolicy::wait no frame of a live reader is overwritten, but a frame that the producer destroyed is
    // missed as well. The producer's last word on the line says that this reader was given up, and must be reported
    // even while frames go on. The end of the line alone says nothing about the frames before it.
    bool was_given_up(const Taken& taken) {
        if (files->shape().policy != SlowReaderPolicy::wait || (taken.missed == 0 && !doubtful)) return false;
        doubtful = false;
        look_at_line();
        return farewell.has_value();
    }
    Result<void> finish(std::uint64_t frame, BufferState& buffer, Wait wait);
    void finish_given_back() {
        const auto done = [this](const GivenBack& each) {
            const std::shared_ptr<BufferState> buffer = each.buffer.lock();
            return !buffer || finished(finish(each.frame, *buffer, Wait::never()));
        };
        given_back.erase(std::remove_if(given_back.begin(), given_back.end(), done), given_back.end());
    }
    // Is the frame no longer held, whatever the outcome?
    static bool finished(const Result<void>& answer) noexcept {
        return answer || answer.code() == Code::overtaken || answer.code() == Code::peer_broke_rules;
    }
    // Polls for a frame. Empty: none yet; `over`: no more will come.
    Result<std::optional<Taken>> look(bool& over);
    Error lost() const {
        if (farewell == LineWord::too_slow) return make_error<errors::ring_reader_too_slow>();
        if (farewell == LineWord::broke_rules) return make_error<errors::ring_reader_broke_rules>();
        return make_error<errors::ring_producer_gone>();
    }
    void sleep(std::chrono::nanoseconds most) {
        protocol::announce_sleep(atomics, RingFiles::asleep(page));
        // Any change of the word needs a look; look() checks its validity.
        if (follower.published() == seen) {
            pollfd wait{line.get(), POLLIN, 0};
            const timespec time = ring_timespec(most);
            (void)calls.wait(&wait, 1, &time);
        }
        atomics.store_relaxed(RingFiles::asleep(page), 0);
        look_at_line();
    }
};

RingReaderCore::RingReaderCore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RingReaderCore::~RingReaderCore() = default;

Result<std::shared_ptr<RingReaderCore>> RingReaderCore::open(const Device& device, SharedRingDescriptor descriptor,
                                                             std::size_t element_bytes,
                                                             const SharedReaderOptions& options) {
    const ProcessCalls& calls = ProcessCalls::real();
    Result<rules::DecodedRing> ring = rules::decode_ring(descriptor.bytes(), platform::os::page_size_bytes());
    if (!ring) return std::move(ring).error();
    const rules::RingShape& shape = ring->shape;
    if (shape.file_bytes > options.max_bytes) {
        return make_error<errors::ring_larger_than_allowed>(shape.file_bytes, options.max_bytes);
    }
    if (options.elements != 0 && shape.elements != options.elements) {
        return make_error<errors::ring_of_other_frames>(shape.elements, options.elements);
    }
    if (shape.element_bytes != element_bytes) {
        return make_error<errors::ring_of_other_elements>(shape.element_bytes, element_bytes);
    }
    std::array<FileDescriptor, SharedRingDescriptor::fd_count> fds = descriptor.release_fds();
    if (Result<void> fine = check_line(calls, fds[2].get()); !fine) return std::move(fine).error();
    const SealedFor writers = shape.rights == ReaderRights::read_only ? SealedFor::maker : SealedFor::both;
    Result<SealedMemory> frames =
        SealedMemory::accept(std::move(fds[0]), static_cast<std::size_t>(shape.file_bytes), calls, writers);
    if (!frames) return std::move(frames).error();
    Result<SealedMemory> page =
        SealedMemory::accept(std::move(fds[1]), static_cast<std::size_t>(shape.page_bytes), calls);
    if (!page) return std::move(page).error();
    const rules::RingHeader wanted = rules::ring_header(shape);
    rules::RingHeader found{};
    std::memcpy(found.data(), frames->data(), found.size());
    if (found != wanted) return make_error<errors::ring_header_is_another>();
    frames->take_fd().close();
    page->take_fd().close();
    auto files = std::make_shared<RingFiles>(std::move(frames).value(), shape);
    auto parts = std::make_unique<Parts>(device.state(), std::move(files), std::move(page).value(), std::move(fds[2]),
                                         ring->place.first, options.waiting, calls);
    return std::shared_ptr<RingReaderCore>(new RingReaderCore(std::move(parts)));
}

std::size_t RingReaderCore::slots() const noexcept {
    return parts_->files->shape().slots;
}
std::size_t RingReaderCore::elements() const noexcept {
    return static_cast<std::size_t>(parts_->files->shape().elements);
}
SlowReaderPolicy RingReaderCore::policy() const noexcept {
    return parts_->files->shape().policy;
}
void* RingReaderCore::slot(std::size_t slot) const noexcept {
    return parts_->files->frame(slot);
}
const std::shared_ptr<RingFiles>& RingReaderCore::files() const noexcept {
    return parts_->files;
}
OwnMapping RingReaderCore::mapping() const noexcept {
    return {parts_->files, parts_->files->shape().rights == ReaderRights::read_write};
}

Result<std::optional<RingReaderCore::Taken>> RingReaderCore::Parts::look(bool& over) {
    const rules::RingShape& shape = files->shape();
    // After each overtaken frame the search restarts further on; bounded, because a false count could prolong it for
    // ever.
    for (std::uint32_t round = 0; round < 2 * shape.slots; ++round) {
        const std::uint64_t word = follower.published();
        const PublishedLook found = protocol::judge_published(word, seen, next, shape.kept());
        switch (found.verdict) {
            case PublishedVerdict::goes_back:
                return broke(make_error<errors::ring_count_went_back>(seen & ~protocol::ring_closed,
                                                                      word & ~protocol::ring_closed));
            case PublishedVerdict::too_great: return broke(make_error<errors::ring_count_impossible>(word));
            case PublishedVerdict::closed: over = true; [[fallthrough]];
            case PublishedVerdict::nothing: seen = word; return std::optional<Taken>();
            case PublishedVerdict::frame: break;
        }
        const auto slot = static_cast<std::size_t>(found.frame % shape.slots);
        for (const std::uint64_t other : held) {
            if (other % shape.slots == slot) return make_error<errors::ring_slot_still_held>();
        }
        seen = word;
        const std::uint64_t stamp = follower.stamp(files->stamp(found.frame));
        const StampVerdict verdict = protocol::judge_stamp(stamp, found.frame, shape.slots);
        if (verdict == StampVerdict::lie) {
            return broke(make_error<errors::ring_stamp_impossible>(slot, stamp, found.frame));
        }
        missed += found.missed;
        next = found.frame + 1;
        if (verdict == StampVerdict::whole) {
            held.push_back(found.frame);
            return std::optional<Taken>(Taken{found.frame, std::exchange(missed, 0), slot});
        }
        ++missed;
        let_go();
    }
    return std::optional<Taken>();
}

Result<RingReaderCore::Taken> RingReaderCore::take(Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span(parts.device->observer(), Span::ring_next, "a frame of a shared ring to read",
                      [&] { return parts.device->observed(); });
    const auto untold = [&]() -> Result<Taken> {
        if (parts.device->bars(rules::PublicCall::take_ring_frame))
            return parts.device->refusal(rules::PublicCall::take_ring_frame);
        if (parts.broken) return *parts.broken;
        parts.finish_given_back();
        const RingDeadline deadline(wait, parts.wait_timeout);
        const std::chrono::nanoseconds spins = ring_spin_time(parts.waiting);
        std::chrono::nanoseconds looked{0};
        bool last_look = false;
        for (std::uint32_t looks = 0;; ++looks) {
            bool over = false;
            const bool gone =
                parts.producer_gone;  // read before look(): frames published before the producer's end count
            Result<std::optional<Taken>> found = parts.look(over);
            if (!found) return std::move(found).error();
            if (*found && parts.was_given_up(**found)) {
                parts.held.pop_back();
                parts.broken = parts.lost();
                return *parts.broken;
            }
            if (*found) return **found;
            if (over) return make_error<errors::ring_closed_and_empty>();
            if (gone) return parts.lost();
            if (deadline.refuses() && (last_look || parts.saw_line_lately()))
                return make_error<errors::ring_frame_not_ready>();
            if (!deadline.refuses() && spins.count() > 0 && looks % ring_looks_between_clocks != 0) {
                if (looks > 64) protocol::ProcessAtomics::relax();
                continue;
            }
            parts.finish_given_back();  // the producer may wait for one of them
            const std::chrono::nanoseconds passed = deadline.passed();
            if (deadline.left() == std::chrono::nanoseconds(0)) {
                // Even after a short wait: distinguishes a dead producer from a slow one.
                if (last_look) return make_error<errors::ring_frame_timed_out>();
                last_look = true;
                parts.look_at_line();
                continue;
            }
            if (passed >= spins) {
                // The end of device work on a frame does not wake this thread.
                const std::chrono::nanoseconds longest = parts.given_back.empty() ? ring_longest_sleep : ring_line_look;
                parts.sleep(std::min(deadline.left(), longest));
                continue;
            }
            if (passed - looked >= ring_line_look) {
                looked = passed;
                parts.look_at_line();
            }
            parts.atomics.pause(looks);
        }
    };
    Result<Taken> done = untold();
    span.over(done);
    return done;
}

// Another process wrote the frame: the device's copy of the previous one is stale.
void RingReaderCore::arrived(BufferState& buffer) noexcept {
    if (buffer.views.seen().at_rest()) return;  // used in place: the state set below holds already
    const std::lock_guard lock(buffer.views);
    if (BufferSides* const sides = buffer.sides()) sides->host_writes();
    buffer.views.note_host_touched();
}

Result<void> RingReaderCore::finish(std::uint64_t frame, BufferState& buffer, Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span(parts.device->observer(), Span::ring_finish, "a frame of a shared ring",
                      [&] { return parts.device->observed(); });
    if (parts.device->bars(rules::PublicCall::finish_ring_frame))
        return span.over(parts.device->refusal(rules::PublicCall::finish_ring_frame));
    parts.finish_given_back();
    Result<void> done = parts.finish(frame, buffer, wait);
    span.over(done);
    return done;
}

Error RingReaderCore::finished_before() {
    return make_error<errors::ring_frame_finished_before>();
}

void RingReaderCore::give_back(std::uint64_t frame, const std::shared_ptr<BufferState>& buffer) noexcept {
    Parts& parts = *parts_;
    if (parts.device->config->forked() || Parts::finished(finish(frame, *buffer, {}))) return;
    parts.given_back.push_back({frame, buffer});  // capacity: one entry per slot
}

Result<void> RingReaderCore::Parts::finish(std::uint64_t frame, BufferState& buffer, Wait wait) {
    if (!buffer.views.seen().at_rest()) {
        std::unique_lock lock(buffer.views);
        if (buffer.views.open_against(ArgumentUse::write)) {
            return make_error<errors::ring_frame_has_open_view>();
        }
        lock.unlock();
        if (Result<void> waited = buffer.wait_for_uses(ArgumentUse::write, wait); !waited) return waited;
    }
    const rules::RingShape& shape = files->shape();
    const std::uint64_t stamp = follower.stamp_again(files->stamp(frame));
    const StampVerdict verdict = protocol::judge_stamp(stamp, frame, shape.slots);
    held.erase(std::remove(held.begin(), held.end(), frame), held.end());
    let_go();
    if (verdict == StampVerdict::whole) return {};
    if (verdict == StampVerdict::overtaken) {
        doubtful = true;
        return make_error<errors::ring_frame_overtaken>(frame, (stamp - 1) / 2);
    }
    return broke(make_error<errors::ring_stamp_became_impossible>(frame % shape.slots, stamp, frame));
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
