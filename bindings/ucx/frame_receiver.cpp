// SPDX-License-Identifier: Apache-2.0
// The receiving half: puts each frame into the slot where local readers get it, and publishes it when it is whole.
#include "line.hpp"
#include "worker.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace ucx {
namespace {

using namespace ucx_wire;
using Clock = std::chrono::steady_clock;

Error broke(const char* what) {
    return Error(Code::peer_broke_rules, what, "the same version at both ends");
}

// A frame that was announced. UCX keeps its data, or its descriptor, until it is received or given back.
struct Announced {
    FrameHeader header{};
    void* data = nullptr;  // nullptr: taken
    bool by_rendezvous = false;
    std::optional<bool> whole{};  // the sender's verdict
};
// One of the first of them, while it goes into its slot.
struct Filling {
    SharedFrameToFill<std::uint8_t> frame;
    std::optional<HostView<std::uint8_t>> view{};
    void* request = nullptr;
    bool here = false;
};

}  // namespace

struct FrameReceiver::Parts {
    explicit Parts(Connection taken) : connection(std::move(taken)) {}
    Connection connection;
    Offer offer{};
    std::vector<std::byte> sender{};  // its worker's address
    SharedFrameRing<std::uint8_t>* ring = nullptr;
    std::mutex* guard = nullptr;
    std::deque<Filling> filling{};  // of the first of `announced`, in their order
    std::deque<Announced> announced{};
    std::unique_ptr<Worker> worker{};  // ends before the slots that it fills
    Token token = drawn_token(), theirs{};
    std::uint64_t began = 0;               // frames announced
    std::uint64_t done = 0;                // published or discarded
    std::uint64_t told = 0;                // of which the sender knows
    std::optional<std::uint64_t> total{};  // the sender's, from its goodbye
    bool closed = false;                   // its ring was
    const char* lie = nullptr;
    std::optional<Clock::time_point> failed{};  // UCX lost the sender
    std::optional<Error> ended{};
    Clock::time_point moved = Clock::now();
    Clock::time_point pumped{};  // the TCP connection was looked at
    ReceivedCounts counts{};

    Connection::Line& line() { return *connection.line_; }
    ~Parts() {
        for (const Announced& each : announced) {
            if (each.data != nullptr && worker) ucp_am_data_release(worker->handle(), each.data);
        }
        worker.reset();  // it may fill slots until here
        const std::unique_lock<std::mutex> locked = lock();
        while (!filling.empty()) filling.pop_back();  // from the last one on: numbers that nobody saw are used again
    }
    Result<void> read_offer(const Message& message);
    static ucs_status_t on_frame(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_verdict(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                   const ucp_am_recv_param_t*);
    Result<void> idle(std::chrono::nanoseconds at_most);
    Result<void> step(std::chrono::nanoseconds at_most);
    std::unique_lock<std::mutex> lock() {
        return guard == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*guard);
    }
    Result<void> hear();
    Result<bool> fill();
    Result<void> fill(SharedFrameToFill<std::uint8_t> frame, Announced& from);
    Result<bool> settle();
    Result<void> give_receipt(bool at_rest);
};

