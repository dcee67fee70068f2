// SPDX-License-Identifier: Apache-2.0
// The accounting of pools: reserved device memory, memory in use, and when reserves are returned. Only figures: no pool
// is ever fragmented, and reserves of one pool serve no other allocation until a trim or a synchronisation (assumed).
// All functions except release_idle_reserves() require the driver's mutex.
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// The reserves of a pool change in these steps (assumed: the granularity of physical memory on an H200).
inline constexpr std::uint64_t reserve_step_bytes = std::uint64_t{2} << 20;

bool known(const Driver& d, const Pool* pool);
// Only memory that stays on its device takes device memory: managed pages migrate, and host memory is the host's.
bool takes_device_memory(const Pool& pool);

// Allocates from the pool for a stream of `device`. of_graph: the memory belongs to the graph being captured and is not
// in the pool's figures. nullptr: the pool, the device or the system has no memory left.
Region* allocate_from(Driver& d, Pool& pool, int device, Context* context, std::size_t bytes, bool of_graph);
// Removes the region from the figures of its pool; call it before releasing the region.
void give_back(Driver& d, const Region& region);

// Returns unused reserves until at most `keep_bytes` are reserved.
void trim(Driver& d, Pool& pool, std::uint64_t keep_bytes);
// The effect of a synchronisation: every pool keeps memory in use, and unused reserves up to its release threshold.
void release_idle_reserves(Driver& d);

// Destroys the pool; its memory, with its access, stays until it is freed.
void retire(Driver& d, Pool* pool);

}  // namespace isthmus::sim
