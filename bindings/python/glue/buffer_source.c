/* SPDX-License-Identifier: Apache-2.0
 * A base class whose instances have the buffer protocol: a buffer is asked of the instance's attribute `_exported`, a
 * memoryview. Python 3.12 has `__buffer__` for this (PEP 688); 3.10 and 3.11 need a slot of a type. */
#include "interpreter.h"

#include <stddef.h>

/* The beginning of Py_buffer, which the stable ABI fixes. */
struct view_start {
    void* memory;
    void* object;
};

static int get_buffer(void* self, void* view, int flags) {
    void* const memory = isthmus_python_calls.get_attribute(self, "_exported");
    if (memory == NULL) {
        ((struct view_start*)view)->object = NULL;
        return -1;
    }
    const int answer = isthmus_python_calls.get_buffer(memory, view, flags);
    isthmus_python_calls.dec_ref(memory); /* the view keeps it */
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
enum { bf_getbuffer = 1, base_type = 1 << 10, default_flags = 1 << 18 };

ISTHMUS_PYTHON_API void* isthmus_python_buffer_source(void) {
    typedef int (*getter)(void*, void*, int);
    union {
        getter function;
        void* pointer;
    } const answer = {get_buffer};
    struct slot slots[] = {{bf_getbuffer, answer.pointer}, {0, NULL}};
    struct spec spec = {"isthmus.BufferSource", 0, 0, base_type | default_flags, slots};
    return isthmus_python_calls.type_from_spec(&spec);
}
