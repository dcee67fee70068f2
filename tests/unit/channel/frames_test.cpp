// SPDX-License-Identifier: Apache-2.0
// The bytes of frames, and the states of both ends: pure functions, so every field and every order is tested.
#include "duel.hpp"

#include "channel_states.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using duel::bytes_of;
using Bytes = std::vector<std::byte>;

ChannelNonce nonce_of(int number) {
    ChannelNonce nonce{};
    nonce[3] = static_cast<std::byte>(number);
    return nonce;
}
ChannelProtocol::Arrival give(ChannelProtocol& to, const Bytes& bytes, std::size_t fds = 0) {
    return to.arrived({bytes, fds, false, false});
}

// Two ends after the handshake.
struct Ends {
    ChannelQuota quota{100, 3, 2};
    ChannelProtocol offering{ChannelSide::offering, nonce_of(1), quota};
    ChannelProtocol receiving{ChannelSide::receiving, nonce_of(2), quota};
    std::vector<Bytes> said;  // by the receiving side

    void greet() {
        say(receiving, offering);
        say(offering, receiving);
        say(receiving, offering);
        ASSERT_EQ(offering.phase(), ChannelProtocol::Phase::open);
        ASSERT_EQ(receiving.phase(), ChannelProtocol::Phase::open);
    }
    void say(ChannelProtocol& from, ChannelProtocol& to) {
        const auto frame = from.greeting();
        ASSERT_TRUE(frame.has_value());
        from.greeting_sent();
        if (&from == &receiving) said.push_back(bytes_of(*frame));
        ASSERT_NE(give(to, bytes_of(*frame)).event, ChannelProtocol::Event::fault);
    }
    Bytes message(ChannelProtocol& from, std::size_t bytes, std::size_t fds = 0, std::uint32_t kind = 7) {
        Bytes frame = bytes_of(from.message_header(kind, bytes, fds), bytes);
        from.message_sent();
        return frame;
    }
};

TEST(Frames, AFrameIsReadAsItWasWritten) {
    FrameHeader header{FrameType::message, 0x0102030405060708u, nonce_of(1), nonce_of(2), 5, 3, 0xa0b0c0d0u};
    const Bytes bytes = bytes_of(write_frame(header), 5);
    const DecodedFrame frame = decode_frame({bytes, 3, false, false});
    EXPECT_EQ(frame.fault, FrameFault::none);
    EXPECT_EQ(frame.header.sequence, header.sequence);
    EXPECT_EQ(frame.header.from, header.from);
    EXPECT_EQ(frame.header.to, header.to);
    EXPECT_EQ(frame.header.kind, header.kind);
    EXPECT_EQ(frame.payload.size(), 5u);
    EXPECT_EQ(std::memcmp(bytes.data(), "isch", 4), 0);

    const Bytes greeting = bytes_of(write_greeting({FrameType::hello, 0, nonce_of(1), {}, 0, 0, 0}, {1000, 7, 3}));
    EXPECT_EQ(decode_frame({greeting, 0, false, false}).quota.message_bytes, 1000u);
    EXPECT_EQ(decode_frame({greeting, 0, false, false}).quota.message_fds, 7u);
    EXPECT_EQ(decode_frame({greeting, 0, false, false}).quota.messages, 3u);
    const Bytes received = bytes_of(write_received({FrameType::received, 0, nonce_of(1), {}, 0, 0, 0}, 1ull << 40));
    EXPECT_EQ(decode_frame({received, 0, false, false}).messages, 1ull << 40);
}

