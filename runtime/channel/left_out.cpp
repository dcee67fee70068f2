// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/ipc/channel.hpp>

#include "left_out.hpp"

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("channel");
}

}  // namespace

// No channel or listener can be made, so neither has state.
namespace detail {
class ChannelState {};
class ListenerState {};
}  // namespace detail

Result<Channel> connect_channel(const std::string& /*directory*/, const ChannelOptions& /*options*/) {
    return refused();
}
Result<ChannelPair> create_channel_pair() {
    return refused();
}

Channel::Channel(std::unique_ptr<detail::ChannelState> state) noexcept : state_(std::move(state)) {}
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&&) noexcept = default;
Channel::~Channel() = default;
Result<Channel> Channel::adopt(FileDescriptor /*socket*/, ChannelSide /*side*/, const ChannelOptions& /*options*/) {
    return refused();
}
PeerCredentials Channel::peer() const noexcept {
    return {};
}
ChannelQuota Channel::peer_quota() const noexcept {
    return {0, 0, 0};
}
Result<void> Channel::send(std::uint32_t /*kind*/, std::span<const std::byte> /*bytes*/, std::span<const int> /*fds*/) {
    return refused();
}
Result<void> Channel::wait_received() {
    return refused();
}
Result<bool> Channel::wait_received(std::chrono::nanoseconds /*timeout*/) {
    return refused();
}
Result<ChannelMessage> Channel::receive() {
    return refused();
}
Result<bool> Channel::wait_for_message(std::chrono::nanoseconds /*timeout*/) {
    return refused();
}
int Channel::descriptor() const noexcept {
    return -1;
}
void Channel::close() noexcept {}

Listener::Listener(std::unique_ptr<detail::ListenerState> state) noexcept : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;
Result<Listener> Listener::create(const std::string& /*directory*/, const ChannelOptions& /*options*/) {
    return refused();
}
Result<bool> Listener::wait_for_connection(std::chrono::nanoseconds /*timeout*/) {
    return refused();
}
Result<Channel> Listener::accept() {
    return refused();
}
int Listener::descriptor() const noexcept {
    return -1;
}

}  // namespace v0
}  // namespace isthmus
