// SPDX-License-Identifier: Apache-2.0
/* The heap is exhausted: an error, no exception, and nothing is lost. Only the last allocation of a call fails, which
 * is that of its handle: the C++ library ends the process where its own allocations fail. */
#include "check.h"
#include "failing_new.h"

struct objects {
    isthmus_device* device;
    isthmus_stream* stream;
    isthmus_buffer* buffer;
};
/* News of the last call that made an object; freeing it may make others. */
static long news_of_call;
/* Makes an object and frees it; `error` as for the library. */
typedef isthmus_code (*make)(struct objects* all, isthmus_error** error);

static isthmus_code make_event(struct objects* all, isthmus_error** error) {
    isthmus_event* event = NULL;
    const long before = news_made();
    const isthmus_code code = isthmus_stream_record(all->stream, &event, error);
    news_of_call = news_made() - before;
    CHECK((code == ISTHMUS_OK) == (event != NULL));
    isthmus_event_free(event);
    return code;
}
static isthmus_code make_buffer(struct objects* all, isthmus_error** error) {
    isthmus_buffer* buffer = NULL;
    const long before = news_made();
    const isthmus_code code = isthmus_device_allocate_shared(all->device, 4096, NULL, &buffer, error);
    news_of_call = news_made() - before;
    CHECK((code == ISTHMUS_OK) == (buffer != NULL));
    isthmus_buffer_free(buffer);
    return code;
}
static isthmus_code make_part_view(struct objects* all, isthmus_error** error) {
    isthmus_host_view* view = NULL;
    void* data = NULL;
    const long before = news_made();
    const isthmus_code code =
        isthmus_buffer_open_on_host(all->buffer, 8, 8, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT, &view, &data, error);
    news_of_call = news_made() - before;
    CHECK((code == ISTHMUS_OK) == (view != NULL) && (view != NULL) == (data != NULL));
    isthmus_host_view_free(view);
    return code;
}
static isthmus_code make_stream(struct objects* all, isthmus_error** error) {
    isthmus_stream* stream = NULL;
    const long before = news_made();
    const isthmus_code code = isthmus_device_create_stream(all->device, 0, &stream, error);
    news_of_call = news_made() - before;
    CHECK((code == ISTHMUS_OK) == (stream != NULL));
    isthmus_stream_free(stream);
    return code;
}
static void last_allocation_fails(struct objects* all, make made) {
    for (int turn = 0; turn < 3; ++turn) CHECK(made(all, NULL) == ISTHMUS_OK); /* the first turns fill caches */
    const long news = news_of_call;
    CHECK(news > 0);
    isthmus_error* error = NULL;
    fail_new(news - 1);
    const isthmus_code code = made(all, &error);
    fail_new(-1);
    CHECK(code == ISTHMUS_OUT_OF_MEMORY && isthmus_error_code(error) == ISTHMUS_OUT_OF_MEMORY);
    CHECK(strstr(isthmus_error_message(error), "memory") != NULL && isthmus_error_remedy(error)[0] != '\0');
    isthmus_error_free(error);
    /* Nothing is held: the buffer can be written, the call works. */
    CHECK(made(all, NULL) == ISTHMUS_OK);
    write_bytes(all->buffer, 1);
}

/* keeps Y1 */
int main(void) {
    isthmus_runtime* runtime = open_runtime();
    if (news_made() == 0) {
        /* The library has an operator new of its own where its compiler links the C++ library statically. */
        printf("skipped: the library does not use the operator new of this program\n");
        return 77;
    }
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        struct objects all;
        all.device = isthmus_runtime_device(runtime, at);
        all.stream = isthmus_device_stream(all.device);
        all.buffer = shared_buffer(all.device, 4096);
        last_allocation_fails(&all, make_event);
        last_allocation_fails(&all, make_buffer);
        last_allocation_fails(&all, make_part_view);
        last_allocation_fails(&all, make_stream);
        if (isthmus_device_is_cpu(all.device)) {
            /* A view that waits for nothing is opened without exceptions; if that fails, as the others are. */
            isthmus_buffer* fresh = shared_buffer(all.device, 64);
            write_bytes(fresh, 1);
            isthmus_host_view* view = NULL;
            void* data = NULL;
            fail_new(0);
            WORKS(isthmus_buffer_open_on_host(fresh, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data,
                                              ERR));
            fail_new(-1);
            isthmus_host_view_free(view);
            isthmus_buffer_free(fresh);
        }
        isthmus_buffer_free(all.buffer);
        isthmus_stream_free(all.stream);
    }
    isthmus_runtime_free(runtime);
    return 0;
}
