// SPDX-License-Identifier: Apache-2.0
// Memory of one allocation in another process, named by bytes: of cuMemAlloc, and of pools.
#pragma once

#include "driver.hpp"
#include "memory_file.hpp"
#include "named_file.hpp"

#include <functional>

namespace isthmus::sim {

// Moves the allocation into a file, unless it is in one, and calls `use` with its region, under the driver's mutex.
// Waits until no work runs. 1: no such memory, or it does not fit.
Result with_memory_file(Driver& d, Address address, bool (*fits)(const Region&),
                        const std::function<Result(Region&)>& use);
// The same, and names it.
Result name_memory(Driver& d, Address address, bool (*fits)(const Region&), const char (&magic)[8],
                   ShareableBytes& handle);

// The functions below require the driver's mutex.
// The device of this process that the file's memory lies on; -1: it is not visible.
int device_of(const Driver& d, const MemoryFileHeader& header);
// Opens the named file, if it still is the same one; -1 otherwise.
int open_named_memory(const FileName& name, MemoryFileHeader& header);
// Host memory of a pool that other processes can map; nullptr: the system has none.
Region* map_shared_host_memory(Driver& d, Location where, Context* context, std::size_t bytes);
// Maps it, and takes ownership of the file; nullptr: no memory, and the file is still the caller's.
Region* map_named_memory(Driver& d, Kind kind, int device, Context* context, int file, const MemoryFileHeader& header);

}  // namespace isthmus::sim
