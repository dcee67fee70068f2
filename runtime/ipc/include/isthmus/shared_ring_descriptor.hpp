// What another process needs to open a shared frame ring: a fixed block of bytes and three file descriptors, to be sent
// over an isthmus::Channel or any transport that carries both.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace isthmus::inline v0 {

// Owns the descriptors and closes them. For one reader, once: sent to two, they would take each other's frames away.
// When it was sent, destroy it: while a copy of the reader's end stands open in the producer's process, the producer
// does not notice that the reader is gone.
class ISTHMUS_API SharedRingDescriptor {
public:
    static constexpr std::size_t size_bytes = 128;
    // The frames' file, the reader's page, and the line: a connected stream socket that wakes and tells of ends.
    static constexpr std::size_t fd_count = 3;
    using Bytes = std::array<std::byte, size_bytes>;

    // As they came over a transport; takes the descriptors over, whatever the answer. Looks at their numbers only:
    // SharedFrameReader::open() looks at everything else. Errors: invalid_argument (another number of either).
    static Result<SharedRingDescriptor> received(std::span<const std::byte> bytes, std::vector<FileDescriptor> fds);

    SharedRingDescriptor(const Bytes& bytes, std::array<FileDescriptor, fd_count> fds) noexcept
        : bytes_(bytes), fds_(std::move(fds)) {}

    // Little-endian and versioned; means something on the machine where it was made.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // In the order above. They stay owned here: who sends them has the kernel duplicate them.
    std::array<int, fd_count> fds() const noexcept { return {fds_[0].get(), fds_[1].get(), fds_[2].get()}; }
    // They are the caller's from here on.
    std::array<FileDescriptor, fd_count> take_fds() noexcept { return std::move(fds_); }

private:
    Bytes bytes_;
    std::array<FileDescriptor, fd_count> fds_;
};

}  // namespace isthmus::inline v0
