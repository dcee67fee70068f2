// SPDX-License-Identifier: Apache-2.0
// The producer's half: its readers, which of them block it, and for how long. Of what readers write, only cursors are
// used, each copied once and checked; all other state is the producer's own.
#include <isthmus/ipc/shared_frame_ring.hpp>

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "ipc_errors.hpp"
#include "ring_files.hpp"
#include "share_method.hpp"

#include <platform/os.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using platform::os::ProcessCalls;
using protocol::CursorVerdict;
using protocol::ProcessAtomics;
using Stamper = protocol::FrameStamper<ProcessAtomics>;
using Time = std::chrono::steady_clock::time_point;

// For the reasons why a reader ends that is honest: no heap is used when one dies or is too slow.
constexpr std::size_t reason_bytes = 64;

struct Reader {
    SharedReaderInfo info{0, ReaderState::gone, {}};
    SealedMemory page;
    FileDescriptor line;
    std::uint64_t cursor = 0;  // last accepted value
    bool in_the_way = false;
    Time since{};  // when it began to block without moving
    bool live() const noexcept { return info.state == ReaderState::live; }
};

Result<void> check_options(const SharedRingOptions& options) {
    if (options.max_readers < 1 || options.max_readers > 64) {
        return make_error<errors::ring_reader_count_out_of_range>();
    }
    if (options.reader_deadline <= std::chrono::nanoseconds(0)) {
        return make_error<errors::ring_readers_without_time>();
    }
    return {};
}

// Rings require the host-memory share method.
Result<void> check_method(const Device& device, SeenBy seen) {
    const rules::SharingEnd end = rules::sharing_end(device.capabilities());
    const rules::ShareMethodAnswer answer = rules::choose_share_method(seen, end, end, true);
    if (answer.method == ShareMethod::host_memory) return {};
    return make_error<errors::ring_not_on_host_memory>(name(answer.method), answer.reason);
}

// What becomes of the frames that were begun and are not counted as published.
enum class FrameState : std::uint8_t { filling, complete, abandoned };

Result<std::array<std::byte, 16>> drawn_id(const ProcessCalls& calls) {
    std::array<std::byte, 16> id{};
    if (calls.getrandom(id.data(), id.size(), 0) == static_cast<ssize_t>(id.size())) return id;
    return system_failure("getrandom", errno, "no identity could be drawn for a shared frame ring");
}

}  // namespace

struct RingProducerCore::Parts {
    Parts(std::shared_ptr<DeviceState> owner, std::shared_ptr<RingFiles> made, FileDescriptor file,
          const SharedRingOptions& asked, const ProcessCalls& used)
        : device(std::move(owner)),
          files(std::move(made)),
          frames_fd(std::move(file)),
          options(asked),
          wait_timeout(device->config->wait_timeout),
          calls(used),
          stamper(atomics, files->published()),
          readers(asked.max_readers),
          states(asked.slots) {}
    const std::shared_ptr<DeviceState> device;
    const std::shared_ptr<RingFiles> files;
    const FileDescriptor frames_fd;  // for sending
    const SharedRingOptions options;
    const std::chrono::nanoseconds wait_timeout;
    const ProcessCalls& calls;
    const ProcessAtomics atomics{};
    const Stamper stamper;
    std::vector<Reader> readers;
    std::uint32_t admitted = 0;
    std::uint64_t published = 0;
    std::uint64_t begun = 0;         // frames up to here were begun
    std::vector<FrameState> states;  // of the frames from `published` to `begun`, by slot
    bool closed = false;

