// SPDX-License-Identifier: Apache-2.0
// One end of a channel: protocol state, socket, and messages that arrived and were not received yet.
#pragma once

#include "channel_link.hpp"
#include "channel_states.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<void> check(const ChannelOptions& options);

// Applies the rule in `options`; root gets no exception.
Result<void> admit(const PeerCredentials& peer, const ChannelOptions& options, const platform::os::ProcessCalls& calls);

class ChannelState {
public:
    // Admits the peer, then greets it. Owns the socket from the start, also on failure.
    static Result<std::unique_ptr<ChannelState>> greet(FileDescriptor socket, ChannelSide side,
                                                       const ChannelOptions& options,
                                                       const platform::os::ProcessCalls& calls);
    // Admits the peer; the caller continues the greeting with greet_on().
    static Result<std::unique_ptr<ChannelState>> begin(FileDescriptor socket, ChannelSide side,
                                                       const ChannelOptions& options,
                                                       const platform::os::ProcessCalls& calls);
    enum class Greeting : std::uint8_t {
        nothing_came,  // the peer's half is missing
        went_on,       // a frame of the peer arrived; the next one is missing
        over,          // the channel is open
    };
    // Continues the greeting as far as possible without waiting. An error has ended the channel.
    Result<Greeting> greet_on();
    // Ends a channel whose peer did not complete the greeting in time.
    Error end_silent_greeting();
    // Ends a channel whose greeting was dropped in favour of a later one.
    Error end_displaced_greeting();
    ~ChannelState();

    const PeerCredentials& peer() const noexcept { return link_.peer(); }
    const ChannelQuota& peer_quota() const noexcept { return protocol_.peer_quota(); }
    int descriptor() const noexcept { return link_.descriptor(); }

    Result<void> send(std::uint32_t kind, std::span<const std::byte> bytes, std::span<const int> fds);
    Result<void> wait_received();
    Result<bool> wait_received(std::chrono::nanoseconds timeout);
    Result<ChannelMessage> receive();
    Result<bool> wait_for_message(std::chrono::nanoseconds timeout);
    void close() noexcept;

private:
    ChannelState(ChannelLink link, rules::ChannelProtocol protocol, const ChannelOptions& options);
    Result<void> usable() const;  // an error in a forked child, or after the end
    // Ends the channel with this error; every later call returns it.
    Error end(Error error, bool keep_messages);
    // Takes in one frame if there is one; false: none.
    Result<bool> pump();
    // Waits, within the step, until the socket has data (or room, for `events`); takes in what arrives.
    Result<void> wait_step(short events, ChannelDeadline deadline, const char* owed);
    Result<void> put(std::span<const std::byte> header, std::span<const std::byte> payload, std::span<const int> fds);

    ChannelLink link_;
    rules::ChannelProtocol protocol_;
    std::chrono::nanoseconds step_timeout_;
    ChannelQuota quota_;
    std::uint64_t forks_;
    std::vector<std::byte> buffer_;
    std::deque<ChannelMessage> came_;
    std::optional<Error> ended_;
};

// Entry points of tests, which provide their own system calls.
struct ChannelAccess {
    static Result<Channel> adopt(FileDescriptor socket, ChannelSide side, const ChannelOptions& options,
                                 const platform::os::ProcessCalls& calls);
    static Result<Channel> connect(const std::string& directory, const ChannelOptions& options,
                                   const platform::os::ProcessCalls& calls);
    static Result<Listener> listen(const std::string& directory, const ChannelOptions& options,
                                   const platform::os::ProcessCalls& calls);
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
