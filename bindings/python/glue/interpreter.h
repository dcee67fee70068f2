/* SPDX-License-Identifier: Apache-2.0
 * The functions of CPython's stable ABI that this library calls. It is no extension module and links none of them: the
 * package hands them over once, so that one file serves every CPython from 3.10 on. */
#ifndef ISTHMUS_PYTHON_INTERPRETER_H
#define ISTHMUS_PYTHON_INTERPRETER_H
#include "shares.h"

typedef struct isthmus_python_interpreter {
    int (*capsule_is_valid)(void* capsule, const char* name);      /* PyCapsule_IsValid */
    void* (*capsule_get_pointer)(void* capsule, const char* name); /* PyCapsule_GetPointer */
    void (*inc_ref)(void* object);                                 /* Py_IncRef */
    void (*dec_ref)(void* object);                                 /* Py_DecRef */
    int (*add_pending_call)(int (*call)(void*), void* argument);   /* Py_AddPendingCall */
    void* (*get_attribute)(void* object, const char* name);        /* PyObject_GetAttrString */
    int (*get_buffer)(void* object, void* view, int flags);        /* PyObject_GetBuffer */
    void* (*type_from_spec)(void* spec);                           /* PyType_FromSpec */
    void (*release_buffer)(void* view);                            /* PyBuffer_Release */
    void* (*allocate)(void* type, intptr_t items);                 /* PyType_GenericAlloc */
    void (*free)(void* object);                                    /* PyObject_Free */
    void* (*state_of_this_thread)(void);                           /* PyGILState_GetThisThreadState */
    void* (*current_state)(void);                                  /* PyThreadState_GetUnchecked */
    void* (*save_thread)(void);                                    /* PyEval_SaveThread */
    void (*restore_thread)(void* state);                           /* PyEval_RestoreThread */
} isthmus_python_interpreter;

/* Functions of libisthmus-c, which this library does not link, either. */
typedef struct isthmus_python_library {
    int32_t (*open_on_host)(void* buffer, uint64_t offset, uint64_t bytes, uint32_t flags, int64_t wait_ns, void** view,
                            void** data, void** error);                /* isthmus_buffer_open_on_host */
    void (*free_view)(void* view);                                     /* isthmus_host_view_free */
    int32_t (*close_scope)(void* scope, int32_t failed, void** error); /* isthmus_native_scope_close */
} isthmus_python_library;

extern isthmus_python_interpreter isthmus_python_calls;
extern isthmus_python_library isthmus_python_functions;

/* Once, before every other function of this library. */
ISTHMUS_PYTHON_API void isthmus_python_start(const isthmus_python_interpreter* interpreter,
                                             const isthmus_python_library* library);

/* Whether the interpreter has begun to end: then nothing is asked of it any more. */
int isthmus_python_is_ending(void);
/* Around what asks the interpreter on a thread that may be the library's. 0: it ends, and there is nothing to leave. */
int isthmus_python_enter(void);
void isthmus_python_leave(void);
/* Whether this thread runs a stand-in. */
int isthmus_python_in_stand_in(void);
/* Lets the package drop what was released, as soon as a thread of Python can. */
void isthmus_python_ask_to_drop(void);

#endif
