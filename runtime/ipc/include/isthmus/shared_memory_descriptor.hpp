// What another process needs to use memory that this one exports: a fixed block of bytes and at most one file
// descriptor, to be sent over an isthmus::Channel or any transport that carries both.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_rung.hpp>
#include <isthmus/uuid.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace isthmus::inline v0 {

// What the bytes say. A handle of the driver tells none of it.
struct SharedMemoryFacts {
    SharingRung rung = SharingRung::none;  // any but none
    std::uint64_t bytes = 0;               // of the buffer: exactly, a multiple of element_bytes
    std::uint64_t mapped_bytes = 0;        // of the memory behind it: `bytes` rounded up to the granularity
    std::uint64_t granularity_bytes = 0;   // of the exporter's device; of memory of the host: a page
    std::uint32_t element_bytes = 0;
    Uuid device;  // whose memory it is; of memory of the host: with which its exporter uses it
    friend bool operator==(const SharedMemoryFacts&, const SharedMemoryFacts&) = default;
};

// Owns the descriptor and closes it. It is an irrevocable right to read and write the memory: authorise before sending.
// It may be sent to several importers, and received by each of them once.
class ISTHMUS_API SharedMemoryDescriptor {
public:
    static constexpr std::size_t size_bytes = 128;
    using Bytes = std::array<std::byte, size_bytes>;

    // As they came over a transport; takes the descriptors over, whatever the answer. Every byte may be anything.
    // Errors: invalid_argument (not what export_memory() makes: length, magic, version, a field out of its range or in
    // contradiction to the others, another number of descriptors than the rung needs; names the field).
    static Result<SharedMemoryDescriptor> received(std::span<const std::byte> bytes, std::vector<FileDescriptor> fds);

    // Little-endian and versioned.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // One, or none with a fabric or an older handle. It stays owned here: who sends it has the kernel duplicate it.
    std::span<const int> fds() const noexcept { return {&number_, fd_ ? std::size_t{1} : std::size_t{0}}; }
    // Well-formed, which is not yet true: import_memory() checks them against what the driver has.
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

}  // namespace isthmus::inline v0
