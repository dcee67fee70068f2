// SPDX-License-Identifier: Apache-2.0
/* Native work: scopes, and single calls. On simulated GPUs the work is a memset of the driver, through its C interface.
 */
#include "check.h"

#include <dlfcn.h>

typedef int (*memset_fn)(unsigned long long address, unsigned char value, size_t bytes, void* stream);
static memset_fn device_memset; /* cuMemsetD8Async; NULL: no driver */

static void find_driver(void) {
    const char* const file = getenv("ISTHMUS_CUDA_LIBRARY");
    void* const library = dlopen(file != NULL ? file : "libcuda.so.1", RTLD_NOW);
    if (library != NULL) *(void**)(&device_memset) = dlsym(library, "cuMemsetD8Async");
}

struct work {
    int calls;
    int answer;
    uint64_t bytes;
    void* stream;
};

/* Sets every byte of its last use to 9. */
static int32_t set_bytes(void* context, void* cu_stream, const isthmus_native_use* uses) {
    struct work* const work = context;
    ++work->calls;
    work->stream = cu_stream;
    if (work->answer != 0) return work->answer;
    void* const pointer = uses[0].pointer;
    if (cu_stream == NULL) {
        memset(pointer, 9, work->bytes);
        return 0;
    }
    return device_memset((unsigned long long)(uintptr_t)pointer, 9, work->bytes, cu_stream);
}

/* keeps Y1 */
static void calls_are_made_once(isthmus_device* device) {
    const int on_cpu = isthmus_device_is_cpu(device);
    isthmus_stream* stream = NULL;
    WORKS(isthmus_device_create_stream(device, 0, &stream, ERR));
    isthmus_buffer* buffer = shared_buffer(device, 5000);
    write_bytes(buffer, 1);
    struct work work = {0, 0, 5000, NULL};
    isthmus_native_use use = {buffer, ISTHMUS_READ_WRITE, 0, NULL};
    WORKS(isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, ERR));
    CHECK(work.calls == 1 && use.pointer != NULL && (work.stream == NULL) == on_cpu);
    check_bytes(buffer, 0, 5000, 9);

    /* Its error is the call's; the buffer can be used on. */
    work.answer = 1;
    isthmus_error* error = NULL;
    CHECK(isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, &error) == ISTHMUS_DRIVER_ERROR);
    CHECK(isthmus_error_driver_code(error) == 1 && strstr(isthmus_error_message(error), "set") != NULL);
    isthmus_error_free(error);
    CHECK(work.calls == 2);
    write_bytes(buffer, 2);
    check_bytes(buffer, 0, 5000, 2);

    /* Refused without being called. */
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, ERR));
    isthmus_host_view_free(view);
    use.flags = 0;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "uses[0].flags",
            isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, ERR));
    use.flags = ISTHMUS_WRITE;
    use.reserved = 1;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "uses[0].reserved",
            isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, ERR));
    use.reserved = 0;
    use.buffer = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "uses[0].buffer",
            isthmus_stream_enqueue_native(stream, "set", &use, 1, set_bytes, &work, ERR));
    CHECK(work.calls == 2);
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
}

static void scopes_claim_their_buffers(isthmus_device* device) {
    const int on_cpu = isthmus_device_is_cpu(device);
    isthmus_stream* stream = isthmus_device_stream(device);
    /* More uses than the library keeps without the heap. */
    enum { count = 11 };
    isthmus_buffer* buffers[count];
    isthmus_native_use uses[count];
    memset(uses, 0, sizeof uses);
    for (int at = 0; at < count; ++at) {
        buffers[at] = shared_buffer(device, 700);
        write_bytes(buffers[at], at);
        uses[at].buffer = buffers[at];
        uses[at].flags = at == 0 ? ISTHMUS_WRITE : ISTHMUS_READ;
    }
    isthmus_native_scope* scope = NULL;
    WORKS(isthmus_stream_open_native_scope(stream, "scope", uses, count, &scope, ERR));
    CHECK((isthmus_native_scope_stream(scope) == NULL) == on_cpu);
    for (int at = 0; at < count; ++at) CHECK(uses[at].pointer != NULL);
    struct work work = {0, 0, 700, NULL};
    CHECK(set_bytes(&work, isthmus_native_scope_stream(scope), uses) == 0);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    REFUSED(ISTHMUS_IN_USE, "scope",
            isthmus_buffer_open_on_host(buffers[0], 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data,
                                        ERR));
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_fill(stream, buffers[1], 0, ISTHMUS_REST, 0, ERR));
    WORKS(isthmus_native_scope_close(scope, 0, ERR));
    check_bytes(buffers[0], 0, 700, 9);
    check_bytes(buffers[10], 0, 700, 10);

    /* Failed work; the memory outlives its buffer while a scope holds it. */
    WORKS(isthmus_stream_open_native_scope(stream, "failing", uses, 1, &scope, ERR));
    isthmus_buffer_free(buffers[0]);
    CHECK(set_bytes(&work, isthmus_native_scope_stream(scope), uses) == 0);
    WORKS(isthmus_native_scope_close(scope, 1, ERR));
    for (int at = 1; at < count; ++at) isthmus_buffer_free(buffers[at]);
    /* No uses at all. */
    WORKS(isthmus_stream_open_native_scope(stream, "idle", NULL, 0, &scope, ERR));
    WORKS(isthmus_native_scope_close(scope, 0, ERR));
    isthmus_stream_free(stream);
}

/* A program that names each frame's work does not grow: names are kept for messages, and only so many. keeps Y1 */
static void names_are_kept_in_bounds(isthmus_device* device) {
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* buffer = shared_buffer(device, 64);
    isthmus_native_use use;
    memset(&use, 0, sizeof use);
    use.buffer = buffer;
    use.flags = ISTHMUS_WRITE;
    isthmus_native_scope* scope = NULL;
    isthmus_host_view* view = NULL;
    void* data = NULL;
    char name[32] = "";
    for (int frame = 0; frame <= 4100; ++frame) {
        snprintf(name, sizeof name, "frame %d", frame == 4100 ? 0 : frame);
        WORKS(isthmus_stream_open_native_scope(stream, name, &use, 1, &scope, ERR));
        if (frame >= 4099) {
            REFUSED(ISTHMUS_IN_USE, frame == 4099 ? "one of many names" : "frame 0",
                    isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view,
                                                &data, ERR));
        }
        WORKS(isthmus_native_scope_close(scope, 0, ERR));
    }
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
}

int main(void) {
    find_driver();
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        isthmus_device* const device = isthmus_runtime_device(runtime, at);
        if (!isthmus_device_is_cpu(device)) CHECK(device_memset != NULL);
        calls_are_made_once(device);
        scopes_claim_their_buffers(device);
    }
    names_are_kept_in_bounds(isthmus_runtime_cpu(runtime));
    isthmus_runtime_free(runtime);
    return 0;
}
