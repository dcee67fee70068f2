// SPDX-License-Identifier: Apache-2.0
// The descriptor of shared device memory as bytes, and its checks. Pure.
#pragma once

#include <isthmus/ipc/shared_memory_descriptor.hpp>
#include <isthmus/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::rules {

inline constexpr std::uint64_t max_shared_bytes = std::uint64_t{1} << 46;  // more than any machine has
using HandleBytes = std::array<unsigned char, 64>;                         // a fabric handle, or a cuIpcMemHandle
// A smaller allocation may be cut from a block that is shared as a whole (documented).
inline constexpr std::uint64_t legacy_granularity_bytes = std::uint64_t{2} << 20;

// Errors: invalid_argument (no elements, more bytes than any machine has, a granularity that is no power of two).
Result<SharedMemoryFacts> make_shared_memory(ShareMethod method, std::uint64_t bytes, std::uint32_t element_bytes,
                                             std::uint64_t granularity_bytes, const Uuid& device);

// `handle`: all zero for methods with a file descriptor.
SharedMemoryDescriptor::Bytes encode_shared_memory(const SharedMemoryFacts& facts, const HandleBytes& handle);
bool has_file(ShareMethod method) noexcept;

struct DecodedMemory {
    SharedMemoryFacts facts;
    HandleBytes handle{};
};
// Accepts any input. The result is one that make_shared_memory() could make, so no sum in it overflows. Errors:
// invalid_argument (names the field).
Result<DecodedMemory> decode_shared_memory(std::span<const std::byte> bytes);

// The importing side.
struct ImportingEnd {
    bool is_cpu = false;
    bool imports = false;  // can import by this method
    Uuid device;
    std::uint64_t granularity_bytes = 0;
    std::uint32_t element_bytes = 0;   // requested by the program
    std::uint64_t max_host_bytes = 0;  // limit on the memory that another process may have this one map
};
// Checks before any driver call. Errors: unsupported, wrong_device, invalid_argument, out_of_memory.
Result<void> may_import(const SharedMemoryFacts& facts, const ImportingEnd& end);

}  // namespace isthmus::rules