    void drop(Reader& reader, ReaderState state, std::string_view why) {
        if (state == ReaderState::too_slow) send_on_line(calls, reader.line.get(), LineWord::too_slow);
        if (state == ReaderState::broke_rules) send_on_line(calls, reader.line.get(), LineWord::broke_rules);
        reader.info.state = state;
        reader.info.why.assign(why);
        device->observer().mark(Mark::reader_lost, "a reader of a shared ring", [&] {
            ObservedFacts facts = device->observed();
            facts.position = published;
            facts.reason = reader.info.why;
            return facts;
        });
        // Its page stays mapped until another reader gets the place: a turn of a sealed loop unmaps nothing.
        // shutdown, because a forked child may hold a copy that close() alone would leave open
        calls.shutdown(reader.line.get(), SHUT_RDWR);
        reader.line.close();
    }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        if (device->config->forked()) return;
        for (const Reader& reader : readers) {
            if (reader.live()) calls.shutdown(reader.line.get(), SHUT_RDWR);
        }
    }
    void note_end(Reader& reader) {
        if (reader.live() && drain_line(calls, reader.line.get()).ended) {
            drop(reader, ReaderState::gone, "its end of the line is closed");
        }
    }
    FrameState& state_of(std::uint64_t frame) { return states[frame % states.size()]; }
    bool may_begin() const { return begun - published < protocol::frames_ahead(states.size()); }
    // Shows the complete frames that have none before them that is being filled, and leaves out abandoned ones there.
    // Abandoned ones behind all others were never begun.
    void show() {
        while (begun > published && state_of(begun - 1) == FrameState::abandoned) --begun;
        const std::uint64_t before = published;
        for (; published < begun && state_of(published) != FrameState::filling; ++published) {
            if (state_of(published) == FrameState::complete) {
                stamper.publish(files->stamp(published), published);
            } else {
                stamper.leave_out(files->stamp(published), published, states.size());
            }
        }
        if (published != before) wake_readers(false);
    }
    // false: the ring waits for this reader. Its cursor is loaded only if the last accepted value does not suffice; a
    // loaded value is checked at once. `counts`: the reader's time runs.
    bool out_of_the_way(Reader& reader, bool counts) {
        const std::uint32_t slots = files->shape().slots;
        if (!reader.live() || protocol::has_room(begun, reader.cursor, slots)) return true;
        const std::uint64_t cursor = stamper.cursor(RingFiles::cursor(reader.page));
        const CursorVerdict verdict = protocol::judge_cursor(cursor, reader.cursor, published);
        if (verdict != CursorVerdict::fine) {
            drop(reader, ReaderState::broke_rules,
                 composed("its word `cursor` {}: {} behind {}, of {} frames",
                          verdict == CursorVerdict::goes_back ? "went back" : "ran ahead", cursor, reader.cursor,
                          published));
            return true;
        }
        if (cursor != reader.cursor) reader.in_the_way = false;
        reader.cursor = cursor;
        if (protocol::has_room(begun, cursor, slots)) return true;
        if (counts && !reader.in_the_way) {
            reader.in_the_way = true;
            reader.since = std::chrono::steady_clock::now();
        }
        return false;
    }
    bool may_write(bool counts = true) {
        if (options.policy == SlowReaderPolicy::overwrite) return true;
        bool free = true;
        for (Reader& reader : readers) {
            const bool away = out_of_the_way(reader, counts);
            if (away) reader.in_the_way = false;
            free = away && free;
        }
        return free;
    }
    // Drops readers that have blocked for too long. Returns the time that the next one has left.
    std::chrono::nanoseconds give_up_slow_readers() {
        std::chrono::nanoseconds soonest = std::chrono::nanoseconds::max();
        const Time now = std::chrono::steady_clock::now();
        for (Reader& reader : readers) {
            if (!reader.live() || !reader.in_the_way) continue;
            const std::chrono::nanoseconds left = options.reader_deadline - (now - reader.since);
            if (left > std::chrono::nanoseconds(0)) {
                soonest = std::min(soonest, left);
            } else {
                drop(reader, ReaderState::too_slow, "it stood in the way for longer than the ring's deadline");
            }
        }
        return soonest;
    }
    // Sleeps until a blocking reader moves or ends, or `most` has passed.
    void sleep(std::chrono::nanoseconds most) {
        std::vector<pollfd>& waits = polled;
        waits.clear();
        for (const Reader& reader : readers) {
            if (reader.live() && reader.in_the_way) waits.push_back({reader.line.get(), POLLIN, 0});
        }
        protocol::announce_sleep(atomics, files->producer_asleep());
        if (!may_write()) {
            const timespec time = ring_timespec(most);
            (void)calls.wait(waits.data(), waits.size(), &time);
        }
        atomics.store_relaxed(files->producer_asleep(), 0);
        for (Reader& reader : readers) note_end(reader);
    }
    std::vector<pollfd> polled;

    void wake_readers(bool all) {
        bool fenced = false;
        for (Reader& reader : readers) {
            if (!reader.live()) continue;
            // One fence for all readers, after the publication.
            const std::uint32_t* const asleep = RingFiles::asleep(reader.page);
            const bool sleeps = fenced ? atomics.load_relaxed(const_cast<std::uint32_t*>(asleep)) != 0
                                       : protocol::sleeper_to_wake(atomics, const_cast<std::uint32_t*>(asleep));
            fenced = true;
            if (all || sleeps) send_on_line(calls, reader.line.get(), LineWord::wake);
        }
    }
};

