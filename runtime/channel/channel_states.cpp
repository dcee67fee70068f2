// SPDX-License-Identifier: Apache-2.0
// The states of both ends: three greeting frames, then messages and confirmations until a goodbye.
#include "channel_states.hpp"

namespace isthmus::rules {

ChannelProtocol::ChannelProtocol(ChannelSide side, const ChannelNonce& nonce, const ChannelQuota& quota) noexcept
    : turn_(side == ChannelSide::receiving ? Turn::send_hello : Turn::hear_hello), nonce_(nonce), quota_(quota) {}

FrameHeader ChannelProtocol::header(FrameType type) const noexcept {
    FrameHeader header;
    header.type = type;
    header.sequence = sequence_;
    header.from = nonce_;
    header.to = peer_nonce_;
    return header;
}

std::optional<SmallFrame> ChannelProtocol::greeting() const noexcept {
    if (phase_ != Phase::greeting) return std::nullopt;
    switch (turn_) {
        case Turn::send_hello: return write_greeting(header(FrameType::hello), quota_);
        case Turn::send_welcome: return write_greeting(header(FrameType::welcome), quota_);
        case Turn::send_ready: return write_frame(header(FrameType::ready));
        default: return std::nullopt;
    }
}

void ChannelProtocol::greeting_sent() noexcept {
    ++sequence_;
    switch (turn_) {
        case Turn::send_hello: turn_ = Turn::hear_welcome; break;
        case Turn::send_welcome: turn_ = Turn::hear_ready; break;
        default: turn_ = Turn::done; phase_ = Phase::open;
    }
}

ChannelProtocol::Arrival ChannelProtocol::fault(FrameFault why) noexcept {
    phase_ = Phase::ended;
    return {Event::fault, why, 0, {}};
}

ChannelProtocol::Arrival ChannelProtocol::arrived(const ArrivedBytes& bytes) noexcept {
    if (phase_ == Phase::ended) return fault(FrameFault::order);
    const DecodedFrame frame = decode_frame(bytes);
    if (frame.fault != FrameFault::none) return fault(frame.fault);
    if (frame.header.sequence != peer_sequence_) return fault(FrameFault::sequence);
    ++peer_sequence_;
    return phase_ == Phase::greeting ? greeted(frame) : heard(frame);
}

// Learns the peer's nonce from its first frame: it must be set, and not this end's own sent back.
ChannelProtocol::Arrival ChannelProtocol::greeted(const DecodedFrame& frame) noexcept {
    const FrameHeader& header = frame.header;
    switch (turn_) {
        case Turn::hear_hello:
        case Turn::hear_welcome: {
            const bool hello = turn_ == Turn::hear_hello;
            if (header.type != (hello ? FrameType::hello : FrameType::welcome)) return fault(FrameFault::order);
            if (header.from == ChannelNonce{} || header.from == nonce_) return fault(FrameFault::nonce);
            if (header.to != (hello ? ChannelNonce{} : nonce_)) return fault(FrameFault::nonce);
            peer_nonce_ = header.from;
            peer_quota_ = frame.quota;
            turn_ = hello ? Turn::send_welcome : Turn::send_ready;
            return {};
        }
        case Turn::hear_ready:
            if (header.type != FrameType::ready) return fault(FrameFault::order);
            if (header.from != peer_nonce_ || header.to != nonce_) return fault(FrameFault::nonce);
            turn_ = Turn::done;
            phase_ = Phase::open;
            return {Event::opened, FrameFault::none, 0, {}};
        default: return fault(FrameFault::order);  // this end must send next
    }
}

ChannelProtocol::Arrival ChannelProtocol::heard(const DecodedFrame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (header.from != peer_nonce_ || header.to != nonce_) return fault(FrameFault::nonce);
    switch (header.type) {
        case FrameType::message:
            if (header.payload_bytes > quota_.message_bytes || header.fds > quota_.message_fds ||
                messages_came_ - messages_received_ >= quota_.messages) {
                return fault(FrameFault::quota);
            }
            ++messages_came_;
            return {Event::message, FrameFault::none, header.kind, frame.payload};
        case FrameType::received:
            if (frame.messages <= messages_confirmed_ || frame.messages > messages_sent_) {
                return fault(FrameFault::acknowledgement);
            }
            messages_confirmed_ = frame.messages;
            return {};
        case FrameType::goodbye: phase_ = Phase::ended; return {Event::ended, FrameFault::none, 0, {}};
        case FrameType::hello:
        case FrameType::welcome:
        case FrameType::ready: break;
    }
    return fault(FrameFault::order);
}

ChannelProtocol::Permission ChannelProtocol::may_send(std::size_t bytes, std::size_t fds) const noexcept {
    if (phase_ != Phase::open) return Permission::closed;
    if (bytes > peer_quota_.message_bytes) return Permission::too_many_bytes;
    if (fds > peer_quota_.message_fds) return Permission::too_many_fds;
    return messages_sent_ - messages_confirmed_ < peer_quota_.messages ? Permission::yes : Permission::wait;
}

SmallFrame ChannelProtocol::message_header(std::uint32_t kind, std::size_t bytes, std::size_t fds) const noexcept {
    FrameHeader message = header(FrameType::message);
    message.kind = kind;
    message.payload_bytes = static_cast<std::uint32_t>(bytes);
    message.fds = static_cast<std::uint32_t>(fds);
    return write_frame(message);
}

void ChannelProtocol::message_sent() noexcept {
    ++sequence_;
    ++messages_sent_;
}

SmallFrame ChannelProtocol::confirm_message() noexcept {
    ++messages_received_;
    const SmallFrame frame = write_received(header(FrameType::received), messages_received_);
    ++sequence_;
    return frame;
}

std::optional<SmallFrame> ChannelProtocol::goodbye() noexcept {
    if (phase_ != Phase::open) return std::nullopt;
    const SmallFrame frame = write_frame(header(FrameType::goodbye));
    phase_ = Phase::ended;
    return frame;
}

}  // namespace isthmus::rules
