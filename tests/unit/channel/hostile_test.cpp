// SPDX-License-Identifier: Apache-2.0
// A peer, built byte by byte, that breaks every rule, against the shipped end: every violation ends in a typed error, a
// closed channel, and no descriptor left.
#include "duel.hpp"
#include "process_state.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using duel::bytes_of;
using duel::Duel;
using Bytes = std::vector<std::byte>;

constexpr ChannelSide both_sides[] = {ChannelSide::offering, ChannelSide::receiving};

// The shipped end expects a message and gets this instead: a typed error, closed for good, nothing kept.
void expect_refused(ChannelSide side, const std::function<void(Duel&)>& evil, Code code = Code::peer_broke_rules) {
    const NothingLeft nothing_left;
    Duel duel(side);
    Channel channel = duel.opened();
    duel.moves.push_back([&] { evil(duel); });
    const Result<ChannelMessage> message = channel.receive();
    ASSERT_FALSE(message.ok());
    EXPECT_EQ(message.code(), code) << message.error().text();
    EXPECT_FALSE(message.error().message().empty());
    EXPECT_FALSE(message.error().remedy().empty());
    EXPECT_EQ(channel.descriptor(), -1);
    EXPECT_EQ(channel.send(1, {}).code(), code);
    EXPECT_EQ(channel.receive().code(), code);
    EXPECT_EQ(channel.wait_received().code(), code);
    EXPECT_EQ(channel.wait_for_message(std::chrono::seconds(0)).code(), code);
    EXPECT_TRUE(duel.sees_the_end());
}

// keeps I4
TEST(HostilePeer, EveryByteOfAHeaderThatIsWrongClosesTheChannel) {
    for (const ChannelSide side : both_sides) {
        for (std::size_t at = 0; at < frame_header_bytes; ++at) {
            if (at >= 56 && at < 60) continue;  // the program chooses the kind
            expect_refused(side, [at](Duel& duel) {
                Bytes frame = duel.message(4, 2);
                frame[at] ^= std::byte{0x80};
                duel.say(frame, 2);
            });
        }
    }
}

// keeps I4
TEST(HostilePeer, SizesThatAreNotSoCloseTheChannel) {
    for (const ChannelSide side : both_sides) {
        const auto of_size = [side](std::size_t size, std::size_t fds) {
            expect_refused(side, [=](Duel& duel) {
                Bytes frame = duel.message(100, fds);
                frame.resize(size);
                duel.say(frame, fds);
            });
        };
        for (const std::size_t size : {1u, 63u, 64u, 163u, 165u, 200u, 60000u}) {
            of_size(size, 0);
            of_size(size, 3);
        }
        expect_refused(side, [](Duel& duel) { duel.say(duel.message(101)); });
        expect_refused(side, [](Duel& duel) { duel.say(duel.message(60000)); });
        expect_refused(
            side, [](Duel& duel) { duel.say({}); }, Code::peer_lost);  // an empty packet is the end
        expect_refused(side, [](Duel& duel) { duel.say({}, 2); });
    }
}

// keeps I4
TEST(HostilePeer, DescriptorsThatWereNotSaidAreClosed) {
    for (const ChannelSide side : both_sides) {
        for (const std::size_t said : {0u, 1u, 2u, 3u, 4u, 200u}) {
            for (const std::size_t sent : {0u, 1u, 2u, 3u, 4u, 200u}) {
                if (said == sent && said <= 3) continue;
                expect_refused(side, [=](Duel& duel) { duel.say(duel.message(4, said), sent); });
            }
        }
        expect_refused(side, [](Duel& duel) {
            Bytes frame = bytes_of(write_received({FrameType::received, 2, {}, {}, 0, 1, 0}, 1));
            duel.say(frame, 1);
        });
    }
}

// keeps I4
TEST(HostilePeer, RepeatedAndLeftOutFramesCloseTheChannel) {
    for (const ChannelSide side : both_sides) {
        const NothingLeft nothing_left;
        Duel duel(side);
        Channel channel = duel.opened();
        const Bytes frame = duel.message(4, 1);
        duel.say(frame, 1);
        EXPECT_TRUE(channel.receive().ok());
        duel.say(frame, 1);
        EXPECT_EQ(channel.receive().code(), Code::peer_broke_rules);
        expect_refused(side, [](Duel& other) {
            (void)other.message(1);
            other.say(other.message(1));
        });
    }
}

// keeps I4
TEST(HostilePeer, AFloodClosesTheChannelAndWhatItBrought) {
    for (const ChannelSide side : both_sides) {
        const NothingLeft nothing_left;
        Duel duel(side);
        Channel channel = duel.opened();
        EXPECT_TRUE(channel.send(1, {}).ok());
        for (int at = 0; at < 3; ++at) duel.say(duel.message(1, 3), 3);  // two are accepted
        EXPECT_EQ(channel.wait_received().code(), Code::peer_broke_rules);
        EXPECT_EQ(channel.receive().code(), Code::peer_broke_rules);
        EXPECT_TRUE(duel.sees_the_end());
    }
}

// keeps I4
TEST(HostilePeer, ReceiptsOfWhatWasNotSentCloseTheChannel) {
    for (const ChannelSide side : both_sides) {
        expect_refused(side, [](Duel& duel) { duel.say(bytes_of(duel.theirs.confirm_message())); });
    }
}