RingProducerCore::RingProducerCore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RingProducerCore::~RingProducerCore() {
    close();
}

Result<std::shared_ptr<RingProducerCore>> RingProducerCore::create(const Device& device, std::size_t elements,
                                                                   std::size_t element_bytes,
                                                                   const SharedRingOptions& options) {
    if (Result<void> fine = check_options(options); !fine) return std::move(fine).error();
    Result<rules::RingShape> shape = rules::make_ring_shape(elements, static_cast<std::uint32_t>(element_bytes),
                                                            options, platform::os::page_size_bytes());
    if (!shape) return std::move(shape).error();
    if (Result<void> fine = check_method(device, options.seen_by); !fine) return std::move(fine).error();
    const ProcessCalls& calls = ProcessCalls::real();
    Result<std::array<std::byte, 16>> id = drawn_id(calls);
    if (!id) return std::move(id).error();
    shape->id = *id;
    const SealedFor writers = options.rights == ReaderRights::read_only ? SealedFor::maker : SealedFor::both;
    Result<SealedMemory> memory =
        SealedMemory::create(static_cast<std::size_t>(shape->file_bytes), "isthmus-ring", calls, writers);
    if (!memory) return std::move(memory).error();
    FileDescriptor frames_fd = memory->take_fd();
    auto files = std::make_shared<RingFiles>(std::move(memory).value(), *shape);
    const rules::RingHeader header = rules::ring_header(*shape);
    std::memcpy(files->header(), header.data(), header.size());
    auto parts = std::make_unique<Parts>(device.state(), std::move(files), std::move(frames_fd), options, calls);
    parts->polled.reserve(options.max_readers);
    return std::shared_ptr<RingProducerCore>(new RingProducerCore(std::move(parts)));
}

void* RingProducerCore::slot(std::size_t slot) const noexcept {
    return parts_->files->frame(slot);
}
const std::shared_ptr<RingFiles>& RingProducerCore::files() const noexcept {
    return parts_->files;
}
OwnMapping RingProducerCore::mapping() const noexcept {
    return {parts_->files};
}
std::uint64_t RingProducerCore::published() const noexcept {
    return parts_->published;
}

