// SPDX-License-Identifier: Apache-2.0
// Creates and removes regions: accounting, mapping, closing. All functions but the last require the driver's mutex.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Sizes of which no program has so much memory; they are refused at once.
inline constexpr std::size_t absurd_bytes = std::size_t{1} << 46;

// Whether the host has that much memory left that can be pinned, over all devices: of nodes with CPUs, because others
// are memory of GPUs. A record without nodes states no limit.
bool host_has_room(const Driver& d, std::uint64_t bytes);
// Whether the device has that much memory left.
bool has_room(const Driver& d, int device, std::size_t bytes);
// A region over pages of its own, open to all and not accounted; nullptr: the system has no memory.
Region* map_region(Driver& d, Kind kind, int device, Context* context, std::size_t bytes);
void close_to_host(Driver& d, Region* region);
// nullptr: the device or the system has no memory left. Device memory is closed to the CPU.
Region* allocate_device_memory(Driver& d, int device, Context* context, std::size_t bytes);
Region* allocate_managed(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags);
// The next two: no more than the host's memory by the record, over all devices. Memory of other hardware
// (CU_MEMHOSTREGISTER_IOMEMORY) is none of it.
Region* allocate_pinned(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags);
Region* add_registered(Driver& d, int device, Context* context, void* host, std::size_t bytes, unsigned flags);
void release_region(Driver& d, Region* region);
// Waits for the device's work, as the driver does before it frees memory; then removes the region. Expects no lock.
Result wait_and_release(Driver& d, Region* region, int device);

}  // namespace isthmus::sim
