// SPDX-License-Identifier: Apache-2.0
// The socket (line) between two processes, and received descriptors.
#include "ring_files.hpp"

#include "ipc_errors.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace isthmus {
inline namespace v0 {

std::string_view name(ReaderState state) noexcept {
    switch (state) {
        case ReaderState::live: return "live";
        case ReaderState::gone: return "gone";
        case ReaderState::too_slow: return "too_slow";
        case ReaderState::broke_rules: return "broke_rules";
    }
    return "unknown";
}

Result<SharedRingDescriptor> SharedRingDescriptor::received(std::span<const std::byte> bytes,
                                                            std::vector<FileDescriptor> fds) {
    if (bytes.size() != size_bytes || fds.size() != fd_count) {
        return make_error<errors::ring_descriptor_without_its_files>(size_bytes, fd_count, bytes.size(), fds.size());
    }
    Bytes own{};
    std::copy(bytes.begin(), bytes.end(), own.begin());
    return SharedRingDescriptor(own, {std::move(fds[0]), std::move(fds[1]), std::move(fds[2])});
}

namespace detail {

void send_on_line(const platform::os::ProcessCalls& calls, int line, LineWord word) noexcept {
    iovec byte{&word, 1};
    msghdr message{};
    message.msg_iov = &byte;
    message.msg_iovlen = 1;
    (void)calls.sendmsg(line, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

LineState drain_line(const platform::os::ProcessCalls& calls, int line) noexcept {
    LineState state;
    char bytes[256];
    // Bounded: a full socket holds some hundred bytes, and a fast sender must not keep this loop busy.
    for (int round = 0; round < 4; ++round) {
        iovec into{bytes, sizeof bytes};
        msghdr message{};  // no room for descriptors: the kernel closes any that are sent
        message.msg_iov = &into;
        message.msg_iovlen = 1;
        const ssize_t got = calls.recvmsg(line, &message, MSG_DONTWAIT);
        // Other errors are not caused by the peer; if they last, deadlines apply.
        const bool reset = got < 0 && (errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE);
        if (got == 0 || reset) {
            state.ended = true;
            return state;
        }
        if (got > 0 && (!state.last || *state.last == LineWord::wake)) {
            for (ssize_t at = 0; at < got; ++at) {
                state.last = static_cast<LineWord>(bytes[at]);
                if (bytes[at] != static_cast<char>(LineWord::wake)) break;
            }
        }
        if (got < 0) return state;  // drained; end of stream shows only after the last byte
    }
    return state;
}

timespec ring_timespec(std::chrono::nanoseconds time) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    timespec answer{};
    answer.tv_sec = static_cast<time_t>(time.count() / second);
    answer.tv_nsec = static_cast<long>(time.count() % second);
    return answer;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
