// SPDX-License-Identifier: Apache-2.0
// System calls on a connected socket. Every received descriptor has an owner before the frame is checked.
#include "channel_link.hpp"

#include "channel_errors.hpp"
#include "system_words.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Space for the descriptors of one frame, aligned as the kernel requires.
class ControlBytes {
public:
    explicit ControlBytes(std::size_t fds)
        : words_((CMSG_SPACE(fds * sizeof(int)) + sizeof(std::size_t) - 1) / sizeof(std::size_t)) {}
    void* data() noexcept { return words_.data(); }
    std::size_t bytes(std::size_t fds) const noexcept { return CMSG_SPACE(fds * sizeof(int)); }

private:
    std::vector<std::size_t> words_;
};

iovec as_iovec(std::span<const std::byte> bytes) noexcept {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg only reads
}

// Takes ownership of every descriptor that the kernel created in this process, whatever else arrived.
void own_fds(msghdr& message, std::vector<FileDescriptor>& fds) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t at = 0; at < count; ++at) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + at * sizeof(int), sizeof(int));
            fds.emplace_back(number);
        }
    }
}

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76  // Linux 6.5
#endif

// A previous holder of the socket may have enabled ancillary data; a pidfd with each message would be a descriptor that
// no code closes.
Result<void> take_messages_only(int socket, const platform::os::ProcessCalls& calls) {
    for (const int option : {SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD}) {
        const int off = 0;
        if (calls.setsockopt(socket, SOL_SOCKET, option, &off, sizeof off) == 0) continue;
        if (errno == ENOPROTOOPT || errno == EOPNOTSUPP) continue;  // the kernel lacks the option
        return channel_error("setsockopt", errno, "a socket could not be told to pass messages only");
    }
    return {};
}

template <class T>
bool socket_option(int socket, int option, T& value, const platform::os::ProcessCalls& calls) {
    socklen_t bytes = sizeof(value);
    return calls.getsockopt(socket, SOL_SOCKET, option, &value, &bytes) == 0 && bytes == sizeof(value);
}

Error failure_of(int error, std::string_view what) {
    const std::string reason = system_words(error);
    switch (error) {
        case EPIPE:
        case ECONNRESET:
        case ECONNREFUSED:
        case ENOTCONN: return make_error<errors::channel_peer_lost>(what, reason);
        case EMFILE:
        case ENFILE:
        case ETOOMANYREFS:
        case EMSGSIZE: return make_error<errors::channel_system_limit>(what, reason);
        case EPERM:
        case EACCES: return make_error<errors::channel_not_permitted>(what, reason);
        case ENOMEM:
        case ENOBUFS: return make_error<errors::channel_out_of_memory>(what, reason);
        case ENOSYS: return make_error<errors::channel_unsupported>(what, reason);
        default: return make_error<errors::channel_system_error>(what, reason);
    }
}

}  // namespace

ChannelDeadline after(std::chrono::nanoseconds timeout) noexcept {
    const ChannelDeadline now = std::chrono::steady_clock::now();
    return timeout > ChannelDeadline::max() - now ? ChannelDeadline::max() : now + timeout;
}

Error channel_error(const char* call, int error, std::string_view what) {
    return failure_of(error, what).from_call(call, error);
}

