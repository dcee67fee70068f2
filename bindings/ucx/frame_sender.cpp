// SPDX-License-Identifier: Apache-2.0
// The sending half: takes frames of the ring as any reader, sends each from its slot, and tells whether it stayed
// whole.
#include "line.hpp"
#include "worker.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus {
inline namespace v0 {
namespace ucx {
namespace {

using namespace ucx_wire;
using Clock = std::chrono::steady_clock;

// A frame on its way. Its address must not change: UCX reads the header.
struct Sent {
    SharedFrame<std::uint8_t> frame;
    std::optional<HostView<const std::uint8_t>> view{};  // open while UCX reads the slot
    FrameHeader header{};
    void* request = nullptr;
};

}  // namespace

struct FrameSender::Parts {
    Parts(Connection taken, SharedFrameReader<std::uint8_t> own)
        : connection(std::move(taken)), reader(std::move(own)) {}
    Connection connection;
    SharedFrameReader<std::uint8_t> reader;
    std::deque<Sent> on_their_way{};
    std::vector<std::uint8_t> small{};
    FrameHeader small_header{};
    std::unique_ptr<Worker> worker{};  // ends before what it sends
    void* small_request = nullptr;
    Token token = drawn_token(), theirs{};
    std::uint64_t sent = 0;      // frames that began
    std::uint64_t received = 0;  // of which the receiver has told
    std::uint64_t missed = 0;    // since the last frame that began
    std::size_t most = 1;        // on their way at once
    bool lies = false;
    std::optional<Error> ending{};               // of the ring
    std::optional<Clock::time_point> goodbye{};  // the receiver was told
    std::optional<Error> ended{};                // of this object
    Clock::time_point moved = Clock::now();
    Clock::time_point pumped{};  // the TCP connection was looked at
    Clock::time_point asked{};   // UCX was
    SentCounts counts{};

    Connection::Line& line() { return *connection.line_; }
    static ucs_status_t on_receipt(void* self, const void* header, std::size_t bytes, void*, std::size_t,
                                   const ucp_am_recv_param_t*) {
        Parts& parts = *static_cast<Parts*>(self);
        const auto receipt = header_in<ReceiptHeader>(header, bytes, parts.token);
        if (!receipt) return UCS_OK;
        const std::uint64_t told = receipt->sequence + 1;  // 0: of no frame yet
        if (told < parts.received || told > parts.sent) {
            parts.lies = true;
        } else {
            parts.received = told;
            parts.moved = Clock::now();  // also where it repeats the last one: the receiver has no room now
        }
        return UCS_OK;
    }
    Result<void> step(std::chrono::nanoseconds at_most);
    static Error liar() {
        return Error(Code::peer_broke_rules, "the receiver sent what no receiver sends",
                     "the same version at both ends");
    }
    void progress(Clock::time_point now);
    Result<void> hear(Clock::time_point now);
    Result<bool> settle();
    Result<bool> take(Wait wait);
    Result<void> send(SharedFrame<std::uint8_t> frame);
    Result<void> send_small(SharedFrame<std::uint8_t> frame);
    Result<void> end(std::chrono::nanoseconds at_most);
    // Whether UCX owes this end something without which it cannot go on.
    bool awaits() const { return !on_their_way.empty() || !has_room(); }
    bool has_room() const { return !ending && small_request == nullptr && sent - received < most; }
};

FrameSender::FrameSender(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
FrameSender::FrameSender(FrameSender&&) noexcept = default;
FrameSender& FrameSender::operator=(FrameSender&&) noexcept = default;
FrameSender::~FrameSender() = default;

Result<FrameSender> FrameSender::create(Connection connection, SharedFrameReader<std::uint8_t> reader,
                                        std::vector<std::byte> note) {
    if (note.size() > Offer::max_note_bytes) {
        return Error(Code::invalid_argument, "the note for the receiver has " + std::to_string(note.size()) + " bytes",
                     std::to_string(Offer::max_note_bytes) + " bytes at most");
    }
    auto parts = std::make_unique<Parts>(std::move(connection), std::move(reader));
    Connection::Line& line = parts->line();
    Result<std::unique_ptr<Worker>> worker = Worker::create(line.loopback);
    if (!worker) return std::move(worker).error();
    parts->worker = std::move(worker).value();
    parts->worker->on(Am::receipt, &Parts::on_receipt, parts.get());
    // One slot stays free for the producer. Small frames leave theirs at once.
    const std::size_t most = most_on_their_way(parts->reader.elements());
    parts->most = most > most_sent ? most : std::clamp<std::size_t>(parts->reader.slots() - 1, 1, most);
    if (parts->reader.elements() <= most_eager_bytes) parts->small.resize(parts->reader.elements());
    Result<std::vector<std::byte>> own = parts->worker->address();
    if (!own) return std::move(own).error();
    std::vector<std::byte> offer;
    put(offer, parts->reader.elements());
    put(offer, parts->reader.slots());
    put(offer, parts->reader.policy() == SlowReaderPolicy::wait ? 1 : 0);
    put(offer, parts->token);
    put(offer, note.size());
    offer.insert(offer.end(), note.begin(), note.end());
    offer.insert(offer.end(), own->begin(), own->end());
    if (offer.size() > max_body_bytes) {
        return Error(Code::unsupported, "the address of UCX's worker has " + std::to_string(own->size()) + " bytes",
                     "fewer devices in UCX_NET_DEVICES");
    }
    if (Result<void> sent = line.send(Kind::offer, offer); !sent) return std::move(sent).error();
    Result<Message> answer = line.wait(line.options.setup_timeout);
    if (!answer) return std::move(answer).error();
    std::span<const std::byte> body(answer->body);
    const std::optional<Token> theirs = take_token(body);
    if (answer->kind != Kind::answer || !theirs || body.empty()) {
        return Error(Code::peer_broke_rules, "the receiver did not answer the offer", "the same version at both ends");
    }
    parts->theirs = *theirs;
    if (Result<void> connected = parts->worker->connect(body); !connected) return std::move(connected).error();
    for (std::size_t slot = 0; slot < parts->reader.slots(); ++slot) {
        Result<HostView<const std::uint8_t>> view = parts->reader.buffer(slot).read_on_host();
        if (!view) return std::move(view).error();
        parts->worker->map(const_cast<std::uint8_t*>(view->span().data()), view->span().size());
    }
    return FrameSender(std::move(parts));
}

Result<void> FrameSender::step(std::chrono::nanoseconds at_most) {
    if (!parts_->ended) {
        Result<void> stepped = parts_->step(std::max(at_most, std::chrono::nanoseconds(0)));
        if (stepped) return stepped;
        parts_->ended = stepped.error();
    }
    return *parts_->ended;
}
SentCounts FrameSender::counts() const noexcept {
    return parts_->counts;
}

Result<void> FrameSender::Parts::step(std::chrono::nanoseconds at_most) {
    // One question for the time in each pass: where frames are small, more of them cost as much as the rest of it.
    const Clock::time_point begin = Clock::now();
    Clock::time_point now = begin;
    for (bool waited = false;; now = Clock::now()) {
        Result<bool> taken = has_room() ? take(Wait::never()) : Result<bool>(false);
        if (!taken) return std::move(taken).error();
        progress(now);
        if (Result<void> heard = hear(now); !heard) return heard;
        if (lies) return liar();
        if (Result<void> fine = worker->state(); !fine && !goodbye) return fine;
        Result<bool> settled = settle();
        if (!settled) return std::move(settled).error();
        if (ending && on_their_way.empty() && small_request == nullptr && received == sent) return end(at_most);
        if (*settled || *taken) {
            moved = now;
            waited = false;
        } else if (received != sent && now - moved > line().options.silence) {
            return Error(Code::peer_lost, "a frame was on its way for too long", "connect again");
        }
        const std::chrono::nanoseconds left =
            std::min<std::chrono::nanoseconds>(at_most - (now - begin), longest_sleep);
        if (left <= std::chrono::nanoseconds(0) || waited) return {};
        if (*settled || *taken || now - moved < spin) continue;
        waited = true;
        if (received == sent && has_room()) {
            // Nothing of UCX's is due: the ring wakes this thread.
            Result<bool> came = take(Wait::at_most(left));
            if (!came) return std::move(came).error();
            if (*came) moved = Clock::now();
        } else {
            worker->sleep(line().socket.get(), has_room() ? std::min<std::chrono::nanoseconds>(left, spin * 10) : left);
        }
    }
}

// Each call is a system call over TCP, also where nothing has come. So where only receipts are due, and the window has
// room, UCX is asked now and then.
void FrameSender::Parts::progress(Clock::time_point now) {
    if (!awaits() && now - asked < spin) return;
    asked = now;
    for (int turn = 0; turn < most_turns && worker->progress(); ++turn) moved = now;
}

Result<void> FrameSender::Parts::hear(Clock::time_point now) {
    if (now - pumped < between_pumps) return {};
    pumped = now;
    if (Result<void> done = line().pump(); !done) return goodbye ? Result<void>(*ending) : std::move(done);
    if (line().next()) return liar();  // it owes signs of life alone
    return {};
}

// Ends the frames that have left.
Result<bool> FrameSender::Parts::settle() {
    bool any = false;
    if (small_request != nullptr) {
        Result<bool> done = worker->complete(small_request);
        if (!done || *done) small_request = nullptr;
        if (!done) return done;
        any = *done;
    }
    while (!on_their_way.empty()) {
        Sent& first = on_their_way.front();
        Result<bool> done = worker->complete(first.request);
        if (!done || *done) first.request = nullptr;
        if (!done || !*done) return done ? any : std::move(done);
        first.view.reset();
        const Result<void> whole = first.frame.finish();
        if (!whole && again(whole.code())) return any;
        if (!whole && whole.code() != Code::overtaken) return whole.error();
        whole ? ++counts.frames : ++counts.overtaken;
        const VerdictHeader verdict{theirs, first.header.sequence, whole ? 1u : 0u};
        on_their_way.pop_front();
        if (Result<void> told = worker->tell(Am::verdict, verdict); !told) return std::move(told).error();
        any = true;
    }
    return any;
}

Result<bool> FrameSender::Parts::take(Wait wait) {
    Result<SharedFrame<std::uint8_t>> frame = reader.next_frame(wait);
    if (frame) {
        if (Result<void> began = send(std::move(frame).value()); !began) return std::move(began).error();
        return true;
    }
    const Code code = frame.code();
    // The slot of the next frame may be on its way still (in_use).
    if (code == Code::timed_out || code == Code::not_ready || code == Code::in_use) return false;
    ending = frame.error();
    return true;
}

Result<void> FrameSender::Parts::send(SharedFrame<std::uint8_t> frame) {
    missed += frame.missed();
    counts.missed += frame.missed();
    if (reader.elements() <= most_eager_bytes) return send_small(std::move(frame));
    Result<HostView<const std::uint8_t>> view = frame.buffer().read_on_host();
    if (!view) return std::move(view).error();
    on_their_way.push_back({std::move(frame), std::move(view).value(), {theirs, sent++, std::exchange(missed, 0), 0}});
    Sent& last = on_their_way.back();
    Result<void*> request = worker->send(Am::frame, &last.header, sizeof last.header, last.view->span(), false);
    if (!request) return std::move(request).error();
    last.request = *request;
    return {};
}

// UCX copies a small frame anyway, so it is checked before it leaves, and needs no verdict.
Result<void> FrameSender::Parts::send_small(SharedFrame<std::uint8_t> frame) {
    {
        Result<HostView<const std::uint8_t>> view = frame.buffer().read_on_host();
        if (!view) return std::move(view).error();
        std::copy(view->begin(), view->end(), small.begin());
    }
    Result<void> whole = frame.finish();
    if (!whole && whole.code() != Code::overtaken) return whole;
    if (!whole) {
        ++missed;
        ++counts.overtaken;
        return {};
    }
    small_header = {theirs, sent++, std::exchange(missed, 0), 1};
    Result<void*> request = worker->send(Am::frame, &small_header, sizeof small_header, small, true);
    if (!request) return std::move(request).error();
    small_request = *request;
    ++counts.frames;
    return {};
}

// Says how the ring ended, when the receiver has all frames. Then the receiver closes the connection: if this end
// closed it first, the end of UCX's connection could arrive before the word.
Result<void> FrameSender::Parts::end(std::chrono::nanoseconds at_most) {
    if (!goodbye) {
        goodbye = Clock::now();
        std::vector<std::byte> body;
        put(body, ending->code() == Code::ended ? 1 : 0);
        put(body, sent);
        if (Result<void> said = line().send(Kind::goodbye, body); !said) return said;
    }
    if (Clock::now() - *goodbye > time_to_part) return *ending;
    pumped = {};
    worker->sleep(line().socket.get(), std::min<std::chrono::nanoseconds>(at_most, longest_sleep));
    return {};
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
