/* SPDX-License-Identifier: Apache-2.0
 * Makes the tensors that scopes hand out. Deleters and the capsules' destructor are C, so that consumers may drop a
 * tensor on any thread and after the end of the interpreter. */
#include "dlpack.h"

#include "interpreter.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { most_dimensions = 64 };

/* One allocation for both protocols. The tensor keeps a reference to `share`. */
typedef struct exported {
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    } managed;
    isthmus_python_share* share;
    int64_t sizes[]; /* shape, then strides */
} exported;

/* The last owner of a buffer or a runtime may wait for the device. A consumer deletes a tensor with or without the
 * interpreter's lock; where this thread has it, other threads get it meanwhile. Until Python 3.11 the current state is
 * that of whichever thread has the lock. */
static void let_go(exported* made) {
    void* const own = isthmus_python_is_ending() ? NULL : isthmus_python_calls.state_of_this_thread();
    const int has_lock = own != NULL && isthmus_python_calls.current_state() == own;
    if (has_lock) isthmus_python_calls.save_thread();
    isthmus_python_share_unref(made->share);
    if (has_lock) isthmus_python_calls.restore_thread(own);
    free(made);
}
static void delete_plain(DLManagedTensor* self) {
    let_go(self->context);
}
static void delete_versioned(DLManagedTensorVersioned* self) {
    let_go(self->context);
}

static void fill(DLTensor* tensor, const DLTensor* like, int64_t* sizes) {
    *tensor = *like;
    tensor->shape = sizes;
    tensor->strides = sizes + like->ndim;
    int64_t stride = 1;
    for (int32_t at = like->ndim - 1; at >= 0; --at) {
        tensor->shape[at] = like->shape[at];
        tensor->strides[at] = stride;
        stride *= like->shape[at];
    }
}

/* A row-major tensor like `like`, whose strides are not read. NULL: no memory, or too many dimensions. */
ISTHMUS_PYTHON_API void* isthmus_python_export(const DLTensor* like, int32_t versioned, uint64_t flags,
                                               isthmus_python_share* share) {
    if (like->ndim < 0 || like->ndim > most_dimensions) return NULL;
    exported* const made = calloc(1, sizeof *made + 2 * (size_t)like->ndim * sizeof(int64_t));
    if (made == NULL) return NULL;
    isthmus_python_share_ref(share);
    made->share = share;
    if (versioned) {
        DLManagedTensorVersioned* const managed = &made->managed.versioned;
        managed->major = 1;
        managed->minor = 0;
        managed->context = made;
        managed->deleter = delete_versioned;
        managed->flags = flags;
        fill(&managed->tensor, like, made->sizes);
        return managed;
    }
    DLManagedTensor* const managed = &made->managed.plain;
    managed->context = made;
    managed->deleter = delete_plain;
    fill(&managed->tensor, like, made->sizes);
    return managed;
}

/* Names of capsules, which keep a pointer to them: at its end the interpreter drops capsules after the bytes of Python.
 */
static const char* const names[] = {"dltensor", "dltensor_versioned", "used_dltensor", "used_dltensor_versioned"};

ISTHMUS_PYTHON_API const char* isthmus_python_capsule_name(int32_t versioned, int32_t used) {
    return names[(versioned ? 1 : 0) + (used ? 2 : 0)];
}

/* Of capsules. A consumer renames the capsule, and calls the deleter itself. */
ISTHMUS_PYTHON_API void isthmus_python_capsule_ends(void* capsule) {
    if (isthmus_python_calls.capsule_is_valid(capsule, names[1])) {
        DLManagedTensorVersioned* const managed = isthmus_python_calls.capsule_get_pointer(capsule, names[1]);
        if (managed->deleter != NULL) managed->deleter(managed);
    } else if (isthmus_python_calls.capsule_is_valid(capsule, names[0])) {
        DLManagedTensor* const managed = isthmus_python_calls.capsule_get_pointer(capsule, names[0]);
        if (managed->deleter != NULL) managed->deleter(managed);
    }
}

/* A share of a copy of these bytes. NULL: no memory. */
ISTHMUS_PYTHON_API isthmus_python_share* isthmus_python_copy(const void* bytes, size_t size, void** copy) {
    *copy = NULL;
    void* memory = NULL;
    if (posix_memalign(&memory, 256, size == 0 ? 1 : size) != 0) return NULL;
    isthmus_python_share* const share = isthmus_python_share_new(memory, free, NULL, NULL);
    if (share == NULL) {
        free(memory);
        return NULL;
    }
    memcpy(memory, bytes, size);
    *copy = memory;
    return share;
}
