// Making and undoing regions: accounting, mapping, closing. All take the driver's mutex as held.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// Memory of the device itself (device, pool, graph), closed to the CPU; nullptr: the device or the system has no room.
Region* allocate_device_memory(Driver& d, Kind kind, int device, Context* context, std::size_t bytes, Pool* pool);
Region* allocate_managed(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags);
Region* allocate_pinned(Driver& d, int device, Context* context, std::size_t bytes, unsigned flags);
Region* add_registered(Driver& d, int device, Context* context, void* host, std::size_t bytes, unsigned flags);
void release_region(Driver& d, Region* region);

}  // namespace isthmus::sim
