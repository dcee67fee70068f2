/* SPDX-License-Identifier: Apache-2.0
 * A base class whose instances have the buffer protocol: a buffer is asked of the instance's attribute `_exported`, a
 * memoryview. Python has `__buffer__` for this from 3.12 on (PEP 688), which the package uses from 3.13 on.
 *
 * Before Python 3.13 the collector ends the process by a segmentation fault where it clears a memoryview that has
 * exported buffers (gh-77894). So a buffer belongs to a lease, which has that of the memoryview. A lease is no
 * container for the collector: it takes the memoryview for one that is used from elsewhere, and clears it only when the
 * lease is gone. */
#include "interpreter.h"

#include <stddef.h>

/* Py_buffer, which the stable ABI fixes. */
struct view {
    void* memory;
    void* object;
    intptr_t bytes, item_bytes;
    int is_readonly, dimensions;
    char* format;
    intptr_t *shape, *strides, *suboffsets;
    void* internal;
};

struct object { /* PyObject */
    intptr_t references;
    void* type;
};

struct lease {
    struct object head;
    struct view view;
};

static void* lease_type;

static void end_lease(void* self) {
    struct lease* const lease = self;
    void* const type = lease->head.type;
    if (lease->view.object != NULL) isthmus_python_calls.release_buffer(&lease->view);
    isthmus_python_calls.free(lease);
    isthmus_python_calls.dec_ref(type);
}

static int get_buffer(void* self, void* into, int flags) {
    struct view* const view = into;
    view->object = NULL;
    void* const memory = isthmus_python_calls.get_attribute(self, "_exported");
    if (memory == NULL) return -1;
    struct lease* const lease = isthmus_python_calls.allocate(lease_type, 0);
    int answer = -1;
    if (lease != NULL) answer = isthmus_python_calls.get_buffer(memory, &lease->view, flags);
    isthmus_python_calls.dec_ref(memory); /* the view keeps it */
    if (answer == 0) {
        *view = lease->view;
        view->object = lease;
    } else if (lease != NULL) {
        isthmus_python_calls.dec_ref(lease);
    }
    return answer;
}

/* PyType_Slot and PyType_Spec; the numbers are those of typeslots.h and object.h. */
struct slot {
    int number;
    void* function;
};
struct spec {
    const char* name;
    int size, item_size;
    unsigned flags;
    struct slot* slots;
};
enum { bf_getbuffer = 1, tp_dealloc = 52, base_type = 1 << 10, default_flags = 1 << 18 };

ISTHMUS_PYTHON_API void* isthmus_python_buffer_source(void) {
    union {
        int (*function)(void*, void*, int);
        void* pointer;
    } const answer = {get_buffer};
    union {
        void (*function)(void*);
        void* pointer;
    } const end = {end_lease};
    struct slot lease_slots[] = {{tp_dealloc, end.pointer}, {0, NULL}};
    struct spec lease_spec = {"isthmus.Lease", sizeof(struct lease), 0, default_flags, lease_slots};
    if (lease_type == NULL) lease_type = isthmus_python_calls.type_from_spec(&lease_spec);
    if (lease_type == NULL) return NULL;
    struct slot slots[] = {{bf_getbuffer, answer.pointer}, {0, NULL}};
    struct spec spec = {"isthmus.BufferSource", 0, 0, base_type | default_flags, slots};
    return isthmus_python_calls.type_from_spec(&spec);
}
