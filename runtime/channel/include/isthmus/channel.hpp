// An authenticated channel between two processes of one machine: small messages that carry file descriptors.
// No GPU has a part in it. docs/sharing-between-processes.md has the threat model.
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

namespace isthmus::inline v0 {

// What the kernel says of the process at the other end (SO_PEERCRED): who it was when it listened, connected, or made
// the pair of sockets. An inherited pair names its maker on both ends.
struct PeerCredentials {
    std::uint32_t uid = 0;  // effective
    std::uint32_t gid = 0;  // effective
    std::int32_t pid = 0;   // 0: it lives in another pid namespace. A number may be used again after its process ended
};

// What this end accepts from the other one, who learns it before anything else is sent. Values above the bounds are
// Code::invalid_argument.
struct ChannelQuota {
    std::uint32_t message_bytes = 16384;  // of one message; at most 65536
    std::uint32_t message_fds = 16;       // that travel with one message; at most 64
    std::uint32_t messages = 16;          // that were sent and not yet received here; 1 to 64
};

struct ChannelOptions {
    // Who may be at the other end. It is asked before anything is sent. Empty: this process's effective user only, root
    // not excepted. Authorise with care: a handle that was sent is a right to read and to write that nobody can take
    // back. Must not throw.
    std::function<bool(const PeerCredentials&)> allow{};
    // How long each step may take: each half of a handshake, an answer that the peer owes, room for what is sent.
    std::chrono::nanoseconds step_timeout = std::chrono::seconds(1);
    ChannelQuota quota{};
};

struct ChannelMessage {
    std::uint32_t kind = 0;  // the sender's word for what it is
    std::vector<std::byte> bytes;
    std::vector<FileDescriptor> fds;  // closed with the message, unless they are moved out of it
};

// Which half of the handshake is whose: receiving speaks first, offering answers.
enum class ChannelSide : std::uint8_t {
    offering,   // has something to hand out: Listener::accept()
    receiving,  // connect_channel()
};

namespace detail {
class ChannelState;
class ListenerState;
struct ChannelAccess;
}  // namespace detail

class Channel;
// Connects to the listener of a directory. Errors as Channel's, and peer_lost where nobody listens (there is no such
// directory or name, or its listener died), not_permitted where others may write into the directory,
// or where it is neither this user's, root's nor the listener's.
ISTHMUS_API Result<Channel> connect_channel(const std::string& directory, const ChannelOptions& options = {});

// One end. Both may send. Messages arrive whole and in order, or the channel ends: every error closes it for good and
// is repeated by all later calls, but for invalid_argument, system_limit and out_of_memory of send(), which sent
// nothing. Where the
// peer broke rules or was silent, whatever came and was not received yet is closed, too. Never raises SIGPIPE, starts
// no thread. Movable; one thread at a time.
//
// Codes: peer_lost (it ended, was killed, or closed its end; known at once, not at a deadline), timed_out (it owes a
// step, and was silent for step_timeout), peer_broke_rules (what came is not what this protocol allows: format, sizes,
// counts, order, quota), not_permitted (nobody of that uid is admitted), invalid_argument (larger than the peer's
// quota; nothing was sent), system_limit (no descriptors left here), out_of_memory, invalid_handle (closed, moved
// from), system_error.
class ISTHMUS_API Channel {
public:
    // Over one end of a pair, or any connected SOCK_SEQPACKET socket of the UNIX domain. Makes the handshake; the
    // socket is closed on failure. Whoever holds the other end is the peer: its credentials name the maker of the pair.
    static Result<Channel> over(FileDescriptor socket, ChannelSide side, const ChannelOptions& options = {});
    Channel(Channel&&) noexcept;
    Channel& operator=(Channel&&) noexcept;
    ~Channel();  // close()

    PeerCredentials peer() const noexcept;
    ChannelQuota peer_quota() const noexcept;

    // Hands a message to the kernel; the fds are duplicated and stay the caller's. Waits for step_timeout at most where
    // the peer has as many unreceived messages as it accepts. That it was sent says not that it was received.
    Result<void> send(std::uint32_t kind, std::span<const std::byte> bytes, std::span<const int> fds = {});
    // Waits until the peer has received everything that was sent: one step.
    Result<void> wait_received();
    // The same for up to `timeout` (0: looks only), where the peer may take longer; false: it has not yet, and the
    // channel is as it was.
    Result<bool> wait_received(std::chrono::nanoseconds timeout);
    // The next message, which the peer owes: one step. Its descriptors are closed by exec.
    Result<ChannelMessage> receive();
    // Where the peer owes nothing: has a message come? Waits up to `timeout` (0: looks only); false: none has, and
    // the channel is as it was.
    Result<bool> wait_for_message(std::chrono::nanoseconds timeout);
    // For poll(): readable when something came, a message or the peer's end. Stays the channel's; -1: closed. Look with
    // wait_for_message(0) before sleeping: sending takes in what comes meanwhile.
    int descriptor() const noexcept;
    // Tells the peer, who then sees peer_lost behind the last message.
    void close() noexcept;

private:
    friend struct detail::ChannelAccess;
    friend class Listener;
    explicit Channel(std::unique_ptr<detail::ChannelState> state) noexcept;
    std::unique_ptr<detail::ChannelState> state_;
};

// A place to connect to: the socket `directory`/channel. One listener per directory, which is locked while it lives.
// The name of a listener that was killed is removed by the next one, and by who tries to connect. Connections are
// greeted side by side, 64 at a time and 32 of one user; beyond that the oldest is given up. No thread is started:
// greetings go on in the two functions below. Movable; one thread at a time.
class ISTHMUS_API Listener {
public:
    // Creates the directory (mode 0700) where it is missing, not its parents. Errors: not_permitted (it belongs to
    // another user, others may enter it, it is a symbolic link, its entry `channel` is not a socket of this user),
    // in_use (another listener lives in it, or another program has that socket), invalid_argument, system_error.
    static Result<Listener> create(const std::string& directory, const ChannelOptions& options = {});
    Listener(Listener&&) noexcept;
    Listener& operator=(Listener&&) noexcept;
    ~Listener();  // removes the name; the directory stays

    // Accepts and greets until a connection is open or has failed, so that accept() answers at once; false: neither
    // happened within `timeout` (0: goes on with what has come, and does not wait). An error ends the listener.
    // ChannelOptions::allow is asked here.
    Result<bool> wait_for_connection(std::chrono::nanoseconds timeout);
    // The next connection, checked and greeted. Errors are about that connection (as Channel's; timed_out also where
    // no connection was open within a step); the listener goes on.
    Result<Channel> accept();
    // For poll(): readable when a process connects, or one that is being greeted answers. Call wait_for_connection(0)
    // then, which may find that no greeting is over yet. A peer that is silent makes nothing readable.
    int descriptor() const noexcept;

private:
    friend struct detail::ChannelAccess;
    explicit Listener(std::unique_ptr<detail::ListenerState> state) noexcept;
    std::unique_ptr<detail::ListenerState> state_;
};

// Two connected sockets for Channel::over(), one of them for a child. Both are closed by exec: clear FD_CLOEXEC of the
// child's in the child (posix_spawn_file_actions_adddup2 does), and close it in the parent, who otherwise would not
// notice that the child ended.
struct ChannelPair {
    FileDescriptor ours;
    FileDescriptor childs;
};
ISTHMUS_API Result<ChannelPair> make_channel_pair();

}  // namespace isthmus::inline v0
