// SPDX-License-Identifier: Apache-2.0
/* Buffers of every kind, host views, and frees in every order. */
#include "check.h"

/* keeps Y1 */
static void shared_buffers_hold_what_is_written(isthmus_device* device) {
    isthmus_shared_use use = ISTHMUS_SHARED_USE_INIT;
    use.host = ISTHMUS_USE_WRITES_ONCE;
    use.device = ISTHMUS_USE_READS_ONCE;
    use.alignment_bytes = 4096;
    isthmus_buffer* buffer = NULL;
    WORKS(isthmus_device_allocate_shared(device, 10000, &use, &buffer, ERR));
    CHECK(isthmus_buffer_bytes(buffer) == 10000);
    CHECK(isthmus_buffer_device(buffer) == device);
    CHECK(isthmus_buffer_kind(buffer) != ISTHMUS_KIND_UNKNOWN);
    CHECK(isthmus_buffer_host_kind(buffer) != ISTHMUS_KIND_UNKNOWN);
    CHECK(isthmus_buffer_path(buffer) != ISTHMUS_PATH_REFUSE);
    CHECK(isthmus_buffer_explain(buffer)[0] != '\0');
    CHECK(isthmus_buffer_device_address(buffer) % 4096 == 0);
    const char* reason = NULL;
    CHECK(isthmus_device_can_access(device, buffer, &reason) == 1);
    CHECK(reason[0] != '\0');
    write_bytes(buffer, 7);
    check_bytes(buffer, 0, 10000, 7);

    /* A range, written and read beside the rest. */
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 100, 50, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    CHECK(isthmus_host_view_bytes(view) == 50);
    CHECK(isthmus_host_view_data(view) == data);
    memset(data, 9, 50);
    isthmus_host_view_free(view);
    check_bytes(buffer, 0, 100, 7);
    check_bytes(buffer, 100, 150, 9);
    check_bytes(buffer, 150, 10000, 7);
    WORKS(isthmus_buffer_open_on_host(buffer, 9999, ISTHMUS_REST, ISTHMUS_READ_WRITE, ISTHMUS_WAIT_DEFAULT, &view,
                                      &data, ERR));
    CHECK(isthmus_host_view_bytes(view) == 1);
    isthmus_host_view_free(view);
    isthmus_buffer_free(buffer);
}

static void ranges_beyond_the_end_are_refused(isthmus_device* device) {
    isthmus_buffer* buffer = shared_buffer(device, 1000);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    const uint64_t ranges[][2] = {{0, 1001},  {1001, 0},       {1001, ISTHMUS_REST},
                                  {500, 501}, {UINT64_MAX, 2}, {1, UINT64_MAX - 1}};
    for (size_t at = 0; at < sizeof ranges / sizeof *ranges; ++at) {
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "the end",
                isthmus_buffer_open_on_host(buffer, ranges[at][0], ranges[at][1], ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT,
                                            &view, &data, ERR));
    }
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "flags",
            isthmus_buffer_open_on_host(buffer, 0, 10, 0, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "flags",
            isthmus_buffer_open_on_host(buffer, 0, 10, 4, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "wait_ns",
            isthmus_buffer_open_on_host(buffer, 0, 10, ISTHMUS_READ, -2, &view, &data, ERR));
    CHECK(view == NULL && data == NULL);
    isthmus_buffer_free(buffer);
}

static void conflicting_views_are_refused(isthmus_device* device) {
    isthmus_buffer* buffer = shared_buffer(device, 4096);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_host_view* first = NULL;
    isthmus_host_view* second = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &first, &data, ERR));
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_NEVER, &second, &data, ERR));
    isthmus_host_view_free(second);
    REFUSED(
        ISTHMUS_IN_USE, "",
        isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT, &second, &data, ERR));
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, ERR));
    isthmus_host_view_free(first);
    WORKS(isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, ERR));
    check_bytes(buffer, 0, 4096, 1);
    isthmus_stream_free(stream);
    isthmus_buffer_free(buffer);
}

/* keeps Y1 */
static void elements_of_each_size_are_filled(isthmus_device* device) {
    const unsigned char element[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* buffer = shared_buffer(device, 4096);
    for (uint64_t size = 1; size <= 16; size *= 2) {
        WORKS(isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 99, ERR));
        WORKS(isthmus_stream_fill_elements(stream, buffer, 3 * size, 4096 - 5 * size, element, size, ERR));
        isthmus_host_view* view = NULL;
        void* data = NULL;
        WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data,
                                          ERR));
        uint64_t wrong = 0;
        for (uint64_t at = 0; at < 4096; ++at) {
            const int filled = at >= 3 * size && at < 4096 - 2 * size;
            wrong += ((const unsigned char*)data)[at] != (filled ? element[at % size] : 99);
        }
        CHECK(wrong == 0);
        isthmus_host_view_free(view);
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "beyond the end",
                isthmus_stream_fill_elements(stream, buffer, 4096, size, element, size, ERR));
        if (size == 1) continue;
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "`offset` is 1",
                isthmus_stream_fill_elements(stream, buffer, 1, size, element, size, ERR));
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "`bytes` are",
                isthmus_stream_fill_elements(stream, buffer, 0, size + 1, element, size, ERR));
    }
    WORKS(isthmus_stream_fill_elements(stream, buffer, 4096, ISTHMUS_REST, element, 16, ERR));
    const uint64_t other[] = {0, 3, 32, UINT64_MAX};
    for (int at = 0; at < 4; ++at) {
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "`element_bytes` is",
                isthmus_stream_fill_elements(stream, buffer, 0, ISTHMUS_REST, element, other[at], ERR));
    }
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
}

