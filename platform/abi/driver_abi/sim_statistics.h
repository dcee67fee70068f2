// SPDX-License-Identifier: Apache-2.0
/* What the simulator counts for `isthmus simulate`: the layout of the file that ISTHMUS_SIM_STATISTICS names.
 *
 * Every process that plays a machine maps this file (MAP_SHARED) and adds to it while it runs. So processes are summed,
 * and nothing is lost where a process ends by a signal, by _exit() or by exec(). The file is empty at first; the first
 * process makes it whole under flock(). All figures change by atomic operations. Plain C, little-endian machines. */
#ifndef ISTHMUS_SIM_STATISTICS_H
#define ISTHMUS_SIM_STATISTICS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ISTHMUS_SIM_STATISTICS_MAGIC UINT64_C(0x3174617473736968)
enum {
    isthmus_sim_statistics_calls = 1024,   /* distinct functions */
    isthmus_sim_statistics_answers = 1024, /* distinct pairs of a function and a code other than 0 */
    isthmus_sim_statistics_messages = 256, /* distinct messages */
    isthmus_sim_statistics_faults = 16     /* distinct sticky codes */
};

/* A place whose `key` is 0 is free. Who takes one changes `key` from 0 by compare-and-swap, writes the rest, and then
 * stores 1 in `written`. */
typedef struct isthmus_sim_calls {
    char name[56]; /* written before the file is whole; empty: none */
    uint64_t count;
} isthmus_sim_calls;

typedef struct isthmus_sim_answers {
    uint64_t key; /* 1 + index in `calls`, times 2 to the power of 32, plus the code */
    uint64_t count;
} isthmus_sim_answers;

typedef struct isthmus_sim_message {
    uint64_t key; /* a hash of the message without its values */
    uint64_t count;
    uint32_t written;
    char text[244]; /* the first such message, with its values; ends with 0 */
} isthmus_sim_message;

typedef struct isthmus_sim_fault {
    uint64_t key; /* the code */
    uint64_t count;
} isthmus_sim_fault;

typedef struct isthmus_sim_amount {
    uint64_t count, bytes;
} isthmus_sim_amount;

typedef struct isthmus_sim_statistics {
    uint64_t magic; /* stored last */
    uint64_t size_bytes;
    uint64_t processes;              /* that called the driver */
    uint64_t dropped;                /* answers and messages beyond the places */
    isthmus_sim_amount copies[3][3]; /* from and to: 0 host memory, 1 device memory, 2 managed memory; as they run */
    isthmus_sim_amount fills;
    uint64_t kernels;          /* that ran; launches of graphs included */
    uint64_t kernels_from_ptx; /* those of them that ran from PTX */
    isthmus_sim_fault faults[isthmus_sim_statistics_faults];
    isthmus_sim_calls calls[isthmus_sim_statistics_calls];
    isthmus_sim_calls refused[isthmus_sim_statistics_calls]; /* of functions that the simulator lacks */
    isthmus_sim_answers answers[isthmus_sim_statistics_answers];
    isthmus_sim_message messages[isthmus_sim_statistics_messages];
} isthmus_sim_statistics;

#ifdef __cplusplus
}
#endif
#endif
