// SPDX-License-Identifier: Apache-2.0
// Memory that another process of the simulator can map: a sealed memory file, whose last page describes it.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::sim {

struct MemoryFileHeader {
    char magic[16] = {};
    std::uint64_t nonce = 0;  // distinguishes the file from a later one under the same descriptor
    std::uint64_t bytes = 0;
    AllocationProperties properties = {};
    Uuid device = {};             // zeros: host memory
    std::uint32_t team_size = 0;  // of a multicast object, whose file has no data but the word of joined devices
};

// Offset of the data in the file. It comes first, because a program maps an exported dma-buf from its start.
inline constexpr std::size_t memory_file_offset_bytes = 0;

// Returns a close-on-exec descriptor; -1: the system has none. Every file has the same length, so that, as with the
// driver's own, the length does not show the size of the memory. Fills in magic and nonce.
int create_memory_file(MemoryFileHeader& header);
bool read_memory_file(int file, MemoryFileHeader& header);  // false: not such a file
int duplicate_file(int file);                               // close-on-exec; -1: none

}  // namespace isthmus::sim
