/* SPDX-License-Identifier: Apache-2.0
 * Counting. The decrement that ends a share pairs, acquire with release, with those of the other owners. */
#include "shares.h"

#include "interpreter.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

struct isthmus_python_share {
    atomic_uint references;
    _Atomic(void*) handle;
    void (*release)(void* handle);
    isthmus_python_share* kept[2];
    isthmus_python_share* next; /* of those that were left */
};

static _Atomic(isthmus_python_share*) left; /* a stack: pushed within stand-ins, emptied as a whole */

isthmus_python_share* isthmus_python_share_new(void* handle, void (*release)(void*), isthmus_python_share* first,
                                               isthmus_python_share* second) {
    isthmus_python_share* const share = malloc(sizeof *share);
    if (share == NULL) return NULL;
    atomic_init(&share->references, 1);
    atomic_init(&share->handle, handle);
    share->release = release;
    share->kept[0] = first;
    share->kept[1] = second;
    for (int at = 0; at < 2; ++at) {
        if (share->kept[at] != NULL) isthmus_python_share_ref(share->kept[at]);
    }
    return share;
}

void isthmus_python_share_ref(isthmus_python_share* share) {
    atomic_fetch_add_explicit(&share->references, 1, memory_order_relaxed);
}

static void end(isthmus_python_share* share) {
    void* const handle = isthmus_python_share_take(share);
    if (handle != NULL && share->release != NULL) share->release(handle);
    for (int at = 0; at < 2; ++at) isthmus_python_share_unref(share->kept[at]);
    free(share);
}

/* The release pairs with the acquire in isthmus_python_end_left_shares(). */
static void leave(isthmus_python_share* share) {
    share->next = atomic_load_explicit(&left, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&left, &share->next, share, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    isthmus_python_ask_to_drop();
}

void isthmus_python_share_unref(isthmus_python_share* share) {
    if (share == NULL || atomic_fetch_sub_explicit(&share->references, 1, memory_order_acq_rel) != 1) return;
    if (isthmus_python_in_stand_in()) {
        leave(share);
    } else {
        end(share);
    }
}

int isthmus_python_has_left_shares(void) {
    return atomic_load_explicit(&left, memory_order_relaxed) != NULL;
}

void isthmus_python_end_left_shares(void) {
    isthmus_python_share* list = atomic_exchange_explicit(&left, NULL, memory_order_acquire);
    while (list != NULL) {
        isthmus_python_share* const share = list;
        list = share->next;
        end(share);
    }
}

uint32_t isthmus_python_share_references(const isthmus_python_share* share) {
    return atomic_load_explicit(&share->references, memory_order_acquire);
}

void* isthmus_python_share_take(isthmus_python_share* share) {
    return atomic_exchange_explicit(&share->handle, NULL, memory_order_acq_rel);
}

_Static_assert(sizeof(_Atomic(void*)) == sizeof(void*), "C functions write the handle");
void* isthmus_python_share_place(isthmus_python_share* share) {
    return &share->handle;
}
