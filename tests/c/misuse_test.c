// SPDX-License-Identifier: Apache-2.0
/* NULL for every pointer, sizes of structs that no header has, and fields that no version knows. The numbers are drawn
 * from a fixed seed. */
#include "check.h"

static uint64_t state = 20261126;
static uint64_t drawn(void) { /* splitmix64 */
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Refused as NULL, with the function's and the argument's name. */
#define IS_NULL(function, argument, ...) \
    REFUSED(ISTHMUS_INVALID_ARGUMENT, #function ": argument `" argument "` is NULL", function(__VA_ARGS__, ERR))

/* keeps Y1 */
static void null_is_refused_by_name(isthmus_runtime* runtime) {
    isthmus_device* const device = isthmus_runtime_default_device(runtime);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_stream* new_stream = NULL;
    isthmus_buffer* buffer = shared_buffer(device, 64);
    isthmus_buffer* new_buffer = NULL;
    int fd = -1;
    isthmus_event* event = NULL;
    isthmus_host_view* view = NULL;
    isthmus_native_scope* scope = NULL;
    isthmus_module* module = NULL;
    isthmus_shared_ring* ring = NULL;
    isthmus_shared_reader* reader = NULL;
    void* data = NULL;
    char* json = NULL;
    int32_t flag = 0;
    char byte = 0;
    const uint64_t extent[3] = {1, 1, 1};
    isthmus_native_use use = {buffer, ISTHMUS_READ, 0, NULL};
    isthmus_launch_shape shape = ISTHMUS_LAUNCH_SHAPE_INIT;
    WORKS(isthmus_stream_record(stream, &event, ERR));

    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`runtime` is NULL", isthmus_runtime_open(NULL, NULL, ERR));
    IS_NULL(isthmus_runtime_capabilities_json, "runtime", NULL, &json);
    IS_NULL(isthmus_runtime_capabilities_json, "json", runtime, NULL);
    IS_NULL(isthmus_runtime_counters_text, "runtime", NULL, &json);
    IS_NULL(isthmus_runtime_counters_text, "text", runtime, NULL);
    IS_NULL(isthmus_trace_open, "trace", NULL, NULL);
    IS_NULL(isthmus_trace_close, "trace", NULL);
    IS_NULL(isthmus_runtime_synchronize, "runtime", NULL, 0);
    IS_NULL(isthmus_device_wrap_stream, "device", NULL, NULL, &new_stream);
    IS_NULL(isthmus_device_wrap_stream, "stream", device, NULL, NULL);
    IS_NULL(isthmus_device_create_stream, "device", NULL, 0, &new_stream);
    IS_NULL(isthmus_device_create_stream, "stream", device, 0, NULL);
    IS_NULL(isthmus_device_synchronize, "device", NULL, 0);
    IS_NULL(isthmus_device_allocate_shared, "device", NULL, 1, NULL, &new_buffer);
    IS_NULL(isthmus_device_allocate_shared, "buffer", device, 1, NULL, NULL);
    IS_NULL(isthmus_device_allocate, "device", NULL, 1, 1, &new_buffer);
    IS_NULL(isthmus_device_allocate, "buffer", device, 1, 1, NULL);
    IS_NULL(isthmus_stream_allocate, "stream", NULL, 1, &new_buffer);
    IS_NULL(isthmus_stream_allocate, "buffer", stream, 1, NULL);
    IS_NULL(isthmus_device_adopt, "device", NULL, &byte, 1, NULL, &new_buffer);
    IS_NULL(isthmus_device_adopt, "pointer", device, NULL, 1, NULL, &new_buffer);
    IS_NULL(isthmus_device_adopt, "buffer", device, &byte, 1, NULL, NULL);
    IS_NULL(isthmus_device_adopt_dma_buf, "device", NULL, 0, 0, 1, NULL, &new_buffer);
    IS_NULL(isthmus_device_adopt_dma_buf, "buffer", device, 0, 0, 1, NULL, NULL);
    IS_NULL(isthmus_device_allocate_exportable, "device", NULL, 1, NULL, &new_buffer);
    IS_NULL(isthmus_device_allocate_exportable, "buffer", device, 1, NULL, NULL);
    IS_NULL(isthmus_buffer_export_dma_buf, "buffer", NULL, &fd);
    IS_NULL(isthmus_buffer_export_dma_buf, "fd", buffer, NULL);
    IS_NULL(isthmus_buffer_open_on_host, "buffer", NULL, 0, 1, 1, 0, &view, &data);
    IS_NULL(isthmus_buffer_open_on_host, "view", buffer, 0, 1, 1, 0, NULL, &data);
    IS_NULL(isthmus_buffer_open_on_host, "data", buffer, 0, 1, 1, 0, &view, NULL);
    IS_NULL(isthmus_stream_open_native_scope, "stream", NULL, "x", &use, 1, &scope);
    IS_NULL(isthmus_stream_open_native_scope, "name", stream, NULL, &use, 1, &scope);
    IS_NULL(isthmus_stream_open_native_scope, "uses", stream, "x", NULL, 1, &scope);
    IS_NULL(isthmus_stream_open_native_scope, "scope", stream, "x", &use, 1, NULL);
    IS_NULL(isthmus_native_scope_close, "scope", NULL, 0);
    IS_NULL(isthmus_stream_enqueue_native, "stream", NULL, "x", &use, 1, NULL, NULL);
    IS_NULL(isthmus_stream_enqueue_native, "work", stream, "x", &use, 1, NULL, NULL);
    IS_NULL(isthmus_stream_native_handle, "stream", NULL, &data);
    IS_NULL(isthmus_stream_native_handle, "cu_stream", stream, NULL);
    IS_NULL(isthmus_stream_record, "stream", NULL, &event);
    IS_NULL(isthmus_stream_record, "event", stream, NULL);
    IS_NULL(isthmus_stream_wait, "stream", NULL, event);
    IS_NULL(isthmus_stream_wait, "event", stream, NULL);
    IS_NULL(isthmus_stream_wait_stream, "stream", NULL, stream);
    IS_NULL(isthmus_stream_wait_stream, "other", stream, NULL);
    IS_NULL(isthmus_stream_wait_native, "stream", NULL, NULL);
    IS_NULL(isthmus_stream_finished, "stream", NULL, &flag);
    IS_NULL(isthmus_stream_finished, "finished", stream, NULL);
    IS_NULL(isthmus_stream_synchronize, "stream", NULL, 0);
    IS_NULL(isthmus_stream_copy, "stream", NULL, buffer, 0, buffer, 0, 1);
    IS_NULL(isthmus_stream_copy, "to", stream, NULL, 0, buffer, 0, 1);
    IS_NULL(isthmus_stream_copy, "from", stream, buffer, 0, NULL, 0, 1);
    IS_NULL(isthmus_stream_copy_from_host, "from", stream, buffer, 0, NULL, 1);
    IS_NULL(isthmus_stream_copy_to_host, "to", stream, NULL, buffer, 0, 1);
    IS_NULL(isthmus_stream_fill, "stream", NULL, buffer, 0, 1, 1);
    IS_NULL(isthmus_stream_fill, "buffer", stream, NULL, 0, 1, 1);
    IS_NULL(isthmus_stream_fill_elements, "stream", NULL, buffer, 0, 1, &byte, 1);
    IS_NULL(isthmus_stream_fill_elements, "buffer", stream, NULL, 0, 1, &byte, 1);
    IS_NULL(isthmus_stream_fill_elements, "element", stream, buffer, 0, 1, NULL, 1);
    IS_NULL(isthmus_event_finished, "event", NULL, &flag);
    IS_NULL(isthmus_event_finished, "finished", event, NULL);
    IS_NULL(isthmus_event_synchronize, "event", NULL, 0);
    IS_NULL(isthmus_event_native_handle, "event", NULL, &data);
    IS_NULL(isthmus_event_native_handle, "cu_event", event, NULL);
    IS_NULL(isthmus_stream_launch, "stream", NULL, &byte, extent, NULL, 0);
    IS_NULL(isthmus_stream_launch, "kernel", stream, NULL, extent, NULL, 0);
    IS_NULL(isthmus_stream_launch, "extent", stream, &byte, NULL, NULL, 0);
    IS_NULL(isthmus_kernel_register, "name", NULL, &byte, 1, 0);
    IS_NULL(isthmus_kernel_register, "info", "x", NULL, 1, 0);
    IS_NULL(isthmus_device_load_module, "device", NULL, &byte, 1, NULL, &module);
    IS_NULL(isthmus_device_load_module, "image", device, NULL, 1, NULL, &module);
    IS_NULL(isthmus_device_load_module, "module", device, &byte, 1, NULL, NULL);
    IS_NULL(isthmus_device_load_module_file, "path", device, NULL, NULL, &module);
    IS_NULL(isthmus_module_find, "module", NULL, "x", NULL, 0, NULL);
    IS_NULL(isthmus_stream_launch_module, "stream", NULL, NULL, &shape, NULL, 0);
    IS_NULL(isthmus_stream_launch_module, "kernel", stream, NULL, &shape, NULL, 0);
    IS_NULL(isthmus_shared_ring_create, "device", NULL, 1, NULL, &ring);
    IS_NULL(isthmus_shared_ring_create, "ring", device, 1, NULL, NULL);
    IS_NULL(isthmus_shared_ring_admit, "ring", NULL, NULL);
    IS_NULL(isthmus_shared_ring_begin, "ring", NULL, 0, NULL);
    IS_NULL(isthmus_frame_publish, "frame", NULL, 0);
    IS_NULL(isthmus_frame_finish, "frame", NULL, 0);
    IS_NULL(isthmus_shared_reader_open, "device", NULL, &byte, 1, NULL, 0, &reader);
    IS_NULL(isthmus_shared_reader_open, "bytes", device, NULL, 1, NULL, 0, &reader);
    IS_NULL(isthmus_shared_reader_open, "fds", device, &byte, 1, NULL, 3, &reader);
    IS_NULL(isthmus_shared_reader_open, "reader", device, &byte, 1, NULL, 0, NULL);
    IS_NULL(isthmus_shared_reader_next, "reader", NULL, 0, NULL);
    IS_NULL(isthmus_listener_create, "directory", NULL, NULL);
    IS_NULL(isthmus_listener_accept, "listener", NULL, 0, NULL);
    IS_NULL(isthmus_channel_connect, "directory", NULL, NULL);
    IS_NULL(isthmus_channel_send, "channel", NULL, 0, NULL, 0, NULL, 0);
    IS_NULL(isthmus_channel_receive, "channel", NULL, 0, NULL);
    IS_NULL(isthmus_host_view_to_dlpack, "view", NULL, NULL, 0, 0, NULL);
    IS_NULL(isthmus_native_scope_to_dlpack, "scope", NULL, 0, NULL, 0, 0, NULL);
    IS_NULL(isthmus_device_adopt_dlpack, "device", NULL, NULL, NULL, &new_buffer);
    IS_NULL(isthmus_device_adopt_dlpack, "tensor", device, NULL, NULL, &new_buffer);
    CHECK(new_stream == NULL && new_buffer == NULL && view == NULL && scope == NULL && module == NULL);
    CHECK(ring == NULL && reader == NULL && data == NULL && json == NULL);
    isthmus_event_free(event);
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
}

/* Functions without a code answer nothing to NULL, and frees do nothing. */
static void null_answers_nothing(void) {
    isthmus_runtime_free(NULL);
    isthmus_stream_free(NULL);
    isthmus_event_free(NULL);
    isthmus_buffer_free(NULL);
    isthmus_host_view_free(NULL);
    isthmus_module_free(NULL);
    isthmus_module_kernel_free(NULL);
    isthmus_frame_free(NULL);
    isthmus_shared_ring_free(NULL);
    isthmus_shared_ring_close(NULL);
    isthmus_shared_reader_free(NULL);
    isthmus_descriptor_free(NULL);
    isthmus_listener_free(NULL);
    isthmus_channel_free(NULL);
    isthmus_message_free(NULL);
    isthmus_message_take_fds(NULL);
    isthmus_error_free(NULL);
    CHECK(isthmus_runtime_device_count(NULL) == 0 && isthmus_runtime_device(NULL, 0) == NULL);
    CHECK(isthmus_runtime_default_device(NULL) == NULL && isthmus_runtime_cpu(NULL) == NULL);
    CHECK(isthmus_runtime_cuda_absence(NULL) == NULL && isthmus_runtime_driver_version(NULL) == 0);
    CHECK(isthmus_runtime_is_simulated(NULL) == 0);
    CHECK(isthmus_device_name(NULL)[0] == '\0' && isthmus_device_is_cpu(NULL) == 0 &&
          isthmus_device_ordinal(NULL) == -1);
    CHECK(isthmus_device_index(NULL) == 0 && isthmus_device_model(NULL) == 0 && isthmus_device_healthy(NULL) == 0);
    CHECK(isthmus_device_has(NULL, 0) == 0 && isthmus_device_why(NULL, 0)[0] != '\0');
    CHECK(isthmus_device_profile_date(NULL) == NULL && isthmus_device_stream(NULL) == NULL);
    CHECK(isthmus_device_can_access(NULL, NULL, NULL) == -1);
    CHECK(isthmus_stream_device(NULL) == NULL && isthmus_stream_id(NULL) == 0);
    CHECK(isthmus_buffer_bytes(NULL) == 0 && isthmus_buffer_kind(NULL) == 0 && isthmus_buffer_host_kind(NULL) == 0);
    CHECK(isthmus_buffer_path(NULL) == ISTHMUS_PATH_REFUSE && isthmus_buffer_explain(NULL)[0] == '\0');
    CHECK(isthmus_buffer_staged_bytes(NULL) == 0 && isthmus_buffer_device_address(NULL) == 0);
    CHECK(isthmus_buffer_device(NULL) == NULL && isthmus_buffer_ref(NULL) == NULL);
    CHECK(isthmus_host_view_bytes(NULL) == 0 && isthmus_host_view_data(NULL) == NULL);
    CHECK(isthmus_native_scope_stream(NULL) == NULL);
    CHECK(isthmus_kernel_by_name(NULL) == NULL && isthmus_kernel_rank(NULL) == -1 &&
          isthmus_kernel_parameters(NULL) == NULL);
    CHECK(isthmus_module_entry_count(NULL) == 0 && isthmus_module_entry(NULL, 0) == NULL);
    CHECK(isthmus_shared_ring_published(NULL) == 0 && isthmus_shared_reader_frame_bytes(NULL) == 0);
    CHECK(isthmus_frame_buffer(NULL) == NULL && isthmus_frame_number(NULL) == 0 && isthmus_frame_missed(NULL) == 0);
    size_t count = 9;
    CHECK(isthmus_descriptor_bytes(NULL, &count) == NULL && count == 0);
    count = 9;
    CHECK(isthmus_descriptor_fds(NULL, &count) == NULL && count == 0);
    CHECK(isthmus_listener_fd(NULL) == -1 && isthmus_channel_fd(NULL) == -1 && isthmus_channel_peer_pid(NULL) == 0);
    CHECK(isthmus_message_kind(NULL) == 0 && isthmus_message_bytes(NULL, &count) == NULL && count == 0);
    count = 9;
    CHECK(isthmus_message_fds(NULL, &count) == NULL && count == 0);
    CHECK(isthmus_error_driver_code(NULL) == 0 && isthmus_error_text(NULL)[0] == '\0');
}

/* `bytes` of options that begin with a size, as a caller of another version has them. */
typedef isthmus_code (*call_with)(isthmus_device* device, const void* options, isthmus_error** error);

static isthmus_code open_with(isthmus_device* device, const void* options, isthmus_error** error) {
    isthmus_runtime* runtime = NULL;
    (void)device;
    const isthmus_code code = isthmus_runtime_open(options, &runtime, error);
    isthmus_runtime_free(runtime);
    return code;
}
static isthmus_code allocate_with(isthmus_device* device, const void* options, isthmus_error** error) {
    isthmus_buffer* buffer = NULL;
    const isthmus_code code = isthmus_device_allocate_shared(device, 64, options, &buffer, error);
    isthmus_buffer_free(buffer);
    return code;
}
static isthmus_code adopt_with(isthmus_device* device, const void* options, isthmus_error** error) {
    static unsigned char memory[4096];
    isthmus_buffer* buffer = NULL;
    const isthmus_code code = isthmus_device_adopt(device, memory, sizeof memory, options, &buffer, error);
    isthmus_buffer_free(buffer);
    return code;
}
static isthmus_code observe_with(isthmus_device* device, const void* observer, isthmus_error** error) {
    (void)device;
    isthmus_runtime_options options = ISTHMUS_RUNTIME_OPTIONS_INIT;
    options.use_cuda = 0;
    options.observer = observer;
    isthmus_runtime* runtime = NULL;
    const isthmus_code code = isthmus_runtime_open(&options, &runtime, error);
    isthmus_runtime_free(runtime);
    return code;
}
static isthmus_code create_with(isthmus_device* device, const void* options, isthmus_error** error) {
    isthmus_shared_ring* ring = NULL;
    const isthmus_code code = isthmus_shared_ring_create(device, 64, options, &ring, error);
    isthmus_shared_ring_free(ring);
    return code;
}
static isthmus_code load_with(isthmus_device* device, const void* options, isthmus_error** error) {
    isthmus_module* module = NULL;
    return isthmus_device_load_module(device, "no image", 8, options, &module, error);
}

/* `least`: of the first version. `good` is what the call answers to good options. */
static void sizes_are_checked(isthmus_device* device, call_with call, const void* init, size_t bytes, size_t least,
                              isthmus_code good) {
    unsigned char options[8192];
    for (int turn = 0; turn < 400; ++turn) {
        memset(options, 0, sizeof options);
        memcpy(options, init, bytes);
        size_t size = 0;
        switch (turn % 4) {
            case 0: size = (size_t)(drawn() % 300); break;
            case 1: size = bytes + (size_t)(drawn() % 64); break;
            case 2: size = 4097 + (size_t)(drawn() >> (drawn() % 60)) % (SIZE_MAX - 4097); break;
            default: size = (size_t)(drawn() % least); break;
        }
        if (turn % 3 != 0) size -= size % sizeof(void*); /* as any compiler makes them */
        memcpy(options, &size, sizeof size);
        int unknown = 0;
        if (size > bytes && size <= 4096 && drawn() % 2 == 0) {
            options[bytes + drawn() % (size - bytes)] = (unsigned char)(1 + drawn() % 255);
            unknown = 1;
        }
        const int refused = size < least || size > 4096 || size % sizeof(void*) != 0 || unknown;
        isthmus_error* error = NULL;
        const isthmus_code code = call(device, options, &error);
        if (code != (refused ? ISTHMUS_INVALID_ARGUMENT : good)) {
            fprintf(stderr, "turn %d: a size of %zu answers %s: %s\n", turn, size, isthmus_code_name(code),
                    isthmus_error_text(error));
            exit(1);
        }
        isthmus_error_free(error);
    }
}

static void structs_of_other_versions(isthmus_device* device) {
    const isthmus_runtime_options runtime = {sizeof runtime, 0,   0, NULL, 0, NULL, NULL, "none", 0, 0, 0, 0, 0,
                                             NULL,           NULL};
    sizes_are_checked(device, open_with, &runtime, sizeof runtime, offsetof(isthmus_runtime_options, profile),
                      ISTHMUS_OK);
    const isthmus_observer observer = ISTHMUS_OBSERVER_INIT;
    sizes_are_checked(device, observe_with, &observer, sizeof observer, sizeof observer, ISTHMUS_OK);
    const isthmus_shared_use use = ISTHMUS_SHARED_USE_INIT;
    sizes_are_checked(device, allocate_with, &use, sizeof use, offsetof(isthmus_shared_use, alignment_bytes),
                      ISTHMUS_OK);
    const isthmus_adopt_options adopt = ISTHMUS_ADOPT_OPTIONS_INIT;
    sizes_are_checked(device, adopt_with, &adopt, sizeof adopt, sizeof adopt, ISTHMUS_OK);
    const isthmus_module_options module = ISTHMUS_MODULE_OPTIONS_INIT;
    sizes_are_checked(device, load_with, &module, sizeof module, sizeof module, ISTHMUS_NO_GPU_CODE);
    isthmus_shared_ring_options ring = ISTHMUS_SHARED_RING_OPTIONS_INIT;
    ring.rights = 1;
    ring.slots = 2;
    /* A build without the component ipc refuses all of it. */
    if (create_with(device, &ring, NULL) == ISTHMUS_OK) {
        sizes_are_checked(device, create_with, &ring, sizeof ring, offsetof(isthmus_shared_ring_options, element_bytes),
                          ISTHMUS_OK);
    }
}

/* Every field of the declared use with any number: an answer, never a crash. */
static void numbers_are_checked(isthmus_device* device) {
    int worked = 0;
    for (int turn = 0; turn < 2000; ++turn) {
        isthmus_shared_use use = ISTHMUS_SHARED_USE_INIT;
        const int mild = turn % 2;
        use.host = (int32_t)(mild ? drawn() % 7 : drawn());
        use.device = (int32_t)(mild ? drawn() % 7 : drawn());
        use.prefer = (int32_t)(drawn() % 3);
        use.kind = (int32_t)(mild ? drawn() % 14 : drawn());
        use.alignment_bytes = drawn() % 3 == 0 ? UINT64_C(1) << drawn() % 64 : drawn() % 4 == 0 ? drawn() : 0;
        use.device_passes = (int32_t)drawn();
        if (drawn() % 8 == 0) use.reserved[drawn() % 3] = drawn();
        isthmus_buffer* buffer = NULL;
        const uint64_t bytes = drawn() % 16 == 0 ? drawn() >> drawn() % 64 : drawn() % 4096;
        if (bytes < (UINT64_C(1) << 24) || bytes > (UINT64_C(1) << 48)) {
            const isthmus_code code = isthmus_device_allocate_shared(device, bytes, &use, &buffer, NULL);
            CHECK((code == ISTHMUS_OK) == (buffer != NULL));
            worked += code == ISTHMUS_OK;
        }
        isthmus_buffer_free(buffer);
    }
    CHECK(worked > 20);
}

int main(void) {
    null_answers_nothing();
    isthmus_runtime* runtime = open_runtime();
    null_is_refused_by_name(runtime);
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        structs_of_other_versions(isthmus_runtime_device(runtime, at));
        numbers_are_checked(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
