/* SPDX-License-Identifier: Apache-2.0
 * Objects whose memory isthmus adopted. Whichever thread lets go of the memory last says so here, perhaps without an
 * interpreter: a driver's thread, or after the interpreter's end. It only puts the object on a list; a thread that
 * holds the interpreter's lock drops the objects of the list. */
#include "dlpack.h"
#include "interpreter.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct adopted {
    DLManagedTensorVersioned given; /* to libisthmus-c */
    struct adopted* next;
    void* object; /* a reference to a Python object */
    DLManagedTensor* plain;
    DLManagedTensorVersioned* versioned;
    int64_t sizes[]; /* shape, then strides */
} adopted;

static _Atomic(adopted*) ended; /* a stack: pushed by release(), emptied as a whole */

static void drop(adopted* one) {
    if (one->plain != NULL && one->plain->deleter != NULL) one->plain->deleter(one->plain);
    if (one->versioned != NULL && one->versioned->deleter != NULL) one->versioned->deleter(one->versioned);
    isthmus_python_calls.dec_ref(one->object);
    free(one);
}

/* Ends the shares that stand-ins left. That may wait for the device, so other threads get the interpreter's lock. */
static void end_left_shares(void) {
    if (!isthmus_python_has_left_shares() || isthmus_python_in_stand_in()) return;
    void* const own = isthmus_python_calls.save_thread();
    isthmus_python_end_left_shares();
    isthmus_python_calls.restore_thread(own);
}

/* Drops what was released, with the interpreter's lock held. The load pairs with the release in push(). */
ISTHMUS_PYTHON_API void isthmus_python_drop_released(void) {
    end_left_shares();
    if (atomic_load_explicit(&ended, memory_order_relaxed) == NULL) return;
    adopted* list = atomic_exchange_explicit(&ended, NULL, memory_order_acquire);
    while (list != NULL) {
        adopted* const one = list;
        list = one->next;
        drop(one);
    }
}

static int drop_pending(void* nothing) {
    (void)nothing;
    isthmus_python_drop_released();
    return 0;
}

static void push(adopted* one) {
    one->next = atomic_load_explicit(&ended, memory_order_relaxed);
    while (
        !atomic_compare_exchange_weak_explicit(&ended, &one->next, one, memory_order_release, memory_order_relaxed)) {
    }
}

/* A full queue refuses; then the next call of the package drops it. */
void isthmus_python_ask_to_drop(void) {
    if (!isthmus_python_enter()) return;
    isthmus_python_calls.add_pending_call(drop_pending, NULL);
    isthmus_python_leave();
}

/* The deleter of the tensor that libisthmus-c was given. */
static void released(DLManagedTensorVersioned* self) {
    push(self->context);
    isthmus_python_ask_to_drop();
}

/* A tensor like `like` for isthmus_device_adopt_dlpack(). It keeps `object`, and takes the tensors (or NULL),
 * whose deleters need the interpreter's lock. NULL: no memory; nothing was taken. */
ISTHMUS_PYTHON_API void* isthmus_python_adopted(void* object, void* plain, void* versioned, const DLTensor* like,
                                                uint64_t flags) {
    const size_t dimensions = like->ndim > 0 ? (size_t)like->ndim : 0;
    adopted* const made = malloc(sizeof *made + 2 * dimensions * sizeof(int64_t));
    if (made == NULL) return NULL;
    isthmus_python_calls.inc_ref(object);
    *made = (adopted){{1, 0, made, released, flags, *like}, NULL, object, plain, versioned};
    DLTensor* const tensor = &made->given.tensor;
    tensor->shape = made->sizes;
    if (like->strides != NULL) tensor->strides = made->sizes + dimensions;
    for (size_t at = 0; at < dimensions; ++at) {
        made->sizes[at] = like->shape[at];
        made->sizes[dimensions + at] = like->strides != NULL ? like->strides[at] : 0;
    }
    return &made->given;
}

/* For an adoption that failed: the caller holds the interpreter's lock. */
ISTHMUS_PYTHON_API void isthmus_python_not_adopted(void* tensor) {
    drop(((DLManagedTensorVersioned*)tensor)->context);
}
