// SPDX-License-Identifier: Apache-2.0
// System calls of channels, shared memory and dma-bufs in one table, so that tests can count them, make them fail, or
// end the process between two of them.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include <cstddef>
#include <cstdint>

namespace isthmus::platform::os {

// Each with the semantics of its namesake (−1 and errno). real() calls the system. Releasing calls (munmap) are
// included where they must be counted; FileDescriptor closes directly.
struct ProcessCalls {
    int (*socket)(int domain, int type, int protocol);
    int (*socketpair)(int domain, int type, int protocol, int ends[2]);
    int (*bind)(int socket, const sockaddr* address, socklen_t bytes);
    int (*listen)(int socket, int backlog);
    int (*accept4)(int socket, sockaddr* address, socklen_t* bytes, int flags);
    int (*connect)(int socket, const sockaddr* address, socklen_t bytes);
    int (*getsockopt)(int socket, int level, int option, void* value, socklen_t* bytes);
    int (*setsockopt)(int socket, int level, int option, const void* value, socklen_t bytes);
    int (*shutdown)(int socket, int how);
    ssize_t (*sendmsg)(int socket, const msghdr* message, int flags);
    ssize_t (*recvmsg)(int socket, msghdr* message, int flags);
    int (*wait)(pollfd* fds, unsigned long count, const timespec* timeout);  // ppoll with the caller's signal mask
    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int epoll, int operation, int fd, epoll_event* event);
    int (*open)(const char* path, int flags);
    int (*openat)(int directory, const char* path, int flags);
    int (*mkdir)(const char* path, mode_t mode);
    int (*unlinkat)(int directory, const char* path, int flags);
    int (*flock)(int fd, int operation);
    int (*fstat)(int fd, struct stat* facts);
    int (*fstatfs)(int fd, struct statfs* facts);
    int (*fcntl)(int fd, int command, int argument);
    ssize_t (*getrandom)(void* data, std::size_t bytes, unsigned flags);
    uid_t (*geteuid)();
    int (*memfd_create)(const char* name, unsigned flags);
    int (*ftruncate)(int fd, std::int64_t bytes);
    void* (*mmap)(void* address, std::size_t bytes, int protection, int flags, int fd, long offset);
    int (*munmap)(void* address, std::size_t bytes);
    int (*ioctl)(int fd, unsigned long request, void* argument);
    static const ProcessCalls& real() noexcept;
};

}  // namespace isthmus::platform::os
