// SPDX-License-Identifier: Apache-2.0
/* The release callback of adopted memory in C. isthmus/adopt.hpp takes it. */
#ifndef ISTHMUS_ADOPT_H
#define ISTHMUS_ADOPT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `release` (may be NULL) is called once, with `context` and the adopted range, when nothing uses the memory any more.
 * It runs on the thread that drops the last use. It must not call this library. */
typedef struct isthmus_adopt_callbacks {
    void* context;
    void (*release)(void* context, void* pointer, size_t bytes);
} isthmus_adopt_callbacks;

#ifdef __cplusplus
}
#endif
#endif
