// The descriptor of shared device memory as bytes, and what in it can be true. Pure.
#pragma once

#include <isthmus/result.hpp>
#include <isthmus/shared_memory_descriptor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::rules {

inline constexpr std::uint64_t most_shared_bytes = std::uint64_t{1} << 46;  // no machine has more
using HandleBytes = std::array<unsigned char, 64>;                          // a fabric handle, or an older one
// An allocation of fewer bytes may be cut out of a piece that is shared with it (documented).
inline constexpr std::uint64_t legacy_granularity_bytes = std::uint64_t{2} << 20;

// Errors: invalid_argument (no elements, more bytes than any machine has, a granularity that is no power of two).
Result<SharedMemoryFacts> make_shared_memory(SharingRung rung, std::uint64_t bytes, std::uint32_t element_bytes,
                                             std::uint64_t granularity_bytes, const Uuid& device);

// `handle`: all zero with the rungs that have a file descriptor.
SharedMemoryDescriptor::Bytes encode_shared_memory(const SharedMemoryFacts& facts, const HandleBytes& handle);
bool has_file(SharingRung rung) noexcept;

struct DecodedMemory {
    SharedMemoryFacts facts;
    HandleBytes handle{};
};
// Every byte may be anything. What comes out is what make_shared_memory() would make, so that no sum in it overflows.
// Errors: invalid_argument (names the field).
Result<DecodedMemory> decode_shared_memory(std::span<const std::byte> bytes);

// What the importer's side of it is.
struct ImportingEnd {
    bool is_cpu = false;
    bool imports = false;  // memory of this rung
    Uuid device;
    std::uint64_t granularity_bytes = 0;
    std::uint32_t element_bytes = 0;    // that the program asks for
    std::uint64_t most_host_bytes = 0;  // that another process may have this one map
};
// Before the driver is called. Errors: unsupported, wrong_device, invalid_argument, out_of_memory.
Result<void> may_import(const SharedMemoryFacts& facts, const ImportingEnd& end);

}  // namespace isthmus::rules
