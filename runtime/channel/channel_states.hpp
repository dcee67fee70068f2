// SPDX-License-Identifier: Apache-2.0
// What one end of a channel may send next, and what an arriving frame means. Pure: no clock, no system calls.
#pragma once

#include "channel_frames.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace isthmus::rules {

// State of one end. A fault ends it: every later frame is a fault too, and nothing may be sent.
class ChannelProtocol {
public:
    enum class Phase : std::uint8_t { greeting, open, ended };

    ChannelProtocol(ChannelSide side, const ChannelNonce& nonce, const ChannelQuota& quota) noexcept;

    Phase phase() const noexcept { return phase_; }
    const ChannelQuota& peer_quota() const noexcept { return peer_quota_; }

    // The handshake frame that this end must send now. Commit with greeting_sent().
    std::optional<SmallFrame> greeting() const noexcept;
    void greeting_sent() noexcept;

    enum class Event : std::uint8_t {
        nothing,  // for the program
        opened,   // the handshake is over
        message,
        ended,  // the peer said goodbye
        fault,
    };
    struct Arrival {
        Event event = Event::nothing;
        FrameFault fault = FrameFault::none;
        std::uint32_t kind = 0;              // of a message
        std::span<const std::byte> payload;  // within the received bytes
    };
    Arrival arrived(const ArrivedBytes& frame) noexcept;

    enum class Permission : std::uint8_t { yes, wait, too_many_bytes, too_many_fds, closed };
    Permission may_send(std::size_t bytes, std::size_t fds) const noexcept;
    // The header of a message that may be sent; the payload follows it. Commit with message_sent() after the kernel has
    // accepted it; a message not sent changes no state.
    SmallFrame message_header(std::uint32_t kind, std::size_t bytes, std::size_t fds) const noexcept;
    void message_sent() noexcept;
    bool all_received() const noexcept { return messages_sent_ == messages_confirmed_; }

    // Tells the peer that the program received a message. Send at once.
    SmallFrame confirm_message() noexcept;
    // Ends this side. Empty: the conversation never began, or is over.
    std::optional<SmallFrame> goodbye() noexcept;

private:
    enum class Turn : std::uint8_t { send_hello, hear_hello, send_welcome, hear_welcome, send_ready, hear_ready, done };
    FrameHeader header(FrameType type) const noexcept;
    Arrival fault(FrameFault why) noexcept;
    Arrival greeted(const DecodedFrame& frame) noexcept;
    Arrival heard(const DecodedFrame& frame) noexcept;

    Phase phase_ = Phase::greeting;
    Turn turn_;
    ChannelNonce nonce_;
    ChannelNonce peer_nonce_{};
    ChannelQuota quota_;
    ChannelQuota peer_quota_{};
    std::uint64_t sequence_ = 0;       // of this end's next frame
    std::uint64_t peer_sequence_ = 0;  // of the peer's next frame
    std::uint64_t messages_sent_ = 0;
    std::uint64_t messages_confirmed_ = 0;  // sent messages that the peer's program has received
    std::uint64_t messages_came_ = 0;
    std::uint64_t messages_received_ = 0;  // arrived messages that this program has received
};

}  // namespace isthmus::rules
