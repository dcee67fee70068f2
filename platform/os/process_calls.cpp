// SPDX-License-Identifier: Apache-2.0
// ProcessCalls::real(): the system's own calls.
#include <platform/process_calls.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace isthmus::platform::os {
namespace {

int call_wait(pollfd* fds, unsigned long count, const timespec* timeout) {
    return ::ppoll(fds, count, timeout, nullptr);
}
int call_open(const char* path, int flags) {
    return ::open(path, flags);
}
int call_openat(int directory, const char* path, int flags) {
    return ::openat(directory, path, flags);
}
int call_fcntl(int fd, int command, int argument) {
    return ::fcntl(fd, command, argument);
}
int call_ftruncate(int fd, std::int64_t bytes) {
    return ::ftruncate(fd, bytes);
}
void* call_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, long offset) {
    return ::mmap(address, bytes, protection, flags, fd, offset);
}

int call_ioctl(int fd, unsigned long request, void* argument) {
    return ::ioctl(fd, request, argument);
}

}  // namespace

const ProcessCalls& ProcessCalls::real() noexcept {
    static constexpr ProcessCalls calls = {
        ::socket,       ::socketpair,   ::bind,    ::listen,  ::accept4,       ::connect,   ::getsockopt, ::setsockopt,
        ::shutdown,     ::sendmsg,      ::recvmsg, call_wait, ::epoll_create1, ::epoll_ctl, call_open,    call_openat,
        ::mkdir,        ::unlinkat,     ::flock,   ::fstat,   ::fstatfs,       call_fcntl,  ::getrandom,  ::geteuid,
        ::memfd_create, call_ftruncate, call_mmap, ::munmap,  call_ioctl};
    return calls;
}

}  // namespace isthmus::platform::os
