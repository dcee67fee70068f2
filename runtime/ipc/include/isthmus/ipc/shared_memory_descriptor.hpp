// SPDX-License-Identifier: Apache-2.0
// The data with which another process imports exported memory: a fixed block of bytes and at most one file descriptor.
// Send it over an isthmus::Channel or any transport that carries both.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>
#include <isthmus/share_method.hpp>
#include <isthmus/uuid.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {

// Content of the bytes. A driver handle carries none of this.
struct SharedMemoryFacts {
    ShareMethod method = ShareMethod::none;  // any but none
    std::uint64_t bytes = 0;                 // of the buffer: its exact size, a multiple of element_bytes
    std::uint64_t mapped_bytes = 0;          // of the memory behind it: `bytes` rounded up to the granularity
    std::uint64_t granularity_bytes = 0;     // of the exporter's device; for host memory: a page
    std::uint32_t element_bytes = 0;
    Uuid device;  // the device that owns the memory; for host memory: the exporter's device
    friend bool operator==(const SharedMemoryFacts&, const SharedMemoryFacts&) = default;
};

// Owns the file descriptor and closes it. It is an irrevocable right to read and write the memory: authorise before
// sending. It may be sent to several importers; each may receive it once.
class ISTHMUS_API SharedMemoryDescriptor {
public:
    static constexpr std::size_t size_bytes = 128;
    using Bytes = std::array<std::byte, size_bytes>;

    // Makes a descriptor from what came over a transport; takes the file descriptors in every case. The bytes may have
    // any value. Errors: invalid_argument (not made by export_memory(): length, magic, version, a field out of range or
    // inconsistent with the others, another number of file descriptors than the share method needs; names the field).
    static Result<SharedMemoryDescriptor> received(std::span<const std::byte> bytes, std::vector<FileDescriptor> fds);

    // Little-endian and versioned.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // One file descriptor, or none with a fabric handle or a legacy IPC handle. This object keeps ownership: the kernel
    // duplicates the file descriptor when it is sent.
    std::span<const int> fds() const noexcept { return {&number_, fd_ ? std::size_t{1} : std::size_t{0}}; }
    // Well-formed, but not yet verified: import_memory() checks them against what the driver reports.
    const SharedMemoryFacts& facts() const noexcept { return facts_; }

private:
    friend struct SharedMemoryAccess;
    SharedMemoryDescriptor(const Bytes& bytes, const SharedMemoryFacts& facts, FileDescriptor fd) noexcept
        : bytes_(bytes), facts_(facts), fd_(std::move(fd)), number_(fd_.get()) {}
    Bytes bytes_;
    SharedMemoryFacts facts_;
    FileDescriptor fd_;
    int number_;
};

}  // namespace v0
}  // namespace isthmus
