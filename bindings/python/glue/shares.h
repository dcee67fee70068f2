/* SPDX-License-Identifier: Apache-2.0
 * A counted reference to a handle of libisthmus-c, for owners that are no Python objects: DLPack tensors are freed by
 * whichever thread drops them, with or without the interpreter's lock, also after the interpreter has ended. */
#ifndef ISTHMUS_PYTHON_SHARES_H
#define ISTHMUS_PYTHON_SHARES_H
#include <stdint.h>

typedef struct isthmus_python_share isthmus_python_share;
#define ISTHMUS_PYTHON_API __attribute__((visibility("default")))

/* `release(handle)` is called once, by the last reference or never (after isthmus_python_share_take()). The share keeps
 * `first` and `second`, which may be NULL, until then. NULL: no memory. */
ISTHMUS_PYTHON_API isthmus_python_share* isthmus_python_share_new(void* handle, void (*release)(void* handle),
                                                                  isthmus_python_share* first,
                                                                  isthmus_python_share* second);
ISTHMUS_PYTHON_API void isthmus_python_share_ref(isthmus_python_share* share);
/* NULL: nothing. Within a stand-in the last reference only leaves the share: its end might wait for the work that the
 * stand-in is. A thread outside ends it (isthmus_python_end_left_shares()). */
ISTHMUS_PYTHON_API void isthmus_python_share_unref(isthmus_python_share* share);
int isthmus_python_has_left_shares(void);
void isthmus_python_end_left_shares(void);
ISTHMUS_PYTHON_API uint32_t isthmus_python_share_references(const isthmus_python_share* share);
/* Where a function that makes a handle writes that of a share which has none yet, before other threads know the share.
 */
ISTHMUS_PYTHON_API void* isthmus_python_share_place(isthmus_python_share* share);
/* The handle, which is the caller's from now on; NULL where it was taken before. */
ISTHMUS_PYTHON_API void* isthmus_python_share_take(isthmus_python_share* share);

#endif
