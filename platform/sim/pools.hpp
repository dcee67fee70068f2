// SPDX-License-Identifier: Apache-2.0
// The books of pools: what they reserve of a device, how much of it is in use, and what goes back when. Figures only:
// no pool is ever fragmented, and what one holds back serves no other allocation until it is trimmed or synchronised
// (assumed). All take the driver's mutex as held, but release_idle_reserves().
#pragma once

#include "driver.hpp"

namespace isthmus::sim {

// What a pool reserves grows and shrinks by these steps (assumed: the granularity of physical memory on an H200).
inline constexpr std::uint64_t reserve_step_bytes = std::uint64_t{2} << 20;

bool known(const Driver& d, const Pool* pool);

// Memory from the pool, for a stream of `device`; of_graph: owned by the graph that is being captured, and in no
// pool's figures. nullptr: the pool, the device or the system has no room.
Region* allocate_from(Driver& d, Pool& pool, int device, Context* context, std::size_t bytes, bool of_graph);
// Takes the region out of the figures of its pool or of its device's graphs, before it is released.
void give_back(Driver& d, const Region& region);

// Gives unused reserves back until no more than `keep_bytes` are reserved.
void trim(Driver& d, Pool& pool, std::uint64_t keep_bytes);
// What synchronising does: every pool keeps what is used, and unused reserves up to its release threshold.
void release_idle_reserves(Driver& d);

// Destroys the pool; its memory lives on, with its access, until it is freed.
void retire(Driver& d, Pool* pool);

}  // namespace isthmus::sim
