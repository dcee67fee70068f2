// Memory that two processes share by a file descriptor, and whose size neither can change any more.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace isthmus::inline v0::detail {

// What the system refused (errno): system_limit, out_of_memory, not_permitted, unsupported or system_error.
Error system_failure(const char* call, int error, std::string_view what);

// Who may write it.
enum class SealedFor : unsigned char {
    both,   // whoever has the descriptor
    maker,  // the mapping that create() makes, and nobody else ever (F_SEAL_FUTURE_WRITE, Linux 5.1)
};

// A mapped memfd with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL: no access to it ends in SIGBUS because somebody made
// it smaller. Its content is the other process's as much as ours, at any time: what is read is to be copied once and
// then checked. Movable; unmaps and closes on destruction. `calls` must outlive it.
class SealedMemory {
public:
    // `bytes` of zeros; the size of the file is as asked, not rounded up. The kernel shows `name` in /proc. Errors:
    // invalid_argument (0 bytes, more than an address space has), out_of_memory, system_limit, unsupported,
    // system_error.
    static Result<SealedMemory> create(std::size_t bytes, const char* name,
                                       const platform::os::ProcessCalls& calls = platform::os::ProcessCalls::real(),
                                       SealedFor writers = SealedFor::both);
    // What another process sent: checks that it is a memfd of ordinary pages with those seals, open for reading and
    // writing, of exactly `bytes`, and only then maps it; for reading only where the maker alone writes. The descriptor
    // is closed on failure. Errors: peer_broke_rules (any of these is not so), out_of_memory, system_error.
    static Result<SealedMemory> accept(FileDescriptor fd, std::size_t bytes,
                                       const platform::os::ProcessCalls& calls = platform::os::ProcessCalls::real(),
                                       SealedFor writers = SealedFor::both);
    SealedMemory() noexcept = default;
    SealedMemory(SealedMemory&& other) noexcept;
    SealedMemory& operator=(SealedMemory&& other) noexcept;
    ~SealedMemory();

    std::byte* data() const noexcept { return data_; }  // page-aligned; null: empty
    std::size_t bytes() const noexcept { return bytes_; }
    int fd() const noexcept { return fd_.get(); }                 // to be sent; stays ours
    FileDescriptor take_fd() noexcept { return std::move(fd_); }  // the mapping needs it no more

private:
    Result<void> map(FileDescriptor fd, std::size_t bytes, const platform::os::ProcessCalls& calls,
                     bool writable = true);
    FileDescriptor fd_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    const platform::os::ProcessCalls* calls_ = nullptr;
};

}  // namespace isthmus::inline v0::detail
