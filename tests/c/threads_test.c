// SPDX-License-Identifier: Apache-2.0
/* One buffer and one runtime used by several threads; handles freed by other threads than those that made them. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { threads = 4, turns = 200 };

struct shared;
struct user {
    struct shared* all;
    uint64_t own; /* where the bytes begin that it fills: streams are not ordered among each other */
};
struct shared {
    isthmus_device* device;
    isthmus_buffer* buffer;
    atomic_int written;
};

static void* use_buffer(void* context) {
    const struct user* const user = context;
    struct shared* const all = user->all;
    isthmus_stream* stream = NULL;
    isthmus_error* error = NULL;
    CHECK(isthmus_device_create_stream(all->device, 0, &stream, &error) == ISTHMUS_OK);
    for (int turn = 0; turn < turns; ++turn) {
        isthmus_host_view* view = NULL;
        void* data = NULL;
        isthmus_code code = isthmus_buffer_open_on_host(all->buffer, 0, ISTHMUS_REST, ISTHMUS_READ_WRITE,
                                                        ISTHMUS_WAIT_DEFAULT, &view, &data, &error);
        if (code == ISTHMUS_OK) {
            ++*(int*)data; /* the view is the permission: no other thread has one */
            atomic_fetch_add(&all->written, 1);
            isthmus_host_view_free(view);
        } else {
            CHECK(code == ISTHMUS_IN_USE && isthmus_error_message(error)[0] != '\0');
            isthmus_error_free(error);
        }
        code = isthmus_stream_fill(stream, all->buffer, user->own, 64, (uint8_t)turn, NULL);
        CHECK(code == ISTHMUS_OK || code == ISTHMUS_IN_USE);
        CHECK(strcmp(isthmus_kind_name(turn % 13), "unknown") != 0 || turn % 13 == 0);
    }
    isthmus_stream_free(stream);
    isthmus_buffer_free(all->buffer); /* its own */
    return NULL;
}

/* keeps Y1, Y3 */
int main(void) {
    isthmus_runtime* runtime = open_runtime();
    struct shared all;
    all.device = isthmus_runtime_default_device(runtime);
    all.buffer = shared_buffer(all.device, 4096);
    atomic_init(&all.written, 0);
    write_bytes(all.buffer, 0);
    pthread_t running[threads];
    struct user users[threads];
    for (int at = 0; at < threads; ++at) {
        isthmus_buffer_ref(all.buffer);
        users[at].all = &all;
        users[at].own = 64 * (uint64_t)(1 + at);
        CHECK(pthread_create(&running[at], NULL, use_buffer, &users[at]) == 0);
    }
    isthmus_runtime_free(runtime); /* the buffer keeps it */
    for (int at = 0; at < threads; ++at) CHECK(pthread_join(running[at], NULL) == 0);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(all.buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data,
                                      ERR));
    CHECK(atomic_load(&all.written) > 0 && *(int*)data == atomic_load(&all.written));
    isthmus_buffer_free(all.buffer);
    isthmus_host_view_free(view);
    return 0;
}
