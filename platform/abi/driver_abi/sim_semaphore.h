// SPDX-License-Identifier: Apache-2.0
/* The file that the simulated driver takes for an external semaphore (cuImportExternalSemaphore).
 *
 * A real driver takes descriptors that a graphics driver exported, which a machine without one cannot make. Here any
 * process makes the file (memfd_create()), writes this structure at its start, maps it (MAP_SHARED) and plays the other
 * side of the semaphore by atomic operations on `value`: with the order release to signal, acquire to wait. Imported as
 * CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD a binary semaphore is signalled while `value` is 1; a wait takes it back
 * to 0. As CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD a wait ends once `value` is at least the waiter's.
 * Plain C, little-endian machines. */
#ifndef ISTHMUS_SIM_SEMAPHORE_H
#define ISTHMUS_SIM_SEMAPHORE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ISTHMUS_SIM_SEMAPHORE_MAGIC UINT64_C(0x316d657374687369)
enum { isthmus_sim_semaphore_binary = 1, isthmus_sim_semaphore_timeline = 2 };

typedef struct isthmus_sim_semaphore {
    uint64_t magic;
    uint32_t kind;
    uint32_t reserved; /* 0 */
    uint64_t value;
} isthmus_sim_semaphore;

#ifdef __cplusplus
}
#endif

#endif
