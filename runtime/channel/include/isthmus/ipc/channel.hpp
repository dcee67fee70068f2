// SPDX-License-Identifier: Apache-2.0
// An authenticated channel between two processes of one machine: small messages with file descriptors. No GPU is
// involved. docs/sharing-between-processes.md has the threat model.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v0 {

// The kernel's report about the peer process (SO_PEERCRED), as of when it listened, connected, or made the pair of
// sockets. For an inherited pair both ends report the process that made it.
struct PeerCredentials {
    std::uint32_t uid = 0;  // effective
    std::uint32_t gid = 0;  // effective
    std::int32_t pid = 0;   // 0: the peer is in another pid namespace. A pid may be reused after its process ended
};

// What this end accepts from the peer, which learns it before anything else is sent. Values above the bounds are
// Code::invalid_argument.
struct ChannelQuota {
    std::uint32_t message_bytes = 16384;  // per message; at most 65536
    std::uint32_t message_fds = 16;       // per message; at most 64
    std::uint32_t messages = 16;          // sent to this end and not yet received; 1 to 64
};

struct ChannelOptions {
    // Decides whether the peer is admitted; called before anything is sent. Empty: only this process's effective user,
    // root not excepted. Authorise with care: a sent handle is an irrevocable right to read and write. Must not throw.
    std::function<bool(const PeerCredentials&)> allow{};
    // Limit for each step: each half of a handshake, an answer that the peer owes, room for a message to send.
    std::chrono::nanoseconds step_timeout = std::chrono::seconds(1);
    ChannelQuota quota{};
};

struct ChannelMessage {
    std::uint32_t kind = 0;  // the sender's own code for the type of message
    std::vector<std::byte> bytes;
    std::vector<FileDescriptor> fds;  // closed with the message, unless moved out of it
};

// The side's role in the handshake: the receiving side speaks first, the offering side answers.
enum class ChannelSide : std::uint8_t {
    offering,   // has something to send: Listener::accept()
    receiving,  // connect_channel()
};

namespace detail {
class ChannelState;
class ListenerState;
struct ChannelAccess;
}  // namespace detail

class Channel;
// Connects to a directory's listener. Errors as Channel's, and peer_lost (there is no such directory or name, or its
// listener died), not_permitted (other users may write into the directory, or its owner is neither this user, root nor
// the listener's user).
ISTHMUS_API Result<Channel> connect_channel(const std::string& directory, const ChannelOptions& options = {});

// One end; both may send. Messages arrive whole and in order, or the channel ends: every error closes it for good and
// is repeated by all later calls, except invalid_argument, system_limit and out_of_memory of send(), which sent
// nothing. Where the peer broke rules or was silent, messages not yet received are closed too. Never raises SIGPIPE,
// starts no thread. Movable; one thread at a time.
//
// Codes: peer_lost (the peer ended, was killed, or closed its end; known at once, not at a deadline), timed_out (the
// peer owes a step, and was silent for step_timeout), peer_broke_rules (what came violates this protocol: format,
// sizes, counts, order, quota), not_permitted (that uid is not admitted), invalid_argument (larger than the peer's
// quota; nothing was sent), system_limit (no descriptors left here), out_of_memory, invalid_handle (closed, moved
// from), system_error.
class ISTHMUS_API Channel {
public:
    // Over one end of a pair, or any connected SOCK_SEQPACKET socket of the UNIX domain. Makes the handshake; closes
    // the socket on failure. The peer is the process that holds the other end; its credentials name the maker of the
    // pair.
    static Result<Channel> adopt(FileDescriptor socket, ChannelSide side, const ChannelOptions& options = {});
    Channel(Channel&&) noexcept;
    Channel& operator=(Channel&&) noexcept;
    ~Channel();  // close()

    PeerCredentials peer() const noexcept;
    ChannelQuota peer_quota() const noexcept;

    // Gives a message to the kernel; the fds are duplicated and remain the caller's. Waits for at most step_timeout
    // where the peer has as many unreceived messages as it accepts. Success does not mean that it was received.
    Result<void> send(std::uint32_t kind, std::span<const std::byte> bytes, std::span<const int> fds = {});
    // Waits until the peer has received everything that was sent. One step.
    Result<void> wait_received();
    // The same for up to `timeout` (0ms: polls), where the peer may take longer. false: not yet received; the channel
    // stays usable.
    Result<bool> wait_received(std::chrono::nanoseconds timeout);
    // The next message, where the peer owes one: one step. Its descriptors have FD_CLOEXEC set.
    Result<ChannelMessage> receive();
    // For use where the peer owes no message: has one come? Waits up to `timeout` (0ms: polls). false: none; the
    // channel stays usable.
    Result<bool> wait_for_message(std::chrono::nanoseconds timeout);
    // For poll(): readable when a message or the peer's end has come. The channel keeps ownership; -1: closed. Call
    // wait_for_message(0ms) before sleeping: send() may already have taken in messages.
    int descriptor() const noexcept;
    // Notifies the peer, which gets peer_lost after the last message.
    void close() noexcept;

private:
    friend struct detail::ChannelAccess;
    friend class Listener;
    explicit Channel(std::unique_ptr<detail::ChannelState> state) noexcept;
    std::unique_ptr<detail::ChannelState> state_;
};

// A place to connect to: the socket `directory`/channel. One listener per directory, which is locked for the listener's
// lifetime. The name left by a killed listener is removed by the next listener or by a connecting process. Connections
// are greeted side by side, 64 at a time and 32 per user; beyond that the oldest is dropped. No thread is started:
// greetings progress in wait_for_connection() and accept(). Movable; one thread at a time.
class ISTHMUS_API Listener {
public:
    // Creates the directory (mode 0700) where it is missing, but not its parents. Errors: not_permitted (the directory
    // belongs to another user, others may enter it, it is a symbolic link, its entry `channel` is not a socket of this
    // user), in_use (another listener lives in it, or another program has that socket), invalid_argument, system_error.
    // Waits for a process that removes a dead listener's name, 5 s at most.
    static Result<Listener> create(const std::string& directory, const ChannelOptions& options = {});
    Listener(Listener&&) noexcept;
    Listener& operator=(Listener&&) noexcept;
    ~Listener();  // removes the name; the directory stays

    // Accepts and greets until a connection is open or has failed, so that accept() answers at once. false: neither
    // happened within `timeout` (0ms: processes what has come, without waiting). An error ends the listener. Calls
    // ChannelOptions::allow.
    Result<bool> wait_for_connection(std::chrono::nanoseconds timeout);
    // The next connection, checked and greeted. Errors concern that connection (as Channel's; timed_out also where no
    // connection was open within one step); the listener continues.
    Result<Channel> accept();
    // For poll(): readable when a process connects, or one that is being greeted answers. Then call
    // wait_for_connection(0ms), which may find that no greeting is complete yet. A silent peer makes nothing readable.
    int descriptor() const noexcept;

private:
    friend struct detail::ChannelAccess;
    explicit Listener(std::unique_ptr<detail::ListenerState> state) noexcept;
    std::unique_ptr<detail::ListenerState> state_;
};

// Two connected sockets for Channel::adopt(), one of them for a child. Both have FD_CLOEXEC set: clear it for the
// child's in the child (posix_spawn_file_actions_adddup2 does), and close the child's in the parent, which otherwise
// does not notice the child's end.
struct ChannelPair {
    FileDescriptor ours;
    FileDescriptor childs;
};
ISTHMUS_API Result<ChannelPair> create_channel_pair();

}  // namespace v0
}  // namespace isthmus
