// A connected socket as a channel uses it: one frame out, one frame in, waiting with a deadline, and who is there.
#pragma once

#include <isthmus/channel.hpp>

#include <platform/process_calls.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus::inline v0::detail {

using ChannelDeadline = std::chrono::steady_clock::time_point;
// The last moment of a step.
ChannelDeadline after(std::chrono::nanoseconds timeout) noexcept;  // far away where that overflows

// The error of a system call, with the codes of channels. `what`: what was tried.
Error channel_error(const char* call, int error, std::string_view what);

// Waits until one of `events` (POLLIN, POLLOUT) can be done, or the peer is gone; false: the deadline passed. A
// deadline that has passed looks once.
Result<bool> wait_for_socket(int socket, short events, ChannelDeadline deadline,
                             const platform::os::ProcessCalls& calls);
// The same for several; their `revents` say which.
Result<bool> wait_for_sockets(std::span<pollfd> sockets, ChannelDeadline deadline,
                              const platform::os::ProcessCalls& calls);

// What one call of recvmsg brought. Its descriptors have an owner from the moment they are in this process.
struct ArrivedFrame {
    std::size_t bytes = 0;  // in the buffer
    std::vector<FileDescriptor> fds;
    bool bytes_cut = false;
    bool fds_cut = false;
    bool at_end = false;  // nothing came, and nothing will
};

class ChannelLink {
public:
    // `socket`: of the UNIX domain, SOCK_SEQPACKET, connected; otherwise invalid_argument. Sets FD_CLOEXEC.
    static Result<ChannelLink> over(FileDescriptor socket, const platform::os::ProcessCalls& calls);

    const PeerCredentials& peer() const noexcept { return peer_; }
    int descriptor() const noexcept { return socket_.get(); }
    const platform::os::ProcessCalls& calls() const noexcept { return *calls_; }
    // For every process that holds a copy, as a forked child does: the peer sees the end behind what was sent.
    void end() noexcept {
        if (socket_) calls_->shutdown(socket_.get(), SHUT_RDWR);
        socket_.close();
    }
    void close() noexcept { socket_.close(); }  // this process's copy only

    Result<bool> wait(short events, ChannelDeadline deadline) const;
    // One frame into `buffer`, without waiting; nothing: none is there.
    Result<std::optional<ArrivedFrame>> take(std::span<std::byte> buffer, std::size_t most_fds) const;
    // One frame, without waiting; false: there is no room.
    Result<bool> put(std::span<const std::byte> header, std::span<const std::byte> payload,
                     std::span<const int> fds) const;

private:
    FileDescriptor socket_;
    PeerCredentials peer_;
    const platform::os::ProcessCalls* calls_ = nullptr;
};

// 16 bytes that nobody can guess.
Result<void> random_bytes(std::span<std::byte> bytes, const platform::os::ProcessCalls& calls);

}  // namespace isthmus::inline v0::detail