// keeps I4
TEST(HostilePeer, SilenceInTheHandshakeEndsAtItsDeadline) {
    for (const ChannelSide side : both_sides) {
        for (const int moves : {0, 1}) {
            if (moves == 1 && side == ChannelSide::receiving) continue;  // its handshake waits once
            const NothingLeft nothing_left;
            Duel duel(side);
            duel.give_it(std::chrono::milliseconds(2));
            for (int at = 0; at < moves; ++at) duel.moves.push_back([&duel] { duel.follow(); });
            const Result<Channel> channel = duel.open();
            ASSERT_FALSE(channel.ok());
            EXPECT_EQ(channel.code(), Code::timed_out) << channel.error().text();
            EXPECT_TRUE(duel.sees_the_end());
        }
    }
}

// keeps I4
TEST(HostilePeer, SilenceWhereAMessageIsOwedClosesTheChannel) {
    for (const ChannelSide side : both_sides) {
        const NothingLeft nothing_left;
        Duel duel(side);
        duel.give_it(std::chrono::milliseconds(2));
        Channel channel = duel.opened();
        EXPECT_FALSE(channel.wait_for_message(std::chrono::milliseconds(1)).value());  // no message is due: no error
        EXPECT_EQ(channel.receive().code(), Code::timed_out);
        EXPECT_EQ(channel.descriptor(), -1);
        EXPECT_EQ(channel.wait_for_message(std::chrono::milliseconds(1)).code(), Code::timed_out);
    }
}

// keeps I4
TEST(HostilePeer, SilenceAboutWhatItReceivedClosesTheChannel) {
    for (const bool waits : {false, true}) {
        const NothingLeft nothing_left;
        Duel duel(ChannelSide::offering);
        duel.give_it(std::chrono::milliseconds(2));
        Channel channel = duel.opened();
        EXPECT_TRUE(channel.send(1, {}).ok());
        EXPECT_TRUE(channel.send(1, {}).ok());
        // A message that has arrived is dropped with the channel, and its descriptors are closed.
        duel.say(duel.message(1, 2), 2);
        EXPECT_EQ((waits ? channel.wait_received() : channel.send(1, {})).code(), Code::timed_out);
        EXPECT_EQ(channel.receive().code(), Code::timed_out);
    }
}

TEST(HostilePeer, WrongFramesInTheHandshakeEndIt) {
    for (const ChannelSide side : both_sides) {
        const NothingLeft nothing_left;
        Duel duel(side);
        duel.moves.push_back([&duel] { duel.say(duel.message(4, 2), 2); });
        EXPECT_EQ(duel.open().code(), Code::peer_broke_rules);
        EXPECT_TRUE(duel.sees_the_end());
    }
}

// keeps I3: nobody hears anything from an end that does not admit him.
TEST(HostilePeer, WhoIsNotAdmittedHearsNothing) {
    for (const ChannelSide side : both_sides) {
        const NothingLeft nothing_left;
        ChannelPair pair = create_channel_pair().value();
        ChannelOptions options;
        PeerCredentials asked;
        options.allow = [&asked](const PeerCredentials& peer) {
            asked = peer;
            return false;
        };
        EXPECT_EQ(Channel::adopt(std::move(pair.ours), side, options).code(), Code::not_permitted);
        EXPECT_EQ(asked.uid, ::geteuid());
        EXPECT_EQ(asked.gid, ::getegid());
        EXPECT_EQ(asked.pid, ::getpid());
        std::byte byte{};
        EXPECT_EQ(::recv(pair.childs.get(), &byte, 1, MSG_DONTWAIT), 0);
    }
}

// keeps I6: what was sent before the end can still be received.
TEST(HostilePeer, APeerThatVanishesLeavesItsMessages) {
    for (const bool unread : {false, true}) {
        const NothingLeft nothing_left;
        Duel duel(ChannelSide::receiving);
        Channel channel = duel.opened();
        if (unread) {  // the socket then returns ECONNRESET first
            EXPECT_TRUE(channel.send(1, {}).ok());
        }
        duel.say(duel.message(3, 1), 1);
        duel.vanish();
        const Result<ChannelMessage> message = channel.receive();
        ASSERT_TRUE(message.ok()) << message.error().text();
        EXPECT_EQ(message->bytes.size(), 3u);
        EXPECT_EQ(message->fds.size(), 1u);
        EXPECT_EQ(channel.receive().code(), Code::peer_lost);
        EXPECT_EQ(channel.send(1, {}).code(), Code::peer_lost);  // and no SIGPIPE
    }
    // The same, where a send notices it first.
    const NothingLeft nothing_left;
    Duel duel(ChannelSide::receiving);
    Channel channel = duel.opened();
    duel.say(duel.message(3, 1), 1);
    duel.vanish();
    EXPECT_EQ(channel.send(1, {}).code(), Code::peer_lost);
    EXPECT_TRUE(channel.receive().ok());
    EXPECT_EQ(channel.receive().code(), Code::peer_lost);
}

TEST(HostilePeer, DescriptorsThatThisProcessMayNotOpenAreALimitOfTheSystem) {
    const NothingLeft nothing_left;
    Duel duel(ChannelSide::receiving);
    Channel channel = duel.opened();
    duel.say(duel.message(3, 3), 3);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const FileDescriptor next(::dup(channel.descriptor()));
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(next.get()) + 2;  // one more
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const Result<ChannelMessage> message = channel.receive();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(message.ok());
    EXPECT_EQ(message.code(), Code::system_limit) << message.error().text();
    EXPECT_EQ(channel.descriptor(), -1);
}

}  // namespace