FrameReceiver::FrameReceiver(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
FrameReceiver::FrameReceiver(FrameReceiver&&) noexcept = default;
FrameReceiver& FrameReceiver::operator=(FrameReceiver&&) noexcept = default;
FrameReceiver::~FrameReceiver() = default;

Result<FrameReceiver> FrameReceiver::create(Connection connection) {
    auto parts = std::make_unique<Parts>(std::move(connection));
    Result<Message> message = parts->line().wait(parts->line().options.setup_timeout);
    if (!message) return std::move(message).error();
    if (Result<void> right = parts->read_offer(*message); !right) return std::move(right).error();
    return FrameReceiver(std::move(parts));
}

Result<void> FrameReceiver::Parts::read_offer(const Message& message) {
    std::span<const std::byte> body(message.body);
    const auto frame_bytes = take_number(body), slots = take_number(body), waits = take_number(body);
    const auto token_of_sender = take_token(body);
    const auto note_bytes = take_number(body);
    const bool right = message.kind == Kind::offer && token_of_sender && note_bytes && *frame_bytes > 0 &&
                       *slots >= 2 && *slots <= 256 && *waits <= 1 && *note_bytes <= Offer::max_note_bytes &&
                       *note_bytes < body.size();
    if (!right) return broke("the sender's offer is none");
    const auto note_end = body.begin() + static_cast<std::ptrdiff_t>(*note_bytes);
    offer = {*frame_bytes,
             static_cast<std::uint32_t>(*slots),
             *waits == 1 ? SlowReaderPolicy::wait : SlowReaderPolicy::overwrite,
             {body.begin(), note_end}};
    sender.assign(note_end, body.end());
    theirs = *token_of_sender;
    const std::uint64_t most = line().options.max_bytes;
    if (*frame_bytes > most / *slots) {
        return Error(Code::out_of_memory,
                     "the sender has " + std::to_string(*slots) + " slots of " + std::to_string(*frame_bytes) +
                         " bytes, and this end accepts " + std::to_string(most) + " bytes",
                     "a larger limit at this end, or smaller frames");
    }
    return {};
}

const Offer& FrameReceiver::offer() const noexcept {
    return parts_->offer;
}
bool FrameReceiver::producer_is_gone() const noexcept {
    return parts_->total && !parts_->closed;
}
ReceivedCounts FrameReceiver::counts() const noexcept {
    return parts_->counts;
}

Result<void> FrameReceiver::begin(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard) {
    Parts& parts = *parts_;
    if (parts.ring != nullptr || ring.buffer(0).size() != parts.offer.frame_bytes) {
        return Error(Code::invalid_argument, "the ring does not fit the sender's frames",
                     "a ring of frames of " + std::to_string(parts.offer.frame_bytes) + " bytes, once");
    }
    Result<std::unique_ptr<Worker>> worker = Worker::create(parts.line().loopback);
    if (!worker) return std::move(worker).error();
    parts.worker = std::move(worker).value();
    parts.worker->on(Am::frame, &Parts::on_frame, &parts);
    parts.worker->on(Am::verdict, &Parts::on_verdict, &parts);
    if (Result<void> connected = parts.worker->connect(parts.sender); !connected) return connected;
    for (std::size_t slot = 0; slot < ring.slots(); ++slot) {
        Result<HostView<const std::uint8_t>> view = ring.buffer(slot).read_on_host();
        if (!view) return std::move(view).error();
        parts.worker->map(const_cast<std::uint8_t*>(view->span().data()), view->span().size());
    }
    Result<std::vector<std::byte>> own = parts.worker->address();
    if (!own) return std::move(own).error();
    std::vector<std::byte> answer;
    put(answer, parts.token);
    answer.insert(answer.end(), own->begin(), own->end());
    if (answer.size() > max_body_bytes) {
        return Error(Code::unsupported, "the address of UCX's worker has " + std::to_string(own->size()) + " bytes",
                     "fewer devices in UCX_NET_DEVICES");
    }
    parts.ring = &ring;
    parts.guard = guard;
    parts.moved = Clock::now();
    return parts.line().send(Kind::answer, answer);
}

ucs_status_t FrameReceiver::Parts::on_frame(void* self, const void* header, std::size_t header_bytes, void* data,
                                            std::size_t bytes, const ucp_am_recv_param_t* param) {
    Parts& parts = *static_cast<Parts*>(self);
    const auto known = header_in<FrameHeader>(header, header_bytes, parts.token);
    if (!known) return UCS_OK;
    Announced next{
        .header = *known, .data = data, .by_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0};
    const bool kept = (param->recv_attr & (UCP_AM_RECV_ATTR_FLAG_RNDV | UCP_AM_RECV_ATTR_FLAG_DATA)) != 0;
    if (!kept || bytes != parts.offer.frame_bytes) {
        parts.lie = "a frame of another size arrived";
    } else if (next.header.sequence != parts.began || next.header.whole > 1 || parts.total) {
        parts.lie = "a frame arrived out of its order";
    } else if (parts.began - parts.done >= most_on_their_way(parts.offer.frame_bytes)) {
        parts.lie = "more frames arrived than may be on their way";
    } else {
        ++parts.began;
        if (next.header.whole == 1) next.whole = true;
        parts.announced.push_back(next);
        return UCS_INPROGRESS;
    }
    return UCS_OK;
}

ucs_status_t FrameReceiver::Parts::on_verdict(void* self, const void* header, std::size_t header_bytes, void*,
                                              std::size_t, const ucp_am_recv_param_t*) {
    Parts& parts = *static_cast<Parts*>(self);
    const auto verdict = header_in<VerdictHeader>(header, header_bytes, parts.token);
    if (!verdict) return UCS_OK;
    const std::uint64_t place = verdict->sequence - parts.done;
    if (verdict->whole > 1 || place >= parts.announced.size() || parts.announced[place].whole) {
        parts.lie = "a verdict arrived about no frame";
    } else {
        parts.announced[place].whole = verdict->whole == 1;
    }
    return UCS_OK;
}

Result<void> FrameReceiver::step(std::chrono::nanoseconds at_most) {
    if (!parts_->ended) {
        Result<void> stepped = parts_->ring == nullptr ? parts_->idle(at_most) : parts_->step(at_most);
        if (stepped) return stepped;
        parts_->ended = stepped.error();
    }
    return *parts_->ended;
}

// Before there is a ring: the sender owes nothing but signs of life.
Result<void> FrameReceiver::Parts::idle(std::chrono::nanoseconds at_most) {
    Result<Message> message = line().wait(at_most);
    if (message) return broke("the sender sent what no sender sends");
    if (message.code() != Code::timed_out) return std::move(message).error();
    return {};
}

Result<void> FrameReceiver::Parts::hear() {
    const Clock::time_point now = Clock::now();
    if (now - pumped < between_pumps) return {};
    pumped = now;
    if (Result<void> lives = line().pump(); !lives && !total) return lives;
    while (std::optional<Message> message = line().next()) {
        std::span<const std::byte> body(message->body);
        const auto was_closed = take_number(body), frames = take_number(body);
        if (message->kind != Kind::goodbye || !frames || *was_closed > 1 || total) {
            return broke("the sender sent what no sender sends");
        }
        closed = *was_closed == 1;
        total = frames;
    }
    return {};
}

Result<void> FrameReceiver::Parts::step(std::chrono::nanoseconds at_most) {
    const Clock::time_point begin = Clock::now();
    for (bool waited = false;;) {
        for (int turn = 0; turn < most_turns && worker->progress(); ++turn) moved = Clock::now();
        if (lie != nullptr) return broke(lie);
        if (Result<void> heard = hear(); !heard) return heard;
        Result<bool> filled = fill();
        if (!filled) return std::move(filled).error();
        Result<bool> settled = settle();
        if (!settled) return std::move(settled).error();
        if (total && done == *total && announced.empty()) {
            if (closed) return Error(Code::ended, "the sender's ring was closed");
            return Error(Code::peer_lost, "the sender's producer is gone", "start the producer again");
        }
        const Clock::time_point now = Clock::now();
        if (*settled || *filled) moved = now;
        if (Result<void> gave = give_receipt(now - moved >= spin); !gave) return gave;
        // The sender's goodbye, or the end of its TCP connection, may come after the end of UCX's.
        if (Result<void> fine = worker->state(); !fine && !total) {
            pumped = {};
            if (!failed) failed = now;
            if (now - *failed > time_to_part) return fine;
        }
        if (*settled || *filled) {
            waited = false;
        } else if ((!filling.empty() || total) && now - moved > line().options.silence) {
            return Error(Code::peer_lost, "a frame was on its way for too long", "connect again");
        }
        const std::chrono::nanoseconds left =
            std::min<std::chrono::nanoseconds>(at_most - (now - begin), longest_sleep);
        if (left <= std::chrono::nanoseconds(0) || waited) return {};
        if (*settled || *filled || now - moved < spin) continue;
        waited = true;
        worker->sleep(line().socket.get(), left);
    }
}

// Begins the next frame that was announced, where the ring has room for it.
Result<bool> FrameReceiver::Parts::fill() {
    if (filling.size() == announced.size() || filling.size() == ring->frames_ahead()) return false;
    const bool first = filling.empty();
    Result<SharedFrameToFill<std::uint8_t>> frame = [&] {
        const std::unique_lock<std::mutex> locked = lock();
        return ring->begin_frame(first ? Wait::at_most(std::chrono::milliseconds(1)) : Wait::never());
    }();
    if (!frame && !first && (frame.code() == Code::timed_out || frame.code() == Code::not_ready)) return false;
    if (!frame && frame.code() == Code::timed_out) {
        moved = Clock::now();  // a local reader is slow, and the ring's deadline is for it
        // The guard is free for a moment, for readers that are to be admitted.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        return false;
    }
    if (!frame) return std::move(frame).error();
    if (Result<void> begun = fill(std::move(frame).value(), announced[filling.size()]); !begun) return begun.error();
    return true;
}

Result<void> FrameReceiver::Parts::fill(SharedFrameToFill<std::uint8_t> frame, Announced& from) {
    Result<HostView<std::uint8_t>> view = frame.buffer().write_on_host();
    if (!view) {
        const std::unique_lock<std::mutex> locked = lock();
        const SharedFrameToFill<std::uint8_t> abandoned = std::move(frame);  // destroyed under the guard
        return std::move(view).error();
    }
    filling.push_back({std::move(frame), std::move(view).value()});
    Filling& begun = filling.back();
    void* const data = std::exchange(from.data, nullptr);
    const std::span<std::uint8_t> slot = begun.view->span();
    if (from.by_rendezvous) {
        Result<void*> request = worker->receive(data, slot);
        if (!request) return std::move(request).error();
        begun.request = *request;
    } else {
        std::memcpy(slot.data(), data, slot.size());
        ucp_am_data_release(worker->handle(), data);
    }
    begun.here = begun.request == nullptr;
    return {};
}

// Of small frames one receipt for several, or when nothing comes: it costs a system call at each end.
Result<void> FrameReceiver::Parts::give_receipt(bool at_rest) {
    const std::uint64_t enough = offer.frame_bytes <= most_eager_bytes ? most_small_sent / 2 : 1;
    if (told == done || (!at_rest && done - told < enough)) return {};
    const ReceiptHeader receipt{theirs, done - 1};
    told = done;
    Result<void> sent = worker->tell(Am::receipt, receipt);
    return total ? Result<void>() : std::move(sent);
}

// Publishes or discards the first frame, if it is here and judged.
Result<bool> FrameReceiver::Parts::settle() {
    if (filling.empty()) return false;
    Filling& filled = filling.front();
    if (!filled.here) {
        Result<bool> complete = worker->complete(filled.request);
        if (!complete || *complete) filled.request = nullptr;
        if (!complete) return complete;
        filled.here = *complete;
    }
    const Announced first = announced.front();
    if (!filled.here || !first.whole) return false;
    filled.view.reset();
    counts.missed += first.header.missed;
    std::unique_lock<std::mutex> locked = lock();
    if (*first.whole) {
        if (Result<void> published = filled.frame.publish(); !published) return std::move(published).error();
        ++counts.frames;
    } else {
        ++counts.discarded;
    }
    filling.pop_front();
    if (locked) locked.unlock();
    announced.pop_front();
    ++done;
    return true;
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
