/* The release callback of adopted memory in C. isthmus/adopt.hpp takes it. */
#ifndef ISTHMUS_ADOPT_H
#define ISTHMUS_ADOPT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `release` (may be NULL) is called once, when nothing uses the memory any more, with `context` and what was adopted;
 * from whichever thread lets go last. It calls nothing of this library. */
typedef struct isthmus_adopt_callbacks {
    void* context;
    void (*release)(void* context, void* pointer, size_t bytes);
} isthmus_adopt_callbacks;

#ifdef __cplusplus
}
#endif
#endif
