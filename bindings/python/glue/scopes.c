/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing scopes in one call each: a call through ctypes costs as much as a view. */
#include "interpreter.h"

#include <stddef.h>

typedef struct isthmus_python_opened {
    isthmus_python_share* share; /* of the view; its owner is the caller */
    void* data;
    void* error;
} isthmus_python_opened;

enum { out_of_memory = 6 };

/* As isthmus_buffer_open_on_host(); the view's share keeps `keeps`, which may be NULL. */
ISTHMUS_PYTHON_API int32_t isthmus_python_open_view(void* buffer, uint64_t offset, uint64_t bytes, uint32_t flags,
                                                    int64_t wait_ns, isthmus_python_share* keeps,
                                                    isthmus_python_opened* opened) {
    void* view = NULL;
    const int32_t code = isthmus_python_functions.open_on_host(buffer, offset, bytes, flags, wait_ns, &view,
                                                               &opened->data, &opened->error);
    if (code != 0) return code;
    opened->share = isthmus_python_share_new(view, isthmus_python_functions.free_view, keeps, NULL);
    if (opened->share != NULL) return 0;
    isthmus_python_functions.free_view(view);
    return out_of_memory;
}

/* Drops the caller's reference; the view ends here where no tensor keeps it. How many tensors do. */
ISTHMUS_PYTHON_API uint32_t isthmus_python_end_view(isthmus_python_share* share) {
    const uint32_t tensors = isthmus_python_share_references(share) - 1;
    isthmus_python_share_unref(share);
    return tensors;
}

/* isthmus_frame_publish() or isthmus_frame_finish(). Where it frees the frame, the share has none any more: a signal's
 * handler may raise before the caller knows. */
ISTHMUS_PYTHON_API int32_t isthmus_python_end_frame(int32_t (*end)(void* frame, int64_t wait_ns, void** error),
                                                    void* frame, isthmus_python_share* share, int64_t wait_ns,
                                                    void** error) {
    const int32_t code = end(frame, wait_ns, error);
    if (code == 0) isthmus_python_share_take(share);
    return code;
}

/* Ends a native scope whose last owner is gone: nobody is left to hear of an error, and a lost device tells others. */
ISTHMUS_PYTHON_API void isthmus_python_close_scope(void* scope) {
    isthmus_python_functions.close_scope(scope, 0, NULL);
}
