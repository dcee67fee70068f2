// SPDX-License-Identifier: Apache-2.0
// Which bytes of device memory have been written, where ISTHMUS_SIM_UNINITIALISED asks for reports of reads before.
// Recorded are allocations of cuMemAlloc* and pools; all other memory counts as written. Thread-safe.
#pragma once

#include <cstddef>

namespace isthmus::sim::written_bytes {

bool wanted();

// A new allocation, of which nothing is written; and its end. `host`: where it lies in this process.
void begin(const void* host, std::size_t bytes);
void end(const void* host);

// One byte for each byte from `host` to the end of its allocation: 0 until it is written. nullptr: not recorded.
std::byte* of(const void* host);

void written(const void* host, std::size_t bytes);
void unwritten(const void* host, std::size_t bytes);
// All of the allocation around `host`: what writes to it cannot be followed.
void all_written(const void* host);
void copied(const void* to, const void* from, std::size_t bytes);

}  // namespace isthmus::sim::written_bytes
