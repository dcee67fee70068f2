// SPDX-License-Identifier: Apache-2.0
/* The simulator's functions for tests: planned faults, exact call counts, counts of live objects.
 * A real libcuda.so.1 has none of these; look them up with dlsym. Plain C. */
#ifndef ISTHMUS_SIM_CONTROL_H
#define ISTHMUS_SIM_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the planned faults; NULL or "" plans none. ISTHMUS_SIM_FAULTS has the initial plans. Plans are separated by
 * ';', their fields by ':':
 *   call=cuMemAlloc_v2   only this function (the name without its version means every version)
 *   n=3  or  nth=3       at the third matching call from now on; without it, at every one
 *   code=2               answer this CUresult instead of doing anything
 *   persistent           from the n-th matching call on
 *   one_in=40            at random, for one in 40 matching calls; seed=7 sets the seed of the random numbers
 *   sticky               the code also becomes the device's sticky error (the current context's device)
 *   delay_ms=5           wait, then continue (alone: the call then works as usual)
 *   stands               wait until the plans are replaced, as a call with a full queue does, then continue
 * E.g. "call=cuMemAlloc_v2:n=3:code=2;nth=17:code=700:sticky".
 * Returns 0, or 1 where the text is invalid (nothing changes then; a line on stderr has the reason). */
typedef int (*isthmus_sim_fault_plan_fn)(const char* plan);

/* The functions whose calls planned faults answered, in order from index 0; NULL beyond the last. */
typedef const char* (*isthmus_sim_fault_at_fn)(uint64_t index);

/* The count of calls of a driver function since the start or the last reset; NULL: of all functions. The name is the
 * exported symbol ("cuMemAlloc_v2"); without its version it counts every version. */
typedef uint64_t (*isthmus_sim_call_count_fn)(const char* name);
typedef void (*isthmus_sim_reset_counts_fn)(void);

/* The count of live objects: "contexts", "streams", "events", "modules", "pools", "graphs", "graph_nodes" (nodes whose
 * handles were given out), "graph_instances", "user_objects", "allocations" (all memory), "device", "pool" (includes
 * "graph": memory of captured graphs), "managed" (includes "managed_pool"), "pinned", "registered", "mappings" (of
 * "physical" memory behind handles at addresses of "reservations"; also in "allocations"), "multicast" (objects, also
 * in "physical"); "arrays" (with mipmapped ones, levels and planes; their memory also in "allocations"), "textures"
 * (with surfaces), "semaphores"; "gpu_work": operations that GPU workers run at this moment; "standing_calls": calls
 * that wait because of "stands". -1: unknown word. */
typedef int64_t (*isthmus_sim_live_fn)(const char* what);

/* Makes a device's memory smaller than in the record; 0 restores the record's size. Existing allocations stay.
 * Pools reserve in steps of 2 MiB. ISTHMUS_SIM_MEMORY_BYTES does the same for all devices from the start.
 * Returns 0, or 1 before cuInit and for a device that does not exist. */
typedef int (*isthmus_sim_set_memory_bytes_fn)(int device, uint64_t bytes);

/* In the seeded mode (ISTHMUS_SIM_MODE=seeded): draws the order of work from this seed from now on, as if the process
 * had started with it. Returns 0, or 1 before cuInit and in the other mode. */
typedef int (*isthmus_sim_set_seed_fn)(uint64_t seed);

/* The method that closes memory to CPU threads: "keys", "pages" (closed only while no GPU work runs) or "off". */
typedef const char* (*isthmus_sim_protection_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
