// SPDX-License-Identifier: Apache-2.0
/* Streams, events, copies and fills. */
#include "check.h"

/* keeps Y1 */
static void copies_are_ordered(isthmus_device* device) {
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_stream* other = NULL;
    WORKS(isthmus_device_create_stream(device, -1, &other, ERR));
    CHECK(isthmus_stream_device(other) == device);
    CHECK(isthmus_stream_id(other) != isthmus_stream_id(stream));
    isthmus_buffer* from = shared_buffer(device, 8192);
    isthmus_buffer* to = shared_buffer(device, 8192);
    write_bytes(from, 1);
    write_bytes(to, 0);
    WORKS(isthmus_stream_fill(stream, from, 4096, ISTHMUS_REST, 2, ERR));
    isthmus_event* event = NULL;
    WORKS(isthmus_stream_record(stream, &event, ERR));
    WORKS(isthmus_stream_wait(other, event, ERR));
    WORKS(isthmus_stream_copy(other, to, 1000, from, 4000, 200, ERR));
    WORKS(isthmus_stream_wait_stream(stream, other, ERR));
    WORKS(isthmus_stream_synchronize(stream, 10000000000, ERR));
    int32_t finished = -1;
    WORKS(isthmus_stream_finished(other, &finished, ERR));
    CHECK(finished == 1);
    finished = -1;
    WORKS(isthmus_event_finished(event, &finished, ERR));
    CHECK(finished == 1);
    WORKS(isthmus_event_synchronize(event, ISTHMUS_WAIT_NEVER, ERR));
    check_bytes(to, 0, 1000, 0);
    check_bytes(to, 1000, 1096, 1);
    check_bytes(to, 1096, 1200, 2);
    check_bytes(to, 1200, 8192, 0);

    unsigned char memory[64];
    memset(memory, 6, sizeof memory);
    WORKS(isthmus_stream_copy_from_host(stream, to, 8, memory, sizeof memory, ERR));
    memset(memory, 0, sizeof memory);
    WORKS(isthmus_stream_copy_to_host(stream, memory, to, 8, sizeof memory, ERR));
    WORKS(isthmus_stream_synchronize(stream, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(memory[0] == 6 && memory[63] == 6);

    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_stream_copy(stream, to, 0, from, 8000, 200, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_stream_copy(stream, to, 0, from, UINT64_MAX, 2, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "", isthmus_stream_copy(stream, to, 0, to, 10, 100, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`to_offset` is 8193", isthmus_stream_copy(stream, to, 8193, from, 0, 0, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`from_offset` is", isthmus_stream_copy(stream, to, 0, from, UINT64_MAX, 0, ERR));
    WORKS(isthmus_stream_copy(stream, to, 8192, from, 8192, 0, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "end", isthmus_stream_copy_from_host(stream, to, 8190, memory, 3, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "end", isthmus_stream_copy_to_host(stream, memory, to, 8190, UINT64_MAX, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "end", isthmus_stream_copy_to_host(stream, memory, to, 8193, 0, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "end", isthmus_stream_fill(stream, to, 8193, 0, 1, ERR));
    WORKS(isthmus_stream_fill(stream, to, 8192, 0, 1, ERR));
    check_bytes(to, 1200, 8192, 0);

    isthmus_event_free(event);
    isthmus_buffer_free(from);
    isthmus_buffer_free(to);
    isthmus_stream_free(other);
    isthmus_stream_free(stream);
}

static void native_handles_exist_on_gpus(isthmus_device* device) {
    isthmus_stream* stream = NULL;
    WORKS(isthmus_device_create_stream(device, 0, &stream, ERR));
    isthmus_event* event = NULL;
    WORKS(isthmus_stream_record(stream, &event, ERR));
    void* cu_stream = NULL;
    void* cu_event = NULL;
    isthmus_stream* wrapped = NULL;
    WORKS(isthmus_event_native_handle(event, &cu_event, ERR));
    if (isthmus_device_is_cpu(device)) {
        CHECK(cu_event == NULL);
        REFUSED(ISTHMUS_UNSUPPORTED, "", isthmus_stream_native_handle(stream, &cu_stream, ERR));
        CHECK(cu_stream == NULL);
        REFUSED(ISTHMUS_UNSUPPORTED, "", isthmus_device_wrap_stream(device, NULL, &wrapped, ERR));
        WORKS(isthmus_stream_wait_native(stream, NULL, ERR));
    } else {
        CHECK(cu_event != NULL);
        WORKS(isthmus_stream_native_handle(stream, &cu_stream, ERR));
        CHECK(cu_stream != NULL);
        WORKS(isthmus_device_wrap_stream(device, cu_stream, &wrapped, ERR));
        CHECK(isthmus_stream_id(wrapped) == isthmus_stream_id(stream));
        WORKS(isthmus_stream_wait_native(stream, cu_event, ERR));
        REFUSED(ISTHMUS_INVALID_HANDLE, "", isthmus_stream_wait_native(stream, NULL, ERR));
    }
    isthmus_stream_free(wrapped);
    isthmus_event_free(event);
    isthmus_stream_free(stream);
}

int main(void) {
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        copies_are_ordered(isthmus_runtime_device(runtime, at));
        native_handles_exist_on_gpus(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
