// SPDX-License-Identifier: Apache-2.0
// Greeting, sending, receiving: each step has one deadline, and any protocol fault ends the channel.
#include "channel_state.hpp"

#include "channel_errors.hpp"
#include "process.hpp"

#include <algorithm>
#include <poll.h>
#include <string>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using rules::ChannelProtocol;

constexpr const char* greeting_owed = "its half of the handshake";

}  // namespace

Result<void> check(const ChannelOptions& options) {
    if (!rules::within_bounds(options.quota)) {
        return make_error<errors::channel_quota_out_of_bounds>();
    }
    if (options.step_timeout <= std::chrono::nanoseconds(0)) {
        return make_error<errors::channel_steps_without_time>();
    }
    return {};
}

Result<void> admit(const PeerCredentials& peer, const ChannelOptions& options,
                   const platform::os::ProcessCalls& calls) {
    const bool admitted = options.allow ? options.allow(peer) : peer.uid == calls.geteuid();
    if (admitted) return {};
    return make_error<errors::channel_peer_not_admitted>(peer.uid, peer.pid);
}

ChannelState::ChannelState(ChannelLink link, ChannelProtocol protocol, const ChannelOptions& options)
    : link_(std::move(link)),
      protocol_(protocol),
      step_timeout_(options.step_timeout),
      quota_(options.quota),
      forks_(process::generation()),
      buffer_(rules::frame_header_bytes + std::max<std::size_t>(options.quota.message_bytes, 64)) {}

ChannelState::~ChannelState() {
    close();
}

Result<std::unique_ptr<ChannelState>> ChannelState::begin(FileDescriptor socket, ChannelSide side,
                                                          const ChannelOptions& options,
                                                          const platform::os::ProcessCalls& calls) {
    if (Result<void> fine = check(options); !fine) return std::move(fine).error();
    Result<ChannelLink> link = ChannelLink::over(std::move(socket), calls);
    if (!link) return std::move(link).error();
    if (Result<void> fine = admit(link->peer(), options, calls); !fine) return std::move(fine).error();
    rules::ChannelNonce nonce{};
    if (Result<void> drawn = random_bytes(nonce, calls); !drawn) return std::move(drawn).error();
    return std::unique_ptr<ChannelState>(
        new ChannelState(std::move(link).value(), ChannelProtocol(side, nonce, options.quota), options));
}

Result<std::unique_ptr<ChannelState>> ChannelState::greet(FileDescriptor socket, ChannelSide side,
                                                          const ChannelOptions& options,
                                                          const platform::os::ProcessCalls& calls) {
    Result<std::unique_ptr<ChannelState>> state = begin(std::move(socket), side, options, calls);
    if (!state) return state;
    while (true) {
        Result<Greeting> greeting = (*state)->greet_on();
        if (!greeting) return std::move(greeting).error();
        if (*greeting == Greeting::over) return state;
        Result<void> waited = (*state)->wait_step(POLLIN, after(options.step_timeout), greeting_owed);
        if (!waited) return std::move(waited).error();
    }
}

Result<ChannelState::Greeting> ChannelState::greet_on() {
    Greeting seen = Greeting::nothing_came;
    while (protocol_.phase() == ChannelProtocol::Phase::greeting) {
        if (const auto mine = protocol_.greeting()) {
            // A new socket has room for the one or two small frames of a greeting, so put() does not wait.
            if (Result<void> sent = put(mine->span(), {}, {}); !sent) return std::move(sent).error();
            protocol_.greeting_sent();
            continue;
        }
        Result<bool> came = pump();
        if (!came) return std::move(came).error();
        if (!*came) return seen;
        seen = Greeting::went_on;
    }
    if (ended_) return *ended_;
    return Greeting::over;
}

Error ChannelState::end_silent_greeting() {
    return end(make_error<errors::channel_peer_silent>(peer().pid, greeting_owed), false);
}

Error ChannelState::end_displaced_greeting() {
    return end(make_error<errors::channel_handshake_displaced>(peer().pid), false);
}

Result<void> ChannelState::usable() const {
    if (forks_ != process::generation()) {
        return make_error<errors::channel_in_forked_child>();
    }
    return ended_ ? Result<void>(*ended_) : Result<void>();
}

Error ChannelState::end(Error error, bool keep_messages) {
    link_.end();
    if (!keep_messages) came_.clear();
    if (!ended_) ended_ = std::move(error);
    return *ended_;
}

Result<bool> ChannelState::pump() {
    Result<std::optional<ArrivedFrame>> taken = link_.take(buffer_, quota_.message_fds);
    if (!taken) return end(std::move(taken).error(), true);
    if (!taken->has_value()) return false;
    ArrivedFrame frame = std::move(**taken);
    if (frame.at_end) {
        const bool greeting = protocol_.phase() == ChannelProtocol::Phase::greeting;
        return end(
            greeting ? make_error<errors::channel_ended_in_handshake>() : make_error<errors::channel_peer_vanished>(),
            true);
    }
    const rules::ArrivedBytes bytes{std::span<const std::byte>(buffer_).first(frame.bytes), frame.fds.size(),
                                    frame.bytes_cut, frame.fds_cut};
    const ChannelProtocol::Arrival arrival = protocol_.arrived(bytes);
    switch (arrival.event) {
        case ChannelProtocol::Event::nothing:
        case ChannelProtocol::Event::opened: break;
        case ChannelProtocol::Event::message:
            came_.push_back({arrival.kind, {arrival.payload.begin(), arrival.payload.end()}, std::move(frame.fds)});
            break;
        case ChannelProtocol::Event::ended: (void)end(make_error<errors::channel_closed_by_peer>(), true); break;
        case ChannelProtocol::Event::fault:
            // Fewer than there was room for: the kernel could not open more in this process.
            if (frame.fds_cut && frame.fds.size() < quota_.message_fds) {
                return end(make_error<errors::channel_descriptors_lost>(), false);
            }
            return end(make_error<errors::channel_frame_refused>(peer().pid, rules::words(arrival.fault)), false);
    }
    return true;
}

