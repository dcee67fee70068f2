// SPDX-License-Identifier: Apache-2.0
/* Adopting memory of other code: its release, its order, and when the last use ends. */
#define _POSIX_C_SOURCE 200809L /* fileno */
#include "check.h"

#include <stdatomic.h>

#include <isthmus/adopt.h>
#include <isthmus/allocator.h>

/* keeps Y1: the structs of callbacks compile as C, and are laid out as the C++ side takes them. */
_Static_assert(sizeof(isthmus_adopt_callbacks) == 2 * sizeof(void*), "two pointers");
_Static_assert(offsetof(isthmus_allocator_callbacks, destroy) == 3 * sizeof(void*), "four pointers");

enum { bytes = 3 * 65536 };

struct released {
    atomic_int calls;
    void* pointer;
    size_t size;
};
static void on_release(void* context, void* pointer, size_t size) {
    struct released* const released = context;
    released->pointer = pointer;
    released->size = size;
    atomic_fetch_add(&released->calls, 1);
}

static void adopted_memory_is_released_once(isthmus_device* device) {
    unsigned char* const memory = aligned_alloc(65536, bytes);
    CHECK(memory != NULL);
    memset(memory, 4, bytes);
    struct released released;
    atomic_init(&released.calls, 0);
    isthmus_adopt_options options = ISTHMUS_ADOPT_OPTIONS_INIT;
    options.context = &released;
    options.release = on_release;
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* ready = shared_buffer(device, 64);
    WORKS(isthmus_stream_fill(stream, ready, 0, ISTHMUS_REST, 1, ERR));
    WORKS(isthmus_stream_record(stream, &options.after, ERR));
    isthmus_buffer* buffer = NULL;
    WORKS(isthmus_device_adopt(device, memory, bytes, &options, &buffer, ERR));
    isthmus_event_free(options.after);
    CHECK(isthmus_buffer_bytes(buffer) == bytes);
    check_bytes(buffer, 0, bytes, 4);

    /* A second buffer over the same memory is refused, and its release is not called. */
    isthmus_buffer* second = NULL;
    options.after = NULL;
    REFUSED(ISTHMUS_IN_USE, "", isthmus_device_adopt(device, memory + 4096, 4096, &options, &second, ERR));
    CHECK(second == NULL && atomic_load(&released.calls) == 0);

    WORKS(isthmus_stream_fill_elements(stream, buffer, 0, ISTHMUS_REST, "\10\10\10\10\10\10\10\10", 8, ERR));
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    isthmus_buffer_free(buffer);
    CHECK(atomic_load(&released.calls) == 0); /* the view is a use */
    CHECK(((unsigned char*)data)[bytes - 1] == 8);
    isthmus_host_view_free(view);
    WORKS(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(atomic_load(&released.calls) == 1 && released.pointer == memory && released.size == bytes);
    CHECK(memory[0] == 8 && memory[bytes - 1] == 8);
    isthmus_buffer_free(ready);
    isthmus_stream_free(stream);
    free(memory);
}

static void elements_are_filled_where_the_memory_is_aligned_for_them(isthmus_device* device) {
    _Alignas(16) static unsigned char memory[8192];
    isthmus_buffer* buffer = NULL;
    const isthmus_code code = isthmus_device_adopt(device, memory + 2, 4096, NULL, &buffer, NULL);
    CHECK(code == ISTHMUS_OK || !isthmus_device_is_cpu(device));
    if (code != ISTHMUS_OK) return;
    isthmus_stream* stream = isthmus_device_stream(device);
    const uint32_t element = 0x01010101;
    WORKS(isthmus_stream_fill_elements(stream, buffer, 0, ISTHMUS_REST, &element, 2, ERR));
    check_bytes(buffer, 0, 4096, 1);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "does not begin at a multiple",
            isthmus_stream_fill_elements(stream, buffer, 0, ISTHMUS_REST, &element, 4, ERR));
    isthmus_stream_free(stream);
    isthmus_buffer_free(buffer);
}

static void bad_memory_is_refused(isthmus_device* device) {
    isthmus_buffer* buffer = NULL;
    static unsigned char memory[8192];
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`pointer` is NULL", isthmus_device_adopt(device, NULL, 10, NULL, &buffer, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_device_adopt(device, memory, 0, NULL, &buffer, ERR));
    CHECK(isthmus_device_adopt(device, (void*)(uintptr_t)4096, 10, NULL, &buffer, NULL) != ISTHMUS_OK);
    isthmus_adopt_options options = ISTHMUS_ADOPT_OPTIONS_INIT;
    options.use.host = 17;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`options.use.host` is 17",
            isthmus_device_adopt(device, memory, 10, &options, &buffer, ERR));
    options.use.host = 1;
    options.use.size = 0;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.use", isthmus_device_adopt(device, memory, 10, &options, &buffer, ERR));
    /* No dma-buf: a file, a descriptor that is not open, nothing. Of the kernel's: see tests/conformance. */
    FILE* const file = tmpfile();
    CHECK(file != NULL);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "descriptor is another file's",
            isthmus_device_adopt_dma_buf(device, fileno(file), 0, 10, NULL, &buffer, ERR));
    fclose(file);
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_device_adopt_dma_buf(device, -1, 0, 10, NULL, &buffer, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_device_adopt_dma_buf(device, 0, 0, 0, NULL, &buffer, ERR));
    options.use.size = sizeof options.use;
    options.use.host = 17;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`options.use.host` is 17",
            isthmus_device_adopt_dma_buf(device, 0, 0, 10, &options, &buffer, ERR));
    CHECK(buffer == NULL);
}

int main(void) {
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        adopted_memory_is_released_once(isthmus_runtime_device(runtime, at));
        elements_are_filled_where_the_memory_is_aligned_for_them(isthmus_runtime_device(runtime, at));
        bad_memory_is_refused(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