// keeps I4
TEST(Frames, EveryFieldThatIsWrongIsSaid) {
    const Bytes good = bytes_of(write_frame({FrameType::message, 0, nonce_of(1), nonce_of(2), 4, 2, 0}), 4);
    const auto fault_of = [&good](std::size_t at, int value) {
        Bytes bytes = good;
        bytes[at] = static_cast<std::byte>(value);
        return decode_frame({bytes, 2, false, false}).fault;
    };
    for (std::size_t at = 0; at < 4; ++at) EXPECT_EQ(fault_of(at, 0xff), FrameFault::magic);
    EXPECT_EQ(fault_of(4, 2), FrameFault::version);
    EXPECT_EQ(fault_of(5, 1), FrameFault::version);
    EXPECT_EQ(fault_of(6, 0), FrameFault::type);
    EXPECT_EQ(fault_of(6, 7), FrameFault::type);
    EXPECT_EQ(fault_of(7, 1), FrameFault::type);
    for (const int type : {1, 2, 3, 5, 6}) EXPECT_EQ(fault_of(6, type), FrameFault::size) << type;
    for (std::size_t at = 48; at < 52; ++at) EXPECT_EQ(fault_of(at, 0xff), FrameFault::size);
    for (std::size_t at = 52; at < 56; ++at) EXPECT_EQ(fault_of(at, 0xff), FrameFault::fd_count);
    for (std::size_t at = 60; at < 64; ++at) EXPECT_EQ(fault_of(at, 1), FrameFault::reserved);
    EXPECT_EQ(decode_frame({good, 2, true, false}).fault, FrameFault::bytes_cut);
    EXPECT_EQ(decode_frame({good, 2, false, true}).fault, FrameFault::fds_cut);
    for (const std::size_t fds : {0u, 1u, 3u}) {
        EXPECT_EQ(decode_frame({good, fds, false, false}).fault, FrameFault::fd_count);
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
        const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(decode_frame({cut, 2, false, false}).fault,
                  size < frame_header_bytes ? FrameFault::too_short : FrameFault::size);
    }
    const auto greeted = [](ChannelQuota quota) {
        const Bytes bytes = bytes_of(write_greeting({FrameType::hello, 0, nonce_of(1), {}, 0, 0, 0}, quota));
        return decode_frame({bytes, 0, false, false}).fault;
    };
    EXPECT_EQ(greeted({65536, 64, 64}), FrameFault::none);
    EXPECT_EQ(greeted({65537, 64, 64}), FrameFault::quota_bounds);
    EXPECT_EQ(greeted({65536, 65, 64}), FrameFault::quota_bounds);
    EXPECT_EQ(greeted({65536, 64, 65}), FrameFault::quota_bounds);
    EXPECT_EQ(greeted({1, 1, 0}), FrameFault::quota_bounds);
}

TEST(Frames, EveryFaultHasWords) {
    for (int fault = 0; fault <= static_cast<int>(FrameFault::acknowledgement); ++fault) {
        EXPECT_NE(words(static_cast<FrameFault>(fault)), "unknown") << fault;
    }
}

TEST(ChannelStates, MessagesPassBothWaysWithinTheQuota) {
    Ends ends;
    ends.greet();
    EXPECT_TRUE(ends.offering.all_received());
    const Bytes first = ends.message(ends.offering, 10, 2);
    EXPECT_FALSE(ends.offering.all_received());
    const auto arrival = give(ends.receiving, first, 2);
    EXPECT_EQ(arrival.event, ChannelProtocol::Event::message);
    EXPECT_EQ(arrival.kind, 7u);
    EXPECT_EQ(arrival.payload.size(), 10u);
    EXPECT_EQ(give(ends.receiving, ends.message(ends.offering, 0)).event, ChannelProtocol::Event::message);
    EXPECT_EQ(ends.offering.may_send(1, 0), ChannelProtocol::Permission::wait);
    EXPECT_EQ(ends.offering.may_send(101, 0), ChannelProtocol::Permission::too_many_bytes);
    EXPECT_EQ(ends.offering.may_send(1, 4), ChannelProtocol::Permission::too_many_fds);
    EXPECT_EQ(give(ends.offering, bytes_of(ends.receiving.confirm_message())).event, ChannelProtocol::Event::nothing);
    EXPECT_EQ(ends.offering.may_send(100, 3), ChannelProtocol::Permission::yes);
    EXPECT_FALSE(ends.offering.all_received());
    EXPECT_EQ(give(ends.offering, bytes_of(ends.receiving.confirm_message())).event, ChannelProtocol::Event::nothing);
    EXPECT_TRUE(ends.offering.all_received());
    EXPECT_EQ(give(ends.offering, ends.message(ends.receiving, 3)).event, ChannelProtocol::Event::message);
    EXPECT_EQ(give(ends.offering, bytes_of(*ends.receiving.goodbye())).event, ChannelProtocol::Event::ended);
    EXPECT_FALSE(ends.receiving.goodbye().has_value());
    EXPECT_EQ(ends.offering.may_send(1, 0), ChannelProtocol::Permission::closed);
}

// A frame that is not allowed now is a fault; afterwards nothing is accepted or sent.
void expect_fault(ChannelProtocol& to, const Bytes& bytes, std::size_t fds, FrameFault fault) {
    const auto arrival = give(to, bytes, fds);
    EXPECT_EQ(arrival.event, ChannelProtocol::Event::fault);
    EXPECT_EQ(words(arrival.fault), words(fault));
    EXPECT_EQ(to.phase(), ChannelProtocol::Phase::ended);
    EXPECT_EQ(to.may_send(0, 0), ChannelProtocol::Permission::closed);
    EXPECT_FALSE(to.greeting().has_value());
    EXPECT_FALSE(to.goodbye().has_value());
    EXPECT_EQ(give(to, bytes, fds).event, ChannelProtocol::Event::fault);
}

