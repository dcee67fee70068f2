// SPDX-License-Identifier: Apache-2.0
// Two processes with a socket between them: forked before either starts the driver, as two programs would be.
#pragma once

#include "sim_test.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace isthmus::sim::test {

class Line {
public:
    explicit Line(int socket) : socket_(socket) {}

    template <class T>
    void send(const T& value) const {
        REQUIRE_THAT(::write(socket_, &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
    }
    template <class T>
    T receive() const {
        T value;
        REQUIRE_THAT(::recv(socket_, &value, sizeof(value), MSG_WAITALL) == static_cast<ssize_t>(sizeof(value)));
        return value;
    }
    void tell() const { send('.'); }
    void listen() const { receive<char>(); }
    // Until the other process has ended.
    void wait_for_end() const {
        char nothing = 0;
        REQUIRE_THAT(::read(socket_, &nothing, 1) == 0);
    }

    void send_file(int file) const { pass(file, nullptr); }
    int receive_file() const {
        int file = -1;
        pass(-1, &file);
        return file;
    }

private:
    void pass(int out, int* in) const {
        char byte = 0;
        alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
        iovec data = {&byte, 1};
        msghdr message = {};
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        if (in) {
            REQUIRE_THAT(::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message));
            std::memcpy(in, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(*in));
            return;
        }
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(out));
        std::memcpy(CMSG_DATA(header), &out, sizeof(out));
        REQUIRE_THAT(::sendmsg(socket_, &message, 0) == 1);
    }
    int socket_;
};

// Runs `theirs` in a process of its own beside `mine`; both have to end normally.
template <class Theirs, class Mine>
void beside_another_process(const Theirs& theirs, const Mine& mine) {
    int sockets[2] = {-1, -1};
    REQUIRE_THAT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    const pid_t other = ::fork();
    REQUIRE_THAT(other >= 0);
    if (other == 0) {
        ::close(sockets[0]);
        theirs(Line(sockets[1]));
        std::_Exit(0);
    }
    ::close(sockets[1]);
    mine(Line(sockets[0]));
    int status = 0;
    ::close(sockets[0]);
    REQUIRE_THAT(::waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Sets 16 words to the value.
inline void fill(Address address, unsigned value) {
    REQUIRE_CODE(cuMemsetD32_v2(address, value, 16), 0);
    REQUIRE_CODE(cuCtxSynchronize(), 0);
}

}  // namespace isthmus::sim::test
