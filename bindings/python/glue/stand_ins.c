/* SPDX-License-Identifier: Apache-2.0
 * Threads of the library that call Python: they run stand-ins (isthmus.modules), and tell of memory that was released.
 * A thread that asks an ending interpreter for its lock waits for ever, or ends in the middle of the library. So none
 * enters behind isthmus_python_interpreter_ends(), and the package waits for those that are inside. */
#include "interpreter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int inside;            /* in a child of fork(), threads of the parent count no more */
static atomic_bool interpreter_ends; /* nobody enters any more */
static pthread_t ending;             /* by this thread, which may enter: it has the interpreter */
static _Thread_local int stand_ins;  /* that this thread runs */

/* Sequentially consistent, with isthmus_python_interpreter_ends() and isthmus_python_inside(): either this thread sees
 * the end, or the package sees this thread. */
int isthmus_python_enter(void) {
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&interpreter_ends) || pthread_equal(ending, pthread_self())) return 1;
    isthmus_python_leave();
    return 0;
}

void isthmus_python_leave(void) {
    atomic_fetch_sub(&inside, 1);
}

int isthmus_python_is_ending(void) {
    return atomic_load(&interpreter_ends);
}

int isthmus_python_in_stand_in(void) {
    return stand_ins > 0;
}

/* At exit: what is released from now on stays, because nothing is left that could drop it. */
ISTHMUS_PYTHON_API void isthmus_python_interpreter_ends(void) {
    if (atomic_load(&interpreter_ends)) return;
    ending = pthread_self();
    atomic_store(&interpreter_ends, 1);
}

/* How many threads are between enter and leave. */
ISTHMUS_PYTHON_API int32_t isthmus_python_inside(void) {
    return atomic_load(&inside);
}

/* In a child of fork(), before other threads start. */
ISTHMUS_PYTHON_API void isthmus_python_forked(void) {
    atomic_store(&inside, stand_ins);
}

/* `run` of isthmus_stand_in; `function` is Python's. */
ISTHMUS_PYTHON_API void isthmus_python_run_stand_in(void* function, const void* shape, void* const* parameters) {
    union {
        void* pointer;
        void (*function)(void*, const void*, void* const*);
    } const python = {function};
    if (!isthmus_python_enter()) return;
    ++stand_ins;
    python.function(NULL, shape, parameters);
    --stand_ins;
    isthmus_python_leave();
}
