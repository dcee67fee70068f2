// SPDX-License-Identifier: Apache-2.0
/* What the simulator exports for tests: planned faults, exact call counts, what is still alive.
 * A real libcuda.so.1 has none of these; find them with dlsym. Plain C. */
#ifndef ISTHMUS_SIM_CONTROL_H
#define ISTHMUS_SIM_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the planned faults; NULL or "" plans none. Also read from ISTHMUS_SIM_FAULTS. Plans, separated by ';',
 * of fields separated by ':':
 *   call=cuMemAlloc_v2   only this function (the name without its version means every version)
 *   n=3  or  nth=3       at the third matching call, counted from here; without it, at every one
 *   code=2               answer this CUresult instead of doing anything
 *   persistent           from the n-th matching call on
 *   one_in=40            at matching calls drawn at random, one in so many; with it  seed=7  names the draw
 *   sticky               the code also becomes the device's sticky error (the current context's device)
 *   delay_ms=5           wait before going on (alone: the call then works as usual)
 *   stands               wait until the plans are replaced, as a call does whose queue is full, then go on
 * E.g. "call=cuMemAlloc_v2:n=3:code=2;nth=17:code=700:sticky".
 * Returns 0, or 1 where the text is not understood (nothing changes then; a line on stderr says why). */
typedef int (*isthmus_sim_fault_plan_fn)(const char* plan);

/* The function that the planned faults answered in place of, the first at 0; NULL where there were no more. */
typedef const char* (*isthmus_sim_fault_at_fn)(uint64_t index);

/* How often a driver function was called since the start or the last reset; NULL: all of them together. The name is
 * the exported symbol ("cuMemAlloc_v2"); without its version it counts every version. */
typedef uint64_t (*isthmus_sim_call_count_fn)(const char* name);
typedef void (*isthmus_sim_reset_counts_fn)(void);

/* How many objects are alive: "contexts", "streams", "events", "modules", "pools", "graphs", "graph_nodes" (nodes whose
 * handles were given out), "graph_instances", "allocations" (all memory), "device", "pool" (with "graph": what captured
 * graphs own), "managed" (with "managed_pool"), "pinned", "registered", "mappings" (of "physical" memory behind handles
 * at addresses of "reservations"; "allocations" has them, too), "multicast" (objects, which are "physical", too);
 * "gpu_work": operations that GPU workers run at this moment; "standing_calls": calls that a plan with "stands" holds
 * up. -1: unknown word. */
typedef int64_t (*isthmus_sim_live_fn)(const char* what);

/* Makes a device's memory smaller than the record says, or as the record says again (0); what is allocated stays.
 * Pools reserve in steps of 2 MiB. ISTHMUS_SIM_MEMORY_BYTES does the same for all devices from the start.
 * Returns 0, or 1 before cuInit and for a device that is not there. */
typedef int (*isthmus_sim_set_memory_bytes_fn)(int device, uint64_t bytes);

/* In the seeded mode (ISTHMUS_SIM_MODE=seeded): from here on the order of work is drawn from this seed, as if the
 * process had begun with it. Returns 0, or 1 before cuInit and in the other mode. */
typedef int (*isthmus_sim_set_seed_fn)(uint64_t seed);

/* How memory is closed to CPU threads: "keys", "pages" (closed only while no GPU work runs) or "off". */
typedef const char* (*isthmus_sim_protection_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
