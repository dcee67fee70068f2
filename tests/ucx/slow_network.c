// SPDX-License-Identifier: Apache-2.0
// Preloaded into isthmus-bridge: a bad network at the sockets, which every machine can run (network_test.py has tc
// netem as well). Loss and reordering are delays and pieces to a program over TCP. ISTHMUS_TEST_NETWORK names a file;
// its first letter, read at each call:
//   s  slow: one call in four gets EAGAIN after a millisecond, and no call moves more than 16 KiB
//   c  cut: nothing moves
//   k  and a number: this process is killed at its call of that number
//   else, and without the file: as it is
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char network(int fd) {
    int domain = 0;
    socklen_t size = sizeof domain;
    const char* path = getenv("ISTHMUS_TEST_NETWORK");
    char said[16] = {0};
    static long calls;  // several threads of UCX count
    if (path == NULL || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return 0;
    if (domain != AF_INET && domain != AF_INET6) return 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, said, sizeof said - 1) < 0) said[0] = 0;
    close(file);
    if (said[0] == 'k' && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) >= atol(said + 1)) kill(getpid(), SIGKILL);
    return said[0];
}

// Whether the call fails with EAGAIN now.
static int refuses(char letter) {
    static unsigned calls;
    if (letter == 'c' || (letter == 's' && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 4 == 0)) {
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        errno = EAGAIN;
        return 1;
    }
    return 0;
}
static size_t piece(char letter, size_t size) {
    return letter == 's' && size > 16384 ? 16384 : size;
}

#define REAL(name)                                   \
    __extension__({                                  \
        __typeof__(&name) real;                      \
        void* const found = dlsym(RTLD_NEXT, #name); \
        memcpy(&real, &found, sizeof real);          \
        real;                                        \
    })

ssize_t send(int fd, const void* data, size_t size, int flags) {
    const char letter = network(fd);
    return refuses(letter) ? -1 : REAL(send)(fd, data, piece(letter, size), flags);
}
ssize_t recv(int fd, void* data, size_t size, int flags) {
    const char letter = network(fd);
    return refuses(letter) ? -1 : REAL(recv)(fd, data, piece(letter, size), flags);
}
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
    return refuses(network(fd)) ? -1 : REAL(sendmsg)(fd, message, flags);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
    return refuses(network(fd)) ? -1 : REAL(writev)(fd, parts, count);
}
