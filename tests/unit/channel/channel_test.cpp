// SPDX-License-Identifier: Apache-2.0
// Channels as programs use them: messages in both directions, which peers are admitted, and what is refused.
#include <isthmus/ipc/channel.hpp>

#include "process_state.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;
using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

struct Two {
    Channel offering;
    Channel receiving;
};
Two meet(const ChannelOptions& offering = patient(), const ChannelOptions& receiving = patient()) {
    ChannelPair pair = create_channel_pair().value();
    auto other = std::async(std::launch::async, [end = std::move(pair.childs), &receiving]() mutable {
        return Channel::adopt(std::move(end), ChannelSide::receiving, receiving);
    });
    Result<Channel> ours = Channel::adopt(std::move(pair.ours), ChannelSide::offering, offering);
    return {std::move(ours).value(), other.get().value()};
}

// keeps I3, I4
TEST(Channel, CarriesMessagesAndDescriptorsBothWays) {
    const NothingLeft nothing_left;
    Two two = meet();
    EXPECT_EQ(two.offering.peer().pid, ::getpid());
    EXPECT_EQ(two.offering.peer().uid, ::geteuid());
    EXPECT_EQ(two.offering.peer_quota().messages, ChannelQuota{}.messages);
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, 0), 0);
    const FileDescriptor from(ends[0]);
    const FileDescriptor to(ends[1]);
    const int fds[2] = {to.get(), from.get()};
    ASSERT_TRUE(two.offering.send(42, bytes_of("two ends"), fds).ok());
    ASSERT_TRUE(two.offering.send(43, {}).ok());
    EXPECT_TRUE(two.receiving.wait_for_message(0s).value());
    ChannelMessage message = two.receiving.receive().value();
    EXPECT_EQ(message.kind, 42u);
    EXPECT_EQ(std::memcmp(message.bytes.data(), "two ends", 8), 0);
    ASSERT_EQ(message.fds.size(), 2u);
    for (const FileDescriptor& fd : message.fds) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_EQ(::write(message.fds[0].get(), "x", 1), 1);
    char seen = 0;
    EXPECT_EQ(::read(from.get(), &seen, 1), 1);
    EXPECT_EQ(seen, 'x');
    EXPECT_EQ(two.receiving.receive().value().kind, 43u);
    EXPECT_TRUE(two.offering.wait_received().ok());
    ASSERT_TRUE(two.receiving.send(44, bytes_of("thanks")).ok());
    EXPECT_EQ(two.offering.receive().value().bytes.size(), 6u);
    EXPECT_FALSE(two.offering.wait_for_message(0s).value());
}

TEST(Channel, TakesInWhatComesWhileItSends) {
    Two two = meet();
    // Both ends send as much as is accepted, then receive all of it; neither waits for the other.
    for (std::uint32_t at = 0; at < 16; ++at) {
        ASSERT_TRUE(two.offering.send(at, bytes_of(std::string(4000, 'a'))).ok());
        ASSERT_TRUE(two.receiving.send(at, bytes_of(std::string(4000, 'b'))).ok());
    }
    for (std::uint32_t at = 0; at < 16; ++at) {
        EXPECT_EQ(two.offering.receive().value().kind, at);
        EXPECT_EQ(two.receiving.receive().value().kind, at);
    }
    EXPECT_TRUE(two.offering.wait_received().ok());
    EXPECT_TRUE(two.receiving.wait_received().ok());
}

TEST(Channel, LargeMessagesWaitForRoom) {
    ChannelOptions large;
    large.quota = {65536, 4, 64};
    large.step_timeout = 20s;
    Two two = meet(large, large);
    std::thread sends([&] {
        for (std::uint32_t at = 0; at < 64; ++at) {
            EXPECT_TRUE(two.offering.send(at, bytes_of(std::string(65536, static_cast<char>(at)))).ok());
        }
        EXPECT_TRUE(two.offering.wait_received().ok());
    });
    for (std::uint32_t at = 0; at < 64; ++at) {
        const ChannelMessage message = two.receiving.receive().value();
        EXPECT_EQ(message.kind, at);
        EXPECT_EQ(message.bytes.size(), 65536u);
        EXPECT_EQ(message.bytes.back(), static_cast<std::byte>(at));
    }
    sends.join();
}

TEST(Channel, RefusalsOfMessagesLeaveItOpen) {
    const NothingLeft nothing_left;
    ChannelOptions small = patient();
    small.quota = {10, 1, 2};
    Two two = meet(patient(), small);
    EXPECT_EQ(two.offering.send(1, bytes_of("12345678901")).code(), Code::invalid_argument);
    const int fds[2] = {0, 1};
    EXPECT_EQ(two.offering.send(1, {}, fds).code(), Code::invalid_argument);
    const int closed = ::dup(0);
    ::close(closed);
    EXPECT_EQ(two.offering.send(1, {}, std::span(&closed, 1)).code(), Code::invalid_argument);
    EXPECT_TRUE(two.offering.send(2, bytes_of("1234567890"), std::span(fds, 1)).ok());
    EXPECT_EQ(two.receiving.receive().value().kind, 2u);
}