// keeps I4
TEST(ChannelStates, ReplayedAndSkippedFramesEndIt) {
    {
        Ends ends;
        ends.greet();
        const Bytes frame = ends.message(ends.offering, 1);
        EXPECT_EQ(give(ends.receiving, frame).event, ChannelProtocol::Event::message);
        expect_fault(ends.receiving, frame, 0, FrameFault::sequence);
    }
    {
        Ends ends;
        ends.greet();
        (void)ends.message(ends.offering, 1);
        expect_fault(ends.receiving, ends.message(ends.offering, 1), 0, FrameFault::sequence);
    }
    // Frames of one conversation are invalid in another.
    Ends earlier;
    earlier.greet();
    ChannelProtocol offering(ChannelSide::offering, nonce_of(9), {});
    EXPECT_EQ(give(offering, earlier.said[0]).event, ChannelProtocol::Event::nothing);
    offering.greeting_sent();
    expect_fault(offering, earlier.said[1], 0, FrameFault::nonce);
}

// keeps I4
TEST(ChannelStates, NoncesAreChecked) {
    const auto hello = [](ChannelNonce from, ChannelNonce to) {
        return bytes_of(write_greeting({FrameType::hello, 0, from, to, 0, 0, 0}, {}));
    };
    const auto offering = [] { return ChannelProtocol(ChannelSide::offering, nonce_of(1), {}); };
    ChannelProtocol reflected = offering();
    expect_fault(reflected, hello(nonce_of(1), {}), 0, FrameFault::nonce);
    ChannelProtocol none = offering();
    expect_fault(none, hello({}, {}), 0, FrameFault::nonce);
    ChannelProtocol guessed = offering();
    expect_fault(guessed, hello(nonce_of(2), nonce_of(1)), 0, FrameFault::nonce);
    for (const bool from : {true, false}) {
        Ends ends;
        ends.greet();
        Bytes frame = ends.message(ends.offering, 1);
        frame[from ? 16 : 32] ^= std::byte{1};
        expect_fault(ends.receiving, frame, 0, FrameFault::nonce);
    }
}

// keeps I4: every type in every state.
TEST(ChannelStates, FramesOutOfPlaceEndIt) {
    const auto frame_of = [](FrameType type, std::uint64_t sequence) {
        const FrameHeader header{type, sequence, nonce_of(2), nonce_of(1), 0, 0, 0};
        if (type == FrameType::hello || type == FrameType::welcome) return bytes_of(write_greeting(header, {}));
        if (type == FrameType::received) return bytes_of(write_received(header, 1));
        return bytes_of(write_frame(header));
    };
    for (int type = 1; type <= 6; ++type) {
        const auto each = static_cast<FrameType>(type);
        ChannelProtocol at_first(ChannelSide::offering, nonce_of(1), {});
        if (each != FrameType::hello) expect_fault(at_first, frame_of(each, 0), 0, FrameFault::order);
        ChannelProtocol impatient(ChannelSide::receiving, nonce_of(1), {});
        expect_fault(impatient, frame_of(each, 0), 0, FrameFault::order);  // before hello was sent
        ChannelProtocol second(ChannelSide::receiving, nonce_of(1), {});
        second.greeting_sent();
        if (each != FrameType::welcome) expect_fault(second, frame_of(each, 0), 0, FrameFault::order);
        Ends waits;
        waits.say(waits.receiving, waits.offering);
        waits.offering.greeting_sent();
        if (each != FrameType::ready) expect_fault(waits.offering, frame_of(each, 1), 0, FrameFault::order);
        Ends ends;
        ends.greet();
        if (type <= 3) expect_fault(ends.offering, frame_of(each, 2), 0, FrameFault::order);
    }
}

// keeps I4
TEST(ChannelStates, MoreThanTheQuotaEndsIt) {
    for (const int too : {0, 1, 2}) {
        Ends ends;
        ends.greet();
        for (int sent = 0; too == 2 && sent < 2; ++sent) {
            EXPECT_EQ(give(ends.receiving, ends.message(ends.offering, 1)).event, ChannelProtocol::Event::message);
        }
        const Bytes frame = ends.message(ends.offering, too == 0 ? 101 : 1, too == 1 ? 4 : 0);
        expect_fault(ends.receiving, frame, too == 1 ? 4 : 0, FrameFault::quota);
    }
}

// keeps I4
TEST(ChannelStates, ReceiptsOfWhatWasNotSentEndIt) {
    for (const std::uint64_t confirmed : {0ull, 2ull, ~0ull}) {
        Ends ends;
        ends.greet();
        (void)ends.message(ends.offering, 1);
        expect_fault(ends.offering,
                     bytes_of(write_received({FrameType::received, 2, nonce_of(2), nonce_of(1), 0, 0, 0}, confirmed)),
                     0, FrameFault::acknowledgement);
    }
}

TEST(ChannelStates, AMessageThatWasNotSentLeavesNoTrace) {
    Ends ends;
    ends.greet();
    (void)ends.offering.message_header(1, 10, 0);
    EXPECT_TRUE(ends.offering.all_received());
    EXPECT_EQ(give(ends.receiving, ends.message(ends.offering, 1)).event, ChannelProtocol::Event::message);
}

}  // namespace
