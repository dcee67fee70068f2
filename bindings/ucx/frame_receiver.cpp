// SPDX-License-Identifier: Apache-2.0
// The receiving half: puts each frame where it is wanted, and shows it when it is whole.
#include "landing.hpp"
#include "line.hpp"
#include "worker.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace isthmus {
inline namespace v0 {
namespace ucx {
namespace {

using namespace ucx_wire;
using Clock = std::chrono::steady_clock;

// Over TCP and shared memory UCX copies each fragment of a frame to the device by itself and waits for it: pinned
// memory and one copy are faster (docs/network.md). So the user says where a network card writes device memory.
bool device_memory_is_for_ucx() {
    const char* const said = std::getenv("ISTHMUS_UCX_CUDA");
    return said != nullptr && std::string_view(said) == "1";
}

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
// One of the first of them, while it goes into its place.
struct Filling {
    std::unique_ptr<Place> place;
    void* request = nullptr;
    bool here = false;
};

}  // namespace

struct FrameReceiver::Parts {
    explicit Parts(Connection taken) : connection(std::move(taken)) {}
    Connection connection;
    Offer offer{};
    std::vector<std::byte> sender{};  // its worker's address
    std::unique_ptr<Landing> landing{};
    std::shared_ptr<ReceivedFrame::Slots> slots{};  // of buffers of the program
    ReceivePath path = ReceivePath::in_place;
    std::deque<Filling> filling{};  // of the first of `announced`, in their order
    std::deque<Announced> announced{};
    std::unique_ptr<Worker> worker{};  // ends before the slots that it fills
    Token token = drawn_token(), theirs{};
    std::uint64_t began = 0;               // frames announced
    std::uint64_t done = 0;                // published or discarded
    std::uint64_t told = 0;                // of which the sender knows
    std::optional<std::uint64_t> total{};  // the sender's, from its goodbye
    bool closed = false;                   // its ring was
    bool wants_frame = false;              // next_frame() waits: step() returns when there is one
    const char* lie = nullptr;
    std::optional<Clock::time_point> failed{};  // UCX lost the sender
    std::optional<Error> ended{};
    std::optional<Error> device_failed{};  // while UCX was to be called with its context
    std::vector<void*> device_memory{};    // of the buffers, as UCX registered it; until begin() has ended
    Clock::time_point moved = Clock::now();
    Clock::time_point pumped{};  // the TCP connection was looked at
    Clock::time_point gave{};    // the last receipt left
    bool full = false;           // no room for the next frame
    ReceivedCounts counts{};

    Connection::Line& line() { return *connection.line_; }
    ~Parts() {
        for (const Announced& each : announced) {
            if (each.data != nullptr && worker) ucp_am_data_release(worker->handle(), each.data);
        }
        end_worker(landing.get());                    // it may fill places until here
        while (!filling.empty()) filling.pop_back();  // from the last one on: numbers that nobody saw are used again
    }
    Result<void> read_offer(const Message& message);
    static ucs_status_t on_frame(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param);
    static ucs_status_t on_verdict(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                   const ucp_am_recv_param_t*);
    Result<void> idle(std::chrono::nanoseconds at_most);
    Result<void> step(std::chrono::nanoseconds at_most);
    Result<void> begin(std::unique_ptr<Landing> made);
    Result<void> answer_with(Landing& made);
    Result<void> make_worker(bool for_device = false);
    Result<void> make_worker(Stream stream, std::vector<Buffer<std::uint8_t>>& buffers);
    void end_worker(Landing* by) noexcept;
    bool progress();
    Result<void> hear(Clock::time_point now);
    Result<bool> fill();
    Result<void> fill(std::unique_ptr<Place> place, Announced& from);
    Result<bool> settle();
    Result<void> give_receipt(Clock::time_point now);
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
    const auto frame_bytes = take_number(body), count = take_number(body), waits = take_number(body);
    const auto token_of_sender = take_token(body);
    const auto note_bytes = take_number(body);
    const bool right = message.kind == Kind::offer && token_of_sender && note_bytes && *frame_bytes > 0 &&
                       *count >= 2 && *count <= 256 && *waits <= 1 && *note_bytes <= Offer::max_note_bytes &&
                       *note_bytes < body.size();
    if (!right) return broke("the sender's offer is none");
    const auto note_end = body.begin() + static_cast<std::ptrdiff_t>(*note_bytes);
    offer = {*frame_bytes,
             static_cast<std::uint32_t>(*count),
             *waits == 1 ? SlowReaderPolicy::wait : SlowReaderPolicy::overwrite,
             {body.begin(), note_end}};
    sender.assign(note_end, body.end());
    theirs = *token_of_sender;
    const std::uint64_t most = line().options.max_bytes;
    if (*frame_bytes > most / *count) {
        return Error(Code::out_of_memory,
                     "the sender has " + std::to_string(*count) + " slots of " + std::to_string(*frame_bytes) +
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

ReceivePath FrameReceiver::path() const noexcept {
    return parts_->path;
}

Result<void> FrameReceiver::begin(SharedFrameRing<std::uint8_t>& ring, std::mutex* guard) {
    Parts& parts = *parts_;
    if (parts.landing != nullptr || ring.buffer(0).size() != parts.offer.frame_bytes) {
        return Error(Code::invalid_argument, "the ring does not fit the sender's frames",
                     "a ring of frames of " + std::to_string(parts.offer.frame_bytes) + " bytes, once");
    }
    if (Result<void> made = parts.make_worker(); !made) return made;
    return parts.begin(make_landing(ring, guard));
}

Result<void> FrameReceiver::begin(Device& device, const Stream& stream, std::vector<Buffer<std::uint8_t>> buffers) {
    Parts& parts = *parts_;
    const std::uint64_t bytes = parts.offer.frame_bytes;
    const auto fits = [&](const Buffer<std::uint8_t>& each) {
        return each.size() == bytes && each.kind() == buffers.front().kind();
    };
    if (parts.landing != nullptr || buffers.empty() || !std::all_of(buffers.begin(), buffers.end(), fits)) {
        return Error(Code::invalid_argument, "the buffers do not fit the sender's frames",
                     "buffers of " + std::to_string(bytes) + " bytes of one kind of memory, once");
    }
    for (auto each = buffers.begin(); each != buffers.end(); ++each) {
        const auto is_same = [&](const Buffer<std::uint8_t>& other) { return other.state() == each->state(); };
        if (std::any_of(buffers.begin(), each, is_same)) {
            return Error(Code::invalid_argument, "a buffer for the sender's frames is given twice",
                         "buffers of their own for frames that are here at the same time");
        }
    }
    Result<bool> seen = cpu_sees(buffers.front());
    if (!seen) return std::move(seen).error();
    ReceiveFacts facts{.kind = buffers.front().kind(),
                       .translation = device.capabilities().translation,
                       .cpu_sees = *seen,
                       .own = std::all_of(buffers.begin(), buffers.end(),
                                          [&](const Buffer<std::uint8_t>& each) { return device.owns(each); }),
                       .by_rendezvous = bytes > most_eager_bytes};
    // Where UCX writes them in place, the device does not take part.
    const bool in_place = receive_path(facts) == ReceivePath::in_place;
    for (const Buffer<std::uint8_t>& each : buffers) {
        if (in_place || device.can_access(each)) continue;
        return Error(Code::invalid_argument, "the device cannot access a buffer for the sender's frames",
                     "buffers of the device that the stream belongs to");
    }
    facts.ucx_has_cuda = device_memory_is_for_ucx();
    const bool by_cuda = receive_path(facts) == ReceivePath::ucx_cuda;
    Stream on = stream;
    if (Result<void> made = by_cuda ? parts.make_worker(on, buffers) : parts.make_worker(); !made) return made;
    facts.ucx_has_cuda = !parts.device_memory.empty();
    const ReceivePath path = receive_path(facts);
    auto slots = std::make_shared<ReceivedFrame::Slots>();
    slots->buffers = std::move(buffers);
    slots->free.reserve(slots->buffers.size());
    for (std::size_t slot = 0; slot < slots->buffers.size(); ++slot) slots->free.push_back(slot);
    Result<std::unique_ptr<Landing>> landing =
        make_landing(device, stream, slots, bytes, path, std::move(parts.device_memory));
    if (!landing) {
        if (by_cuda) (void)with_context(on, [&] { parts.worker.reset(); });
        parts.end_worker(nullptr);  // it may have registered buffers, which the caller may release now
        return std::move(landing).error();
    }
    if (Result<void> begun = parts.begin(std::move(landing).value()); !begun) return begun;
    parts.slots = std::move(slots);
    parts.path = path;
    return {};
}

Result<ReceivedFrame> FrameReceiver::next_frame(std::chrono::nanoseconds at_most) {
    Parts& parts = *parts_;
    if (!parts.slots) {
        return Error(Code::invalid_argument, "the receiver has no buffers of the program",
                     "begin(device, stream, buffers), or a reader of the ring");
    }
    const Clock::time_point until = deadline(at_most);
    for (bool last = false;;) {
        {
            const std::lock_guard locked(parts.slots->mutex);
            if (!parts.slots->ready.empty()) {
                const ReceivedFrame::Slots::Ready next = parts.slots->ready.front();
                parts.slots->ready.pop_front();
                return ReceivedFrame(parts.slots, next.slot, next.number, next.missed);
            }
        }
        if (parts.ended) return *parts.ended;
        if (last) return Error(Code::timed_out, "no frame came in time", "call again");
        const std::chrono::nanoseconds left = until - Clock::now();
        last = left <= std::chrono::nanoseconds(0);
        parts.wants_frame = true;
        (void)step(std::max(std::chrono::nanoseconds(0), left));  // its error is kept, behind the frames that are here
        parts.wants_frame = false;
    }
}

Result<void> FrameReceiver::Parts::make_worker(bool for_device) {
    Result<std::unique_ptr<Worker>> made = Worker::create(line().loopback, for_device);
    if (!made) return std::move(made).error();
    worker = std::move(made).value();
    worker->on(Am::frame, &Parts::on_frame, this);
    worker->on(Am::verdict, &Parts::on_verdict, this);
    return {};
}

// With the device's context current, and the buffers registered as device memory if UCX has CUDA.
Result<void> FrameReceiver::Parts::make_worker(Stream stream, std::vector<Buffer<std::uint8_t>>& buffers) {
    device_memory.clear();
    Result<void> made;
    const auto calls = [&] {
        made = make_worker(true);
        if (!made || !worker->has_cuda()) return;
        for (Buffer<std::uint8_t>& each : buffers) {
            void* const memory = reinterpret_cast<void*>(each.device_address());
            void* const registered = worker->map_device(memory, each.size());
            if (registered == nullptr) return device_memory.clear();
            device_memory.push_back(registered);
        }
    };
    if (Result<void> called = with_context(stream, calls); !called) return called;
    return made;
}

// As well where the device cannot be asked any more.
void FrameReceiver::Parts::end_worker(Landing* by) noexcept {
    if (by != nullptr) (void)by->with_context([this] { worker.reset(); });
    worker.reset();
}

bool FrameReceiver::Parts::progress() {
    bool moved_on = false;
    const bool on_device = !filling.empty() && filling.front().place->device() != nullptr;
    // In each turn UCX may copy many fragments to the device, and waits for each of them. The connection must be looked
    // at in time all the same: without a sign of life for `silence` the sender would give it up.
    const Clock::time_point until = on_device ? Clock::now() + between_pumps : Clock::time_point::max();
    const auto turns = [&] {
        // A small frame that was announced is shown before UCX is asked for more, which is a system call over TCP.
        const std::uint64_t known = began;
        for (int turn = 0; turn < most_turns && worker->progress(); ++turn) {
            moved_on = true;
            if (began != known && offer.frame_bytes <= most_eager_bytes) break;
            if (on_device && Clock::now() >= until) break;
        }
    };
    if (!on_device) {
        turns();
    } else if (Result<void> called = landing->with_context(turns); !called) {
        device_failed = std::move(called).error();
    }
    return moved_on;
}

Result<void> FrameReceiver::Parts::begin(std::unique_ptr<Landing> made) {
    if (Result<void> answered = answer_with(*made); !answered) {
        end_worker(made.get());  // it has registered memory that the caller may release now
        return answered;
    }
    landing = std::move(made);
    moved = Clock::now();
    return {};
}

Result<void> FrameReceiver::Parts::answer_with(Landing& made) {
    Result<void> connected;
    if (Result<void> called = made.with_context([&] { connected = worker->connect(sender); }); !called) return called;
    if (!connected) return connected;
    if (Result<void> mapped = made.map(*worker); !mapped) return mapped;
    Result<std::vector<std::byte>> own = worker->address();
    if (!own) return std::move(own).error();
    std::vector<std::byte> answer;
    put(answer, token);
    answer.insert(answer.end(), own->begin(), own->end());
    if (answer.size() > max_body_bytes) {
        return Error(Code::unsupported, "the address of UCX's worker has " + std::to_string(own->size()) + " bytes",
                     "fewer devices in UCX_NET_DEVICES");
    }
    return line().send(Kind::answer, answer);
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
        Result<void> stepped = parts_->landing == nullptr
                                   ? parts_->idle(at_most)
                                   : parts_->step(std::max(at_most, std::chrono::nanoseconds(0)));
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

Result<void> FrameReceiver::Parts::hear(Clock::time_point now) {
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
    Clock::time_point now = begin;
    for (bool waited = false;; now = Clock::now()) {  // as the sender: one question for the time in each pass
        if (progress()) moved = now;
        if (device_failed) return *device_failed;
        if (lie != nullptr) return broke(lie);
        if (Result<void> heard = hear(now); !heard) return heard;
        Result<bool> filled = fill();
        if (!filled) return std::move(filled).error();
        Result<bool> settled = settle();
        if (!settled) return std::move(settled).error();
        if (total && done == *total && announced.empty()) {
            if (closed) return Error(Code::ended, "the sender's ring was closed");
            return Error(Code::peer_lost, "the sender's producer is gone", "start the producer again");
        }
        if (*settled || *filled) moved = now;
        if (Result<void> told_it = give_receipt(now); !told_it) return told_it;
        // Only this thread adds to them. With all buffers filled, nothing else would end this call.
        if (wants_frame && !slots->ready.empty()) return {};
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

// Begins the next frame that was announced, where there is room for it.
Result<bool> FrameReceiver::Parts::fill() {
    full = false;
    if (filling.size() == announced.size() || filling.size() == landing->ahead()) return false;
    const bool first = filling.empty();
    Result<std::unique_ptr<Place>> place = landing->begin(first);
    if (!place && again(place.code())) {
        if (!first) return false;
        full = true;
        moved = Clock::now();  // a local reader is slow, and the ring's deadline is for it
        // The guard is free for a moment, for readers that are to be admitted.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        return false;
    }
    if (!place) return std::move(place).error();
    if (Result<void> begun = fill(std::move(place).value(), announced[filling.size()]); !begun) return begun.error();
    return true;
}

Result<void> FrameReceiver::Parts::fill(std::unique_ptr<Place> place, Announced& from) {
    if (place->device() != nullptr && !from.by_rendezvous) return broke("a large frame arrived as a small one");
    filling.push_back({std::move(place)});
    Filling& begun = filling.back();
    void* const data = std::exchange(from.data, nullptr);
    const std::span<std::uint8_t> to(begun.place->data(), offer.frame_bytes);
    if (from.by_rendezvous) {
        void* const device = begun.place->device();
        Result<void*> request = nullptr;
        const auto receive = [&] { request = worker->receive(data, to, device); };
        if (Result<void> called = landing->with_context(receive); !called) return called;
        if (!request) return std::move(request).error();
        begun.request = *request;
    } else {
        std::memcpy(to.data(), data, to.size());
        ucp_am_data_release(worker->handle(), data);
    }
    begun.here = begun.request == nullptr;
    return {};
}

// Of small frames one receipt for several, or when nothing comes, or after 1 ms: it costs a system call at each end.
// Without room, and while a frame comes in, the last one is repeated, before the sender's patience ends: to a slow
// device a frame may be on its way for longer.
Result<void> FrameReceiver::Parts::give_receipt(Clock::time_point now) {
    const std::uint64_t enough = offer.frame_bytes <= most_eager_bytes ? most_small_sent / 2 : 1;
    const bool late = full || now - moved >= spin || now - gave >= between_pumps;
    const bool due = told != done && (late || done - told >= enough);
    const bool waits = full || !filling.empty();
    if (!due && !(waits && now - gave >= line().options.silence / 4)) return {};
    const ReceiptHeader receipt{theirs, done == 0 ? no_frame : done - 1};
    told = done;
    gave = now;
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
    const bool whole = *first.whole;
    if (Result<void> done_with = filled.place->end(whole, first.header.missed); !done_with) {
        if (again(done_with.code())) return false;  // until `silence` has passed
        return std::move(done_with).error();
    }
    counts.missed += first.header.missed;
    ++(whole ? counts.frames : counts.discarded);
    filling.pop_front();
    announced.pop_front();
    ++done;
    return true;
}

}  // namespace ucx
}  // namespace v0
}  // namespace isthmus
