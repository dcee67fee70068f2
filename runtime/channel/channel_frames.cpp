// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes frames, and makes the checks that need no state of earlier frames.
#include "channel_frames.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

constexpr std::uint32_t frame_magic = 0x68637369;  // "isch"
constexpr std::uint16_t frame_version = 1;
constexpr std::size_t greeting_bytes = 12;
constexpr std::size_t received_bytes = 8;
constexpr std::size_t nonce_bytes = std::tuple_size_v<ChannelNonce>;

template <class T>
void put(std::byte* at, T value) noexcept {
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) at[byte] = static_cast<std::byte>(value >> (8 * byte) & 0xff);
}
template <class T>
T get(const std::byte* at) noexcept {
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
        value |= std::uint64_t{std::to_integer<std::uint8_t>(at[byte])} << (8 * byte);
    return static_cast<T>(value);
}

// Does the payload size fit the type? Messages may have any.
bool right_size(FrameType type, std::size_t bytes) noexcept {
    switch (type) {
        case FrameType::hello:
        case FrameType::welcome: return bytes == greeting_bytes;
        case FrameType::message: return bytes <= max_message_bytes;
        case FrameType::received: return bytes == received_bytes;
        case FrameType::ready:
        case FrameType::goodbye: return bytes == 0;
    }
    return false;
}

bool known(std::uint16_t type) noexcept {
    return type >= static_cast<std::uint16_t>(FrameType::hello) &&
           type <= static_cast<std::uint16_t>(FrameType::goodbye);
}

}  // namespace

bool within_bounds(const ChannelQuota& quota) noexcept {
    return quota.message_bytes <= max_message_bytes && quota.message_fds <= max_message_fds && quota.messages >= 1 &&
           quota.messages <= max_messages;
}

SmallFrame write_frame(const FrameHeader& header) noexcept {
    SmallFrame frame;
    std::byte* at = frame.bytes.data();
    put(at, frame_magic);
    put(at + 4, frame_version);
    put(at + 6, static_cast<std::uint16_t>(header.type));
    put(at + 8, header.sequence);
    std::copy(header.from.begin(), header.from.end(), at + 16);
    std::copy(header.to.begin(), header.to.end(), at + 32);
    put(at + 48, header.payload_bytes);
    put(at + 52, header.fds);
    put(at + 56, header.kind);
    frame.size_bytes = frame_header_bytes;
    return frame;
}

SmallFrame write_greeting(FrameHeader header, const ChannelQuota& quota) noexcept {
    header.payload_bytes = greeting_bytes;
    SmallFrame frame = write_frame(header);
    std::byte* at = frame.bytes.data() + frame_header_bytes;
    put(at, quota.message_bytes);
    put(at + 4, quota.message_fds);
    put(at + 8, quota.messages);
    frame.size_bytes += greeting_bytes;
    return frame;
}

SmallFrame write_received(FrameHeader header, std::uint64_t messages) noexcept {
    header.payload_bytes = received_bytes;
    SmallFrame frame = write_frame(header);
    put(frame.bytes.data() + frame_header_bytes, messages);
    frame.size_bytes += received_bytes;
    return frame;
}

DecodedFrame decode_frame(const ArrivedBytes& arrived) noexcept {
    DecodedFrame frame;
    const auto fault = [&frame](FrameFault why) {
        frame.fault = why;
        return frame;
    };
    if (arrived.bytes_cut) return fault(FrameFault::bytes_cut);
    if (arrived.fds_cut) return fault(FrameFault::fds_cut);
    if (arrived.bytes.size() < frame_header_bytes) return fault(FrameFault::too_short);
    const std::byte* at = arrived.bytes.data();
    if (get<std::uint32_t>(at) != frame_magic) return fault(FrameFault::magic);
    if (get<std::uint16_t>(at + 4) != frame_version) return fault(FrameFault::version);
    const auto type = get<std::uint16_t>(at + 6);
    if (!known(type)) return fault(FrameFault::type);
    FrameHeader& header = frame.header;
    header.type = static_cast<FrameType>(type);
    header.sequence = get<std::uint64_t>(at + 8);
    std::copy_n(at + 16, nonce_bytes, header.from.begin());
    std::copy_n(at + 32, nonce_bytes, header.to.begin());
    header.payload_bytes = get<std::uint32_t>(at + 48);
    header.fds = get<std::uint32_t>(at + 52);
    header.kind = get<std::uint32_t>(at + 56);
    const std::span<const std::byte> payload = arrived.bytes.subspan(frame_header_bytes);
    if (header.payload_bytes != payload.size() || !right_size(header.type, payload.size())) {
        return fault(FrameFault::size);
    }
    const bool is_message = header.type == FrameType::message;
    if (header.fds != arrived.fds || (!is_message && header.fds != 0) || header.fds > max_message_fds) {
        return fault(FrameFault::fd_count);
    }
    if (get<std::uint32_t>(at + 60) != 0 || (!is_message && header.kind != 0)) return fault(FrameFault::reserved);
    switch (header.type) {
        case FrameType::hello:
        case FrameType::welcome:
            frame.quota = {get<std::uint32_t>(payload.data()), get<std::uint32_t>(payload.data() + 4),
                           get<std::uint32_t>(payload.data() + 8)};
            if (!within_bounds(frame.quota)) return fault(FrameFault::quota_bounds);
            break;
        case FrameType::message: frame.payload = payload; break;
        case FrameType::received: frame.messages = get<std::uint64_t>(payload.data()); break;
        case FrameType::ready:
        case FrameType::goodbye: break;
    }
    return frame;
}

std::string_view words(FrameFault fault) noexcept {
    switch (fault) {
        case FrameFault::none: return "nothing is wrong";
        case FrameFault::bytes_cut: return "it is longer than this end accepts";
        case FrameFault::fds_cut:
            return "more descriptors came with it than this end accepts, or than this process may have open";
        case FrameFault::too_short: return "it is shorter than a header";
        case FrameFault::magic: return "it does not begin as a frame does";
        case FrameFault::version: return "it is of another version of the protocol";
        case FrameFault::type: return "its type is unknown";
        case FrameFault::size: return "its size is not what it says, or not what its type has";
        case FrameFault::fd_count: return "the number of its descriptors is not what it says, or not what its type has";
        case FrameFault::reserved: return "fields that have to be zero are not";
        case FrameFault::quota_bounds: return "the quota that it names is out of bounds";
        case FrameFault::nonce: return "it carries the nonce of another conversation";
        case FrameFault::sequence: return "a frame was repeated, left out or overtaken";
        case FrameFault::order: return "a frame of its type has no place here";
        case FrameFault::quota: return "it is more than this end had said it accepts";
        case FrameFault::acknowledgement: return "it confirms messages that were not sent, or confirms them again";
    }
    return "unknown";
}

}  // namespace isthmus::rules