Result<void> ChannelState::wait_step(short events, ChannelDeadline deadline, const char* owed) {
    Result<bool> ready = link_.wait(events, deadline);
    if (!ready) return end(std::move(ready).error(), false);
    if (*ready) return {};
    return end(make_error<errors::channel_peer_silent>(peer().pid, owed), false);
}

Result<void> ChannelState::put(std::span<const std::byte> header, std::span<const std::byte> payload,
                               std::span<const int> fds) {
    const ChannelDeadline deadline = after(step_timeout_);
    while (true) {
        Result<bool> sent = link_.put(header, payload, fds);
        if (!sent) {
            const Code code = sent.code();
            // Nothing was sent and the next message may succeed: these errors concern this message or this process. But
            // a frame of the protocol itself must follow the previous one.
            const bool message = !payload.empty() || !fds.empty();
            const bool passes =
                code == Code::invalid_argument || code == Code::system_limit || code == Code::out_of_memory;
            if (message && passes) return std::move(sent).error();
            // Keeps what the peer sent before its end.
            while (code == Code::peer_lost && !ended_) {
                if (Result<bool> came = pump(); !came || !*came) break;
            }
            return end(std::move(sent).error(), true);
        }
        if (*sent) return {};
        // Both ends may be sending, so arriving frames are taken in, within this end's quota. During the handshake a
        // frame is taken only in its turn.
        const bool open = protocol_.phase() == ChannelProtocol::Phase::open;
        const short events = open ? POLLIN | POLLOUT : POLLOUT;
        if (Result<void> waited = wait_step(events, deadline, "room for what is sent"); !waited) return waited;
        if (open) {
            if (Result<bool> came = pump(); !came) return std::move(came).error();
            if (ended_) return *ended_;
        }
    }
}

Result<void> ChannelState::send(std::uint32_t kind, std::span<const std::byte> bytes, std::span<const int> fds) {
    if (Result<void> fine = usable(); !fine) return fine;
    const ChannelDeadline deadline = after(step_timeout_);
    while (true) {
        const auto permission = protocol_.may_send(bytes.size(), fds.size());
        if (permission == ChannelProtocol::Permission::yes) break;
        if (permission != ChannelProtocol::Permission::wait) {
            const ChannelQuota& most = peer_quota();
            if (permission == ChannelProtocol::Permission::too_many_bytes) {
                return make_error<errors::message_too_long>(bytes.size(), fds.size(), most.message_bytes);
            }
            return make_error<errors::message_with_too_many_descriptors>(bytes.size(), fds.size(), most.message_fds);
        }
        if (Result<bool> came = pump(); !came) {
            return std::move(came).error();
        } else if (!*came) {
            Result<void> waited = wait_step(POLLIN, deadline, "the receipt of earlier messages");
            if (!waited) return waited;
        }
        if (ended_) return *ended_;
    }
    const rules::SmallFrame header = protocol_.message_header(kind, bytes.size(), fds.size());
    if (Result<void> sent = put(header.span(), bytes, fds); !sent) return sent;
    protocol_.message_sent();
    return {};
}

Result<void> ChannelState::wait_received() {
    Result<bool> received = wait_received(step_timeout_);
    if (!received) return std::move(received).error();
    if (*received) return {};
    return end(make_error<errors::channel_peer_silent>(peer().pid, "the receipt of what was sent"), false);
}

Result<bool> ChannelState::wait_received(std::chrono::nanoseconds timeout) {
    if (Result<void> fine = usable(); !fine) return std::move(fine).error();
    const ChannelDeadline deadline = after(timeout);
    while (!protocol_.all_received()) {
        Result<bool> came = pump();
        if (!came) return std::move(came).error();
        if (!*came) {
            Result<bool> ready = link_.wait(POLLIN, deadline);
            if (!ready) return end(std::move(ready).error(), false);
            if (!*ready) return false;
        }
        if (ended_ && !protocol_.all_received()) return *ended_;
    }
    return true;
}

Result<bool> ChannelState::wait_for_message(std::chrono::nanoseconds timeout) {
    if (forks_ != process::generation()) return usable().error();
    const ChannelDeadline deadline = after(timeout);
    while (came_.empty()) {
        if (ended_) return *ended_;
        Result<bool> came = pump();
        if (!came) {
            if (came_.empty()) return std::move(came).error();
            break;
        }
        if (*came) continue;
        Result<bool> ready = link_.wait(POLLIN, deadline);
        if (!ready) return end(std::move(ready).error(), false);
        if (!*ready) return false;
    }
    return true;
}

Result<ChannelMessage> ChannelState::receive() {
    Result<bool> there = wait_for_message(step_timeout_);
    if (!there) return std::move(there).error();
    if (!*there) return end(make_error<errors::channel_message_owed>(peer().pid), false);
    ChannelMessage message = std::move(came_.front());
    came_.pop_front();
    // The message is complete, so a failed receipt does not matter: the next call reports the end.
    if (!ended_) (void)put(protocol_.confirm_message().span(), {}, {});
    return message;
}

void ChannelState::close() noexcept {
    if (forks_ == process::generation() && !ended_) {
        if (const auto farewell = protocol_.goodbye()) (void)link_.put(farewell->span(), {}, {});
        link_.end();
    }
    link_.close();
    came_.clear();
    if (!ended_) ended_ = make_error<errors::channel_closed_here>();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