TEST(Channel, LooksForAReceiptWithoutEndingTheChannel) {
    Two two = meet();
    EXPECT_TRUE(two.offering.wait_received(0s).value()) << "nothing was sent";
    ASSERT_TRUE(two.offering.send(1, {}).ok());
    EXPECT_FALSE(two.offering.wait_received(0s).value());
    EXPECT_FALSE(two.offering.wait_received(1ms).value());
    EXPECT_EQ(two.receiving.receive().value().kind, 1u);
    EXPECT_TRUE(two.offering.wait_received(20s).value());
    ASSERT_TRUE(two.offering.send(2, {}).ok());
    two.receiving.close();
    EXPECT_EQ(two.offering.wait_received(20s).code(), Code::peer_lost);
    Channel moved = std::move(two.offering);
    EXPECT_EQ(two.offering.wait_received(0s).code(), Code::invalid_handle);  // NOLINT(bugprone-use-after-move)
}

// keeps I6
TEST(Channel, AnEndThatIsClosedIsKnownAtOnceAndForGood) {
    Two two = meet();
    ASSERT_TRUE(two.receiving.send(1, {}).ok());
    two.receiving.close();
    EXPECT_EQ(two.receiving.send(1, {}).code(), Code::invalid_handle);
    EXPECT_EQ(two.receiving.descriptor(), -1);
    EXPECT_TRUE(two.offering.receive().ok());
    EXPECT_EQ(two.offering.receive().code(), Code::peer_lost);
    EXPECT_EQ(two.offering.send(1, {}).code(), Code::peer_lost);
    Channel moved = std::move(two.offering);
    EXPECT_EQ(two.offering.send(1, {}).code(), Code::invalid_handle);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(moved.receive().code(), Code::peer_lost);
}

TEST(Channel, OptionsAndSocketsThatCannotBeAreRefused) {
    const NothingLeft nothing_left;
    const auto refused = [](const ChannelOptions& options, FileDescriptor socket) {
        const Result<Channel> channel = Channel::adopt(std::move(socket), ChannelSide::offering, options);
        EXPECT_EQ(channel.code(), Code::invalid_argument);
    };
    for (const ChannelQuota quota :
         {ChannelQuota{65537, 1, 1}, ChannelQuota{1, 65, 1}, ChannelQuota{1, 1, 65}, ChannelQuota{1, 1, 0}}) {
        refused({.quota = quota}, std::move(create_channel_pair().value().ours));
    }
    refused({.step_timeout = 0s}, std::move(create_channel_pair().value().ours));
    refused({}, FileDescriptor());
    refused({}, FileDescriptor(::dup(0)));
    refused({}, FileDescriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    refused({}, FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    refused({}, FileDescriptor(ends[0]));
    refused({}, FileDescriptor(ends[1]));
}

void speak_over(int number) {
    Channel channel = Channel::adopt(FileDescriptor(number), ChannelSide::receiving, patient()).value();
    EXPECT_NE(::fcntl(channel.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
    const ChannelMessage message = channel.receive().value();
    EXPECT_TRUE(channel.send(message.kind + 1, message.bytes).ok());
    EXPECT_TRUE(channel.wait_received().ok());
}

// keeps I4
TEST(Channel, AChildInheritsItsEndThroughExec) {
    // In the child, this program runs again and gets the descriptor's number from the environment.
    if (const char* number = std::getenv("ISTHMUS_TEST_FD")) return speak_over(std::atoi(number));
    const NothingLeft nothing_left;
    ChannelPair pair = create_channel_pair().value();
    const pid_t child = ::fork();
    if (child == 0) {
        ::fcntl(pair.childs.get(), F_SETFD, 0);
        ::setenv("ISTHMUS_TEST_FD", std::to_string(pair.childs.get()).c_str(), 1);
        ::execl("/proc/self/exe", "unit_channel", "--gtest_filter=Channel.AChildInheritsItsEndThroughExec", nullptr);
        ::_exit(2);
    }
    pair.childs.close();
    {
        Result<Channel> channel = Channel::adopt(std::move(pair.ours), ChannelSide::offering, patient());
        ASSERT_TRUE(channel.ok()) << channel.error().text();
        ASSERT_TRUE(channel->send(5, bytes_of("to be sent back")).ok());
        const ChannelMessage message = channel->receive().value();
        EXPECT_EQ(message.kind, 6u);
        EXPECT_EQ(message.bytes.size(), 15u);
        EXPECT_EQ(channel->receive().code(), Code::peer_lost);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// keeps I4: one that comes from elsewhere is refused by default, root's as well as anybody's.
TEST(Channel, AnotherUsersProcessIsRefusedByDefault) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    ChannelPair pair = create_channel_pair().value();
    const pid_t child = ::fork();
    if (child == 0) {
        if (::seteuid(65534) != 0) ::_exit(3);
        ::_exit(Channel::adopt(std::move(pair.childs), ChannelSide::receiving).code() == Code::not_permitted ? 0 : 1);
    }
    pair.childs.close();
    EXPECT_EQ(Channel::adopt(std::move(pair.ours), ChannelSide::offering, patient()).code(), Code::peer_lost);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// keeps R3
TEST(Channel, AForkedChildIsRefusedAndTouchesNothing) {
    OwnDirectory directory;
    Listener listener = Listener::create(directory.path()).value();
    Two two = meet();
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = two.offering.send(1, {}).code() == Code::forked &&
                             two.offering.receive().code() == Code::forked && listener.accept().code() == Code::forked;
        {
            const Listener ends_here = std::move(listener);
            const Two ends_too = std::move(two);
        }
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(directory.entries(), 1);  // the name still exists
    ASSERT_TRUE(two.offering.send(1, {}).ok());
    EXPECT_TRUE(two.receiving.receive().ok());
}

}  // namespace