Result<bool> wait_for_sockets(std::span<pollfd> sockets, ChannelDeadline deadline,
                              const platform::os::ProcessCalls& calls) {
    while (true) {
        const auto left = std::max(deadline - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration{0});
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        timespec timeout{};
        timeout.tv_sec = static_cast<time_t>(std::min<std::int64_t>(seconds.count(), 1 << 30));
        timeout.tv_nsec = static_cast<long>((left - seconds).count());
        const int ready = calls.wait(sockets.data(), sockets.size(), &timeout);
        if (ready > 0) return true;  // POLLHUP and POLLERR too: the next call reports the cause
        if (ready < 0 && errno != EINTR) return channel_error("ppoll", errno, "waiting for another process");
        if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
}

Result<bool> wait_for_socket(int socket, short events, ChannelDeadline deadline,
                             const platform::os::ProcessCalls& calls) {
    pollfd one{socket, events, 0};
    return wait_for_sockets({&one, 1}, deadline, calls);
}

Result<void> random_bytes(std::span<std::byte> bytes, const platform::os::ProcessCalls& calls) {
    while (!bytes.empty()) {
        const ssize_t got = calls.getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return channel_error("getrandom", errno, "a nonce could not be drawn");
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Result<ChannelLink> ChannelLink::over(FileDescriptor socket, const platform::os::ProcessCalls& calls) {
    const auto refused = [](const char* reason) { return make_error<errors::channel_socket_refused>(reason); };
    if (!socket) return refused("it is none");
    int domain = 0;
    int type = 0;
    if (!socket_option(socket.get(), SO_DOMAIN, domain, calls) || !socket_option(socket.get(), SO_TYPE, type, calls)) {
        const int error = errno;
        if (error == EBADF || error == ENOTSOCK) return refused("it is no socket");
        return channel_error("getsockopt", error, "a socket could not be checked");
    }
    if (domain != AF_UNIX || type != SOCK_SEQPACKET) return refused("it is a socket of another kind");
    ucred credentials{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
    if (!socket_option(socket.get(), SO_PEERCRED, credentials, calls)) {
        return channel_error("getsockopt(SO_PEERCRED)", errno, "the system does not say who is at the other end");
    }
    if (credentials.uid == static_cast<uid_t>(-1)) return refused("no process is at its other end");
    if (calls.fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) {
        return channel_error("fcntl(F_SETFD)", errno, "a socket could not be kept from other programs");
    }
    if (Result<void> fine = take_messages_only(socket.get(), calls); !fine) return std::move(fine).error();
    ChannelLink link;
    link.socket_ = std::move(socket);
    link.peer_ = {credentials.uid, credentials.gid, credentials.pid};
    link.calls_ = &calls;
    return link;
}

Result<bool> ChannelLink::wait(short events, ChannelDeadline deadline) const {
    return wait_for_socket(socket_.get(), events, deadline, *calls_);
}

Result<std::optional<ArrivedFrame>> ChannelLink::take(std::span<std::byte> buffer, std::size_t max_fds) const {
    ControlBytes control(max_fds);
    // Allocated first: nothing may fail between the kernel's creating descriptors and their having an owner.
    ArrivedFrame frame;
    frame.fds.reserve(max_fds + 1);
    bool again_after_reset = true;
    while (true) {
        iovec part{buffer.data(), buffer.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.bytes(max_fds);
        const ssize_t got = calls_->recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0) {
            const int error = errno;
            if (error == EINTR) continue;
            if (error == EAGAIN) return std::optional<ArrivedFrame>{};
            // Reported once if the peer left something unread; data that it sent before follows.
            if (error == ECONNRESET && std::exchange(again_after_reset, false)) continue;
            return channel_error("recvmsg", error, "receiving from another process");
        }
        own_fds(message, frame.fds);
        frame.bytes = std::min(static_cast<std::size_t>(got), buffer.size());
        frame.bytes_cut = (message.msg_flags & MSG_TRUNC) != 0;
        frame.fds_cut = (message.msg_flags & MSG_CTRUNC) != 0;
        // No frame is empty: this is the end of the connection, or is treated as that.
        frame.at_end = got == 0 && frame.fds.empty() && !frame.fds_cut;
        return std::optional<ArrivedFrame>(std::move(frame));
    }
}

Result<bool> ChannelLink::put(std::span<const std::byte> header, std::span<const std::byte> payload,
                              std::span<const int> fds) const {
    ControlBytes control(fds.size());
    iovec parts[2] = {as_iovec(header), as_iovec(payload)};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = payload.empty() ? 1 : 2;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = control.bytes(fds.size());
        cmsghdr* part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
    }
    while (calls_->sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        const int error = errno;
        if (error == EINTR) continue;
        if (error == EAGAIN) return false;
        if (error == EBADF) {
            return make_error<errors::message_descriptor_not_open>().from_call("sendmsg", error);
        }
        return channel_error("sendmsg", error, "sending to another process");
    }
    return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
