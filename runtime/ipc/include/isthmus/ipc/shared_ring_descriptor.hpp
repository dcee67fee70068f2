// SPDX-License-Identifier: Apache-2.0
// The data with which another process opens a shared frame ring: a fixed block of bytes and three file descriptors.
// Send it over an isthmus::Channel or any transport that carries both.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// Owns the file descriptors and closes them. For one reader, once: two readers with the same descriptor would take each
// other's frames. Destroy it after sending: while a copy of the reader's end is open in the producer's process, the
// producer does not notice that the reader is gone.
class ISTHMUS_API SharedRingDescriptor {
public:
    static constexpr std::size_t size_bytes = 128;
    // The frames' file, the reader's page, and the line: a connected stream socket that wakes the other side and
    // reveals its end.
    static constexpr std::size_t fd_count = 3;
    using Bytes = std::array<std::byte, size_bytes>;

    // Makes a descriptor from what came over a transport; takes the file descriptors in every case. Checks only the
    // number of bytes and of file descriptors: SharedFrameReader::open() checks everything else. Errors:
    // invalid_argument (another number of either).
    static Result<SharedRingDescriptor> received(std::span<const std::byte> bytes, std::vector<FileDescriptor> fds);

    SharedRingDescriptor(const Bytes& bytes, std::array<FileDescriptor, fd_count> fds) noexcept
        : bytes_(bytes), fds_(std::move(fds)) {}

    // Little-endian and versioned; valid only on the machine where it was made.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // In the order above. This object keeps ownership: the kernel duplicates them when they are sent.
    std::array<int, fd_count> fds() const noexcept { return {fds_[0].get(), fds_[1].get(), fds_[2].get()}; }
    // The caller owns them from here on.
    std::array<FileDescriptor, fd_count> release_fds() noexcept { return std::move(fds_); }

private:
    Bytes bytes_;
    std::array<FileDescriptor, fd_count> fds_;
};

}  // namespace v0
}  // namespace isthmus