Result<SharedRingDescriptor> RingProducerCore::admit() {
    Parts& parts = *parts_;
    if (parts.device->bars(rules::PublicCall::admit_ring_reader))
        return parts.device->refusal(rules::PublicCall::admit_ring_reader);
    if (parts.closed) return make_error<errors::shared_ring_closed>();
    Reader* place = nullptr;
    for (Reader& reader : parts.readers) {
        parts.note_end(reader);
        if (!reader.live() && place == nullptr) place = &reader;
    }
    if (place == nullptr) return make_error<errors::ring_has_all_its_readers>(parts.readers.size());
    const rules::RingShape& shape = parts.files->shape();
    Result<SealedMemory> page =
        SealedMemory::create(static_cast<std::size_t>(shape.page_bytes), "isthmus-ring-reader", parts.calls);
    if (!page) return std::move(page).error();
    int ends[2] = {-1, -1};
    if (parts.calls.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return system_failure("socketpair", errno, "no line to a reader could be made");
    }
    FileDescriptor ours(ends[0]), theirs(ends[1]);
    FileDescriptor frames(parts.calls.fcntl(parts.frames_fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!frames) return system_failure("fcntl(F_DUPFD_CLOEXEC)", errno, "no descriptor for a reader could be made");
    parts.atomics.store_stamped_relaxed(RingFiles::cursor(*page), parts.published);
    place->info = {parts.admitted++, ReaderState::live, {}};
    place->info.why.reserve(reason_bytes);
    FileDescriptor cursor = page->take_fd();
    place->page = std::move(page).value();
    place->line = std::move(ours);
    place->cursor = parts.published;
    place->in_the_way = false;
    return SharedRingDescriptor(rules::encode_ring(shape, {place->info.number, parts.published}),
                                {std::move(frames), std::move(cursor), std::move(theirs)});
}

Result<std::uint64_t> RingProducerCore::begin(Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span(parts.device->observer(), Span::ring_begin, "a frame of a shared ring to fill",
                      [&] { return parts.device->observed(); });
    const auto untold = [&]() -> Result<std::uint64_t> {
        if (parts.device->bars(rules::PublicCall::begin_ring_frame))
            return parts.device->refusal(rules::PublicCall::begin_ring_frame);
        if (parts.closed) return make_error<errors::shared_ring_closed>();
        if (!parts.may_begin()) return make_error<errors::ring_frame_being_filled>(parts.begun - parts.published);
        const RingDeadline deadline(wait, parts.wait_timeout);
        const std::chrono::nanoseconds spins = ring_spin_time(parts.options.waiting);
        std::chrono::nanoseconds looked{0};
        bool last_look = false;
        // A caller that holds frames and does not wait for another one loses nothing by a reader that holds frames too.
        const bool counts = !deadline.refuses() || parts.begun == parts.published;
        for (std::uint32_t looks = 0; !parts.may_write(counts); ++looks) {
            if (deadline.refuses() && last_look) return make_error<errors::ring_reader_in_the_way>();
            if (!deadline.refuses() && spins.count() > 0 && looks % ring_looks_between_clocks != 0) {
                if (looks > 64) protocol::ProcessAtomics::relax();
                continue;
            }
            const std::chrono::nanoseconds passed = deadline.passed();
            const std::chrono::nanoseconds slow =
                counts ? parts.give_up_slow_readers() : std::chrono::nanoseconds::max();
            if (deadline.left() == std::chrono::nanoseconds(0)) {
                if (last_look) return make_error<errors::ring_readers_too_slow>();
                last_look = true;  // even after a short wait: distinguishes a dead reader from a slow one
                for (Reader& reader : parts.readers) parts.note_end(reader);
                continue;
            }
            if (passed >= spins) {
                parts.sleep(std::min({slow, deadline.left(), ring_longest_sleep}));
                continue;
            }
            if (passed - looked >= ring_line_look) {
                looked = passed;
                for (Reader& reader : parts.readers) parts.note_end(reader);
            }
            parts.atomics.pause(looks);
        }
        const std::uint64_t frame = parts.begun++;
        parts.state_of(frame) = FrameState::filling;
        parts.stamper.begin(parts.files->stamp(frame), frame);
        return frame;
    };
    Result<std::uint64_t> done = untold();
    span.over(done);
    return done;
}

Result<void> RingProducerCore::publish(std::uint64_t frame, BufferState& buffer, Wait wait) {
    Parts& parts = *parts_;
    ObservedSpan span(parts.device->observer(), Span::ring_publish, "a frame of a shared ring",
                      [&] { return parts.device->observed(); });
    const auto untold = [&]() -> Result<void> {
        {
            // Waits for device writes, and copies a staged buffer's device contents to the shared memory.
            Result<ViewScope> settled = open_scope(buffer, ArgumentUse::read, wait);
            if (!settled) return std::move(settled).error();
        }
        if (parts.closed) return {};  // a frame that no reader gets
        parts.state_of(frame) = FrameState::complete;
        parts.show();
        return {};
    };
    Result<void> done = untold();
    span.over(done);
    return done;
}

Error RingProducerCore::published_before() {
    return make_error<errors::ring_frame_published_before>();
}

// The slot stays marked as being written, which is true. If no later frame was begun, the next one goes there.
void RingProducerCore::abandon(std::uint64_t frame) noexcept {
    Parts& parts = *parts_;
    if (parts.closed || parts.device->config->forked()) return;
    parts.state_of(frame) = FrameState::abandoned;
    parts.show();
}

void RingProducerCore::close() noexcept {
    Parts& parts = *parts_;
    if (parts.device->config->forked()) return;  // the parent's ring goes on (R3)
    if (std::exchange(parts.closed, true)) return;
    for (std::uint64_t frame = parts.published; frame < parts.begun; ++frame) {
        if (parts.state_of(frame) == FrameState::filling) parts.state_of(frame) = FrameState::abandoned;
    }
    parts.show();
    parts.stamper.close(parts.published);
    parts.wake_readers(true);
}

std::vector<SharedReaderInfo> RingProducerCore::readers() {
    std::vector<SharedReaderInfo> all;
    for (Reader& reader : parts_->readers) {
        // a forked child must not read the parent's line
        if (!parts_->device->config->forked()) parts_->note_end(reader);
        if (reader.live() || !reader.info.why.empty()) all.push_back(reader.info);
    }
    return all;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
