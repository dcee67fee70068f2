// SPDX-License-Identifier: Apache-2.0
// The frames of a channel as bytes, and the checks of received ones. Pure.
#pragma once

#include <isthmus/ipc/channel.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace isthmus::rules {

enum class FrameType : std::uint16_t {
    hello = 1,     // receiving → offering: the sender's nonce and quota
    welcome = 2,   // offering → receiving: the sender's nonce and quota, and the receiver's nonce
    ready = 3,     // receiving → offering: the receiver's nonce. Nothing of value is sent before it
    message = 4,   // either way
    received = 5,  // either way: how many messages the program at this end has received
    goodbye = 6,   // either way: nothing follows
};

using ChannelNonce = std::array<std::byte, 16>;

// 64 bytes, little-endian:
//   0 magic "isch"   4 version   6 type   8 sequence   16 sender's nonce   32 receiver's nonce
//   48 payload bytes   52 attached descriptors   56 kind (messages)   60 zero
struct FrameHeader {
    FrameType type = FrameType::message;
    std::uint64_t sequence = 0;  // of the sender's frames, from 0
    ChannelNonce from{};
    ChannelNonce to{};  // zero in hello: its sender knows no nonce yet
    std::uint32_t payload_bytes = 0;
    std::uint32_t fds = 0;
    std::uint32_t kind = 0;
};
constexpr std::size_t frame_header_bytes = 64;
constexpr std::size_t max_message_bytes = 65536;
constexpr std::size_t max_message_fds = 64;  // the kernel allows 253
constexpr std::size_t max_messages = 64;

// A header, followed by the payload of a frame that is not a message.
struct SmallFrame {
    std::array<std::byte, frame_header_bytes + 12> bytes{};
    std::size_t size_bytes = 0;
    std::span<const std::byte> span() const noexcept { return {bytes.data(), size_bytes}; }
};
SmallFrame write_frame(const FrameHeader& header) noexcept;  // payload_bytes: of a message; the caller has it
SmallFrame write_greeting(FrameHeader header, const ChannelQuota& quota) noexcept;
SmallFrame write_received(FrameHeader header, std::uint64_t messages) noexcept;

// Why a frame is not accepted. From `nonce` on: found by ChannelProtocol.
enum class FrameFault : std::uint8_t {
    none,
    bytes_cut,  // longer than any accepted frame (MSG_TRUNC)
    fds_cut,    // more descriptors than accepted, or than this process may still open (MSG_CTRUNC)
    too_short,
    magic,
    version,
    type,
    size,      // the stated size is not the received one, or is wrong for the type
    fd_count,  // the stated number of descriptors is not the received one, or is wrong for the type
    reserved,
    quota_bounds,
    nonce,
    sequence,
    order,
    quota,
    acknowledgement,
};
std::string_view words(FrameFault fault) noexcept;

// Result of one recvmsg call.
struct ArrivedBytes {
    std::span<const std::byte> bytes;
    std::size_t fds = 0;
    bool bytes_cut = false;
    bool fds_cut = false;
};
struct DecodedFrame {
    FrameFault fault = FrameFault::none;
    FrameHeader header;
    std::span<const std::byte> payload;  // of a message; within the received bytes
    ChannelQuota quota;                  // of hello and welcome
    std::uint64_t messages = 0;          // of received
};
// Never reads beyond `arrived.bytes`, whatever they state.
DecodedFrame decode_frame(const ArrivedBytes& arrived) noexcept;

bool within_bounds(const ChannelQuota& quota) noexcept;

}  // namespace isthmus::rules
