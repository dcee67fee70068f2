// SPDX-License-Identifier: Apache-2.0
// A connected socket as a channel uses it: send and take one frame, wait with a deadline, and the peer's credentials.
#pragma once

#include <isthmus/ipc/channel.hpp>

#include <platform/process_calls.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

using ChannelDeadline = std::chrono::steady_clock::time_point;
// The deadline of a step that begins now.
ChannelDeadline after(std::chrono::nanoseconds timeout) noexcept;  // far in the future if the sum overflows

// The error of a system call, with a code of channels. `what`: the action that failed.
Error channel_error(const char* call, int error, std::string_view what);

// Waits until one of `events` (POLLIN, POLLOUT) is possible or the peer is gone; false: the deadline passed. A deadline
// in the past still polls once.
Result<bool> wait_for_socket(int socket, short events, ChannelDeadline deadline,
                             const platform::os::ProcessCalls& calls);
// The same for several sockets; results are in `revents`.
Result<bool> wait_for_sockets(std::span<pollfd> sockets, ChannelDeadline deadline,
                              const platform::os::ProcessCalls& calls);

// Result of one recvmsg call. Owns its descriptors from the moment they exist in this process.
struct ArrivedFrame {
    std::size_t bytes = 0;  // in the buffer
    std::vector<FileDescriptor> fds;
    bool bytes_cut = false;
    bool fds_cut = false;
    bool at_end = false;  // end of the connection: nothing arrived, and nothing will
};

class ChannelLink {
public:
    // `socket`: UNIX domain, SOCK_SEQPACKET, connected; otherwise invalid_argument. Sets FD_CLOEXEC.
    static Result<ChannelLink> over(FileDescriptor socket, const platform::os::ProcessCalls& calls);

    const PeerCredentials& peer() const noexcept { return peer_; }
    int descriptor() const noexcept { return socket_.get(); }
    const platform::os::ProcessCalls& calls() const noexcept { return *calls_; }
    // Shuts down for every process with a copy, such as a forked child: the peer sees the end after what was sent.
    void end() noexcept {
        if (socket_) calls_->shutdown(socket_.get(), SHUT_RDWR);
        socket_.close();
    }
    void close() noexcept { socket_.close(); }  // this process's copy only

    Result<bool> wait(short events, ChannelDeadline deadline) const;
    // Takes one frame into `buffer` without waiting; nothing: none is there.
    Result<std::optional<ArrivedFrame>> take(std::span<std::byte> buffer, std::size_t max_fds) const;
    // Sends one frame without waiting; false: no room.
    Result<bool> put(std::span<const std::byte> header, std::span<const std::byte> payload,
                     std::span<const int> fds) const;

private:
    FileDescriptor socket_;
    PeerCredentials peer_;
    const platform::os::ProcessCalls* calls_ = nullptr;
};

// Fills `bytes` with unpredictable bytes from the kernel.
Result<void> random_bytes(std::span<std::byte> bytes, const platform::os::ProcessCalls& calls);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
