// SPDX-License-Identifier: Apache-2.0
// One shipped end of a channel; the test plays the other end byte by byte.
#pragma once

#include "channel_state.hpp"
#include "wrapped_calls.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace duel {

using namespace isthmus;
using namespace isthmus::rules;
using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const SmallFrame& frame, std::size_t more = 0) {
    Bytes bytes(frame.span().begin(), frame.span().end());
    bytes.resize(bytes.size() + more);
    return bytes;
}

// The shipped end (ours), and the other end, which the test plays: it acts whenever the shipped end would wait, so
// there are no threads and one order of events.
class Duel {
public:
    explicit Duel(ChannelSide ours, ChannelQuota quota = {100, 3, 2})
        : side_(ours),
          options_{{}, std::chrono::seconds(20), quota},
          theirs(ours == ChannelSide::offering ? ChannelSide::receiving : ChannelSide::offering, nonce(), quota) {
        ChannelPair pair = create_channel_pair().value();
        socket_ = std::move(pair.ours);
        end_ = std::move(pair.childs);
        call_hooks = {};
        call_hooks.instead_of_waiting = [this] {
            if (moves.empty()) return false;
            const auto move = std::move(moves.front());
            moves.pop_front();
            move();
            return true;
        };
    }
    Duel(const Duel&) = delete;
    Duel& operator=(const Duel&) = delete;
    ~Duel() { call_hooks = {}; }

    // Follows the protocol: receives everything, and answers with its half of the handshake.
    void follow() {
        Bytes buffer(1 << 17);
        while (true) {
            const ssize_t got = ::recv(end_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got <= 0) break;
            ++heard;
            (void)theirs.arrived(
                {std::span<const std::byte>(buffer).first(static_cast<std::size_t>(got)), 0, false, false});
        }
        while (const auto frame = theirs.greeting()) {
            say(bytes_of(*frame));
            theirs.greeting_sent();
        }
    }
    void say(const Bytes& bytes, std::size_t fds = 0) {
        std::vector<int> numbers(fds, something_.get());
        std::vector<std::size_t> control(CMSG_SPACE(fds * sizeof(int)) / sizeof(std::size_t) + 1);
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (fds != 0) {
            message.msg_control = control.data();
            message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(fds * sizeof(int));
            std::memcpy(CMSG_DATA(header), numbers.data(), fds * sizeof(int));
        }
        (void)::sendmsg(end_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    Bytes message(std::size_t bytes, std::size_t fds = 0) {
        Bytes frame = bytes_of(theirs.message_header(7, bytes, fds), bytes);
        theirs.message_sent();
        return frame;
    }
    void vanish() { end_.close(); }
    bool sees_the_end() {
        Bytes buffer(1 << 17);
        ssize_t got = 1;
        while (got > 0 || (got < 0 && errno == ECONNRESET))
            got = ::recv(end_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        return got == 0;
    }
    void give_it(std::chrono::nanoseconds timeout) { options_.step_timeout = timeout; }

    Result<Channel> open() {
        return detail::ChannelAccess::adopt(std::move(socket_), side_, options_, wrapped_calls());
    }
    // Opened by both ends with a correct handshake.
    Channel opened() {
        for (int at = 0; at < 2; ++at) moves.push_back([this] { follow(); });
        Result<Channel> channel = open();
        EXPECT_TRUE(channel.ok());
        moves.clear();
        follow();
        return std::move(channel).value();
    }

private:
    static ChannelNonce nonce() {
        ChannelNonce nonce{};
        nonce[0] = std::byte{9};
        return nonce;
    }
    ChannelSide side_;
    ChannelOptions options_;
    FileDescriptor socket_;
    FileDescriptor end_;
    FileDescriptor something_{::open("/dev/null", O_RDWR | O_CLOEXEC)};  // to send

public:
    ChannelProtocol theirs;
    std::deque<std::function<void()>> moves;
    int heard = 0;
};

}  // namespace duel
