// SPDX-License-Identifier: Apache-2.0
// Two processes and a channel: the parent sends its child the write end of a pipe, and reads what the child writes to
// it. docs/sharing-between-processes.md shows parts of it.
#include <isthmus/ipc/channel.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t here_is_a_pipe = 1;

[[noreturn]] void fail(const isthmus::Error& error) {
    std::fprintf(stderr, "%s\n", error.text().c_str());
    std::exit(1);
}

// show: offering
isthmus::Result<void> offer(isthmus::FileDescriptor socket, int pipe_end) {
    isthmus::ChannelOptions options;
    options.allow = [](const isthmus::PeerCredentials& peer) { return peer.uid == ::geteuid(); };  // also the default
    options.step_timeout = 20s;
    isthmus::Result<isthmus::Channel> channel =
        isthmus::Channel::adopt(std::move(socket), isthmus::ChannelSide::offering, options);
    if (!channel) return channel.error();
    const std::string_view name = "a pipe";
    isthmus::Result<void> sent = channel->send(here_is_a_pipe, std::as_bytes(std::span(name)), std::span(&pipe_end, 1));
    if (!sent) return sent;
    return channel->wait_received();  // the child has it now; it cannot be taken back
}
// end

// show: receiving
isthmus::Result<void> take(isthmus::FileDescriptor socket) {
    isthmus::Result<isthmus::Channel> channel =
        isthmus::Channel::adopt(std::move(socket), isthmus::ChannelSide::receiving, {.step_timeout = 20s});
    if (!channel) return channel.error();
    isthmus::Result<isthmus::ChannelMessage> message = channel->receive();
    if (!message) return message.error();
    if (message->kind != here_is_a_pipe || message->fds.size() != 1) {
        return isthmus::Error(isthmus::Code::peer_broke_rules, "a pipe was expected", "the same version at both ends");
    }
    const std::string_view words = "hello through a descriptor that came over a channel\n";
    if (::write(message->fds[0].get(), words.data(), words.size()) < 0) ::_exit(2);
    return {};
}
// end

}  // namespace

int main() {
    isthmus::Result<isthmus::ChannelPair> pair = isthmus::create_channel_pair();
    if (!pair) fail(pair.error());
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return 1;
    isthmus::FileDescriptor from_child(ends[0]);
    isthmus::FileDescriptor to_parent(ends[1]);

    const pid_t child = ::fork();
    if (child == 0) {
        pair->ours.close();
        to_parent.close();  // the inherited copy; the child writes to the one that it receives
        ::_exit(take(std::move(pair->childs)).ok() ? 0 : 1);
    }
    pair->childs.close();
    if (isthmus::Result<void> offered = offer(std::move(pair->ours), to_parent.get()); !offered) fail(offered.error());
    to_parent.close();
    std::array<char, 128> words{};
    const ssize_t count = ::read(from_child.get(), words.data(), words.size() - 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    std::printf("%s", words.data());
    return count > 0 && status == 0 ? 0 : 1;
}