static void kinds_are_allocated_or_refused(isthmus_device* device) {
    int made = 0;
    for (int32_t kind = 0; kind <= ISTHMUS_KIND_IMPORTED; ++kind) {
        isthmus_buffer* buffer = NULL;
        const isthmus_code code = isthmus_device_allocate(device, 512, kind, &buffer, NULL);
        CHECK((code == ISTHMUS_OK) == (buffer != NULL));
        if (code == ISTHMUS_OK) {
            ++made;
            CHECK(isthmus_buffer_kind(buffer) == kind || isthmus_device_is_cpu(device));
            if (kind == ISTHMUS_KIND_DEVICE && !isthmus_device_is_cpu(device)) {
                isthmus_host_view* view = NULL;
                void* data = NULL;
                REFUSED(
                    ISTHMUS_NOT_ACCESSIBLE, "",
                    isthmus_buffer_open_on_host(buffer, 0, 1, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
            }
        }
        isthmus_buffer_free(buffer);
    }
    CHECK(made >= 2);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* pooled = NULL;
    if (isthmus_stream_allocate(stream, 256, &pooled, NULL) == ISTHMUS_OK) {
        CHECK(isthmus_buffer_bytes(pooled) == 256);
        isthmus_buffer_free(pooled);
    }
    isthmus_stream_free(stream);
}

static void owners_share_a_buffer(isthmus_device* device) {
    isthmus_buffer* buffer = shared_buffer(device, 300);
    isthmus_buffer* other = isthmus_buffer_ref(buffer);
    CHECK(other == buffer);
    write_bytes(buffer, 3);
    isthmus_buffer_free(buffer);
    check_bytes(other, 0, 300, 3);
    isthmus_buffer_free(other);
    CHECK(isthmus_buffer_ref(NULL) == NULL);
}

/* Frees number `which` of the handles. */
struct handles {
    isthmus_runtime* runtime;
    isthmus_stream* stream;
    isthmus_event* event;
    isthmus_buffer* buffer;
    isthmus_host_view* view;
};
static void free_one(struct handles* all, int which) {
    switch (which) {
        case 0: isthmus_runtime_free(all->runtime); break;
        case 1: isthmus_stream_free(all->stream); break;
        case 2: isthmus_event_free(all->event); break;
        case 3: isthmus_buffer_free(all->buffer); break;
        default: isthmus_host_view_free(all->view); break;
    }
}

/* keeps Y3: what is left works, whatever was freed before. */
static void handles_go_in_every_order(void) {
    for (int order = 0; order < 120; ++order) {
        struct handles all;
        all.runtime = open_runtime();
        isthmus_device* device = isthmus_runtime_default_device(all.runtime);
        all.stream = isthmus_device_stream(device);
        all.buffer = shared_buffer(device, 2000);
        WORKS(isthmus_stream_fill(all.stream, all.buffer, 0, ISTHMUS_REST, 5, ERR));
        WORKS(isthmus_stream_record(all.stream, &all.event, ERR));
        void* data = NULL;
        WORKS(isthmus_buffer_open_on_host(all.buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &all.view,
                                          &data, ERR));
        int left[5] = {0, 1, 2, 3, 4};
        int number = order;
        for (int count = 5; count > 0; --count) {
            const int at = number % count;
            number /= count;
            free_one(&all, left[at]);
            const int freed = left[at];
            left[at] = left[count - 1];
            if (freed == 4) data = NULL;
            int view_lives = 0;
            for (int i = 0; i < count - 1; ++i) {
                view_lives |= left[i] == 4;
                int32_t finished = 0;
                if (left[i] == 1) WORKS(isthmus_stream_synchronize(all.stream, ISTHMUS_WAIT_DEFAULT, ERR));
                if (left[i] == 2) WORKS(isthmus_event_finished(all.event, &finished, ERR));
                if (left[i] == 3) CHECK(isthmus_device_name(isthmus_buffer_device(all.buffer))[0] != '\0');
            }
            if (view_lives) CHECK(((const unsigned char*)data)[1999] == 5);
        }
    }
}

int main(void) {
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        isthmus_device* device = isthmus_runtime_device(runtime, at);
        shared_buffers_hold_what_is_written(device);
        ranges_beyond_the_end_are_refused(device);
        conflicting_views_are_refused(device);
        elements_of_each_size_are_filled(device);
        kinds_are_allocated_or_refused(device);
        owners_share_a_buffer(device);
    }
    isthmus_runtime_free(runtime);
    handles_go_in_every_order();
    return 0;
}
