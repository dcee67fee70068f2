// SPDX-License-Identifier: Apache-2.0
// Memory shared by two processes through a file descriptor, of a size that neither can change.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <platform/process_calls.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Maps errno to system_limit, out_of_memory, not_permitted, unsupported or system_error.
Error system_failure(const char* call, int error, std::string_view what);

// Which side may write the memory.
enum class SealedFor : unsigned char {
    both,   // every holder of the descriptor
    maker,  // only the mapping that create() makes (F_SEAL_FUTURE_WRITE, Linux 5.1)
};

// A mapped memfd with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL: no access raises SIGBUS because the file was shrunk.
// The other process may change the content at any time: copy each value once, then check the copy. Movable; unmaps and
// closes on destruction. `calls` must outlive it.
class SealedMemory {
public:
    // `bytes` of zeros; the file has exactly this size, not rounded up. The kernel shows `name` in /proc. Errors:
    // invalid_argument (0 bytes, more than an address space has), out_of_memory, system_limit, unsupported,
    // system_error.
    static Result<SealedMemory> create(std::size_t bytes, const char* name,
                                       const platform::os::ProcessCalls& calls = platform::os::ProcessCalls::real(),
                                       SealedFor writers = SealedFor::both);
    // A received descriptor: checks that it is a memfd of ordinary pages with those seals, open for reading and
    // writing, of exactly `bytes`, and only then maps it; read-only for SealedFor::maker. Takes the descriptor and
    // closes it on failure. Errors: peer_broke_rules (a check failed), out_of_memory, system_error.
    static Result<SealedMemory> accept(FileDescriptor fd, std::size_t bytes,
                                       const platform::os::ProcessCalls& calls = platform::os::ProcessCalls::real(),
                                       SealedFor writers = SealedFor::both);
    SealedMemory() noexcept = default;
    SealedMemory(SealedMemory&& other) noexcept;
    SealedMemory& operator=(SealedMemory&& other) noexcept;
    ~SealedMemory();

    std::byte* data() const noexcept { return data_; }  // page-aligned; null: empty
    std::size_t bytes() const noexcept { return bytes_; }
    int fd() const noexcept { return fd_.get(); }                 // for sending; ownership stays here
    FileDescriptor take_fd() noexcept { return std::move(fd_); }  // the mapping does not need it

private:
    Result<void> map(FileDescriptor fd, std::size_t bytes, const platform::os::ProcessCalls& calls,
                     bool writable = true);
    FileDescriptor fd_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    const platform::os::ProcessCalls* calls_ = nullptr;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
