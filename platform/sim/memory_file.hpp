// SPDX-License-Identifier: Apache-2.0
// Memory that another process of the simulator can map: a sealed file of memory that says in its first page what it is.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::sim {

struct MemoryFileHeader {
    char magic[16] = {};
    std::uint64_t nonce = 0;  // tells it from what another process has under the same descriptor
    std::uint64_t bytes = 0;
    AllocationProperties properties = {};
    Uuid device = {};             // zeros: the host's memory
    std::uint32_t team_size = 0;  // of a multicast object, which has no bytes, but a word for who has joined
};

// Where the bytes begin in the file; the header lies before them.
inline constexpr std::size_t memory_file_offset_bytes = std::size_t{2} << 20;

// A descriptor that exec closes; -1: the system has none. Every file has the same length, so that like the driver's own
// it does not tell how much memory it stands for. Fills in magic and nonce.
int create_memory_file(MemoryFileHeader& header);
bool read_memory_file(int file, MemoryFileHeader& header);  // false: not such a file
int duplicate_file(int file);                               // exec closes it; -1: none

}  // namespace isthmus::sim
