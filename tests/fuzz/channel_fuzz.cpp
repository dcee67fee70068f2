// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes for one end of a channel, as frames and as orders of events: its states keep their invariants,
// whatever the peer sends. The input is a small program (see corpus/channel):
//
//   first byte      bit 0: which side this end is; bits 1 and 2: how many messages it accepts, less one
//   then, each      a number, modulo 8:
//     0  these bytes arrive (two bytes: how many; a byte: descriptors; a byte: bit 0 cut, bit 1 descriptors cut)
//     1  a frame arrives as from a peer, except for what a byte of bits spoils (a byte: type; a byte: spoilt; a byte:
//        payload; a byte: descriptors)
//     2  the peer takes its next step          3  the peer receives the last frame of this end
//     4  this end sends its greeting           5  it sends a message (a byte: payload; a byte: descriptors)
//     6  its program receives a message        7  it says goodbye
#include "channel_states.hpp"
#include "require.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using Bytes = std::vector<std::byte>;

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    bool empty() const { return left_ == 0; }
    unsigned byte() { return left_ == 0 ? 0 : (--left_, *data_++); }
    std::span<const std::byte> bytes(std::size_t count) {
        count = count < left_ ? count : left_;
        const auto* begin = reinterpret_cast<const std::byte*>(data_);
        data_ += count;
        left_ -= count;
        return {begin, count};
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

ChannelNonce nonce_of(unsigned number) {
    ChannelNonce nonce{};
    nonce[5] = static_cast<std::byte>(number);
    return nonce;
}

class Play {
public:
    explicit Play(unsigned choice)
        : quota_{100, 3, 1 + choice / 2 % 4},
          end_(choice % 2 == 0 ? ChannelSide::offering : ChannelSide::receiving, nonce_of(1), quota_),
          peer_(choice % 2 == 0 ? ChannelSide::receiving : ChannelSide::offering, nonce_of(2), quota_) {}

    void comes(const ArrivedBytes& bytes) {
        const ChannelProtocol::Phase before = end_.phase();
        const DecodedFrame frame = decode_frame(bytes);
        check_decoded(frame, bytes);
        const ChannelProtocol::Arrival arrival = end_.arrived(bytes);
        require((arrival.event == ChannelProtocol::Event::fault) == (arrival.fault != FrameFault::none));
        require(frame.fault == FrameFault::none || arrival.event == ChannelProtocol::Event::fault);
        switch (arrival.event) {
            case ChannelProtocol::Event::nothing: break;
            case ChannelProtocol::Event::opened:
                require(before == ChannelProtocol::Phase::greeting && end_.phase() == ChannelProtocol::Phase::open);
                break;
            case ChannelProtocol::Event::message:
                require(before == ChannelProtocol::Phase::open && end_.phase() == ChannelProtocol::Phase::open);
                require(arrival.payload.size() <= quota_.message_bytes && bytes.fds <= quota_.message_fds);
                require(++unreceived_ <= quota_.messages);
                break;
            case ChannelProtocol::Event::ended:
            case ChannelProtocol::Event::fault: require(end_.phase() == ChannelProtocol::Phase::ended); break;
        }
        if (before == ChannelProtocol::Phase::ended) require(arrival.event == ChannelProtocol::Event::fault);
        check_end();
    }
    // A frame of the peer, except for what is spoilt.
    void comes_spoilt(unsigned type, unsigned spoilt, std::size_t payload, unsigned fds) {
        FrameHeader header;
        header.type = static_cast<FrameType>(type % 8);
        header.sequence = peer_said_ + ((spoilt & 1) != 0 ? ~std::uint64_t{0} : 0);
        header.from = nonce_of((spoilt & 2) != 0 ? 1 : 2);
        header.to = header.type == FrameType::hello || (spoilt & 4) != 0 ? ChannelNonce{} : nonce_of(1);
        header.payload_bytes = static_cast<std::uint32_t>(payload + ((spoilt & 8) != 0 ? 1 : 0));
        header.fds = fds + ((spoilt & 16) != 0 ? 1 : 0);
        header.kind = (spoilt & 32) != 0 ? 1 : 0;
        SmallFrame small = write_frame(header);
        std::size_t more = payload;
        if (header.type == FrameType::hello || header.type == FrameType::welcome) {
            small = write_greeting(header, {static_cast<std::uint32_t>(payload), fds, 1 + fds});
            more = 0;
        } else if (header.type == FrameType::received) {
            small = write_received(header, payload);
            more = 0;
        }
        Bytes bytes(small.span().begin(), small.span().end());
        bytes.resize(bytes.size() + more);
        const bool greeting = header.type == FrameType::hello || header.type == FrameType::welcome;
        const bool fine = end_.phase() != ChannelProtocol::Phase::ended;
        comes({bytes, greeting ? header.fds : fds, (spoilt & 64) != 0, (spoilt & 128) != 0});
        if (fine && end_.phase() != ChannelProtocol::Phase::ended) ++peer_said_;
    }
    void peer_moves() {
        SmallFrame frame;
        if (const auto greeting = peer_.greeting()) {
            frame = *greeting;
            peer_.greeting_sent();
        } else if (peer_.may_send(0, 0) == ChannelProtocol::Permission::yes) {
            frame = peer_.message_header(1, 0, 0);
            peer_.message_sent();
        } else {
            return;
        }
        comes({frame.span(), 0, false, false});
        ++peer_said_;
    }
    void peer_hears() {
        if (said_.size_bytes == 0) return;
        (void)peer_.arrived({said_.span(), 0, false, false});
    }
    void greets() {
        const auto frame = end_.greeting();
        if (!frame) return;
        require(end_.phase() == ChannelProtocol::Phase::greeting);
        say(*frame);
        end_.greeting_sent();
        check_end();
    }
    void sends(std::size_t bytes, std::size_t fds) {
        const auto permission = end_.may_send(bytes, fds);
        if (permission == ChannelProtocol::Permission::yes) {
            require(end_.phase() == ChannelProtocol::Phase::open);
            require(bytes <= end_.peer_quota().message_bytes && fds <= end_.peer_quota().message_fds);
            say(end_.message_header(3, bytes, fds));
            end_.message_sent();
        }
        check_end();
    }
    void receives() {
        if (unreceived_ == 0 || end_.phase() != ChannelProtocol::Phase::open) return;
        --unreceived_;
        say(end_.confirm_message());
    }
    void leaves() {
        if (const auto frame = end_.goodbye()) say(*frame);
        check_end();
    }

private:
    void say(const SmallFrame& frame) {
        said_ = frame;
        // Frames of this end are well-formed.
        if (decode_frame({frame.span(), 0, false, false}).header.type != FrameType::message) {
            require(decode_frame({frame.span(), 0, false, false}).fault == FrameFault::none);
        }
    }
    void check_decoded(const DecodedFrame& frame, const ArrivedBytes& bytes) {
        if (frame.fault != FrameFault::none) return;
        require(frame.header.fds == bytes.fds);
        require(bytes.bytes.size() == frame_header_bytes + frame.header.payload_bytes);
        const SmallFrame again = write_frame(frame.header);
        require(std::memcmp(again.bytes.data(), bytes.bytes.data(), frame_header_bytes) == 0);
        if (!frame.payload.empty()) require(frame.payload.data() == bytes.bytes.data() + frame_header_bytes);
    }
    void check_end() {
        if (end_.phase() == ChannelProtocol::Phase::open) require(within_bounds(end_.peer_quota()));
        if (end_.phase() != ChannelProtocol::Phase::ended) return;
        require(end_.may_send(0, 0) == ChannelProtocol::Permission::closed);
        require(!end_.greeting() && !end_.goodbye());
    }

    ChannelQuota quota_;
    ChannelProtocol end_;
    ChannelProtocol peer_;
    SmallFrame said_;
    std::uint64_t peer_said_ = 0;
    std::uint32_t unreceived_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 1024) return 0;
    Input input(data, size);
    Play play(input.byte());
    while (!input.empty()) {
        switch (input.byte() % 8) {
            case 0: {
                const std::size_t low = input.byte();
                const std::size_t count = low + 256 * (input.byte() % 2);
                const unsigned fds = input.byte();
                const unsigned cut = input.byte();
                play.comes({input.bytes(count), fds, (cut & 1) != 0, (cut & 2) != 0});
                break;
            }
            case 1: {
                const unsigned type = input.byte();
                const unsigned spoilt = input.byte();
                const std::size_t payload = input.byte();
                play.comes_spoilt(type, spoilt, payload, input.byte());
                break;
            }
            case 2: play.peer_moves(); break;
            case 3: play.peer_hears(); break;
            case 4: play.greets(); break;
            case 5: {
                const std::size_t bytes = input.byte();
                play.sends(bytes, input.byte());
                break;
            }
            case 6: play.receives(); break;
            default: play.leaves(); break;
        }
    }
    return 0;
}
