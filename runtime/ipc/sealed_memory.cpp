// SPDX-License-Identifier: Apache-2.0
// Creates a memfd of fixed size, and checks received ones without trusting the sender.
#include "sealed_memory.hpp"

#include "composed.hpp"
#include "ipc_errors.hpp"
#include "system_words.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failure_of(int error, std::string_view what) {
    const std::string reason = system_words(error);
    switch (error) {
        case EMFILE:
        case ENFILE: return make_error<errors::shared_memory_system_limit>(what, reason);
        case ENOMEM:
        case ENOSPC: return make_error<errors::shared_memory_out_of_memory>(what, reason);
        default: break;
    }
    const Code code = error == ENOSYS                     ? Code::unsupported
                      : error == EPERM || error == EACCES ? Code::not_permitted
                                                          : Code::system_error;
    return make_error_as<errors::shared_memory_system_failure>(code, what, reason);
}

Error not_as_said(const char* reason) {
    return make_error<errors::sealed_memory_refused>(reason);
}

}  // namespace

Error system_failure(const char* call, int error, std::string_view what) {
    return failure_of(error, what).from_call(call, error);
}

Result<SealedMemory> SealedMemory::create(std::size_t bytes, const char* name, const platform::os::ProcessCalls& calls,
                                          SealedFor writers) {
    if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
        return make_error<errors::sealed_memory_size_out_of_range>(bytes);
    }
    // Systems may demand memfds that can never be executed (vm.memfd_noexec); older kernels do not know the flag.
    int number = calls.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (number < 0 && errno == EINVAL) number = calls.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (number < 0) return system_failure("memfd_create", errno, "no shared memory could be made");
    FileDescriptor fd(number);
    // New pages of a memfd are zeros, and no other process has this one yet.
    if (calls.ftruncate(fd.get(), static_cast<std::int64_t>(bytes)) != 0) {
        return system_failure("ftruncate", errno, composed("{} bytes of shared memory were asked for", bytes));
    }
    // Mapped before sealing: F_SEAL_FUTURE_WRITE leaves existing mappings writable.
    SealedMemory memory;
    if (Result<void> mapped = memory.map(std::move(fd), bytes, calls); !mapped) return std::move(mapped).error();
    const bool alone = writers == SealedFor::maker;
    if (calls.fcntl(memory.fd(), F_ADD_SEALS, wanted_seals | (alone ? F_SEAL_FUTURE_WRITE : 0)) == 0) return memory;
    if (alone && errno == EINVAL) {
        return make_error<errors::no_seal_against_writing>().from_call("fcntl(F_ADD_SEALS)", EINVAL);
    }
    return system_failure("fcntl(F_ADD_SEALS)", errno, "shared memory could not be sealed");
}

Result<SealedMemory> SealedMemory::accept(FileDescriptor fd, std::size_t bytes, const platform::os::ProcessCalls& calls,
                                          SealedFor writers) {
    if (!fd) return not_as_said("it is none");
    if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
        return make_error<errors::sealed_memory_of_impossible_size>(bytes);
    }
    // Seals first: what later checks find cannot change then. Pipes, sockets, devices and files on disk have no seals.
    const int seals = calls.fcntl(fd.get(), F_GET_SEALS, 0);
    if (seals < 0) return not_as_said("it is no memfd (it has no seals)");
    if ((seals & wanted_seals) != wanted_seals) {
        return not_as_said("it is not sealed against shrinking, growing and further seals");
    }
    // Either seal forbids further writable mappings; F_SEAL_WRITE also means that none exist.
    if (writers == SealedFor::maker && (seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)) == 0) {
        return not_as_said("it is not sealed against writing, and was said to be its maker's to write");
    }
    const int status = calls.fcntl(fd.get(), F_GETFL, 0);
    if (status < 0) return system_failure("fcntl(F_GETFL)", errno, "a descriptor could not be checked");
    if ((status & O_ACCMODE) != O_RDWR) return not_as_said("it is not open for reading and writing");
    // Huge pages (hugetlbfs) are also allocated on touch, and an empty pool raises SIGBUS.
    struct statfs file_system {};
    if (calls.fstatfs(fd.get(), &file_system) != 0)
        return system_failure("fstatfs", errno, "a descriptor could not be checked");
    if (static_cast<unsigned long>(file_system.f_type) != TMPFS_MAGIC) return not_as_said("it has no ordinary pages");
    struct stat facts {};
    if (calls.fstat(fd.get(), &facts) != 0) return system_failure("fstat", errno, "a descriptor could not be checked");
    if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) != bytes) {
        return make_error<errors::sealed_memory_of_another_size>(facts.st_size, bytes);
    }
    SealedMemory memory;
    const bool writable = writers == SealedFor::both;
    if (Result<void> mapped = memory.map(std::move(fd), bytes, calls, writable); !mapped)
        return std::move(mapped).error();
    return memory;
}

Result<void> SealedMemory::map(FileDescriptor fd, std::size_t bytes, const platform::os::ProcessCalls& calls,
                               bool writable) {
    const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void* data = calls.mmap(nullptr, bytes, protection, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED)
        return system_failure("mmap", errno, composed("{} bytes of shared memory could not be mapped", bytes));
    fd_ = std::move(fd);
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
    calls_ = &calls;
    return {};
}

SealedMemory::SealedMemory(SealedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      calls_(other.calls_) {}

SealedMemory& SealedMemory::operator=(SealedMemory&& other) noexcept {
    if (this != &other) {
        if (data_) calls_->munmap(data_, bytes_);
        fd_ = std::move(other.fd_);
        data_ = std::exchange(other.data_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        calls_ = other.calls_;
    }
    return *this;
}

SealedMemory::~SealedMemory() {
    if (data_) calls_->munmap(data_, bytes_);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
