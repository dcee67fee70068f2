// SPDX-License-Identifier: Apache-2.0
// Connects, makes a ring as the sender has it, lets local viewers in, and fills it; connects again after a loss.
#include "bridge.hpp"

#include "camera/stop_signal.hpp"
#include "common/console.hpp"
#include "common/exit_codes.hpp"
#include "share/admission.hpp"
#include "share/ring_message.hpp"

#include <isthmus/runtime.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace isthmus::tools::bridge {
namespace {

using camera::StopSignal;
using Clock = std::chrono::steady_clock;
using Ring = SharedFrameRing<std::uint8_t>;

constexpr std::chrono::milliseconds first_pause{50}, longest_pause{2000};
constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;

std::chrono::nanoseconds of_seconds(double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}
bool stopped(const BridgeOptions& options) {
    return StopSignal::received() != 0 || stdin_ended(options);
}
Error was_stopped() {
    return Error(Code::ended, "the bridge was told to end");
}

// Tries for `connect_s`, with pauses that grow. What another try cannot change ends it at once.
Result<ucx::FrameReceiver> connect(const BridgeOptions& options) {
    const Clock::time_point until = Clock::now() + of_seconds(options.connect_s);
    std::chrono::milliseconds pause = first_pause;
    for (;;) {
        Result<ucx::Connection> connection = ucx::Connection::connect(options.address, options.connection);
        Result<ucx::FrameReceiver> receiver = connection ? ucx::FrameReceiver::create(std::move(connection).value())
                                                         : Result<ucx::FrameReceiver>(connection.error());
        const bool may_come = !receiver && (receiver.code() == Code::peer_lost || receiver.code() == Code::timed_out);
        if (!may_come || Clock::now() >= until || stopped(options)) return receiver;
        const Clock::time_point next = std::min(until, Clock::now() + pause);
        while (Clock::now() < next && !stopped(options)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        pause = std::min(2 * pause, longest_pause);
    }
}

// The offer's shape, of an offer that is not trusted.
Result<camera::FrameShape> shape_of(const ucx::Offer& offer) {
    Result<camera::FrameShape> shape = share::decode_shape(offer.note);
    if (!shape)
        return Error(Code::peer_broke_rules, std::string(shape.error().message()), std::string(shape.error().remedy()));
    if (shape->size_bytes != offer.frame_bytes || offer.frame_bytes > most_bytes / offer.slots) {
        return Error(Code::peer_broke_rules, "the sender's frames have not the size of their shape, or are too large",
                     "isthmus of the same version at both ends");
    }
    return shape;
}

// Whether the frames fit into a ring for the other offer.
bool is_same(const ucx::Offer& one, const ucx::Offer& other) {
    return one.note == other.note && one.frame_bytes == other.frame_bytes && one.policy == other.policy &&
           one.slots == other.slots;
}

class Receiving {
public:
    explicit Receiving(const BridgeOptions& options) : options_(options) {}
    Result<void> run() {
        Result<Runtime> runtime = Runtime::open({.use_cuda = false});
        if (!runtime) return std::move(runtime).error();
        Result<ucx::FrameReceiver> connected = connect(options_);
        if (!connected) return std::move(connected).error();
        const ucx::Offer offer = connected->offer();
        Result<camera::FrameShape> shape = shape_of(offer);
        if (!shape) return std::move(shape).error();
        SharedRingOptions ring_options;
        ring_options.slots = offer.slots;
        ring_options.policy = offer.policy;
        ring_options.max_readers = 64;
        ring_options.reader_deadline = of_seconds(options_.viewer_deadline_s);
        Result<Ring> ring = Ring::create(runtime->default_device(), offer.frame_bytes, ring_options);
        if (!ring) return std::move(ring).error();
        Result<Listener> listener = Listener::create(options_.at);
        if (!listener) return std::move(listener).error();
        std::mutex mutex;
        ucx::FrameReceiver receiver = std::move(connected).value();  // ends before the ring and its guard
        share::Admission admission(std::move(listener).value(), *ring, mutex, *shape, complain);
        Result<void> received = begin(receiver, *ring, mutex, admission);
        // A waiting ring has no gaps: after a loss it cannot go on.
        while (!received && received.code() == Code::peer_lost && !receiver.producer_is_gone() &&
               offer.policy == SlowReaderPolicy::overwrite && !stopped(options_)) {
            complain("bridge: connects again: " + std::string(received.error().message()));
            Result<ucx::FrameReceiver> again = connect(options_);
            if (!again && stopped(options_)) break;
            if (!again) return end(admission, again.error());
            if (!is_same(again->offer(), offer)) {
                return end(admission, Error(Code::peer_lost, "the sender's frames or ring have another shape now",
                                            "start the viewers again"));
            }
            receiver = std::move(again).value();
            received = begin(receiver, *ring, mutex, admission);
        }
        if (!received && received.code() != Code::ended && !stopped(options_)) return end(admission, received.error());
        admission.stop();
        ring->close();
        return {};
    }

private:
    // The ring ends without being closed, so that no viewer takes it for complete.
    [[noreturn]] static Result<void> end(share::Admission& admission, const Error& error) {
        admission.stop();
        complain("bridge: " + error.text());
        std::_Exit(exit_failed);
    }
    Result<void> begin(ucx::FrameReceiver& receiver, Ring& ring, std::mutex& mutex,
                       const share::Admission& admission) const {
        if (Result<void> came = wait_for_viewers(receiver, admission); !came) return came;
        return receive(receiver, ring, mutex);
    }
    Result<void> wait_for_viewers(ucx::FrameReceiver& receiver, const share::Admission& admission) const {
        while (admission.admitted() < options_.viewers) {
            if (admission.ended() != nullptr) return *admission.ended();
            if (stopped(options_)) return was_stopped();
            if (Result<void> lives = receiver.step(std::chrono::milliseconds(5)); !lives) return lives;
        }
        return {};
    }
    Result<void> receive(ucx::FrameReceiver& receiver, Ring& ring, std::mutex& mutex) const {
        if (Result<void> began = receiver.begin(ring, &mutex); !began) return began;
        while (!stopped(options_)) {
            if (Result<void> stepped = receiver.step(std::chrono::milliseconds(50)); !stepped) return stepped;
        }
        return was_stopped();
    }
    const BridgeOptions& options_;
};

}  // namespace

int receive(const BridgeOptions& options) {
    const StopSignal stop;
    BridgeOptions own = options;
    own.connection.stopped = [&options] { return stopped(options); };
    const Result<void> received = Receiving(own).run();
    if (received || stopped(options)) return StopSignal::received() == 0 ? exit_ok : 128 + StopSignal::received();
    complain("bridge: " + received.error().text());
    const Code code = received.code();
    return code == Code::not_permitted || code == Code::invalid_argument ? exit_bad_usage : exit_failed;
}

}  // namespace isthmus::tools::bridge
