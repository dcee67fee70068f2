// One end of a channel: the protocol's states, a socket, and the messages that came and were not received yet.
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

namespace isthmus::inline v0::detail {

Result<void> check(const ChannelOptions& options);

// Asks the rule of `options`; root is nobody special.
Result<void> admit(const PeerCredentials& peer, const ChannelOptions& options, const platform::os::ProcessCalls& calls);

class ChannelState {
public:
    // Admits the peer, then greets it. Owns the socket from the first moment on.
    static Result<std::unique_ptr<ChannelState>> greet(FileDescriptor socket, ChannelSide side,
                                                       const ChannelOptions& options,
                                                       const platform::os::ProcessCalls& calls);
    // Admits the peer; the greeting is the caller's to carry on with greet_on().
    static Result<std::unique_ptr<ChannelState>> begin(FileDescriptor socket, ChannelSide side,
                                                       const ChannelOptions& options,
                                                       const platform::os::ProcessCalls& calls);
    enum class Greeting : std::uint8_t {
        nothing_came,  // the peer owes its half
        went_on,       // a frame of the peer came; it owes the next one
        over,          // the channel is open
    };
    // As far as it goes without waiting for the peer. An error has ended the channel.
    Result<Greeting> greet_on();
    // Ends a channel whose peer owed its half of the greeting for too long.
    Error end_silent_greeting();
    // Ends a channel whose greeting made room for a later one.
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
    Result<void> usable() const;  // this process, and not ended
    // Ends the channel with this error, which every later call repeats.
    Error end(Error error, bool keep_messages);
    // Takes one frame in, where one is there; false: none is.
    Result<bool> pump();
    // Until the socket has something (or room, for `events`), within the step; what comes is taken in.
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

// The doors of tests, which bring system calls of their own.
struct ChannelAccess {
    static Result<Channel> over(FileDescriptor socket, ChannelSide side, const ChannelOptions& options,
                                const platform::os::ProcessCalls& calls);
    static Result<Channel> connect(const std::string& directory, const ChannelOptions& options,
                                   const platform::os::ProcessCalls& calls);
    static Result<Listener> listen(const std::string& directory, const ChannelOptions& options,
                                   const platform::os::ProcessCalls& calls);
};

}  // namespace isthmus::inline v0::detail
